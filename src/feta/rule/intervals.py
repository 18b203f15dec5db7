"""Decisions of exact intervals, which are decided if all their points get the same decision."""

import numpy as np

from feta.arrays import Flags
from feta.dyadic import Dyadic
from feta.rule.comparator import UNDECIDED, Decisions
from feta.scorer.exact_scores import ExactScores


def interval_ends(scores: ExactScores) -> tuple[Dyadic, Dyadic]:
    """Return the lowest and the highest possible scores, with the same exponent."""
    if scores.radii is None:
        return scores.centers, scores.centers
    return scores.centers - scores.radii, scores.centers + scores.radii


def decisions_of(yes: Flags, no: Flags) -> Decisions:
    """Return 1 where all points provably get it, 0 where none does, and UNDECIDED elsewhere."""
    return np.where(yes, 1, np.where(no, 0, UNDECIDED)).astype(np.int8)
