from fractions import Fraction

import numpy as np

from feta.rule import UNDECIDED
from feta.rule.intervals import decisions_of, interval_ends
from tests.rules import exact


def test_exact_scores_are_their_own_ends() -> None:
    scores = exact([[0.5], [-1.0]])
    low, high = interval_ends(scores)
    assert low is scores.centers
    assert high is scores.centers


def test_the_ends_of_an_interval_have_one_exponent() -> None:
    low, high = interval_ends(exact([[1.0], [-4.0]], [[2.0**-80], [0.0]]))
    assert low.exponent == high.exponent
    assert low.fractions() == [1 - Fraction(1, 2**80), -4]
    assert high.fractions() == [1 + Fraction(1, 2**80), -4]


def test_a_point_is_decided_if_it_provably_gets_it_or_not() -> None:
    yes, no = np.array([True, False, False]), np.array([False, True, False])
    decisions = decisions_of(yes, no)
    assert decisions.tolist() == [1, 0, UNDECIDED]
    assert decisions.dtype == np.int8
