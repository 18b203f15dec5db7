"""The experiment on real people: accuracy, level, gap at equal approval, re-inference."""

from dataclasses import replace

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.comparing.candidate import Candidate
from feta.metrics.equal_approval import approvals
from feta.metrics.proxy_measures import evenly
from feta.metrics.reinference import AwareScores, Score, SensitiveValues, reinference
from feta.rule import Threshold
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace
from feta.train.split import HELD_OUT, Split
from feta.train.task import Task
from feta_paper.fold import load_people
from feta_paper.proxies.arms import BLIND, ArmTraining
from feta_paper.proxies.settings import FIRST_SEED, ProxySettings, RealPeople


def measure_real(
    settings: ProxySettings, real: RealPeople, seed: int, number: int
) -> dict[str, float]:
    """Train all arms on one fold, and measure them on its test people."""
    from sklearn.model_selection import KFold  # noqa: PLC0415 - slow to import

    people = load_people(real.dataset, settings.rows, FIRST_SEED)
    space = space_of(people.dataset.space, real)
    folds = KFold(settings.folds, shuffle=True, random_state=seed).split(people.rows)
    rest, test = list(folds)[number]
    rng = np.random.default_rng([seed, number])
    test = rng.permutation(test)[: real.max_tested]
    tested = TestedPeople(space, people.rows[test], people.labels[test], real, settings.n_scored)
    arms = ArmTraining(
        space,
        _split(space, people.rows, people.labels, rng.permutation(rest)),
        real.training,
        real.fair if number < real.fair_folds else None,
        settings.scale,
        settings.distil_epochs,
        settings.least,
        int(np.random.SeedSequence([seed, number]).generate_state(1)[0]),
    ).arms()
    return tested.figures(list(arms))


def space_of(space: FeatureSpace, real: RealPeople) -> FeatureSpace:
    """Return the space with the sensitive attributes of the experiment; the columns are equal."""
    if not real.sensitive:
        return space
    return FeatureSpace(
        tuple(
            attribute
            if isinstance(attribute, Derived)
            else replace(attribute, sensitive=attribute.name in real.sensitive)
            for attribute in space.attributes
        )
    )


def _split(space: FeatureSpace, rows: Matrix, labels: Flags, shuffled: Counts) -> Split:
    held, learn = np.split(shuffled, [round(HELD_OUT * len(shuffled))])
    validation = (rows[held], labels[held])
    task = Task(Threshold(0.0))
    return Split.of(space, task, rows[learn], labels[learn], validation=validation, seed=0)


class TestedPeople:
    """The test people of a fold, and what is measured on them."""

    def __init__(
        self, space: FeatureSpace, people: Matrix, labels: Flags, real: RealPeople, n_scored: int
    ) -> None:
        self.people, self.labels = people, labels
        self.members = members_of(space, people, real)
        self.scored = people[evenly(len(people), n_scored)]
        self.values = SensitiveValues.of(space, self.scored)
        self.by_group: dict[Score, AwareScores] = {}

    def figures(self, arms: list[Candidate]) -> dict[str, float]:
        """Measure all arms; the gap is taken where each approves as many people as blind."""
        decisions = {arm.name: np.asarray(arm.decide(self.people), dtype=bool) for arm in arms}
        n_favorable = int(decisions[BLIND].sum())
        figures: dict[str, float] = {}
        for arm in arms:
            favorable = decisions[arm.name]
            figures[f"{arm.name}.accuracy"] = float(np.mean(favorable == self.labels))
            figures[f"{arm.name}.favorable"] = float(np.mean(favorable))
            approved = approvals(arm.score(self.people), n_favorable)
            figures[f"{arm.name}.gap"] = group_gap(approved, self.members)
            slope = self._slope(arm)
            if slope is not None:
                figures[f"{arm.name}.slope"] = slope
        return figures

    def _slope(self, arm: Candidate) -> float | None:
        """Return the slope of re-inference; None without a score to compare with."""
        if arm.aware is None:
            return None
        if arm.aware not in self.by_group:
            scores = self.values.scores(arm.aware, self.scored)
            self.by_group[arm.aware] = AwareScores(scores, self.values)
        slope = reinference(arm.score(self.scored), self.by_group[arm.aware]).slope
        return None if slope is None else slope.value


def members_of(space: FeatureSpace, people: Matrix, real: RealPeople) -> Flags:
    """Return who belongs to the group of interest."""
    attribute = next(one for one in space.attributes if one.name == real.attribute)
    assert isinstance(attribute, Categorical)  # a frozen setting
    columns = people[:, space.columns_of(attribute)]
    chosen = [attribute.values.index(member) for member in real.members]
    return np.asarray(columns[:, chosen].any(axis=1))


def group_gap(approved: Vector, members: Flags) -> float:
    """Return the rate of a group minus the rate of everybody else."""
    return float(approved[members].mean() - approved[~members].mean())
