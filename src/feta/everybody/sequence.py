"""Confidence sequences: intervals for a share that hold at every moment at once.

Draws are shown while they are made, and one may stop whenever one likes. An interval for a number
of draws that is fixed in advance would be wrong then. The mixture of likelihood ratios over a Beta
prior is a martingale; by Ville's inequality it ever exceeds 1/α with a probability of at most α.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt, lgamma, log

# The prior: Beta(1/2, 1/2).
PRIOR = 0.5

# lgamma and log err by a few units in the last place of numbers below n · log n.
SLACK = 1e-6

STEPS = 200


@dataclass(frozen=True, slots=True)
class Interval:
    """A share, and an interval that contains it."""

    low: float
    high: float
    confidence: float


def interval_of(n: int, least: int, most: int, *, alpha: float) -> Interval:
    """Return the interval after n draws, of which `least` to `most` are counted.

    The ends are monotone in the count, so the interval contains that of the true count.
    """
    if n == 0:
        return Interval(0.0, 1.0, 1 - alpha)
    low = _low(n, least, alpha)
    return Interval(low, 1.0 - _low(n, n - most, alpha), 1 - alpha)


def _low(n: int, k: int, alpha: float) -> float:
    """Return the lower end, rounded down."""
    if k == 0:
        return 0.0
    mixture = _log_beta(PRIOR + k, PRIOR + n - k) - _log_beta(PRIOR, PRIOR)
    limit = log(1 / alpha) + SLACK * (1 + isqrt(n) / 1000)

    def excluded(share: float) -> bool:
        rest = (n - k) * log(1 - share) if n > k else 0.0
        return mixture - k * log(share) - rest >= limit

    return _last(excluded, k / n)


def _last(excluded: Callable[[float], bool], end: float) -> float:
    """Return a share that is excluded, next to the first one that is not; 0 if none is."""
    below, above = 0.0, end
    for _ in range(STEPS):
        middle = below + (above - below) / 2
        if not below < middle < above:
            break
        if excluded(middle):
            below = middle
        else:
            above = middle
    return below


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
