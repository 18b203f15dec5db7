"""Table file: people from CSV or Parquet, a chunk at a time, so that a file may exceed memory.

Whatever is wrong with a file is told by file, row and column; rows are counted from 1, after the
header.
"""

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import DomainError, MissingExtra, OutsideLimits, missing
from feta.io.column_format import ColumnFormat, FormatSummary
from feta.io.table_options import PANDAS_ROWS, TableOptions
from feta.space.attribute import Attribute, Categorical, Derived, Integer
from feta.space.cell_values import is_missing
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    import pandas as pd

# Rows at a time: numpy's overhead is small against them, and so is their memory.
CHUNK_ROWS = 4096

# A chunk ends early at this many characters, so that long cells cannot fill the memory.
CHUNK_CHARACTERS = 2**24

# No cell of a table about people is longer; a larger one is a broken quote or an attack.
LONGEST_CELL = 2**20

# 100,000 columns of a hundred characters fit into a line; a longer one is no table about people.
LONGEST_LINE = 2**24

# What a compressed Parquet column may come to in one group of rows, in bytes.
LARGEST_GROUP = 2**28

DELIMITERS = (",", ";", "\t")

# A line with its end, whichever of the three kinds that is.
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of a table: the wanted columns' cells, and how far the file is read.

    `problems` says of rows that could not be taken apart what is wrong; their cells are empty.
    `frame` holds the columns of the space as pandas reads them; without it, cells are read one by one.
    """

    path: Path
    start: int  # the first row's number, counted from 0
    columns: dict[str, list[object]]
    progress: float  # the share of the file that is read
    problems: dict[int, str] = field(default_factory=dict)  # by the row's place in the chunk
    lines: tuple[int, ...] = ()  # where rows end in a file of lines
    frame: "pd.DataFrame | None" = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def row(self, index: int) -> "Chunk":
        """Take one row alone."""
        return self.take(range(index, index + 1))

    def take(self, indices: range) -> "Chunk":
        """Take some rows; their numbers in messages are right only if the places are consecutive."""
        cells = {name: [column[one] for one in indices] for name, column in self.columns.items()}
        problems = {n: self.problems[one] for n, one in enumerate(indices) if one in self.problems}
        lines = tuple(self.lines[one] for one in indices) if self.lines else ()
        frame = None if self.frame is None else self.frame.iloc[list(indices)]
        start = self.start + (indices[0] if len(indices) else 0)
        return Chunk(self.path, start, cells, self.progress, problems, lines, frame)

    def place_of(self, index: int, id_column: str | None = None) -> str:
        """Name a row: by its number, its line where that is not the next number, and its id."""
        row = self.start + index + 1
        more = []
        if self.lines and self.lines[index] != row + 1:  # a header, and no blank or broken lines
            more.append(f"line {self.lines[index]}")
        if id_column is not None and id_column in self.columns:
            more.append(f"{id_column} {_shown(self.columns[id_column][index])}")
        return f"{self.path}, row {row}" + (f" ({', '.join(more)})" if more else "")

    def check(self, id_column: str | None = None) -> None:
        """Raise unless every row could be taken apart."""
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
        """Turn the rows into people; messages name file, row and column.

        With `admit` rows may lie outside the limits of shared columns; it raises for those that must
        not.
        """
        self.check(id_column)
        typed = {name: self._typed(space, name) for name in self.columns}
        try:
            people = space.encode_columns(
                typed,
                sensitive="ignore" if ignore_sensitive else "check",
                limits="check" if admit is None else "open",
            )
            if admit is not None:
                admit(people)
            return people
        except DomainError as error:
            raise self._located(error, space, id_column) from None

    def encode_good(
        self,
        space: FeatureSpace,
        *,
        ignore_sensitive: bool = False,
        admit: Callable[[Matrix], None] | None = None,
    ) -> tuple[Matrix, list[int]]:
        """Encode the rows that fit the space, and return their places in the chunk."""
        encode = partial(Chunk.encode, space=space, ignore_sensitive=ignore_sensitive, admit=admit)
        try:
            return encode(self), list(range(len(self)))
        except DomainError:
            parts: list[Matrix] = [np.zeros((0, space.width))]
        good: list[int] = []
        for index in range(len(self)):
            with suppress(DomainError):
                parts.append(encode(self.row(index)))
                good.append(index)
        return np.concatenate(parts), good

    def _typed(self, space: FeatureSpace, name: str) -> Sequence[object]:
        """Return a column as pandas reads it; what does not fit its attribute, by its text."""
        cells = self.columns[name]
        known = {attribute.name: attribute for attribute in space.attributes}
        attribute = known.get(name)
        if attribute is None or isinstance(attribute, Derived):
            return cells
        typed = self._as_read(name)
        if isinstance(attribute, Categorical):
            return _categories(attribute, cells, list(typed))
        if isinstance(typed, np.ndarray) and typed.dtype.kind in "iuf":
            return typed  # type: ignore[return-value]  # an array is a sequence here
        return [parse_number(cell) if isinstance(cell, str) else cell for cell in typed]

    def _as_read(self, name: str) -> "Sequence[object] | np.ndarray[Any, Any]":
        """Return a column's values as pandas reads them, if it was asked to."""
        if self.frame is None or name not in self.frame.columns:
            return [None if _empty(cell) else cell for cell in self.columns[name]]
        column = self.frame[name]
        if getattr(column.dtype, "kind", "O") in "iuf" and isinstance(column.dtype, np.dtype):
            return column.to_numpy()
        return list(column.astype(object))

    def _located(
        self, error: DomainError, space: FeatureSpace, id_column: str | None
    ) -> DomainError:
        if error.row is None or error.column is None:
            return DomainError(f"{self.path}: {error}", column=error.column)
        row = self.start + error.row
        if isinstance(error, OutsideLimits) or error.column not in self.columns:
            message = f"{self.place_of(error.row, id_column)}: {error.column!r} {error.what}"
            return DomainError(message, column=error.column, row=row, what=error.what)
        cell = self.columns[error.column][error.row]
        what = error.what
        attribute = space.attribute(error.column)
        if (
            not isinstance(attribute, Categorical | Derived)
            or _empty(cell)
            or len(repr(cell)) > LONGEST_SHOWN
        ):
            what = f"must be {attribute.domain()}, got {_shown(cell)}{_hint(cell, attribute)}"
        message = f"{self.place_of(error.row, id_column)}: {error.column!r} {what}"
        return DomainError(message, column=error.column, row=row, what=what)


