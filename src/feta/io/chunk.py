"""Chunks: some rows of a table file, and their conversion to people."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import DomainError, OutsideLimits
from feta.io.cell_text import MAX_SHOWN, comma_hint, is_empty, parse_number, show_cell
from feta.space.attribute import Attribute, Categorical, Derived, Integer
from feta.space.cell_values import is_missing
from feta.space.feature_space import FeatureSpace
from feta.space.limits import Limits

if TYPE_CHECKING:
    import pandas as pd

# Parts into which rows are divided if one of them is invalid.
PARTS = 16


MakeFrame = Callable[[], "pd.DataFrame | None"]


def no_frame() -> "pd.DataFrame | None":
    """Return no frame: pandas does not read the cells."""
    return None


def constant(frame: "pd.DataFrame | None") -> MakeFrame:
    """Return a function that returns this frame."""
    return lambda: frame


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of a table: the cells of the requested columns.

    `problems` describes the rows that could not be split into cells; their cells are empty.
    `make_frame` returns the columns of the space as pandas reads them; without them, cells are read
    one by one. An Arrow `batch` is encoded without cells and frame, if all of its cells are usual.
    """

    path: Path
    start: int  # the number of the first row, counted from 0
    columns: Mapping[str, Sequence[object]]
    progress: float  # the fraction of the file that has been read
    problems: dict[int, str] = field(default_factory=dict)  # by the row's index in the chunk
    lines: tuple[int, ...] = ()  # the line in which each row ends, for text files
    make_frame: MakeFrame = no_frame
    batch: Any = None  # the same columns in Arrow, if pandas reads them without options

    def __len__(self) -> int:
        if self.batch is not None:
            return int(self.batch.num_rows)
        return len(next(iter(self.columns.values()), []))

    @property
    def frame(self) -> "pd.DataFrame | None":
        """The columns of the space as pandas reads them."""
        return self.make_frame()

    def row(self, index: int) -> "Chunk":
        """Return a chunk of one row."""
        return self.take(range(index, index + 1))

    def take(self, indices: range) -> "Chunk":
        """Return a chunk of some rows; messages number them correctly if they are consecutive."""
        problems = {n: self.problems[i] for n, i in enumerate(indices) if i in self.problems}
        lines = tuple(self.lines[i] for i in indices) if self.lines else ()
        start = self.start + (indices[0] if len(indices) else 0)
        make_frame = cache(partial(_some_rows, self.make_frame, indices))
        if self.batch is not None:
            batch = self.batch.take(np.asarray(indices, dtype=np.int64))
            cells: Mapping[str, Sequence[object]] = ArrowCells(batch)
            return Chunk(self.path, start, cells, self.progress, problems, lines, make_frame, batch)
        cells = {name: [column[i] for i in indices] for name, column in self.columns.items()}
        return Chunk(self.path, start, cells, self.progress, problems, lines, make_frame)

    def place_of(self, index: int, id_column: str | None = None) -> str:
        """Return file, row and id of a row, and its line unless that follows from the row."""
        row = self.start + index + 1
        more = []
        if self.lines and self.lines[index] != row + 1:  # not just the header before the rows
            more.append(f"line {self.lines[index]}")
        if id_column is not None and id_column in self.columns:
            more.append(f"{id_column} {show_cell(self.columns[id_column][index])}")
        return f"{self.path}, row {row}" + (f" ({', '.join(more)})" if more else "")

    def check(self, id_column: str | None = None) -> None:
        """Raise if a row could not be split into cells."""
        for index, what in self.problems.items():
            where = self.place_of(index, id_column)
            raise DomainError(f"{where}: {what}", row=self.start + index, what=what)

    def encode(
        self,
        space: FeatureSpace,
        *,
        ignore_sensitive: bool = False,
        id_column: str | None = None,
        admit: Callable[[Matrix], None] | None = None,
    ) -> Matrix:
        """Convert the rows to people; messages name file, row and column.

        With `admit`, rows may be outside the limits of shared columns; it raises for people outside
        the limits who cannot be decided.
        """
        self.check(id_column)
        sensitive: Literal["check", "ignore"] = "ignore" if ignore_sensitive else "check"
        limits: Limits = "check" if admit is None else "open"
        people = self._encode_batch(space, sensitive, limits)
        columns = {} if people is not None else self._all_values(space)
        try:
            if people is None:
                people = space.encode_columns(columns, sensitive=sensitive, limits=limits)
            if admit is not None:
                admit(people)
            return people
        except DomainError as error:
            raise self._with_place(error, space, id_column) from None

    def encode_good(
        self,
        space: FeatureSpace,
        *,
        ignore_sensitive: bool = False,
        admit: Callable[[Matrix], None] | None = None,
    ) -> tuple[Matrix, list[int]]:
        """Convert the valid rows to people; also return their indices in the chunk."""
        encode = partial(Chunk.encode, space=space, ignore_sensitive=ignore_sensitive, admit=admit)
        parts: list[Matrix] = [np.zeros((0, space.width))]
        good: list[int] = []
        for rows, people in self.attempts(encode):
            if not isinstance(people, DomainError):
                parts.append(people)
                good += rows
        return np.concatenate(parts), good

    def attempts(
        self, encode: Callable[["Chunk"], Matrix]
    ) -> Iterator[tuple[range, Matrix | DomainError]]:
        """Yield rows with their people, in order; an invalid row alone, with its error.

        Rows are encoded together. A part with an invalid row is divided.
        """
        pending = [range(len(self))]
        while pending:
            rows = pending.pop()
            try:
                result: Matrix | DomainError = encode(self.take(rows))
            except DomainError as error:
                result = error
            if isinstance(result, DomainError) and len(rows) != 1:
                pending += reversed(_divided(rows))
            else:
                yield rows, result

    def _encode_batch(
        self, space: FeatureSpace, sensitive: Literal["check", "ignore"], limits: Limits
    ) -> Matrix | None:
        """Encode the Arrow batch; None if there is none, or if a cell is unusual."""
        if self.batch is None:
            return None
        return space.row_plan(sensitive, limits).encode(self.batch)

    def _all_values(self, space: FeatureSpace) -> dict[str, Sequence[object]]:
        return {name: self._values(space, name) for name in self.columns}

    def _values(self, space: FeatureSpace, name: str) -> Sequence[object]:
        """Return a column as pandas reads it; texts that do not fit the attribute, from cells."""
        cells = self.columns[name]
        known = {attribute.name: attribute for attribute in space.attributes}
        attribute = known.get(name)
        if attribute is None or isinstance(attribute, Derived):
            return cells
        values = self._pandas_values(name)
        if isinstance(attribute, Categorical):
            return _category_values(attribute, cells, list(values))
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
            return values  # type: ignore[return-value]  # an array is a sequence here
        return [parse_number(value) if isinstance(value, str) else value for value in values]

    def _pandas_values(self, name: str) -> "Sequence[object] | np.ndarray[Any, Any]":
        """Return a column as pandas reads it; the cells, if pandas did not read it."""
        frame = self.frame
        if frame is None or name not in frame.columns:
            return [None if is_empty(cell) else cell for cell in self.columns[name]]
        column = frame[name]
        if getattr(column.dtype, "kind", "O") in "iuf" and isinstance(column.dtype, np.dtype):
            return column.to_numpy()
        return list(column.astype(object))

    def _with_place(
        self, error: DomainError, space: FeatureSpace, id_column: str | None
    ) -> DomainError:
        """Return an error that names file and row, and quotes the cell as the file contains it."""
        if error.row is None or error.column is None:
            return DomainError(f"{self.path}: {error}", column=error.column)
        what = error.what
        if not isinstance(error, OutsideLimits) and error.column in self.columns:
            cell = self.columns[error.column][error.row]
            attribute = space.attribute(error.column)
            numeric = not isinstance(attribute, Categorical | Derived)
            if numeric or is_empty(cell) or len(repr(cell)) > MAX_SHOWN:
                got = f"got {show_cell(cell)}; expected {attribute.domain()}"
                what = f"is invalid: {got}{_hint(cell, attribute)}"
            elif _may_have_other(attribute, cell):
                what += (
                    "; add the value, or write other = true for the column if the model's encoder "
                    "ignores unknown texts (handle_unknown='ignore')"
                )
        message = f"{self.place_of(error.row, id_column)}: {error.column!r} {what}"
        row = self.start + error.row
        return DomainError(message, column=error.column, row=row, what=what)


