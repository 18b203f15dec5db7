"""Metrics: shares of people, as the paper reports them."""

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Answers
from feta.errors import DomainError
from feta.verdict.tally import Tally


def ce_rate(counts: Tally) -> float:
    """Give the share of people who have a counterexample: whose counterparts are not unanimous."""
    if not len(counts.by_class):
        raise DomainError("there must be at least one person")
    return float(np.mean(~counts.unanimous))


def flip_rate(own: ArrayLike, fair: ArrayLike, *, epsilon: float = 0.0) -> float:
    """Give the share of people whose own decision differs from the fair one.

    For regression, the share whose own score is farther than epsilon from the fair one, which is a
    counterpart's score. So, but for rounding, only people with a counterexample are counted.
    """
    mine, theirs = _matched(own, fair)
    if mine.dtype.kind == "f":
        return float(np.mean(np.abs(mine - theirs) > epsilon))
    return float(np.mean(mine != theirs))


def accuracy(decisions: ArrayLike, labels: ArrayLike) -> float:
    """Give the share of people decided as their label says."""
    mine, right = _matched(decisions, labels)
    return float(np.mean(mine == right))


def _matched(first: ArrayLike, second: ArrayLike) -> tuple[Answers, Answers]:
    one, other = np.asarray(first), np.asarray(second)
    if one.shape != other.shape or not one.size:
        message = (
            f"there must be one label a decision, got the shapes {one.shape} and {other.shape}"
        )
        raise DomainError(message)
    return one, other
