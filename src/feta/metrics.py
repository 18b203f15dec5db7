"""Metrics: shares of people, as the paper reports them."""

import numpy as np
from numpy.typing import ArrayLike

from feta.errors import DomainError
from feta.verdict.tally import Tally


def ce_rate(counts: Tally) -> float:
    """Give the share of people who have a counterexample: whose counterparts are not unanimous."""
    return float(np.mean(~counts.unanimous))


def flip_rate(own: ArrayLike, fair: ArrayLike, *, epsilon: float = 0.0) -> float:
    """Give the share of people whose own decision differs from the fair one.

    For regression, the share whose own score is farther than epsilon from the fair one.
    """
    mine, theirs = np.asarray(own), np.asarray(fair)
    if mine.dtype.kind == "f":
        return float(np.mean(np.abs(mine - theirs) > epsilon))
    return float(np.mean(mine != theirs))


def accuracy(decisions: ArrayLike, labels: ArrayLike) -> float:
    """Give the share of people decided as their label says."""
    mine, right = np.asarray(decisions), np.asarray(labels)
    if mine.shape != right.shape or not mine.size:
        message = (
            f"there must be one label a decision, got the shapes {mine.shape} and {right.shape}"
        )
        raise DomainError(message)
    return float(np.mean(mine == right))
