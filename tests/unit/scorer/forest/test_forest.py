from fractions import Fraction

import numpy as np
import pytest

import feta
from feta import Categorical, FairAt, FeatureSpace, Integer, Levels, Model, Real, WorstAt
from feta.arrays import Vector
from feta.rounding import FLOAT64
from tests.forests import random_forest, scores

SPACE = FeatureSpace(
    (
        Integer("age", 18, 22, sensitive=True, missing=True),
        Categorical("sex", ("f", "m", "x"), sensitive=True, missing=True),
        Levels("hours", (10.0, 20.5, 40.0)),
        Real("income", 0, 9),
        Integer("rooms", 1, 4, missing=True),
    )
)


def people(rng: np.random.Generator, count: int) -> np.ndarray:
    records = [
        {
            "age": (18, 19, 20, 21, 22, None)[rng.integers(6)],
            "sex": ("f", "m", "x", None)[rng.integers(4)],
            "hours": rng.choice([10.0, 20.5, 40.0]),
            "income": float(rng.choice([0, 1, 1.5, 3, 9, np.nextafter(3, 0)])),
            "rooms": (1, 2, 3, 4, None)[rng.integers(5)],
        }
        for _ in range(count)
    ]
    return SPACE.encode(records)


def counterparts(person: Vector) -> list[Vector]:
    rows = []
    for age in (18, 19, 20, 21, 22, None):
        for sex in range(4):
            row = np.array(person)
            row[0], row[1] = (18 if age is None else age), float(age is None)
            row[2:6] = np.eye(4)[sex]
            rows.append(row)
    return rows


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("mean", [False, True])
def test_scores_are_those_of_the_definition(seed: int, mean: bool) -> None:
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, SPACE, outputs=1 + seed % 3, mean=mean)
    rows = people(rng, 12)
    points = forest.points(rows)
    expected = [score for row in rows for score in scores(forest, row)]
    assert points.exact_scores(np.arange(12)).fractions() == expected
    for arithmetic in (FLOAT64, forest.arithmetic):
        enclosure = points.scores(arithmetic)
        for value, error, exact in zip(
            enclosure.values.ravel(), enclosure.errors.ravel(), expected, strict=True
        ):
            assert abs(Fraction(float(value)) - exact) <= Fraction(float(error))
    replayed = points.replayed().ravel()
    np.testing.assert_allclose(replayed, [float(score) for score in expected], atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    forest = random_forest(rng, SPACE, mean=seed % 2 == 0)
    rows = people(rng, 5)
    on_a_score = scores(forest, counterparts(rows[0])[rng.integers(24)])[0]
    threshold = float(on_a_score)  # rounded only if it is a mean
    rule = feta.Threshold(threshold, "above" if seed % 3 else "below")
    model = Model(SPACE, forest, rule)
    equality = model.rule.equality == "favorable"  # type: ignore[attr-defined]

    def favorable(row: Vector) -> bool:
        score = scores(forest, row)[0]
        if score == Fraction(threshold):
            return equality
        return (score > Fraction(threshold)) == (rule.favors == "above")

    tally = feta.tally(model, rows)
    decisions = feta.FairPredictor(model).decide(rows)
    for index, row in enumerate(rows):
        others = [favorable(other) for other in counterparts(row)]
        fair = all(other == favorable(row) for other in others)
        assert tally.by_class[index].tolist() == [24 - sum(others), sum(others)]
        assert decisions[index] == (2 * sum(others) >= 24)
        assert isinstance(feta.verify(FairAt(model, row)), feta.Fair) == fair
        worst = feta.verify(WorstAt(model, row))
        assert isinstance(worst, feta.Fair) == fair
        if isinstance(worst, feta.Unfair):
            own = scores(forest, row)[0]
            gaps = [
                abs(scores(forest, other)[0] - own)
                for other in counterparts(row)
                if favorable(other) != favorable(row)
            ]
            assert worst.counterexample.gap == float(max(gaps))


@pytest.mark.parametrize("seed", range(20))
def test_regressions_and_classes_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng([9, seed])
    rows = people(rng, 4)
    forest = random_forest(rng, SPACE, mean=True)
    values = [scores(forest, other)[0] for other in counterparts(rows[0])]
    span = max(values) - min(values)
    for epsilon in (float(span), float(np.nextafter(float(span), 0)), float(span) + 1):
        verdict = feta.verify(WorstAt(Model(SPACE, forest, feta.Tolerance(epsilon)), rows[0]))
        assert isinstance(verdict, feta.Fair) == (span <= Fraction(epsilon))
    regression = Model(SPACE, forest, feta.Tolerance(1.0))
    median = feta.FairPredictor(regression).decide(rows[:1])[0]
    assert median == float(sorted(values)[11])
    several = random_forest(rng, SPACE, outputs=3)
    model = Model(SPACE, several, feta.Argmax(("a", "b", "c")))
    for row in rows:
        winners = []
        for other in counterparts(row):
            exact = scores(several, other)
            winners.append(exact.index(max(exact)))
        counts = feta.tally(model, row[None, :]).by_class[0].tolist()
        assert counts == [winners.count(index) for index in range(3)]


def test_two_classes_become_their_difference() -> None:
    rng = np.random.default_rng(3)
    forest = random_forest(rng, SPACE, outputs=2, mean=True)
    model = Model(SPACE, forest)
    for row in people(rng, 8):
        first, second = scores(forest, row)
        assert model.exact_scores(row[None, :]).fractions() == [second - first]
        assert bool(model.decide(row[None, :])[0]) == (second - first >= 0)
