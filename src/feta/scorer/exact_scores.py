"""Scores in exact arithmetic: exact numbers, or exact intervals that contain them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Counts, Matrix
from feta.dyadic import Dyadic

# −1, 0 or 1, or UNKNOWN_SIGN where an interval contains 0 and other numbers.
Signs = NDArray[np.int8]
UNKNOWN_SIGN = 2


@dataclass(frozen=True, slots=True, eq=False)
class ExactScores:
    """Centers and radii without rounding; without radii, the centers are the scores.

    Piecewise-linear networks and tree ensembles have exact scores. A smooth function has none:
    its scores lie within the radii. A comparison that the radii do not decide remains undecided.
    """

    centers: Dyadic  # (points, outputs)
    radii: Dyadic | None = None  # of the same shape, 0 or more

    def __len__(self) -> int:
        return len(self.centers.numerators)

    def __getitem__(self, rows: Counts | slice | list[int]) -> "ExactScores":
        radii = None if self.radii is None else self.radii[rows]
        return ExactScores(self.centers[rows], radii)

    def over(self, denominator: int) -> "ExactScores":
        """Return the scores divided by a positive integer, without rounding."""
        radii = None if self.radii is None else self.radii.over(denominator)
        return ExactScores(self.centers.over(denominator), radii)

    def output(self, index: int) -> "ExactScores":
        """Return one output, (points, 1)."""
        column = (slice(None), slice(index, index + 1))
        return ExactScores(self.centers[column], None if self.radii is None else self.radii[column])

    def combined(self, directions: Matrix, offsets: Dyadic | None = None) -> "ExactScores":
        """Return directions · scores + offsets, (points, directions)."""
        centers = self.centers @ Dyadic.of(directions).mT
        if offsets is not None:
            centers = centers + offsets
        if self.radii is None:
            return ExactScores(centers)
        return ExactScores(centers, self.radii @ Dyadic.of(np.abs(directions)).mT)

    def minus(self, other: "ExactScores") -> "ExactScores":
        """Return the differences of two sets of scores, row by row."""
        centers = self.centers - other.centers
        if self.radii is None and other.radii is None:
            return ExactScores(centers)
        return ExactScores(centers, self.radius + other.radius)

    @property
    def radius(self) -> Dyadic:
        """The radii, 0 where the scores are exact."""
        if self.radii is not None:
            return self.radii
        return Dyadic(np.zeros(self.centers.numerators.shape, dtype=object), 0)

    def signs(self, level: Dyadic) -> Signs:
        """Return the sign of each score minus the level."""
        if self.radii is None:
            return self.centers.compare(level)
        low = (self.centers - self.radii).compare(level)
        high = (self.centers + self.radii).compare(level)
        return np.where(low == high, low, UNKNOWN_SIGN).astype(np.int8)

    def joined(self, other: "ExactScores") -> "ExactScores":
        """Return these points, then the others."""
        if self.radii is None and other.radii is None:
            return ExactScores(_stack([self.centers, other.centers]))
        return ExactScores(
            _stack([self.centers, other.centers]), _stack([self.radius, other.radius])
        )

    def floats(self) -> Matrix:
        """Round each center once, to the nearest float64."""
        return self.centers.floats()

    def fractions(self) -> list[Fraction]:
        """Return the centers as a flat list."""
        return self.centers.fractions()


def _stack(parts: Sequence[Dyadic]) -> Dyadic:
    exponent = min(part.exponent for part in parts)
    denominator = parts[0].denominator
    assert all(part.denominator == denominator for part in parts)  # scores of one model
    return Dyadic(np.concatenate([part.at(exponent) for part in parts]), exponent, denominator)
