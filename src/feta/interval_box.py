"""Boxes of intervals."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix


@dataclass(frozen=True, slots=True, eq=False)
class IntervalBox:
    """Intervals with lower ≤ upper, one box per row; never empty, never NaN."""

    lower: Matrix
    upper: Matrix

    def __post_init__(self) -> None:
        assert (self.lower <= self.upper).all()  # sound bounds always enclose a value

    def __and__(self, other: "IntervalBox") -> "IntervalBox":
        return IntervalBox(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def __getitem__(self, chosen: Flags | slice) -> "IntervalBox":
        return IntervalBox(self.lower[chosen], self.upper[chosen])

    def __mul__(self, factors: Matrix) -> "IntervalBox":
        """Scale by positive factors; exact if they are powers of two."""
        return IntervalBox(self.lower * factors, self.upper * factors)

    @property
    def size(self) -> Matrix:
        """The largest absolute value in each interval."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))
