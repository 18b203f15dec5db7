"""Fitted votes: they keep the level at any cut-off, in any order of the people."""

import warnings
from dataclasses import dataclass
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
    SchemaError,
    Threshold,
    read_callable,
)
from feta.arrays import Counts, Matrix, Vector
from feta.errors import OutsideLimits
from feta.space.vote_weights import VoteWeights
from feta.vote.mean_decision import VoteName
from feta.wider_limits import groups
from tests.extensions.toys import Grown

SPACE = FeatureSpace(
    (
        Integer("age", 0, 2, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Real("x", -40.0, 40.0),
    )
)
NETWORK = Network.from_layers([([[0.1, 0.0, 0.5, 1.0]], [0.0])]).with_link("logit")

Kind = Literal["spread", "dense", "tied"]


def crowd(rng: np.random.Generator, center: float, kind: Kind) -> Matrix:
    """Return 900 people with scores around a center, far from it or in heavy ties."""
    n_people = 900
    x = rng.normal(center, 3.0, n_people)
    if kind == "dense":
        x[: n_people // 2] = rng.normal(center, 0.1, n_people // 2)
    if kind == "tied":
        x = rng.choice(np.round(x[:250], 1), n_people)
    rows = np.zeros((n_people, SPACE.width))
    rows[:, 0] = rng.integers(0, 3, n_people)
    rows[np.arange(n_people), rng.integers(1, 3, n_people)] = 1.0
    rows[:, 3] = np.clip(x, -40, 40)
    return rows


def orders(rng: np.random.Generator, people: Matrix) -> list[Counts]:
    """Return orders of people: sorted by their scores, both ways, and at random."""
    by_score = np.argsort(people[:, 3], kind="stable")
    return [by_score, by_score[::-1], rng.permutation(len(people))]


VOTES: tuple[VoteName, ...] = ("mean_score", "mean_probability")


def fitted(model: Model, people: Matrix, vote: VoteName = "mean_probability") -> FairPredictor:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return FairPredictor.fitted(model, people, vote)


@pytest.mark.parametrize("kind", ["spread", "dense", "tied"])
@pytest.mark.parametrize("cut", [-7.0, -5.0, 0.0, 7.0])
def test_the_level_is_kept_in_any_order(cut: float, kind: Kind) -> None:
    rng = np.random.default_rng([int(abs(cut)), len(kind)])
    people = crowd(rng, cut, kind)
    model = Model(SPACE, NETWORK, Threshold(cut, "above" if cut < 0 else "below"))
    first = fitted(model, people)
    assert first.ballot is not None
    assert first.weights is not None
    for order in orders(rng, people):
        again = fitted(model, people[order])
        assert again.level == first.level
        assert again.ballot is not None
        assert again.weights is not None
        assert (again.ballot.thresholds == first.ballot.thresholds).all()
        assert (again.ballot.grades == first.ballot.grades).all()
        assert (again.weights.votes == first.weights.votes).all()
    # The best that any level can do on the true means.
    own = int(model.decide(people).sum())
    sign = 1 if cut < 0 else -1
    means = sign * true_means(first.weights, people)
    possible = [0, *(int((means >= cut).sum()) for cut in np.unique(means.round(12)) - 1e-12)]
    best = min(abs(count - own) for count in possible)
    assert abs(int(first.decide(people).sum()) - own) <= best + 1


def true_means(weights: VoteWeights, people: Matrix) -> np.ndarray:
    """Return the mean probability of each person's counterparts, in float64."""
    rows = [SPACE.lattice.moved(np.repeat(p[None], len(weights.votes), 0), weights.assignment_ids)
            for p in people]  # fmt: skip
    scores = np.array([NETWORK(np.asarray(part))[:, 0] for part in rows])
    return 1 / (1 + np.exp(-scores)) @ weights.votes / weights.total


def test_people_with_equal_mean_scores_are_chosen_evenly() -> None:
    """Scores −9 ± z: all means are in one cell of the even ballot, and all mean scores equal."""
    rng = np.random.default_rng(9)
    n_people = 6000
    space = FeatureSpace(
        (Integer("id", 0, 10**4), Integer("s", 0, 1, sensitive=True), Real("z", 0.0, 4.0))
    )
    hidden = (np.array([[0.0, 40.0, 1.0], [0.0, -40.0, 1.0]]), np.array([-40.0, 0.0]))
    network = Network.from_layers([hidden, (np.array([[1.0, -1.0]]), np.array([-9.0]))])
    model = Model(space, network.with_link("logit"), Threshold(-8.7))
    z = np.sort(rng.uniform(0, 3, n_people))
    people = np.c_[np.arange(n_people), rng.integers(0, 2, n_people), z].astype(float)
    own = int(model.decide(people).sum())
    assert 0.4 < own / n_people < 0.5
    predictors = [
        FairPredictor.fitted(model, people[order], weights="equal")
        for order in (np.arange(n_people), rng.permutation(n_people))
    ]
    decided = predictors[0].decide(people)
    assert abs(int(decided.sum()) - own) <= 0.002 * n_people
    # The mean probability grows with z.
    assert (decided == (z >= z[-own])).mean() >= 0.995
    ballots = [predictor.ballot for predictor in predictors]
    assert ballots[0] is not None
    assert ballots[1] is not None
    assert predictors[0].level == predictors[1].level
    assert (ballots[0].thresholds == ballots[1].thresholds).all()


def test_a_level_that_is_kept_roughly_is_a_notice() -> None:
    rng = np.random.default_rng(5)
    people = crowd(rng, 0.0, "tied")
    people[:, 3] = np.round(people[:, 3] / 12)  # a few different people
    with pytest.warns(UserWarning, match=r"the level is kept roughly: the vote is favorable to"):
        FairPredictor.fitted(Model(SPACE, NETWORK, Threshold(0.3)), people)


def test_people_outside_the_limits_are_in_the_fit() -> None:
    rng = np.random.default_rng(6)
    people = crowd(rng, 0.0, "spread")
    narrow = FeatureSpace((*SPACE.attributes[:2], Real("x", -40.0, 1.0)))
    n_outside = int((people[:, 3] > 1).sum())
    model = Model(narrow, NETWORK, Threshold(2.0))
    with pytest.warns(UserWarning, match=rf"{n_outside} people have x above .* maximum 1: the vot"):
        predictor = FairPredictor.fitted(model, people)
    assert predictor.weights is not None
    assert predictor.weights.total == len(people)
    own = sum(int(part.decide(people[rows]).sum()) for part, rows in groups(model, people))
    assert 0 < own <= n_outside
    assert abs(int(predictor.decide(people).sum()) - own) <= 1
    # The same people in a space that contains them get the same decisions.
    expected = FairPredictor.fitted(Model(SPACE, NETWORK, Threshold(2.0)), people)
    assert predictor.level == pytest.approx(expected.level, abs=1e-6)
    assert (predictor.decide(people) == expected.decide(people)).all()


@dataclass(frozen=True, eq=False)
class Varied(Grown):
    """People with another x have other counterparts; above 10 they have none with a vote."""

    def assignment_ids(self, person: Vector) -> Counts:
        ages = range(0, 3) if person[3] < 0 else range(1, 3) if person[3] < 10 else range(0)
        return np.array([2 * age + sex for age in ages for sex in (0, 1)], dtype=np.int64)


def test_people_with_different_numbers_of_votes_are_compared_by_their_means() -> None:
    rng = np.random.default_rng(10)
    people = crowd(rng, 0.0, "spread")[:300]
    people[:5, 3] = 20.0
    model = Model(SPACE, NETWORK, Threshold(0.0), relation=Varied(0))
    for vote in VOTES:
        predictor = fitted(model, people, vote)
        own = int(model.decide(people[5:]).sum())
        decided = predictor.decide(people[5:])
        assert abs(int(decided.sum()) - own) <= 1
        shuffled = fitted(model, people[rng.permutation(len(people))], vote)
        assert shuffled.level == predictor.level
    with pytest.raises(SchemaError, match="no people whose counterparts have votes"):
        FairPredictor.fitted(model, people[:5], "mean_score", "equal")


def test_people_whom_the_model_cannot_decide_are_left_out() -> None:
    rng = np.random.default_rng(7)
    people = crowd(rng, 0.0, "spread")
    model = Model(SPACE, NETWORK, Threshold(0.0))
    far = people[:2].copy()
    far[:, 3] = 1e308
    with pytest.raises(OutsideLimits):
        groups(model, far)
    with pytest.warns(UserWarning, match=r"2 people are left out of the votes: 'x' is outside"):
        predictor = FairPredictor.fitted(model, np.concatenate([far, people]))
    expected = FairPredictor.fitted(model, people)
    assert predictor.level == expected.level
    assert predictor.weights is not None
    assert predictor.weights.total == len(people)


def test_a_counted_model_is_fitted_to_people_outside_the_limits() -> None:
    scorer = read_callable(
        lambda frame: frame["x"] + 0.5 * (frame["sex"] == "m"), SPACE, answers="scores"
    )
    rng = np.random.default_rng(8)
    people = crowd(rng, 0.0, "spread")[:60]
    people[0, 3] = 50.0
    model = Model(SPACE, scorer, Threshold(0.5))
    with pytest.warns(UserWarning, match="1 person has x above the schema's maximum 40"):
        predictor = FairPredictor.fitted(model, people, "mean_score")
    assert abs(int(predictor.decide(people).sum()) - int((people[:, 3] > 0.25).sum())) <= 5