def _categories(
    attribute: Categorical, cells: Sequence[object], typed: Sequence[object]
) -> list[object]:
    """Take the values that pandas reads where the attribute lists them, else the cells' texts.

    The text is what counts where the schema lists "1" and pandas reads an integer, which is fine for a
    network that takes one input per value. Whether a pipeline takes it the same way is checked elsewhere.
    """
    known = set(attribute.values)
    names: dict[object, object] = {str(value): value for value in attribute.values}
    found: list[object] = []
    for cell, value in zip(cells, typed, strict=True):
        missing = is_missing(value)
        if (missing and attribute.missing) or (not missing and _is_in(value, known)):
            found.append(value)
        else:
            found.append(names.get(cell, value) if isinstance(cell, str) else value)
    return found


def _is_in(value: object, known: set[Any]) -> bool:
    try:
        return value in known
    except TypeError:  # an unhashable cell, such as a list
        return False


def parse_number(cell: str) -> object:
    """Read a number from text, or return the text; 1_000 and digits of other scripts are none."""
    try:
        return cell if "_" in cell or not cell.isascii() else float(cell)
    except ValueError:
        return cell


LONGEST_SHOWN = 80  # characters of a cell in a message: a line


def _empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _shown(cell: object) -> str:
    if _empty(cell):
        return "an empty cell"
    text = repr(cell)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:60]}… ({len(text)} characters)"


def _hint(cell: object, attribute: Attribute) -> str:
    """Say what to do about a cell that is not in its domain."""
    if _empty(cell):
        return "; fill it, or write missing = true for the column if the model takes empty cells"
    number = parse_number(cell) if isinstance(cell, str) else cell
    if isinstance(attribute, Integer) and isinstance(number, float) and number % 1:
        return f'; round it, or declare {attribute.name!r} as type = "number" with a step'
    return comma_hint(cell)


def comma_hint(cell: object) -> str:
    """Say what is wrong with 1,5 and 1.234,50."""
    if not isinstance(cell, str) or "," not in cell or len(cell) > LONGEST_SHOWN:
        return ""
    if isinstance(parse_number(cell.replace(".", "").replace(",", "")), str):
        return ""
    return "; write numbers with a decimal point and without thousands separators"


