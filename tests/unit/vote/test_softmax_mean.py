"""Grades of several classes: enclosures contain the exact ones, and digits decide the rest."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from campaigns.vote_cases import softmax_grades
from feta.exponential import RELATIVE_ERROR, exponentials
from feta.vote.graded_ballot import UNIT
from feta.vote.softmax_mean import _grades, exact_grades

RNG = np.random.default_rng(0)
SCORES = [
    *RNG.normal(scale=3.0, size=(40, 3)),
    *RNG.normal(scale=300.0, size=(10, 4)),
    np.array([0.0, 0.0, 0.0]),
    np.array([1e-300, 0.0]),
    np.array([-1e6, 0.0, 1e6]),
    np.array([np.log(3.0), 0.0]),
]


@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_grades_are_those_of_the_oracle(scores: np.ndarray) -> None:
    exact = [Fraction(float(score)) for score in scores]
    expected = softmax_grades(exact)
    assert exact_grades(exact) == expected
    for error in (0.0, 1e-9, 0.1):
        moved = scores + RNG.uniform(-error, error, len(scores))
        lows, highs = _grades(moved[None, :], np.full((1, len(scores)), 1.0000001 * error))
        assert (lows[0] <= expected).all()
        assert (highs[0] >= expected).all()
        assert error > 0 or (highs - lows).max() <= 1


@pytest.mark.parametrize(
    ("values", "errors"), [([np.nan, 0.0], [0.0, 0.0]), ([1.0, 0.0], [np.inf, 0.0])]
)
def test_unknown_scores_can_have_any_grade(values: list[float], errors: list[float]) -> None:
    lows, highs = _grades(np.array([values]), np.array([errors]))
    assert lows.tolist() == [[0, 0]]
    assert highs.tolist() == [[UNIT, UNIT]]


def test_exponentials_are_as_close_as_promised() -> None:
    x = -np.concatenate([RNG.uniform(0, 1, 200), RNG.uniform(0, 650, 200), [0.0, np.log(2) / 2]])
    expected = np.array([exp(value) for value in x])
    # The function of the C library is accurate to a few units in the last place.
    assert (np.abs(exponentials(x) / expected - 1) < RELATIVE_ERROR / 4).all()
    assert exponentials(np.array([-1e9]))[0] < 1e-300


def test_a_third_of_three_equal_classes_is_rounded_to_nearest() -> None:
    assert exact_grades([Fraction(7)] * 3) == [349525] * 3
    assert exact_grades([Fraction(7)] * 4) == [UNIT // 4] * 4
