"""Parts: boxes of one person's counterparts, also where a sensitive attribute is real-valued.

Along a finite attribute a part reaches from one place in its list of values to another, along a
real-valued one from one number to another.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.space.attribute import Derived, Finite, Real
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, slots=True)
class Dimension:
    """One sensitive attribute with all that is derived from it: the columns that move together."""

    attribute: Finite | Real
    derived: tuple[Derived, ...]
    columns: tuple[int, ...]

    @property
    def real(self) -> bool:
        """Whether it has uncountably many values."""
        return isinstance(self.attribute, Real)

    @property
    def ends(self) -> tuple[float, float]:
        """Where it begins and ends: places of a finite attribute, numbers of a real one."""
        if isinstance(self.attribute, Real):
            return self.attribute.low, self.attribute.high
        return 0.0, float(self.attribute.n_values - 1)

    def codes(self, at: Vector) -> Matrix:
        """Give the columns that go with these places or numbers."""
        if isinstance(self.attribute, Real):
            return np.array(at)[:, None]
        own = self.attribute.codes(at.astype(np.int64))
        return np.hstack([own, *(one.derive(own[:, 0]) for one in self.derived)])


def dimensions(space: FeatureSpace) -> tuple[Dimension, ...]:
    """Give the sensitive attributes in the space's order."""
    return tuple(_dimensions(space))


def _dimensions(space: FeatureSpace) -> Iterator[Dimension]:
    for attribute in space.sensitive:
        assert not isinstance(attribute, Derived)
        derived = tuple(
            one
            for one in space.attributes
            if isinstance(one, Derived) and one.source == attribute.name
        )
        members = [space.columns_of(one) for one in (attribute, *derived)]
        columns = [column for member in members for column in range(member.start, member.stop)]
        yield Dimension(attribute, derived, tuple(columns))


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Some parts, one a row; both ends belong to a part."""

    dimensions: tuple[Dimension, ...]
    lower: Matrix  # (parts, dimensions)
    upper: Matrix

    @classmethod
    def whole(cls, dimensions: tuple[Dimension, ...]) -> "Cells":
        """Take all counterparts as one part."""
        ends = np.array([one.ends for one in dimensions])
        return cls(dimensions, ends[None, :, 0], ends[None, :, 1])

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, rows: Counts | slice) -> "Cells":
        return Cells(self.dimensions, self.lower[rows], self.upper[rows])

    def followed_by(self, other: "Cells") -> "Cells":
        """Put other parts behind these."""
        lower, upper = np.vstack([self.lower, other.lower]), np.vstack([self.upper, other.upper])
        return Cells(self.dimensions, lower, upper)

    def middles(self, row: int) -> Vector:
        """Say where a part would be cut in two along each dimension; NaN where it is a point."""
        lower, upper = self.lower[row], self.upper[row]
        middle = lower + (upper - lower) / 2
        whole = np.array([not one.real for one in self.dimensions])
        middle = np.where(whole, np.floor(middle), middle)
        splits = np.where(whole, lower < upper, (lower < middle) & (middle < upper))
        return np.where(splits, middle, np.nan)

    def cut(self, row: int, dimension: int, at: float) -> "Cells":
        """Cut a part in two: up to `at`, and from there on (finite: from the next place on)."""
        lower, upper = (
            np.repeat(ends[row : row + 1], 2, axis=0) for ends in (self.lower, self.upper)
        )
        upper[0, dimension] = at
        lower[1, dimension] = at if self.dimensions[dimension].real else at + 1
        return Cells(self.dimensions, lower, upper)

    def counts(self) -> Vector:
        """Tell how many counterparts each part has; infinity where a real attribute is free."""
        real = np.array([one.real for one in self.dimensions])
        spans = self.upper - self.lower
        sizes = np.where(real & (spans > 0), np.inf, np.where(real, 1.0, spans + 1))
        return np.asarray(sizes.prod(axis=1))

    def corners(self, row: int, person: Vector, most: int) -> Matrix | None:
        """Give a part's corners as people; every value of a finite attribute is one; None if many."""
        axes = []
        for index, one in enumerate(self.dimensions):
            low, high = self.lower[row, index], self.upper[row, index]
            if one.real:
                axes.append(np.unique([low, high]))
            elif high - low < most:
                axes.append(np.arange(low, high + 1))
            else:
                return None
        if np.prod([float(len(axis)) for axis in axes]) > most:
            return None
        grid = np.stack([one.ravel() for one in np.meshgrid(*axes, indexing="ij")], axis=1)
        return self.people(grid, person)

    def people(self, at: Matrix, person: Vector) -> Matrix:
        """Give the counterparts at these places, one a row."""
        rows = np.repeat(person[None, :], len(at), axis=0)
        for index, one in enumerate(self.dimensions):
            rows[:, list(one.columns)] = one.codes(at[:, index])
        return rows
