"""Values of the first layer over cells of a person's counterparts, up to rounding.

With the shared columns fixed, they are c + Σ_j t_j(s_j), with one term per sensitive attribute. So
the minimum of a linear function of them is a sum of minima, and no relaxation is needed.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.bounds.layers import BoundedColumns
from feta.cells.cells import Cells
from feta.interval_box import IntervalBox
from feta.rounding import FLOAT64, FLOOR, upward
from feta.space.attribute import Categorical, Integer, Levels, Real
from feta.space.axis import Axis

# Attributes that need a longer table (categories, bands, stored tables) are not supported.
MAX_ROWS = 4096

# Numbers in memory at once when a long table is searched: 8 MB.
BLOCK_NUMBERS = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Sloped:
    """A linear term of an attribute: slope · number."""

    slope: Vector

    def numbers(self, cells: Cells, index: int) -> IntervalBox:
        """Return the intervals of the attribute's numbers."""
        lower, upper = cells.lower[:, index], cells.upper[:, index]
        match cells.axes[index].attribute:
            case Integer(low=low):
                return IntervalBox(lower + low, upper + low)
            case Levels(numbers=numbers):
                values = np.array(numbers)
                return IntervalBox(values[lower.astype(np.int64)], values[upper.astype(np.int64)])
            case Real():
                return IntervalBox(lower, upper)
            case Categorical():
                raise AssertionError("a category has no numbers")

    def minimum(self, rows: Matrix, cells: Cells, index: int) -> Matrix:
        """Compute the minimum of rows · term over each cell."""
        numbers = self.numbers(cells, index)
        slopes = rows @ self.slope
        return np.minimum(slopes * numbers.lower[:, None], slopes * numbers.upper[:, None])

    def argmax(self, row: Matrix, cells: Cells, index: int) -> Vector:
        """Return where in each cell row · term is largest; a heuristic, not a bound."""
        return np.where(row @ self.slope > 0, cells.upper[:, index], cells.lower[:, index])

    def size(self, cells: Cells, index: int) -> Matrix:
        """Bound the absolute value of each neuron's term."""
        # FLOOR covers terms that underflow.
        return (self.numbers(cells, index).size[:, None] + FLOOR) * (np.abs(self.slope) + FLOOR)

    def spread(self, cells: Cells, index: int) -> Matrix:
        """Return how much the terms of each neuron vary in a cell; a heuristic, not a bound."""
        numbers = self.numbers(cells, index)
        return (numbers.upper - numbers.lower)[:, None] * np.abs(self.slope)