class TableFile:
    """A CSV or Parquet file, opened to see its columns; `options` say how pandas reads a CSV."""

    def __init__(self, path: str | Path, options: TableOptions | None = None) -> None:
        self.path = Path(path)
        self.options = options or TableOptions()
        if not self.path.exists():
            raise DomainError(f"{self.path}: there is no such file")
        if not self.path.is_file():
            raise DomainError(
                f"{self.path}: there must be a regular file here, got a folder or a device"
            )
        self._file: _Csv | _Parquet
        if self.path.suffix.lower() in (".parquet", ".pq"):
            self._file = _Parquet(self.path, self.options)
        else:
            self._file = _Csv(self.path, self.options)
        self.names: list[str] = self._file.names
        seen: set[str] = set()
        for name in self.names:
            if (
                name in seen and name
            ):  # spreadsheets write several nameless columns; nobody reads them
                message = f"{self.path}: the table must not have the column {name!r} twice; rename or delete one of them"
                raise DomainError(message, column=name)
            seen.add(name)

    @property
    def delimiter(self) -> str | None:
        """What separates the cells of a CSV file; None for Parquet."""
        return self._file.delimiter if isinstance(self._file, _Csv) else None

    def require(self, names: Collection[str]) -> None:
        """Raise unless all these columns are there."""
        for name in names:
            if name not in self.names:
                raise DomainError(f"{self.path}: {missing(name, self.names)}", column=name)

    def chunks(
        self,
        wanted: Collection[str],
        *,
        rows: int = CHUNK_ROWS,
        typed: Mapping[str, ColumnFormat] | None = None,
    ) -> Iterator[Chunk]:
        """Read the wanted columns, a chunk at a time; if none is wanted, the first, to count rows.

        `typed` are the formats of columns that pandas is to read; `formats` finds them.
        """
        chosen = [name for name in self.names if name in wanted] or self.names[:1]
        empty = True
        for chunk in self._file.chunks(chosen, rows, typed or {}):
            empty = False
            yield chunk
        if empty:
            raise DomainError(f"{self.path}: the table must have at least one row under its header")

    def formats(self, names: Collection[str]) -> dict[str, ColumnFormat]:
        """Find how pandas reads these columns, looking at every row of the file."""
        chosen = [name for name in self.names if name in names]
        return self._file.formats(chosen) if chosen else {}

    def frames(self, formats: Mapping[str, ColumnFormat]) -> "Iterator[pd.DataFrame]":
        """Let pandas itself read these columns, with no help from FETA; it may refuse the file."""
        chosen = [name for name in self.names if name in formats]
        for frame in self._file.frames(chosen, _types(formats)):
            yield frame.astype({name: formats[name].dtype for name in chosen})


def _types(formats: Mapping[str, ColumnFormat]) -> dict[str, object]:
    """List the types that pandas is told when it reads; it finds booleans and categories itself."""
    return {
        name: one.dtype
        for name, one in formats.items()
        if one.kind != "boolean" and not hasattr(one.dtype, "categories")
    }


def _summarized(frames: "Iterable[pd.DataFrame]", *, of_text: bool) -> dict[str, ColumnFormat]:
    """Find the formats of the columns of a table that comes in parts."""
    summaries: dict[str, FormatSummary] = {}
    for frame in frames:
        for name in frame.columns:
            summaries.setdefault(name, FormatSummary(name)).add(frame[name])
    return {name: one.format(of_text=of_text) for name, one in summaries.items()}


