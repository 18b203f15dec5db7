"""FirstLayer: the first layer's values over parts of a person's counterparts, to within rounding.

With the other columns fixed it is c + Σ_j t_j(s_j), a term a sensitive attribute: so the least value
of any linear function of it is a sum of least values, and no relaxation is needed.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.cells.cells import Cells, Dimension, dimensions
from feta.interval_box import IntervalBox
from feta.model import Model
from feta.rounding import FLOAT64, FLOOR, upward
from feta.scorer.network.network import Columns
from feta.space.attribute import Categorical, Integer, Levels, Real

# Attributes that are tabulated (categories, bands, stored tables) and longer than this are refused.
MAX_ROWS = 4096

# Numbers held at once when a long table is searched: 8 MB.
BLOCK_NUMBERS = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Sloped:
    """An attribute's term: slope · number."""

    slope: Vector

    def numbers(self, cells: Cells, index: int) -> IntervalBox:
        """Give the ranges of an attribute's own numbers."""
        lower, upper = cells.lower[:, index], cells.upper[:, index]
        match cells.dimensions[index].attribute:
            case Integer(low=low):
                return IntervalBox(lower + low, upper + low)
            case Levels(numbers=numbers):
                values = np.array(numbers)
                return IntervalBox(values[lower.astype(np.int64)], values[upper.astype(np.int64)])
            case Real():
                return IntervalBox(lower, upper)
            case Categorical():
                raise AssertionError("a category has no numbers")

    def least(self, rows: Matrix, cells: Cells, index: int) -> Matrix:
        """Give the least of rows · term over each part."""
        numbers = self.numbers(cells, index)
        along = rows @ self.slope
        return np.minimum(along * numbers.lower[:, None], along * numbers.upper[:, None])

    def most(self, row: Matrix, cells: Cells, index: int) -> Vector:
        """Say where in each part row · term is largest; a hint, not a bound."""
        return np.where(row @ self.slope > 0, cells.upper[:, index], cells.lower[:, index])

    def size(self, cells: Cells, index: int) -> Matrix:
        """Bound the absolute value of each neuron's term."""
        # FLOOR: so that a term lost to underflow still has a size.
        return (self.numbers(cells, index).size[:, None] + FLOOR) * (np.abs(self.slope) + FLOOR)

    def spread(self, cells: Cells, index: int) -> Matrix:
        """Say how much each neuron's term differs within a part; a hint, not a bound."""
        numbers = self.numbers(cells, index)
        return (numbers.upper - numbers.lower)[:, None] * np.abs(self.slope)


@dataclass(frozen=True, slots=True, eq=False)
class Tabled:
    """An attribute's term: a row a value."""

    rows: Matrix  # (values, neurons)
    sizes: Matrix

    def least(self, rows: Matrix, cells: Cells, index: int) -> Matrix:
        """Give the least of rows · term over each part."""
        inside = self._inside(cells, index)[:, None, :]
        step = max(1, BLOCK_NUMBERS // (rows.shape[1] * len(self.rows)))
        blocks = [slice(start, start + step) for start in range(0, len(rows), step)]
        least = [np.where(inside[b], rows[b] @ self.rows.T, np.inf).min(axis=2) for b in blocks]
        return np.concatenate(least)

    def most(self, row: Matrix, cells: Cells, index: int) -> Vector:
        """Say where in each part row · term is largest; a hint, not a bound."""
        values = np.where(self._inside(cells, index), row @ self.rows.T, -np.inf)
        return np.argmax(values, axis=1).astype(np.float64)

    def size(self, cells: Cells, index: int) -> Matrix:
        """Bound the absolute value of each neuron's term."""
        inside = self._inside(cells, index)[:, :, None]
        return np.asarray(np.where(inside, self.sizes, 0.0).max(axis=1))

    def spread(self, cells: Cells, index: int) -> Matrix:
        """Say how much each neuron's term differs within a part; a hint, not a bound."""
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
    """The sensitive attributes' terms; the same for everybody."""

    columns: Columns
    dimensions: tuple[Dimension, ...]
    each: tuple[Term, ...]
    shared: tuple[int, ...]  # the columns that counterparts share

    @classmethod
    def of(cls, model: Model) -> "Terms":
        """Take a model's first layer apart."""
        first, found = model.network.first, dimensions(model.space)
        shared = np.flatnonzero(~model.space.sensitive_columns)
        each = tuple(_term(first, one) for one in found)
        return cls(first, found, each, tuple(shared.tolist()))

    def at(self, person: Vector, cells: Cells) -> "FirstLayer":
        """Fix a person's other columns."""
        values, sizes = self.columns.terms(person[None, list(self.shared)], self.shared)
        total = sizes + np.abs(self.columns.bias)
        for index, term in enumerate(self.each):
            total = total + term.size(cells, index)
        n_terms = self.columns.width + 1
        error = (FLOAT64.gamma(n_terms) * total + 5 * n_terms * FLOAT64.tiny) * upward(n_terms)
        return FirstLayer(self, cells, values[0] + self.columns.bias, total, error)


@dataclass(frozen=True, slots=True, eq=False)
class FirstLayer:
    """Constant + Σ terms, off by at most `error`."""

    terms: Terms
    cells: Cells
    constant: Vector
    size: Matrix  # bounds the sum of the absolute terms of each neuron, (parts, neurons)
    error: Matrix  # (parts, neurons)

    def least(self, rows: Matrix) -> Matrix:
        """Give the least of rows · (first layer) over each part; its own rounding is the caller's."""
        value = rows @ self.constant
        for index, term in enumerate(self.terms.each):
            value = value + term.least(rows, self.cells, index)
        return value

    def box(self) -> IntervalBox:
        """Bound each neuron: exact but for rounding."""
        eye = np.broadcast_to(
            np.eye(len(self.constant)), (len(self.cells), *2 * self.constant.shape)
        )
        # Adding up the terms again rounds as much as computing them did.
        error = 2 * self.error
        return IntervalBox(self.least(eye) - error, error - self.least(-eye))

    def most(self, row: Matrix) -> Matrix:
        """Say where in each part its row · (first layer) is largest, (parts, attributes); a hint."""
        each = self.terms.each
        return np.stack([term.most(row, self.cells, n) for n, term in enumerate(each)], axis=1)

    def spread(self) -> Matrix:
        """Say how much each attribute moves each neuron, (parts, attributes, neurons); a hint."""
        each = [term.spread(self.cells, index) for index, term in enumerate(self.terms.each)]
        return np.stack(each, axis=1)


def tabulable(model: Model) -> bool:
    """Say whether every attribute that needs a table has one of at most MOST_ROWS rows."""
    tabled = [one for one in dimensions(model.space) if _tabled(model.network.first, one)]
    return all(not one.real and one.ends[1] < MAX_ROWS for one in tabled)


def _tabled(first: Columns, dimension: Dimension) -> bool:
    """Say whether a term is no line: a category, bands, a flag for what is missing, a stored table."""
    listed = any(table.column in dimension.columns for table in first.tables)
    several = len(dimension.columns) > 1
    return isinstance(dimension.attribute, Categorical) or several or listed


def _term(first: Columns, dimension: Dimension) -> Term:
    if not _tabled(first, dimension):
        (column,) = dimension.columns
        return Sloped(np.array(first.slopes[:, column]))
    low, high = dimension.ends
    rows, sizes = first.terms(dimension.codes(np.arange(low, high + 1)), dimension.columns)
    return Tabled(rows, sizes)
