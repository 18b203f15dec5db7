"""From predictions to scores: inverses of links, rounded once.

The functions of float64 have errors of a few units in the last place. A threshold is one number,
so it is computed in decimal arithmetic instead.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from statistics import NormalDist

# Digits of intermediate results; float64 has 17.
DIGITS = 60

# Newton's method doubles the number of correct digits, from 15.
NEWTON_STEPS = 3


def nearest_logit(probability: float) -> float:
    """Return the float64 nearest to ln(p / (1 − p))."""
    with localcontext() as context:
        context.prec = DIGITS
        p = Decimal(probability)
        return float((p / (1 - p)).ln())


def nearest_logarithm(number: float) -> float:
    """Return the float64 nearest to ln(y)."""
    with localcontext() as context:
        context.prec = DIGITS
        return float(Decimal(number).ln())


def nearest_probit(probability: float) -> float:
    """Return the float64 nearest to the quantile of the standard normal distribution."""
    start = NormalDist().inv_cdf(probability)
    with localcontext() as context:
        # Far from the center, leading digits of the distribution function cancel.
        context.prec = DIGITS + math.ceil(start * start)
        score, p = Decimal(start), Decimal(probability)
        root = (2 * _pi()).sqrt()
        for _ in range(NEWTON_STEPS):
            density = (-score * score / 2).exp() / root
            half = Decimal("0.5")
            score -= (half + density * _series(score) - p) / density
        return float(score)


def _series(score: Decimal) -> Decimal:
    """Return x + x³/3 + x⁵/(3·5) + …: the distance from one half, divided by the density."""
    return _sum(score, lambda term, number: term * score * score / (2 * number + 1))


def _pi() -> Decimal:
    """Return π = 16 arctan(1/5) − 4 arctan(1/239), Machin's formula."""
    return 16 * _arctangent(5) - 4 * _arctangent(239)


def _arctangent(inverse: int) -> Decimal:
    """Return arctan(1/n)."""

    def following(term: Decimal, number: int) -> Decimal:
        return -term * (2 * number - 1) / ((2 * number + 1) * inverse * inverse)

    return _sum(1 / Decimal(inverse), following)


def _sum(first: Decimal, following: Callable[[Decimal, int], Decimal]) -> Decimal:
    """Return the sum of a series until a term no longer changes it."""
    total, term, number = first, first, 0
    while True:
        number += 1
        term = following(term, number)
        if total + term == total:
            return total
        total += term
