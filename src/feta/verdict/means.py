"""Decisions by the mean of people's counterparts."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Answers, Counts, Flags, Vector
from feta.rule.comparator import UNDECIDED, Decisions


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """The mean of each person's counterparts and its decision, one row per person.

    The decision is exact; the mean is rounded, for display.
    """

    means: Vector
    decisions: Decisions  # 1 is favorable; UNDECIDED where the budget ran out

    @property
    def decided(self) -> Flags:
        """Whether the decision is certain."""
        return np.asarray(self.decisions != UNDECIDED)

    @property
    def outcomes(self) -> Answers:
        """True for favorable."""
        return np.asarray(self.decisions == 1)

    def rows(self, indices: Counts) -> "Means":
        """Return the people at these indices."""
        return Means(self.means[indices], self.decisions[indices])

    def followed_by(self, other: "Means") -> "Means":
        """Return these people, then the others."""
        return Means(
            np.concatenate([self.means, other.means]),
            np.concatenate([self.decisions, other.decisions]),
        )
