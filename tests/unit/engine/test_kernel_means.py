"""Means in the compiled kernel: the same decisions on every instruction set and thread."""

from typing import Literal

import numpy as np
import pytest

from feta import (
    Categorical,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Network,
    Real,
    Threshold,
    VoteWeights,
)
from feta.arrays import Matrix
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED
from feta.rule.comparator import UNDECIDED
from feta.scorer.protocol import Side
from feta.vote.graded_ballot import UNIT, GradedBallot
from feta.vote.mean_decision import MeanDecision, VoteName, mean_decision

SPACE = FeatureSpace(
    (
        Integer("age", 18, 40, sensitive=True),
        Categorical("race", ("a", "b", "c"), sensitive=True),
        Categorical("town", ("x", "y")),
        Real("income", -4.0, 4.0),
    )
)
pytestmark = pytest.mark.skipif(not LatticeEngine.available(), reason="the kernel is not built")


def network(seed: int, hidden: int = 8, activation: str = "relu") -> Model:
    """Return a random network with a sigmoid and 69 counterparts per person."""
    rng = np.random.default_rng(seed)
    layers = [
        (rng.normal(size=(hidden, SPACE.width)), rng.normal(size=hidden)),
        (rng.normal(size=(hidden, hidden)), rng.normal(size=hidden)),
        (rng.normal(size=(1, hidden)), rng.normal(size=1)),
    ]
    layers[0][0][:, 0] /= 20
    read = Network.from_layers(layers, activation=activation)
    return Model(SPACE, read.with_link("logit"))


def crowd(n_people: int = 60) -> Matrix:
    rng = np.random.default_rng(1)
    rows = [
        {"age": 18, "race": "a", "town": str(rng.choice(["x", "y"])), "income": float(x)}
        for x in rng.uniform(-4, 4, n_people)
    ]
    return SPACE.encode(rows)


def weights(seed: int) -> VoteWeights:
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.choice(SPACE.lattice.size, 40, replace=False))
    return VoteWeights(ids, rng.integers(1, 9, 40), SPACE)


def votes_of(
    model: Model, vote: VoteName, people: Matrix, listed: VoteWeights | None
) -> MeanDecision:
    """Return a vote whose cut-off is the middle of the people's means."""
    found = mean_decision(model, vote, None, None)
    assert found is not None
    means = ExhaustiveEngine().means(model, people, UNLIMITED, mean=found, weights=listed).means
    level = float(np.median(means))
    at_level = mean_decision(model, vote, level, None)
    assert at_level is not None
    return at_level


@pytest.mark.parametrize("listed", [None, weights(0)])
@pytest.mark.parametrize("vote", ["mean_score", "mean_probability"])
@pytest.mark.parametrize(
    ("seed", "activation"), [(0, "relu"), (1, "relu"), (2, "relu"), (0, "tanh"), (1, "gelu")]
)
def test_the_kernel_decides_as_exhaustive_does(
    seed: int, activation: str, vote: VoteName, listed: VoteWeights | None
) -> None:
    people, model = crowd(), network(seed, activation=activation)
    mean = votes_of(model, vote, people, listed)
    expected = ExhaustiveEngine().means(model, people, UNLIMITED, mean=mean, weights=listed)
    assert 0 < expected.outcomes.sum() < len(people)
    for simd in (False, True):
        for threads in (1, 2):
            engine = LatticeEngine(threads=threads, simd=simd)
            found = engine.mean_decisions(model, people, mean, weights=listed)
            assert found is not None
            known = found != UNDECIDED
            assert known.sum() >= len(people) - 2  # only people on the level are left
            assert (found[known] == expected.decisions[known]).all()


def test_a_mean_on_the_level_is_left_to_exact_arithmetic() -> None:
    space = FeatureSpace((Integer("age", 0, 3, sensitive=True), Real("income", -9.0, 9.0)))
    model = Model(space, Network.from_layers([([[1.0, 1.0]], [0.0])]), threshold=0.0)
    mean = mean_decision(model, "mean_score", None, None)
    assert mean is not None
    rows = np.array([[0.0, income] for income in (-1.5, np.nextafter(-1.5, -2), -1.25, -1.75)])
    found = LatticeEngine().mean_decisions(model, rows, mean, weights=None)
    assert found is not None
    assert found.tolist() == [UNDECIDED, UNDECIDED, 1, 0]


def test_a_grade_counts_from_its_threshold_on() -> None:
    space = FeatureSpace((Integer("age", 0, 1, sensitive=True), Real("income", -9.0, 9.0)))
    scorer = Network.from_layers([([[0.0, 1.0]], [0.0])]).with_link("logit")
    model = Model(space, scorer, threshold=0.0)
    ballot = GradedBallot(np.array([-1.0, 0.0, 1e-3, 5.0]), np.array([0, 1, 2, 3, UNIT]))
    rows = np.array([[0.0, x] for x in (-1.01, -0.99, -1e-3, 1e-4, 2e-3, 4.9, 5.1)])
    grades = np.array([0, 1, 1, 2, 3, 3, UNIT])
    for grade in (1, 2, 3, UNIT):
        mean = mean_decision(model, "mean_probability", grade / UNIT, ballot)
        assert mean is not None
        found = LatticeEngine().mean_decisions(model, rows, mean, weights=None)
        assert found is not None
        assert found.tolist() == (grades >= grade).astype(int).tolist()


def test_rows_that_the_kernel_cannot_read_are_left_to_python() -> None:
    model = network(0)
    mean = mean_decision(model, "mean_score", None, None)
    assert mean is not None
    outside = crowd(2)
    outside[1, -1] = 99.0
    assert LatticeEngine().mean_decisions(model, outside, mean, weights=None) is None
    assert ExhaustiveEngine().mean_decisions(model, crowd(2), mean, weights=None) is None


@pytest.mark.parametrize("favors", ["above", "below"])
@pytest.mark.parametrize("equality", ["favorable", "unfavorable"])
def test_a_weighted_majority_is_decided_as_its_tally_is(
    favors: Side, equality: Literal["favorable", "unfavorable"]
) -> None:
    # The score is the income plus the age; incomes are integers, so many scores are on 0.
    space = FeatureSpace((Integer("age", -2, 2, sensitive=True), Integer("income", -4, 4)))
    scorer = Network.from_layers([([[1.0, 1.0]], [0.0])])
    model = Model(space, scorer, Threshold(0.0, favors, equality))
    rows = np.array([[0.0, float(income)] for income in range(-4, 5)])
    for votes in ([1, 1, 1, 1, 1], [3, 1, 1, 1, 2], [1, 2, 3, 4, 2], [7, 1, 1, 1, 4]):
        listed = VoteWeights(np.arange(5), np.array(votes), space)
        predictor = FairPredictor(model, weights=listed)
        signs = [[np.sign(age + row[1]) for age in range(-2, 3)] for row in rows]
        good = {"above": 1, "below": -1}[favors]
        favorable = [
            sum(
                vote
                for vote, sign in zip(votes, own, strict=True)
                if sign == good or (sign == 0 and equality == "favorable")
            )
            for own in signs
        ]
        expected = [2 * count >= sum(votes) for count in favorable]
        assert predictor.decide(rows).tolist() == expected
        assert predictor.votes(rows).outcomes.tolist() == expected
