"""The experiment on generated people, for whom the planted discrimination is known."""

import numpy as np

from feta.rule import Threshold
from feta.train.split import Split
from feta.train.task import Task
from feta_paper.planted import SPACE, Planted
from feta_paper.proxies.arms import WITH_PROBABILITIES, ArmTraining
from feta_paper.proxies.settings import NetworkTraining, ProxySettings

# Test people have other seeds than training people.
TEST_SEEDS = 10_000


def measure_generated(
    settings: ProxySettings, training: NetworkTraining, correlation: float, seed: int
) -> dict[str, float]:
    """Train all arms on people of one seed, and measure them on people of another seed."""
    trained = Planted.of(settings.n_people, correlation, seed=seed)
    others = Planted.of(settings.n_people, correlation, seed=TEST_SEEDS + seed)
    task = Task(Threshold(0.0))
    split = Split.of(SPACE, task, trained.people, trained.labels, validation=None, seed=seed)
    arms = ArmTraining(
        SPACE, split, training, settings.fair, None, settings.distil_epochs, settings.least, seed
    ).arms()
    figures = {}
    for arm in arms:
        favorable = np.asarray(arm.decide(others.people), dtype=bool)
        figures[f"{arm.name}.relearned_by_decisions"] = others.relearned_by(favorable)
        figures[f"{arm.name}.agreement"] = others.agreement(favorable)
        figures[f"{arm.name}.accuracy"] = float(np.mean(favorable == others.labels))
        if arm.name in WITH_PROBABILITIES:
            figures[f"{arm.name}.relearned"] = others.relearned(arm.score(others.people))
    return figures
