"""Spread of the scores of people's counterparts, for regression."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Answers, Counts, Flags, Vector
from feta.deprecation import renamed


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Lower median, lowest and highest score of the counterparts, one row per person.

    All three are selected exactly and rounded once; among answers of a counted model that differ
    by rounding, the first answers are ranked. They are NaN where `decided` is False: there the
    budget ran out.
    """

    median: Vector
    lowest: Vector
    highest: Vector
    decided: Flags

    settled = renamed("settled", "decided")

    @property
    def outcomes(self) -> Answers:
        """The lower median."""
        return self.median

    def rows(self, indices: Counts) -> "Spread":
        """Return the people at these indices."""
        return Spread(
            self.median[indices],
            self.lowest[indices],
            self.highest[indices],
            self.decided[indices],
        )

    def followed_by(self, other: "Spread") -> "Spread":
        """Return these people, then the others."""
        return Spread(
            np.concatenate([self.median, other.median]),
            np.concatenate([self.lowest, other.lowest]),
            np.concatenate([self.highest, other.highest]),
            np.concatenate([self.decided, other.decided]),
        )

    @property
    def span(self) -> Vector:
        """Difference between the highest and the lowest score."""
        return self.highest - self.lowest
