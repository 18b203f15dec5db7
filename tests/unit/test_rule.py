from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from feta import SchemaError, Threshold
from feta.network.bounded import Bounded
from feta.network.dyadic import Dyadic
from feta.network.network import Side
from feta.rounding import SOURCE_FLOAT32
from feta.rule import OPEN

Equality = Literal["favorable", "unfavorable"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Threshold(np.nan), "a threshold must be finite, got nan"),
        (lambda: Threshold(-np.inf), "a threshold must be finite, got -inf"),
        (
            lambda: Threshold(0.0, "abov"),  # type: ignore[arg-type]
            r"favors must be one of 'above', 'below', got 'abov'; did you mean 'above'\?",
        ),
        (
            lambda: Threshold(0.0, equality="favourable"),  # type: ignore[arg-type]
            r"equality must be one of .*'favourable'; did you mean 'favorable'\?, or left out",
        ),
        (
            lambda: Threshold.at_probability(0.0),
            r"must lie between 0 and 1, got 0\.0; give a score",
        ),
        (lambda: Threshold.at_probability(1.0), r"must lie between 0 and 1, got 1\.0"),
        (lambda: Threshold.at_probability(np.nan), "must lie between 0 and 1, got nan"),
    ],
)
def test_a_threshold_that_cannot_be_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


def test_negative_zero_is_the_threshold_zero() -> None:
    assert repr(Threshold(-0.0)) == repr(Threshold(0))


@pytest.mark.parametrize(
    ("probability", "score"),
    [
        (0.5, 0.0),
        (np.nextafter(0.5, 1), 2.0**-51),
        (0.1, -2.197224577336219),
        (5e-324, -744.4400719213812),
        (np.nextafter(1.0, 0), 36.7368005696771),
    ],
)
def test_a_probability_becomes_the_nearest_score(probability: float, score: float) -> None:
    assert Threshold.at_probability(probability) == Threshold(score)
    assert Threshold.at_probability(probability, "below").favors == "below"


@pytest.mark.parametrize(("favors", "favorable"), [("above", [0, 1]), ("below", [1, 0])])
def test_only_a_score_farther_than_its_error_is_decided(favors: Side, favorable: list[int]) -> None:
    values = np.array([[1.0], [3.0], [1.0], [3.0], [2.0], [np.nan], [9.0], [5.0]])
    errors = np.array([[0.9], [0.9], [1.0], [1.0], [0.0], [0.0], [np.inf], [np.nan]])
    decided = Threshold(2.0, favors).settle(Bounded(values, errors)).tolist()
    assert decided == [*favorable, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN]


@pytest.mark.parametrize("equality", ["favorable", "unfavorable"])
@pytest.mark.parametrize("favors", ["above", "below"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3e-310])
def test_exact_scores_are_decided_to_the_last_ulp(
    value: float, favors: Side, equality: Equality
) -> None:
    scores = [[np.nextafter(value, -np.inf)], [value], [np.nextafter(value, np.inf)]]
    decided = Threshold(value, favors, equality).settle_exactly(Dyadic.of(scores))
    assert decided.tolist() == [favors == "below", equality == "favorable", favors == "above"]


def test_a_score_between_two_floats_is_no_tie() -> None:
    half_ulp_above = Dyadic.of([[1.0]]) + Dyadic.of([[2.0**-80]])
    rule = Threshold(1.0, "below", "favorable")
    assert half_ulp_above.fractions()[0] > Fraction(1)
    assert rule.settle_exactly(half_ulp_above).tolist() == [0]


@pytest.mark.parametrize(
    ("rule", "side", "equality"),
    [
        (Threshold(0.0), None, "favorable"),
        (Threshold(0.0), "above", "favorable"),
        (Threshold(0.0), "below", "unfavorable"),
        (Threshold(0.0, "below"), "below", "favorable"),
        (Threshold(0.0, "below"), "above", "unfavorable"),
        (Threshold(0.0, equality="unfavorable"), "above", "unfavorable"),
        (Threshold(0.0, equality="favorable"), "below", "favorable"),
    ],
)
def test_a_tie_follows_the_source_unless_told(
    rule: Threshold, side: Side | None, equality: Equality
) -> None:
    assert rule.resolved(side).equality == equality


@pytest.mark.parametrize(
    ("score", "favors", "direction"),
    [(1.0, "above", -1.0), (-1.0, "above", 1.0), (-1.0, "below", 1.0), (1.0, "below", -1.0)],
)
def test_the_direction_points_to_the_other_decision(
    score: float, favors: Side, direction: float
) -> None:
    objective = Threshold(0.0, favors).objective(Dyadic.of([[score]]))
    assert objective.directions.tolist() == [[direction]]


def test_a_threshold_reads_one_score_and_makes_two_decisions() -> None:
    rule = Threshold(0.0)
    assert (rule.outputs, rule.n_classes) == (1, 2)
    assert rule.outcomes == ("unfavorable", "favorable")
    assert 0 < rule.slack(SOURCE_FLOAT32) < 1e-5
