"""Boxes of one person's counterparts, and the counterparts in them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feta.arrays import Matrix, Vector
from feta.checker.sensitive_axis import SensitiveAxis

# Counterparts that are scored at once.
BLOCK = 2**10


@dataclass(frozen=True, slots=True)
class Box:
    """From one coordinate to another along each axis; both ends are inclusive."""

    axes: tuple[SensitiveAxis, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @classmethod
    def whole(cls, axes: tuple[SensitiveAxis, ...]) -> "Box":
        """Return the box of all counterparts."""
        lower, upper = zip(*(axis.ends for axis in axes), strict=True)
        return cls(axes, lower, upper)

    def halves(self, axis: int, at: float) -> "tuple[Box, Box]":
        """Cut the box: up to `at`, and from there (finite axes: from the next index)."""
        after = at if self.axes[axis].real else at + 1
        upper = (*self.upper[:axis], at, *self.upper[axis + 1 :])
        lower = (*self.lower[:axis], after, *self.lower[axis + 1 :])
        return Box(self.axes, self.lower, upper), Box(self.axes, lower, self.upper)

    def admits_cut(self, axis: int, at: float) -> bool:
        """Return whether a cut is inside the box and leaves out no value."""
        if not 0 <= axis < len(self.axes):
            return False
        low, high = self.lower[axis], self.upper[axis]
        if self.axes[axis].real:
            return low <= at <= high
        # The second half starts at the next index, so a fraction would leave out a value.
        return low <= at < high and float(at).is_integer()

    def middle(self, axis: int) -> float | None:
        """Return where an axis is cut in half; None if it cannot be cut."""
        low, high = self.lower[axis], self.upper[axis]
        middle = low + (high - low) / 2
        if self.axes[axis].real:
            return middle if low < middle < high else None
        return float(math.floor(middle)) if low < high else None

    @property
    def is_finite(self) -> bool:
        """Whether it contains finitely many counterparts: its corners are all of them."""
        sides = zip(self.axes, self.lower, self.upper, strict=True)
        return all(low == high or not axis.real for axis, low, high in sides)

    @property
    def sides(self) -> list[int]:
        """The number of values of each axis, where real numbers have two: the ends."""
        sides = zip(self.axes, self.lower, self.upper, strict=True)
        return [axis.n_values(low, high) for axis, low, high in sides]

    @property
    def n_corners(self) -> int:
        """The number of corners; every value of a finite attribute counts as one."""
        return math.prod(self.sides)

    def corners(self, person: Vector) -> Iterator[Matrix]:
        """Yield the counterparts of a person at the corners, in blocks."""
        for start in range(0, self.n_corners, BLOCK):
            rest = np.arange(start, min(start + BLOCK, self.n_corners))
            people = np.repeat(person[None, :], len(rest), axis=0)
            for index, side in reversed(list(enumerate(self.sides))):
                rest, indices = np.divmod(rest, side)
                axis = self.axes[index]
                codes = axis.codes(self.lower[index], self.upper[index], indices)
                people[:, list(axis.columns)] = codes
            yield people
