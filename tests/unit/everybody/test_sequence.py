"""Confidence sequences: their definition, and how often a run ever misses the truth."""

from fractions import Fraction
from math import comb, log, sqrt

import numpy as np
import pytest

from feta.everybody.sequence import interval_of


def mixture(n: int, k: int, share: Fraction) -> Fraction:
    """Return the ratio of likelihoods over the prior Beta(1/2, 1/2), by exact moments.

    The moment of p^k (1 − p)^(n−k) is C(2k, k) C(2m, m) / (4^n C(n, k)) with m = n − k.
    """
    m = n - k
    moment = Fraction(comb(2 * k, k) * comb(2 * m, m), 4**n * comb(n, k))
    return moment / (share**k * (1 - share) ** m)


@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 1), (7, 3), (40, 0), (200, 9), (200, 200)])
def test_ends_are_just_outside_the_exact_interval(n: int, k: int) -> None:
    interval = interval_of(n, k, k, alpha=0.05)
    for end, inward in ((interval.low, 1), (interval.high, -1)):
        if end in (0.0, 1.0):
            continue
        assert mixture(n, k, Fraction(end)) >= 20
        assert mixture(n, k, Fraction(end) + inward * Fraction(1, 10**5)) < 20
    assert interval.low <= k / n <= interval.high


def test_nobody_drawn_says_nothing() -> None:
    interval = interval_of(0, 0, 0, alpha=0.05)
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_undecided_people_widen_the_interval_to_both_sides() -> None:
    known = [interval_of(100, k, k, alpha=0.05) for k in range(10, 16)]
    unknown = interval_of(100, 10, 15, alpha=0.05)
    assert unknown.low == min(one.low for one in known)
    assert unknown.high == max(one.high for one in known)


def test_runs_that_ever_miss_are_rare() -> None:
    """300 runs of 400 draws; the interval is checked after every draw."""
    rng = np.random.default_rng(0)
    n_runs, n_draws, alpha = 300, 400, 0.05
    misses = 0
    for run in range(n_runs):
        share = (0.02, 0.1, 0.5)[run % 3]
        counts = np.cumsum(rng.random(n_draws) < share)
        numbers = np.arange(1, n_draws + 1)
        # The truth is outside exactly where the log of the mixture is at least log(1/α).
        values = [log_mixture(int(n), int(k), share) for n, k in zip(numbers, counts, strict=True)]
        misses += max(values) >= log(1 / alpha)
        worst = int(np.argmax(values))
        interval = interval_of(
            int(numbers[worst]), int(counts[worst]), int(counts[worst]), alpha=alpha
        )
        if abs(max(values) - log(1 / alpha)) > 1e-3:
            assert (interval.low <= share <= interval.high) is (max(values) < log(1 / alpha))
    assert misses / n_runs <= alpha + 3 * sqrt(alpha * (1 - alpha) / n_runs)


def log_mixture(n: int, k: int, share: float) -> float:
    """Return the logarithm by the product of predictions, which shares no code with the tool.

    The Beta(1/2, 1/2) predictions of a sequence with all successes first multiply to the moment.
    """
    table = _moments(n)
    return table[k] - k * log(share) - (n - k) * log(1 - share)


_cache: dict[int, list[float]] = {0: [0.0]}


def _moments(n: int) -> list[float]:
    if n not in _cache:
        previous = _moments(n - 1)
        table = [previous[0] + log((n - 0.5) / n)]  # one more failure after n − 1 of them
        table += [previous[k - 1] + log((k - 0.5) / n) for k in range(1, n + 1)]
        _cache[n] = table
    return _cache[n]