@dataclass(frozen=True, slots=True, eq=False)
class Tabled:
    """A tabulated term of an attribute: one row per value."""

    rows: Matrix  # (values, neurons)
    sizes: Matrix

    def minimum(self, rows: Matrix, cells: Cells, index: int) -> Matrix:
        """Compute the minimum of rows · term over each cell."""
        inside = self._inside(cells, index)[:, None, :]
        step = max(1, BLOCK_NUMBERS // (rows.shape[1] * len(self.rows)))
        blocks = [slice(start, start + step) for start in range(0, len(rows), step)]
        minima = [np.where(inside[b], rows[b] @ self.rows.T, np.inf).min(axis=2) for b in blocks]
        return np.concatenate(minima)

    def argmax(self, row: Matrix, cells: Cells, index: int) -> Vector:
        """Return where in each cell row · term is largest; a heuristic, not a bound."""
        values = np.where(self._inside(cells, index), row @ self.rows.T, -np.inf)
        return np.argmax(values, axis=1).astype(np.float64)

    def size(self, cells: Cells, index: int) -> Matrix:
        """Bound the absolute value of each neuron's term."""
        inside = self._inside(cells, index)[:, :, None]
        return np.asarray(np.where(inside, self.sizes, 0.0).max(axis=1))

    def spread(self, cells: Cells, index: int) -> Matrix:
        """Return how much the terms of each neuron vary in a cell; a heuristic, not a bound."""
        inside = self._inside(cells, index)[:, :, None]
        high = np.where(inside, self.rows, -np.inf).max(axis=1)
        return np.asarray(high - np.where(inside, self.rows, np.inf).min(axis=1))

    def _inside(self, cells: Cells, index: int) -> Flags:
        values = np.arange(len(self.rows))
        low, high = cells.lower[:, index, None], cells.upper[:, index, None]
        return np.asarray((values >= low) & (values <= high))


Term = Sloped | Tabled


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms of the sensitive attributes; the same for all people."""

    columns: BoundedColumns
    axes: tuple[Axis, ...]
    each: tuple[Term, ...]
    shared: tuple[int, ...]  # the columns that counterparts share

    @classmethod
    def of(cls, first: BoundedColumns, axes: tuple[Axis, ...]) -> "Terms":
        """Split a first layer into the terms of the axes and of the shared columns."""
        sensitive = {column for axis in axes for column in axis.columns}
        shared = tuple(column for column in range(first.width) if column not in sensitive)
        return cls(first, axes, tuple(_term(first, axis) for axis in axes), shared)

    def moves(self, cells: Cells, index: int) -> Flags:
        """Return the neurons that an axis may change in each cell, (cells, neurons).

        Equal stored numbers are compared, never rounded sums of them.
        """
        axis, term = self.axes[index], self.each[index]
        wide = (cells.lower[:, index] < cells.upper[:, index])[:, None]
        listed = any(column in axis.columns for column in self.columns.tabled)
        if isinstance(axis.attribute, Categorical) and not (axis.derived or listed):
            return np.asarray(wide & (term.spread(cells, index) != 0))
        columns = list(axis.columns)
        stored = (self.columns.slopes[:, columns] != 0).any(axis=1)
        return np.asarray(wide & (stored | listed))

    def at(self, person: Vector, cells: Cells) -> "FirstLayer":
        """Fix the shared columns of a person."""
        values, sizes = self.columns.terms(person[None, list(self.shared)], self.shared)
        total = sizes + np.abs(self.columns.bias)
        for index, term in enumerate(self.each):
            total = total + term.size(cells, index)
        n_terms = self.columns.width + 1
        error = (FLOAT64.gamma(n_terms) * total + 5 * n_terms * FLOAT64.tiny) * upward(n_terms)
        return FirstLayer(self, cells, values[0] + self.columns.bias, total, error)


@dataclass(frozen=True, slots=True, eq=False)
class FirstLayer:
    """Constant + Σ terms, with an error of at most `error`."""

    terms: Terms
    cells: Cells
    constant: Vector
    size: Matrix  # bounds the sum of the absolute terms of each neuron, (cells, neurons)
    error: Matrix  # (cells, neurons)

    def minimum(self, rows: Matrix) -> Matrix:
        """Compute the minimum of rows · (first layer) over each cell, not rounded outward."""
        value = rows @ self.constant
        for index, term in enumerate(self.terms.each):
            value = value + term.minimum(rows, self.cells, index)
        return value

    def box(self) -> IntervalBox:
        """Bound each neuron; exact up to rounding."""
        eye = np.broadcast_to(
            np.eye(len(self.constant)), (len(self.cells), *2 * self.constant.shape)
        )
        # Summing the terms may round as much as computing them.
        error = 2 * self.error
        return IntervalBox(self.minimum(eye) - error, error - self.minimum(-eye))

    def argmax(self, row: Matrix) -> Matrix:
        """Return where in each cell row · (first layer) is largest, (cells, attributes).

        This is a heuristic, not a bound.
        """
        each = self.terms.each
        return np.stack([term.argmax(row, self.cells, n) for n, term in enumerate(each)], axis=1)

    def spread(self) -> Matrix:
        """Return how much each attribute moves each neuron, (cells, attributes, neurons).

        This is a heuristic, not a bound.
        """
        each = [term.spread(self.cells, index) for index, term in enumerate(self.terms.each)]
        return np.stack(each, axis=1)


def tabulable(first: BoundedColumns, axes: tuple[Axis, ...]) -> bool:
    """Return whether all axes that need a table are finite, with at most MAX_ROWS values."""
    tabled = [axis for axis in axes if needs_table(first, axis)]
    return all(not axis.real and axis.ends[1] < MAX_ROWS for axis in tabled)


def needs_table(first: BoundedColumns, axis: Axis) -> bool:
    """Return whether a term is not linear: a category, bands, a missing flag or a stored table."""
    listed = any(column in axis.columns for column in first.tabled)
    several = len(axis.columns) > 1
    return isinstance(axis.attribute, Categorical) or several or listed


def _term(first: BoundedColumns, axis: Axis) -> Term:
    if not needs_table(first, axis):
        (column,) = axis.columns
        return Sloped(np.array(first.slopes[:, column]))
    low, high = axis.ends
    rows, sizes = first.terms(axis.codes(np.arange(low, high + 1)), axis.columns)
    return Tabled(rows, sizes)