class _Csv:
    def __init__(self, path: Path, options: TableOptions) -> None:
        self.path = path
        self.options = options
        self.read = 0  # bytes so far
        csv.field_size_limit(LONGEST_CELL)
        headers = self._headers()
        self.delimiter = max(headers, key=lambda mark: len(headers[mark]))
        self.names = headers[self.delimiter]

    def frames(
        self, chosen: list[str], types: Mapping[str, object] | None = None
    ) -> "Iterator[pd.DataFrame]":
        yield from self.options.frames(self.path, self.delimiter, chosen, dtypes=types)

    def formats(self, chosen: list[str]) -> dict[str, ColumnFormat]:
        """Ask pandas about the file; where it refuses some row, about the rows that can be split."""
        try:
            return _summarized(self.frames(chosen), of_text=True)
        except DomainError:
            raise
        except (ValueError, OverflowError):
            return _summarized(self._split(chosen), of_text=True)

    def _split(self, chosen: list[str]) -> "Iterator[pd.DataFrame]":
        types = {name: self.options.dtype[name] for name in chosen if name in self.options.dtype}
        for chunk in self.chunks(chosen, CHUNK_ROWS, {}):
            good = [index for index in range(len(chunk)) if index not in chunk.problems]
            cells = {name: [chunk.columns[name][one] for one in good] for name in chosen}
            yield self._converted(cells, types)

    def _converted(
        self, cells: dict[str, list[object]], types: Mapping[str, object]
    ) -> "pd.DataFrame":
        try:
            return self.options.frame(cells, types)
        except (ValueError, OverflowError) as error:
            first = " ".join(str(error).split())
            message = f"{self.path}: pandas cannot read the table with the options of [table]: {first}; correct [table] in the schema"
            raise DomainError(message) from None

    def _typed(
        self,
        cells: dict[str, list[object]],
        formats: Mapping[str, ColumnFormat],
        problems: Collection[int],
    ) -> "pd.DataFrame | None":
        """Let pandas read the cells; a row that could not be split gets another row's values."""
        names = [name for name in cells if name in formats]
        n_rows = len(next(iter(cells.values())))
        good = [index for index in range(n_rows) if index not in problems]
        if not names or not good:
            return None
        chosen = {name: [cells[name][index] for index in good] for name in names}
        wanted = {name: formats[name] for name in names}
        read = self._converted(chosen, _types(wanted))
        read = read.astype({name: one.dtype for name, one in wanted.items()})
        if not problems:
            return read
        rows = np.zeros(n_rows, dtype=np.int64)
        rows[good] = np.arange(len(good))
        return read.iloc[rows]

    def _headers(self) -> dict[str, list[str]]:
        """Read the header with each delimiter; where names are quoted, only the right one can."""
        found, problems = {}, []
        for mark in DELIMITERS if self.options.sep is None else (self.options.sep,):
            try:
                found[mark] = self._header(mark)
            except DomainError as error:
                problems.append(error)
        if not found:
            raise problems[0]
        return found

    def _header(self, delimiter: str) -> list[str]:
        for row, _, _ in self._rows(delimiter):
            return row
        raise DomainError(f"{self.path}: the table must have a header line, but the file is empty")

    def _lines(self) -> Iterator[str]:
        """Give lines of bounded length, decoded one by one, so that a bad byte is told by its row."""
        self.read = 0
        with self.path.open("rb") as file:
            while content := file.readline(LONGEST_LINE):
                if len(content) == LONGEST_LINE:
                    raise _BadRow(f"a line must have fewer than {LONGEST_LINE} bytes")
                text = content.decode("utf-8-sig" if not self.read else "utf-8")
                if "\0" in text:
                    raise UnicodeError
                self.read += len(content)
                yield from LINE.findall(text) if "\r" in text[:-2] else [text]

    def _rows(self, delimiter: str) -> Iterator[tuple[list[str], str, int]]:
        """Give rows, what is wrong with them, and the line they end in; blank lines are no rows.

        After a line that cannot be decoded or a quote that is never closed nothing is certain, so
        these raise; a row with too many or too few cells is told, and the next one is read.
        """
        number = -1  # the header
        width = 0
        reader = csv.reader(self._lines(), delimiter=delimiter, strict=True)
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except (UnicodeError, _BadRow, csv.Error) as error:
                raise self._broken(error, number) from None
            if not row or (len(row) == 1 and row[0] and not row[0].strip(" \t")):  # as pandas does
                continue
            problem = ""
            if number >= 0 and len(row) != width:
                problem = f"the row must have {width} cells like the header, got {len(row)}; look for a missing or stray {delimiter!r} or quote"
            width = width or len(row)
            yield row, problem, reader.line_num
            number += 1

    def _broken(self, error: Exception, number: int) -> DomainError:
        where = f"row {number + 1}" if number >= 0 else "the header"
        if isinstance(error, UnicodeError):
            what = "the table must be CSV in UTF-8, without NUL bytes; save it as CSV UTF-8, or as .parquet"
        elif isinstance(error, _BadRow) or "field larger" not in str(error):
            what = f"the table must be CSV: {error}; look for a quote that is not closed"
        else:
            what = f"a cell must have at most {LONGEST_CELL} characters; look for a quote that is not closed"
        return DomainError(f"{self.path}, {where}: {what}", row=max(number, 0), what=what)

    def chunks(
        self, chosen: list[str], rows: int, formats: Mapping[str, ColumnFormat]
    ) -> Iterator[Chunk]:
        size = max(1, self.path.stat().st_size)
        indices = [self.names.index(name) for name in chosen]
        table = self._rows(self.delimiter)
        next(table)
        start, characters = 0, 0
        cells: list[list[object]] = [[] for _ in indices]
        problems: dict[int, str] = {}
        lines: list[int] = []
        for number, (row, problem, line) in enumerate(table):
            lines.append(line)
            if problem:
                problems[number - start] = problem
            for column, index in zip(cells, indices, strict=True):
                cell = "" if problem else row[index]
                column.append(cell)
                characters += len(cell)
            if number + 1 - start == rows or characters > CHUNK_CHARACTERS:
                columns = dict(zip(chosen, cells, strict=True))
                share = self.read / size
                frame = self._typed(columns, formats, problems)
                yield Chunk(self.path, start, columns, share, problems, tuple(lines), frame)
                start, characters = number + 1, 0
                cells, problems, lines = [[] for _ in indices], {}, []
        if cells[0]:
            columns = dict(zip(chosen, cells, strict=True))
            frame = self._typed(columns, formats, problems)
            yield Chunk(self.path, start, columns, 1.0, problems, tuple(lines), frame)


