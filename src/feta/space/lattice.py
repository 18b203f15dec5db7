"""Lattice: all sensitive assignments, numbered from 0; it is never whole in memory.

The first axis moves slowest. A derived attribute is on its source's axis, since it moves with it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Counts, Matrix, Vector, frozen
from feta.space.attribute import Derived, Finite

# Counterparts handed out at a time: 2^14 rows of a hundred columns are 13 MB.
BLOCK = 2**14


@dataclass(frozen=True)
class Axis:
    """One sensitive attribute with all that is derived from it: the columns that move together."""

    attribute: Finite
    derived: tuple[Derived, ...]
    columns: tuple[int, ...]  # of the attribute, then of each derived one

    def __len__(self) -> int:
        return self.attribute.n_values

    def codes(self, indices: Counts) -> Matrix:
        """Give the columns of the values at these places, counted from 0."""
        own = self.attribute.codes(indices)
        return np.hstack([own, *(derived.derive(own[:, 0]) for derived in self.derived)])

    @cached_property
    def every_code(self) -> Matrix:
        """The columns of all values, kept: for axes that are not too long."""
        return frozen(self.codes(np.arange(len(self))))

    def indices(self, people: Matrix) -> Counts:
        """Tell which value each person has."""
        return self.attribute.indices(people[:, list(self.columns[: self.attribute.width])])


@dataclass(frozen=True, slots=True)
class Lattice:
    """Every combination of the sensitive attributes' values, in a fixed order."""

    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        """The number of assignments; `len()` fails beyond 2^63, this does not."""
        return math.prod(len(axis) for axis in self.axes)

    def __len__(self) -> int:
        return self.size

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that the assignments fill, in the order of `codes`."""
        return tuple(column for axis in self.axes for column in axis.columns)

    def coordinates(self, assignment_ids: Counts) -> tuple[Counts, ...]:
        """Split assignment numbers into the value's number on each axis."""
        rest = np.asarray(assignment_ids, dtype=np.int64)
        coordinates: list[Counts] = []
        for axis in reversed(self.axes):
            rest, digit = np.divmod(rest, len(axis))
            coordinates.append(digit)
        return tuple(reversed(coordinates))

    def codes(self, start: int, stop: int) -> Matrix:
        """Give the sensitive columns of the assignments from start up to stop."""
        return self._codes(np.arange(start, stop))

    def _codes(self, assignment_ids: Counts) -> Matrix:
        indices = zip(self.axes, self.coordinates(assignment_ids), strict=True)
        return np.hstack([axis.codes(one) for axis, one in indices])

    def assignment_ids(self, people: Matrix) -> Counts:
        """Tell the number of each person's own assignment."""
        assignment_ids = np.zeros(len(people), dtype=np.int64)
        for axis in self.axes:
            assignment_ids = assignment_ids * len(axis) + axis.indices(people)
        return assignment_ids

    def counterpart(self, person: Vector, number: int) -> Vector:
        """Give the person's counterpart with this assignment."""
        return self.moved(person[None, :], np.array([number]))[0]

    def moved(self, people: Matrix, assignment_ids: Counts) -> Matrix:
        """Give each person's counterpart with the assignment of that number."""
        others = np.array(people)
        others[:, list(self.columns)] = self._codes(assignment_ids)
        return others

    def counterparts(self, person: Vector) -> Iterator[Matrix]:
        """Give all counterparts of a person, the person among them, a block at a time."""
        for start in range(0, self.size, BLOCK):
            assignment_ids = np.arange(start, min(start + BLOCK, self.size))
            yield self.moved(
                np.repeat(person[None, :], len(assignment_ids), axis=0), assignment_ids
            )
