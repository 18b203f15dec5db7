"""Cells: boxes of one person's counterparts, for finite and real sensitive attributes.

Along a finite attribute, a cell extends from one index in the list of values to another; along a
real attribute, from one number to another.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.space.attribute import Derived, Finite, Real
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import axis_codes


@dataclass(frozen=True, slots=True)
class Dimension:
    """One sensitive attribute, finite or real, and the attributes derived from it."""

    attribute: Finite | Real
    derived: tuple[Derived, ...]
    columns: tuple[int, ...]  # of the attribute, then of each derived one

    @property
    def real(self) -> bool:
        """Whether it has uncountably many values."""
        return isinstance(self.attribute, Real)

    @property
    def ends(self) -> tuple[float, float]:
        """The first and last coordinate: indices of a finite attribute, numbers of a real one."""
        if isinstance(self.attribute, Real):
            return self.attribute.low, self.attribute.high
        return 0.0, float(self.attribute.n_values - 1)

    def codes(self, coordinates: Vector) -> Matrix:
        """Return the columns at these coordinates: indices or numbers."""
        if isinstance(self.attribute, Real):
            return np.array(coordinates)[:, None]
        return axis_codes(self.attribute, self.derived, coordinates.astype(np.int64))


def dimensions(space: FeatureSpace) -> tuple[Dimension, ...]:
    """Return the sensitive attributes as dimensions, in the space's order."""
    attributes = [a for a in space.sensitive if not isinstance(a, Derived)]
    return tuple(Dimension(a, *space.axis_columns(a)) for a in attributes)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Boxes over dimensions, one row per box; both ends are inclusive."""

    dimensions: tuple[Dimension, ...]
    lower: Matrix  # (cells, dimensions)
    upper: Matrix

    @classmethod
    def whole(cls, dimensions: tuple[Dimension, ...]) -> "Cells":
        """Return one cell with all counterparts."""
        ends = np.array([dimension.ends for dimension in dimensions])
        return cls(dimensions, ends[None, :, 0], ends[None, :, 1])

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, rows: Counts | slice) -> "Cells":
        return Cells(self.dimensions, self.lower[rows], self.upper[rows])

    def followed_by(self, other: "Cells") -> "Cells":
        """Return these cells, then the others."""
        lower, upper = np.vstack([self.lower, other.lower]), np.vstack([self.upper, other.upper])
        return Cells(self.dimensions, lower, upper)

    def middles(self, row: int) -> Vector:
        """Return where each dimension of a cell would be cut; NaN where it cannot be cut."""
        lower, upper = self.lower[row], self.upper[row]
        middle = lower + (upper - lower) / 2
        finite = np.array([not dimension.real for dimension in self.dimensions])
        middle = np.where(finite, np.floor(middle), middle)
        splits = np.where(finite, lower < upper, (lower < middle) & (middle < upper))
        return np.where(splits, middle, np.nan)

    def cut(self, row: int, dimension: int, at: float) -> "Cells":
        """Cut a cell in two: up to `at`, and from there (finite: from the next index)."""
        lower, upper = (
            np.repeat(ends[row : row + 1], 2, axis=0) for ends in (self.lower, self.upper)
        )
        upper[0, dimension] = at
        lower[1, dimension] = at if self.dimensions[dimension].real else at + 1
        return Cells(self.dimensions, lower, upper)

    def counts(self) -> Vector:
        """Count the counterparts in each cell; infinity if a real attribute is free."""
        real = np.array([dimension.real for dimension in self.dimensions])
        spans = self.upper - self.lower
        sizes = np.where(real & (spans > 0), np.inf, np.where(real, 1.0, spans + 1))
        return np.asarray(sizes.prod(axis=1))

    def corners(self, row: int, person: Vector, limit: int) -> Matrix | None:
        """Return the corners of a cell as people; None if there are more than `limit`.

        Every value of a finite attribute counts as a corner.
        """
        coordinates = []
        for index, dimension in enumerate(self.dimensions):
            low, high = self.lower[row, index], self.upper[row, index]
            if dimension.real:
                coordinates.append(np.unique([low, high]))
            elif high - low < limit:
                coordinates.append(np.arange(low, high + 1))
            else:
                return None
        if np.prod([float(len(values)) for values in coordinates]) > limit:
            return None
        grid = np.stack([axis.ravel() for axis in np.meshgrid(*coordinates, indexing="ij")], axis=1)
        return self.people(grid, person)

    def people(self, coordinates: Matrix, person: Vector) -> Matrix:
        """Return the counterparts at these coordinates, one row per counterpart."""
        rows = np.repeat(person[None, :], len(coordinates), axis=0)
        for index, dimension in enumerate(self.dimensions):
            rows[:, list(dimension.columns)] = dimension.codes(coordinates[:, index])
        return rows
