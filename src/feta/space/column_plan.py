"""Plans of columns: how the cells of one attribute become numbers, prepared once per space.

A plan accepts usual cells only, and gives exactly the numbers of `Attribute.encode`. For all other
cells it returns None or raises one of `UNUSUAL`; the attribute itself then converts or rejects
them. So no plan words an error, and none needs to know every type of cell.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import ne
from typing import Any, Protocol

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.space.attribute import Categorical, Derived, Integer, Real
from feta.space.cell_values import is_missing
from feta.space.limits import Number, readable
from feta.space.numeric import number_codes

# What the plan of one cell raises for a cell that it does not know.
UNUSUAL = (KeyError, TypeError, ValueError, OverflowError)

# Types of cells with one meaning, whatever the other cells of the column are. A boolean is not a
# number, but numpy converts a numpy boolean next to numbers.
PLAIN_NUMBERS = frozenset({int, float, np.float64, np.int64, type(None)})

# Values of an attribute that are listed with their bytes; others are compared with the limits.
MAX_LISTED = 2**10

_NUMBER, _NUMBER_AND_FLAG = struct.Struct("=d"), struct.Struct("=2d")


def _band(bands: tuple[tuple[str, float, float], ...], units: bytes, cell: float) -> bytes:
    """Return the bytes of the one band that contains a number."""
    number = float(cell)
    (index,) = [i for i, (_, low, high) in enumerate(bands) if low <= number <= high]
    size = _NUMBER.size * len(bands)
    return units[index * size : (index + 1) * size]


def _other_text(units: bytes, cell: object) -> bytes:
    """Return the bytes of a text that is not listed."""
    if not isinstance(cell, str):
        raise KeyError(cell)
    return units


def _inside(attribute: Integer | Real, cell: float) -> bytes:
    """Return the bytes of a number within the limits, or of a missing one."""
    if attribute.missing and cell != cell:  # noqa: PLR0124 - only NaN
        return _NUMBER_AND_FLAG.pack(attribute.lowest, 1.0)
    if not attribute.low <= cell <= attribute.high:
        raise KeyError(cell)
    number = cell + 0.0  # turns -0.0 into 0.0
    return _NUMBER_AND_FLAG.pack(number, 0.0) if attribute.missing else _NUMBER.pack(number)


def _integer_inside(attribute: Integer, cell: float) -> bytes:
    """Return the bytes of an integer within the limits, or of a missing one."""
    if cell % 1:
        raise KeyError(cell)
    return _inside(attribute, cell)


class CellBytes(dict[object, bytes]):
    """The bytes of listed cells; those of other cells are computed."""

    def __init__(
        self, listed: Mapping[Any, bytes], compute: Callable[[Any], bytes] | None = None
    ) -> None:
        super().__init__(listed)
        self.compute = compute

    def __missing__(self, cell: Any) -> bytes:  # noqa: ANN401 - any cell of a table
        if self.compute is None:
            raise KeyError(cell)
        return self.compute(cell)


class ColumnPlan(Protocol):
    """How the cells of one attribute become numbers."""

    @property
    def name(self) -> str:
        """The name of the column."""
        ...

    @property
    def columns(self) -> slice:
        """The columns of a row that belong to the attribute."""
        ...

    def cell_bytes(self) -> CellBytes:
        """Return the bytes of the numbers of each cell."""
        ...

    def fill(self, rows: Matrix, cells: Any) -> bool:  # noqa: ANN401 - a list or an array
        """Write the numbers of these cells to `rows`, which contain 0; False if one is unusual."""
        ...

    def fill_arrow(self, rows: Matrix, array: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
        """Write the numbers of an Arrow array to `rows`; False if a cell is unusual."""
        ...


@dataclass(frozen=True, slots=True)
class CategoryPlan:
    """Cells of a category, found in a dictionary."""

    attribute: Categorical
    columns: slice
    known: dict[object, int]

    @classmethod
    def of(cls, attribute: Categorical, columns: slice) -> "CategoryPlan":
        """Prepare the dictionary of an attribute."""
        known: dict[object, int] = {value: index for index, value in enumerate(attribute.values)}
        if attribute.missing:
            known[None] = attribute.n_values - 1
        return cls(attribute, columns, known)

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.attribute.name

    def cell_bytes(self) -> CellBytes:
        """Return the bytes of the numbers of each cell."""
        units = np.eye(self.attribute.width)
        listed = {value: units[index].tobytes() for value, index in self.known.items()}
        if self.attribute.other:
            other = units[len(self.attribute.values)].tobytes()
            return CellBytes(listed, partial(_other_text, other))
        return CellBytes(listed)

    def fill(self, rows: Matrix, cells: Any) -> bool:  # noqa: ANN401 - a list or an array
        """Write the numbers of these cells to `rows`, which contain 0; False if one is unusual."""
        if isinstance(cells, np.ndarray):
            if cells.dtype.kind not in "iufbO":
                return False
            cells = cells.tolist()
        indices = self._indices(cells)
        return indices is not None and self._write(rows, indices)

    def fill_arrow(self, rows: Matrix, array: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
        """Write the numbers of an Arrow array to `rows`; False if a cell is unusual."""
        coded = array if hasattr(array, "dictionary") else array.dictionary_encode()
        values = self._indices([*coded.dictionary.to_pylist(), None])
        if values is None:
            return False
        codes = coded.indices
        if coded.null_count:
            codes = codes.cast("int64").fill_null(len(values) - 1)
        return self._write(rows, values[codes.to_numpy(zero_copy_only=False)])

    def _indices(self, cells: Sequence[object]) -> Counts | None:
        """Return the index of each value; -1 for an unknown cell, None for an unhashable one."""
        try:
            found = list(map(self.known.get, cells))
        except TypeError:
            return None
        if None in found:
            found = [
                self._uncommon(cell) if index is None else index
                for cell, index in zip(cells, found, strict=True)
            ]
        return np.array(found, dtype=np.int64)

    def _uncommon(self, cell: object) -> int:
        if self.attribute.missing and is_missing(cell):
            return self.attribute.n_values - 1
        return len(self.attribute.values) if self.attribute.other and isinstance(cell, str) else -1

    def _write(self, rows: Matrix, indices: Counts) -> bool:
        if len(indices) != len(rows) or (indices < 0).any():
            return False
        rows[np.arange(len(rows)), self.columns.start + indices] = 1.0
        return True


@dataclass(frozen=True, slots=True)
class NumberPlan:
    """Cells of a number. `valid` flags the numbers of the domain, as the attribute does."""

    attribute: Number
    columns: slice
    valid: Callable[[Matrix], Flags]

    @classmethod
    def of(cls, attribute: Number, columns: slice, *, is_open: bool) -> "NumberPlan":
        """Prepare the check of an attribute, within its limits or also outside."""
        valid = partial(readable, attribute) if is_open else attribute.valid
        return cls(attribute, columns, valid)

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.attribute.name

    def cell_bytes(self) -> CellBytes:
        """Return the bytes of the numbers of each cell of a plain type.

        Cells outside the limits are not among them, also if the limits are open.
        """
        attribute = self.attribute
        absent = {None: _NUMBER_AND_FLAG.pack(attribute.lowest, 1.0)} if attribute.missing else {}
        if isinstance(attribute, Real):
            return CellBytes(absent, partial(_inside, attribute))
        if isinstance(attribute, Integer) and attribute.n_values > MAX_LISTED:
            return CellBytes(absent, partial(_integer_inside, attribute))
        # Equal numbers of plain types have equal hashes, so that 41.0 is found as well as 41.
        codes = attribute.codes(np.arange(attribute.n_values - attribute.missing)) + 0.0
        number = int if isinstance(attribute, Integer) else float
        return CellBytes({number(code[0]): code.tobytes() for code in codes} | absent)

    def fill(self, rows: Matrix, cells: Any) -> bool:  # noqa: ANN401 - a list or an array
        """Write the numbers of these cells to `rows`; False if one is unusual."""
        if isinstance(cells, np.ndarray) and cells.dtype.kind == "O":
            cells = cells.tolist()
        if not isinstance(cells, np.ndarray):
            if not PLAIN_NUMBERS.issuperset(map(type, cells)):
                return False
            cells = np.array(cells, dtype=np.float64)
        return self._write(rows, cells)

    def fill_arrow(self, rows: Matrix, array: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
        """Write the numbers of an Arrow array to `rows`; False if a cell is unusual."""
        if hasattr(array, "dictionary"):
            array = array.dictionary_decode()
        return self.fill(rows, array.to_numpy(zero_copy_only=False))

    def _write(self, rows: Matrix, cells: Any) -> bool:  # noqa: ANN401 - an array of any type
        if cells.dtype.kind not in "iuf" or cells.shape != (len(rows),):
            return False
        numbers: Vector = cells.astype(np.float64, copy=False)
        codes = number_codes(self.attribute, numbers, np.isnan(numbers))
        if not self.valid(codes).all():
            return False
        np.add(codes, 0.0, out=rows[:, self.columns])  # turns -0.0 into 0.0
        return True


@dataclass(frozen=True, slots=True)
class DerivedPlan:
    """Bands of another column, which has been written before."""

    attribute: Derived
    columns: slice
    source: int  # the column of the source

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.attribute.name

    def fill(self, rows: Matrix, cells: Any) -> bool:  # noqa: ANN401 - a list, an array, or None
        """Write the bands; False if a source has none, or the table's own cells are others."""
        codes = self.attribute.derive(rows[:, self.source])
        if not (codes.sum(axis=1) == 1.0).all():
            return False
        rows[:, self.columns] = codes
        if cells is None:
            return True
        if isinstance(cells, np.ndarray):
            cells = list(cells)
        labels = [label for label, _, _ in self.attribute.bands]
        expected = [labels[index] for index in np.argmax(codes, axis=1).tolist()]
        return len(cells) == len(expected) and not any(map(ne, cells, expected))

    def cell_bytes(self) -> CellBytes:
        """Return the bytes of the bands of each cell of the source."""
        units = np.eye(self.attribute.width).tobytes()
        return CellBytes({}, partial(_band, self.attribute.bands, units))
