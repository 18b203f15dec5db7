"""Lattice of all sensitive assignments, with ids from 0; it is never in memory as a whole.

The first axis varies slowest. A derived attribute belongs to the axis of its source.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.space.axis import Axis

# Counterparts per block: 2^14 rows of a hundred columns take 13 MB.
BLOCK = 2**14

# The columns of all values of an axis are kept if there are no more than these.
CACHED_AXIS = 2**12


@dataclass(frozen=True, slots=True)
class Lattice:
    """Every combination of the sensitive attributes' values, in a fixed order."""

    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        """The number of assignments. `len()` fails beyond 2^63; this does not."""
        return math.prod(len(axis) for axis in self.axes)

    def __len__(self) -> int:
        return self.size

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of a row that assignments fill, in the order of `codes`."""
        return tuple(column for axis in self.axes for column in axis.columns)

    def coordinates(self, assignment_ids: Counts) -> tuple[Counts, ...]:
        """Split assignment ids into the index of the value on each axis."""
        rest = np.asarray(assignment_ids, dtype=np.int64)
        coordinates: list[Counts] = []
        for axis in reversed(self.axes):
            rest, indices = np.divmod(rest, len(axis))
            coordinates.append(indices)
        return tuple(reversed(coordinates))

    def codes(self, start: int, stop: int) -> Matrix:
        """Return the sensitive columns of the assignments from start up to, not including, stop."""
        return self._codes(np.arange(start, stop))

    def _codes(self, assignment_ids: Counts) -> Matrix:
        coordinates = self.coordinates(assignment_ids)
        pairs = zip(self.axes, coordinates, strict=True)
        parts = [
            axis.every_code[indices] if len(axis) <= CACHED_AXIS else axis.codes(indices)
            for axis, indices in pairs
        ]
        return np.concatenate(parts, axis=1)

    def assignment_ids(self, people: Matrix) -> Counts:
        """Return the id of each person's assignment."""
        assignment_ids = np.zeros(len(people), dtype=np.int64)
        for axis in self.axes:
            assignment_ids = assignment_ids * len(axis) + axis.indices(people)
        return assignment_ids

    def counterpart(self, person: Vector, number: int) -> Vector:
        """Return the person's counterpart with this assignment id."""
        return self.moved(person[None, :], np.array([number]))[0]

    def moved(self, people: Matrix, assignment_ids: Counts) -> Matrix:
        """Return one counterpart of each person, with the assignment of that id."""
        counterparts = np.array(people)
        counterparts[:, list(self.columns)] = self._codes(assignment_ids)
        return counterparts

    def counterparts(self, person: Vector) -> Iterator[Matrix]:
        """Yield all counterparts of a person in blocks; the person is one of them."""
        for start in range(0, self.size, BLOCK):
            assignment_ids = np.arange(start, min(start + BLOCK, self.size))
            people = np.repeat(person[None, :], len(assignment_ids), axis=0)
            yield self.moved(people, assignment_ids)
