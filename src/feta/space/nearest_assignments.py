"""The listed assignment that is nearest to another one."""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Counts
from feta.space.attribute import Integer, Levels
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace

# Distances computed at a time.
MAX_DISTANCES = 2**20

# Larger distances are Python's integers, which do not overflow.
LARGEST_INT64 = 2**62

# The distance of a missing number from every number; that of two numbers is at most 1.
MISSING = 2

# Integers; of Python if they may exceed int64.
Integers = NDArray[Any]


def nearest_assignments(space: FeatureSpace, assignment_ids: Counts, listed: Counts) -> Counts:
    """Return for each assignment the index of the nearest one of a list.

    Most equal categories come first, then the nearest numbers, and among equals the lowest
    assignment id, which is the first in the order of the schema. The distance of two numbers is
    their difference, as their decimals show it, divided by that of the column's highest and lowest
    number; the distances of several columns are added. A missing number equals a missing one only,
    and is farther from every number than any two numbers are from each other. A missing category
    is one more category.
    """
    if not len(assignment_ids):
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(listed, kind="stable")
    step = max(1, MAX_DISTANCES // max(1, len(listed)))
    distances = _Distances(space)
    parts = [
        order[distances.nearest(assignment_ids[start : start + step], listed[order])]
        for start in range(0, len(assignment_ids), step)
    ]
    return np.concatenate(parts)


class _Distances:
    """Distances as integers, so that equal distances are equal numbers."""

    def __init__(self, space: FeatureSpace) -> None:
        self.lattice = space.lattice
        self.columns = [_NumberColumn.of(axis) for axis in self.lattice.axes]
        spans = [column.span for column in self.columns if column is not None]
        self.unit = lcm(*spans)
        # The distances of all numbers together never outweigh a category.
        self.per_category = self.unit * (MISSING * len(spans) + 1)
        largest = self.per_category * (len(self.columns) + 1)
        self.kind = np.dtype(np.int64 if largest < LARGEST_INT64 else object)

    def nearest(self, assignment_ids: Counts, listed: Counts) -> Counts:
        """Return the index of the nearest one; the first of equals."""
        total: Integers = np.zeros((len(assignment_ids), len(listed)), dtype=self.kind)
        coordinates = (self.lattice.coordinates(ids) for ids in (assignment_ids, listed))
        pairs = zip(*coordinates, strict=True)
        for column, (own, others) in zip(self.columns, pairs, strict=True):
            if column is None:  # a category
                total += (own[:, None] != others[None, :]).astype(self.kind) * self.per_category
            else:
                total += self._of_numbers(column, own, others)
        return np.argmin(total, axis=1).astype(np.int64)

    def _of_numbers(self, column: "_NumberColumn", own: Counts, others: Counts) -> Integers:
        """Return the distances on one axis."""
        (own_number, own_missing), (other_number, other_missing) = (
            (column.at(part).astype(self.kind), part >= column.n_numbers) for part in (own, others)
        )
        distances = np.abs(own_number[:, None] - other_number[None, :]) * (self.unit // column.span)
        distances[own_missing[:, None] != other_missing[None, :]] = MISSING * self.unit
        distances[own_missing[:, None] & other_missing[None, :]] = 0
        return distances


@dataclass(frozen=True, slots=True, eq=False)
class _NumberColumn:
    """The numbers of an axis as integers from 0 to `span`."""

    n_numbers: int  # the next index means missing
    span: int
    table: Integers | None = None  # by index; None: the index itself

    @classmethod
    def of(cls, axis: Axis) -> "_NumberColumn | None":
        """Return the numbers of an axis; None for a category."""
        match axis.attribute:
            case Integer(low=low, high=high):
                return cls(high - low + 1, max(1, high - low))
            case Levels(numbers=numbers):
                exact = [Fraction(repr(float(number))) for number in numbers]
                unit = lcm(*(number.denominator for number in exact))
                table = [int((number - exact[0]) * unit) for number in exact]
                return cls(len(table), max(1, table[-1]), np.array(table, dtype=object))
            case _:
                return None

    def at(self, indices: Counts) -> Integers:
        """Return the number at each index."""
        inside = np.minimum(indices, self.n_numbers - 1)
        return inside if self.table is None else self.table[inside]
