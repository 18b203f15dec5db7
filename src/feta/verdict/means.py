"""Decisions by the mean of people's counterparts."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from feta.arrays import Answers, Counts, Flags, Matrix, Vector
from feta.rule.comparator import UNDECIDED, Decisions

# What a person gets: whether the decision is favorable, the index of a class, or the mean itself.
MeanOutcome = Literal["favorable", "class", "mean"]


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """The means of each person's counterparts and the decision, one row per person.

    The decision is exact; the means are rounded, for display. The mean of a regression is the
    outcome: it is the float64 nearest to the exact mean.
    """

    means: Vector | Matrix  # (people,); several classes: (people, classes)
    decisions: Decisions  # 1 is favorable; UNDECIDED where the budget ran out
    outcome: MeanOutcome = "favorable"

    @property
    def decided(self) -> Flags:
        """Whether the decision is certain."""
        return np.asarray(self.decisions != UNDECIDED)

    @property
    def outcomes(self) -> Answers:
        """True for favorable; several classes: the index of the class; regression: the mean."""
        if self.outcome == "mean":
            return self.means
        return np.asarray(self.decisions == 1) if self.outcome == "favorable" else self.decisions

    def rows(self, indices: Counts) -> "Means":
        """Return the people at these indices."""
        return Means(self.means[indices], self.decisions[indices], self.outcome)

    def followed_by(self, other: "Means") -> "Means":
        """Return these people, then the others."""
        return Means(
            np.concatenate([self.means, other.means]),
            np.concatenate([self.decisions, other.decisions]),
            self.outcome,
        )