class ArrowCells(Mapping[str, Sequence[object]]):
    """The columns of an Arrow batch as lists of cells, converted when they are read."""

    def __init__(self, batch: Any) -> None:  # noqa: ANN401 - pyarrow ships no types
        self._batch = batch
        self._lists: dict[str, list[object]] = {}

    def __getitem__(self, name: str) -> list[object]:
        if name not in self._lists:
            self._lists[name] = _cells(self._batch.column(name))
        return self._lists[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.schema.names)

    def __len__(self) -> int:
        return int(self._batch.num_columns)


def _cells(column: Any) -> list[object]:  # noqa: ANN401 - pyarrow ships no types
    """Return an Arrow array as a list; Arrow itself converts a dictionary slowly."""
    if not hasattr(column, "dictionary"):
        cells: list[object] = column.to_pylist()
        return cells
    values = column.dictionary.to_pylist()
    return [None if index is None else values[index] for index in column.indices.to_pylist()]


def _some_rows(make_frame: MakeFrame, indices: range) -> "pd.DataFrame | None":
    frame = make_frame()
    return None if frame is None else frame.iloc[list(indices)]


def _divided(rows: range) -> list[range]:
    size = max(1, -(-len(rows) // PARTS))
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _category_values(
    attribute: Categorical, cells: Sequence[object], values: Sequence[object]
) -> list[object]:
    """Return the values of pandas where the attribute lists them, otherwise those of the texts.

    If the schema lists "1" and pandas reads an integer, the text counts. That is correct for a
    network with one input per value. `feta.readers` checks whether a pipeline agrees.
    """
    known = set(attribute.values)
    by_text: dict[object, object] = {str(value): value for value in attribute.values}

    def chosen(cell: object, value: object) -> object:
        missing = is_missing(value)
        if (missing and attribute.missing) or (not missing and _is_in(value, known)):
            return value
        return by_text.get(cell, value) if isinstance(cell, str) else value

    pairs = list(zip(cells, values, strict=True))
    try:
        results = {pair: chosen(*pair) for pair in set(pairs)}  # most are one of a few
    except TypeError:  # an unhashable cell, such as a list
        return [chosen(*pair) for pair in pairs]
    return [results[pair] for pair in pairs]


def _is_in(value: object, known: set[Any]) -> bool:
    try:
        return value in known
    except TypeError:  # an unhashable cell, such as a list
        return False


def _may_have_other(attribute: Attribute, cell: object) -> bool:
    """Return whether other = true would accept a cell."""
    return (
        isinstance(attribute, Categorical)
        and not (attribute.sensitive or attribute.other)
        and all(isinstance(value, str) for value in [*attribute.values, cell])
    )


def _hint(cell: object, attribute: Attribute) -> str:
    """Return advice about a cell outside its domain."""
    if is_empty(cell):
        return "; fill it, or write missing = true for the column if the model takes empty cells"
    number = parse_number(cell) if isinstance(cell, str) else cell
    if isinstance(attribute, Integer) and isinstance(number, float) and number % 1:
        return f'; round it, or declare {attribute.name!r} as type = "number" with a step'
    return comma_hint(cell)