class _BadRow(Exception):  # never leaves this file
    pass


class _Parquet:
    def __init__(self, path: Path, options: TableOptions) -> None:
        try:
            import pyarrow as pa  # noqa: PLC0415 - an extra
            import pyarrow.parquet as pq  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtra("pyarrow", "parquet") from None
        self.path = path
        self.options = options
        self._broken = (pa.ArrowException, OSError, ValueError, OverflowError)
        try:
            self._file: Any = pq.ParquetFile(path)
            self.names: list[str] = list(self._file.schema_arrow.names)
        except self._broken as error:
            raise self._damaged(error) from None
        if not self.names:
            raise DomainError(f"{path}: the table must have columns, got none")

    def _damaged(self, error: Exception) -> DomainError:
        first = next(iter(str(error).splitlines()), "")
        return DomainError(f"{self.path}: the table must be a whole Parquet file: {first}")

    def chunks(
        self, chosen: list[str], rows: int, formats: Mapping[str, ColumnFormat]
    ) -> Iterator[Chunk]:
        start = 0
        total = max(1, self._file.metadata.num_rows)
        for batch in self._batches(chosen, rows):
            columns = {name: batch.column(name).to_pylist() for name in chosen}
            share = min(1.0, (start + batch.num_rows) / total)
            frame = self._frame(batch, [name for name in chosen if name in formats])
            if frame is not None:
                frame = frame.astype({name: formats[name].dtype for name in frame.columns})
            yield Chunk(self.path, start, columns, share, frame=frame)
            start += batch.num_rows

    def frames(
        self, chosen: list[str], types: Mapping[str, object] | None = None
    ) -> "Iterator[pd.DataFrame]":
        del types  # a Parquet file knows its types
        for batch in self._batches(chosen, PANDAS_ROWS):
            frame = self._frame(batch, chosen)
            assert frame is not None
            yield frame

    def formats(self, chosen: list[str]) -> dict[str, ColumnFormat]:
        return _summarized(self.frames(chosen), of_text=False)

    def _batches(self, chosen: list[str], rows: int) -> Iterator[Any]:
        try:
            self._check_size(chosen)
            yield from self._file.iter_batches(rows, columns=chosen)
        except DomainError:
            raise
        except self._broken as error:
            raise self._damaged(error) from None

    def _frame(self, batch: Any, names: list[str]) -> "pd.DataFrame | None":  # noqa: ANN401 - pyarrow ships no types
        if not names:
            return None
        try:
            frame = batch.select(names).to_pandas()
            return self.options.stripped(frame.reset_index()[names])
        except (*self._broken, KeyError) as error:
            raise self._damaged(error) from None

    def _check_size(self, chosen: list[str]) -> None:
        """Refuse what would unpack to more than memory should hold."""
        metadata = self._file.metadata
        for group in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                column = metadata.row_group(group).column(index)
                size = column.total_uncompressed_size
                if column.path_in_schema.split(".")[0] in chosen and size > LARGEST_GROUP:
                    message = f"{self.path}: a column must take at most {LARGEST_GROUP // 2**20} MB in a row group, got {size // 2**20} MB in {column.path_in_schema!r}; write smaller row groups"
                    raise DomainError(message)
