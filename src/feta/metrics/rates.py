"""Rates over people, as in the paper."""

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Answers
from feta.errors import DomainError
from feta.verdict.tally import Tally


def ce_rate(counts: Tally) -> float:
    """Return the share of people with a counterexample: their counterparts are not unanimous."""
    if not len(counts.by_class):
        raise DomainError("no people: got an empty tally; expected at least one person")
    return float(np.mean(~counts.unanimous))


def flip_rate(own: ArrayLike, fair: ArrayLike, *, epsilon: float = 0.0) -> float:
    """Return the share of people for whom the model's decision differs from the fair one.

    Regression: the share of people for whom the two scores differ by more than epsilon. The fair
    score is the score of a counterpart. So, apart from rounding, only people with a counterexample
    are counted.

    Parameters
    ----------
    own
        The model's decisions or scores.
    fair
        The fair decisions or scores.
    epsilon
        The tolerance for scores.
    """
    reference, outcomes = _same_shape(own, fair)
    if reference.dtype.kind == "f":
        return float(np.mean(np.abs(reference - outcomes) > epsilon))
    return float(np.mean(reference != outcomes))


def accuracy(decisions: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of people whose decision equals the label."""
    outcomes, targets = _same_shape(decisions, labels)
    return float(np.mean(outcomes == targets))


def _same_shape(first: ArrayLike, second: ArrayLike) -> tuple[Answers, Answers]:
    one, other = np.asarray(first), np.asarray(second)
    if one.shape != other.shape or not one.size:
        raise DomainError(
            f"invalid shapes: got {one.shape} and {other.shape}; expected two nonempty arrays of "
            "the same shape"
        )
    return one, other
