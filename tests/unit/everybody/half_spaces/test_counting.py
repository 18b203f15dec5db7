"""Counted shares against enumeration in fractions, ties and one-ulp margins included."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from feta.everybody.half_spaces.counting import Terms, share_between


def exact_share(values: list[list[tuple[float, int]]], constant: float, until: float) -> Fraction:
    """Return the share of 0 < constant + Σ values, and if it is finite, … + until < 0."""
    inside = total = 0
    for chosen in product(*values):
        weight = 1
        form = Fraction(constant)
        for value, times in chosen:
            weight *= times
            form += Fraction(value)
        total += weight
        if form > 0 and (until == -np.inf or form + Fraction(until) < 0):
            inside += weight
    return Fraction(inside, total)


@pytest.mark.parametrize("seed", range(60))
def test_counts_are_lower_bounds_and_close(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values: list[list[tuple[float, int]]] = []
    for _ in range(int(rng.integers(1, 5))):
        numbers = rng.normal(0, 1, int(rng.integers(1, 9)))
        if seed % 3 == 0:  # on a grid, so that sums tie
            numbers = np.round(numbers * 4) / 4
        values.append([(float(x), int(rng.integers(1, 5))) for x in numbers])
    terms = []
    for column in values:
        numbers, weights = (np.array(part) for part in zip(*column, strict=True))
        order = np.argsort(numbers)
        least = float(numbers.min())
        terms.append(Terms(least, numbers[order] - least, weights[order] / weights.sum()))
    constant = float(np.round(rng.normal() * 4) / 4)
    for until in (-np.inf, -float(rng.random() * 2)):
        truth = exact_share(values, constant, until)
        rough = share_between(terms, constant, until, 128)
        fine = share_between(terms, constant, until, 16384)
        assert Fraction(rough) <= truth
        assert Fraction(fine) <= truth
        if seed % 3:
            assert float(truth) - fine < 0.02


def test_a_form_that_touches_zero_is_not_positive() -> None:
    terms = [Terms(0.0, np.array([0.0, 1.0]), np.array([0.5, 0.5]))]
    assert share_between(terms, 0.0, -np.inf, 128) <= 0.5
    assert share_between(terms, -1.0, -np.inf, 128) == 0.0
    above = share_between(terms, float(np.nextafter(-1.0, 0)), -np.inf, 128)
    assert above <= 0.5


def test_real_numbers_are_lengths() -> None:
    terms = [Terms(-1.0, np.array([0.0, 2.0]), np.ones(1), real=True)] * 2
    share = share_between(terms, 0.0, -np.inf, 4096)
    assert 0.495 < share <= 0.5
    band = share_between(terms, 0.0, -1.0, 4096)
    assert 0.36 < band <= 0.375
