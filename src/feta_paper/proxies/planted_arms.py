"""The experiment on semi-synthetic people, for whom the planted discrimination is known."""

import numpy as np

from feta.train.split import Split
from feta.train.task import Task
from feta_paper.proxies.arms import WITH_PROBABILITIES, ArmTraining
from feta_paper.proxies.semi_synthetic import RULE, fitted_merits
from feta_paper.proxies.settings import NetworkTraining, ProxySettings


def measure_planted(
    settings: ProxySettings, training: NetworkTraining, correlation: float, seed: int
) -> dict[str, float]:
    """Train all arms on people of one draw, and measure them on others of the same draw."""
    merits = fitted_merits(settings.merits)
    trained, others = merits.draw(settings.n_people, correlation, seed=seed)
    split = Split.of(
        merits.space, Task(RULE), trained.people, trained.labels, validation=None, seed=seed
    )
    arms = ArmTraining(
        merits.space,
        split,
        training,
        settings.fair,
        None,
        settings.distil_epochs,
        settings.least,
        seed,
    ).arms()
    figures = {}
    for arm in arms:
        favorable = np.asarray(arm.decide(others.people), dtype=bool)
        figures[f"{arm.name}.relearned_by_decisions"] = others.relearned_by(favorable)
        figures[f"{arm.name}.agreement"] = others.agreement(favorable)
        figures[f"{arm.name}.accuracy"] = float(np.mean(favorable == others.labels))
        figures[f"{arm.name}.favorable"] = float(np.mean(favorable))
        if arm.name in WITH_PROBABILITIES:
            figures[f"{arm.name}.relearned"] = others.relearned(arm.score(others.people))
    return figures
