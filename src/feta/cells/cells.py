"""Cells: boxes of one person's counterparts, for finite and real sensitive attributes.

Along a finite attribute, a cell extends from one index in the list of values to another; along a
real attribute, from one number to another.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.space.axis import Axis


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Boxes over axes, one row per box; both ends are inclusive."""

    axes: tuple[Axis, ...]
    lower: Matrix  # (cells, axes)
    upper: Matrix

    @classmethod
    def whole(cls, axes: tuple[Axis, ...]) -> "Cells":
        """Return one cell with all counterparts."""
        ends = np.array([axis.ends for axis in axes])
        return cls(axes, ends[None, :, 0], ends[None, :, 1])

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, rows: Counts | slice) -> "Cells":
        return Cells(self.axes, self.lower[rows], self.upper[rows])

    def followed_by(self, other: "Cells") -> "Cells":
        """Return these cells, then the others."""
        lower, upper = np.vstack([self.lower, other.lower]), np.vstack([self.upper, other.upper])
        return Cells(self.axes, lower, upper)

    def middles(self, row: int) -> Vector:
        """Return where each axis of a cell would be cut; NaN where it cannot be cut."""
        lower, upper = self.lower[row], self.upper[row]
        middle = lower + (upper - lower) / 2
        finite = np.array([not axis.real for axis in self.axes])
        middle = np.where(finite, np.floor(middle), middle)
        splits = np.where(finite, lower < upper, (lower < middle) & (middle < upper))
        return np.where(splits, middle, np.nan)

    def cut(self, row: int, axis: int, at: float) -> "Cells":
        """Cut a cell in two: up to `at`, and from there (finite: from the next index)."""
        lower, upper = (
            np.repeat(ends[row : row + 1], 2, axis=0) for ends in (self.lower, self.upper)
        )
        upper[0, axis] = at
        lower[1, axis] = at if self.axes[axis].real else at + 1
        return Cells(self.axes, lower, upper)

    def counts(self) -> Vector:
        """Count the counterparts in each cell; infinity if a real attribute is free."""
        real = np.array([axis.real for axis in self.axes])
        spans = self.upper - self.lower
        sizes = np.where(real & (spans > 0), np.inf, np.where(real, 1.0, spans + 1))
        return np.asarray(sizes.prod(axis=1))

    def corners(self, row: int, person: Vector, limit: int) -> Matrix | None:
        """Return the corners of a cell as people; None if there are more than `limit`.

        Every value of a finite attribute counts as a corner.
        """
        coordinates = []
        for index, axis in enumerate(self.axes):
            low, high = self.lower[row, index], self.upper[row, index]
            if axis.real:
                coordinates.append(np.unique([low, high]))
            elif high - low < limit:
                coordinates.append(np.arange(low, high + 1))
            else:
                return None
        if np.prod([float(len(values)) for values in coordinates]) > limit:
            return None
        grid = np.stack(
            [axis_grid.ravel() for axis_grid in np.meshgrid(*coordinates, indexing="ij")], axis=1
        )
        return self.people(grid, person)

    def people(self, coordinates: Matrix, person: Vector) -> Matrix:
        """Return the counterparts at these coordinates, one row per counterpart."""
        rows = np.repeat(person[None, :], len(coordinates), axis=0)
        for index, axis in enumerate(self.axes):
            rows[:, list(axis.columns)] = axis.codes(coordinates[:, index])
        return rows
