"""Table file: people from CSV or Parquet, a chunk at a time, so that a file may exceed memory.

Whatever is wrong with a file is told by file, row and column; rows are counted from 1, after the
header.
"""

import csv
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from feta.arrays import Matrix
from feta.errors import DomainError, MissingExtra, missing
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace

# Rows at a time: numpy's overhead is small against them, and so is their memory.
CHUNK_ROWS = 4096

# No cell of a table about people is longer; a larger one is a broken quote or an attack.
LONGEST_CELL = 2**20

DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of a table: the wanted columns' cells, and how far the file is read."""

    path: Path
    start: int  # the first row's number, counted from 0
    columns: dict[str, list[object]]
    progress: float  # the share of the file that is read

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def row(self, place: int) -> "Chunk":
        """Take one row alone."""
        cells = {name: [column[place]] for name, column in self.columns.items()}
        return Chunk(self.path, self.start + place, cells, self.progress)

    def encode(self, space: FeatureSpace, *, ignore_sensitive: bool = False) -> Matrix:
        """Turn the rows into people; messages name file, row and column."""
        typed = {name: self._typed(space, name) for name in self.columns}
        try:
            return space.encode_columns(typed, sensitive="ignore" if ignore_sensitive else "check")
        except DomainError as error:
            raise self._located(error, space) from None

    def _typed(self, space: FeatureSpace, name: str) -> Sequence[object]:
        """Read texts as the attribute's own kind of value; other cells are left as they are."""
        cells = self.columns[name]
        known = {attribute.name: attribute for attribute in space.attributes}
        attribute = known.get(name)
        if attribute is None or isinstance(attribute, Derived):
            return cells
        if isinstance(attribute, Categorical):
            names: dict[object, object] = {str(value): value for value in attribute.values}
            return [names.get(cell, cell) if isinstance(cell, str) else cell for cell in cells]
        return [parse_number(cell) if isinstance(cell, str) else cell for cell in cells]

    def _located(self, error: DomainError, space: FeatureSpace) -> DomainError:
        if error.row is None or error.column not in self.columns:
            return DomainError(f"{self.path}: {error}", column=error.column)
        row = self.start + error.row
        cell = self.columns[error.column][error.row]
        what = error.what
        attribute = space.attribute(error.column)
        if not isinstance(attribute, Categorical | Derived):
            what = f"must be {attribute.domain()}, got {_shown(cell)}"
        message = f"{self.path}, row {row + 1}: {error.column!r} {what}"
        return DomainError(message, column=error.column, row=row)


def parse_number(cell: str) -> object:
    """Read a number from text, or give the text back; 1_000 is not a number here."""
    try:
        return cell if "_" in cell else float(cell)
    except ValueError:
        return cell


def _shown(cell: object) -> str:
    if cell in ("", None):
        return "an empty cell"
    text = repr(cell)
    return text if len(text) < 80 else f"{text[:60]}… ({len(text)} characters)"  # noqa: PLR2004 - a line


class TableFile:
    """A CSV or Parquet file, opened to see its columns."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise DomainError(f"{self.path}: there is no such file")
        if not self.path.is_file():
            raise DomainError(f"{self.path}: there must be a regular file here")
        self._file: _Csv | _Parquet
        if self.path.suffix in (".parquet", ".pq"):
            self._file = _Parquet(self.path)
        else:
            self._file = _Csv(self.path)
        self.names: list[str] = self._file.names
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                message = f"{self.path}: the table must not have the column {name!r} twice"
                raise DomainError(message, column=name)
            seen.add(name)

    def require(self, names: Collection[str]) -> None:
        """Raise unless all these columns are there."""
        for name in names:
            if name not in self.names:
                raise DomainError(f"{self.path}: {missing(name, self.names)}", column=name)

    def chunks(self, wanted: Collection[str], *, rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
        """Read the wanted columns, a chunk at a time."""
        chosen = [name for name in self.names if name in wanted]
        empty = True
        for chunk in self._file.chunks(chosen, rows):
            empty = False
            yield chunk
        if empty:
            raise DomainError(f"{self.path}: the table must have at least one row under its header")


class _Csv:
    def __init__(self, path: Path) -> None:
        self.path = path
        csv.field_size_limit(LONGEST_CELL)
        with self._open() as file:
            header = self._header(file)
        if not header:
            raise DomainError(f"{path}: the table must have a header line, but the file is empty")
        widths = {mark: len(next(csv.reader([header], delimiter=mark))) for mark in DELIMITERS}
        self.delimiter = max(DELIMITERS, key=lambda mark: widths[mark])
        self.names = next(csv.reader([header], delimiter=self.delimiter))

    def _open(self) -> IO[str]:
        return self.path.open(encoding="utf-8-sig", errors="strict", newline="")

    def _header(self, file: IO[str]) -> str:
        try:
            header = file.readline(64 * LONGEST_CELL).rstrip("\r\n")
        except UnicodeDecodeError:
            raise self._not_text(0) from None
        if "\0" in header:
            raise self._not_text(0)
        try:
            next(csv.reader([header]), None)
        except csv.Error as error:
            raise DomainError(f"{self.path}: the header must be CSV: {error}") from None
        return header

    def _not_text(self, row: int) -> DomainError:
        message = f"{self.path}, row {row + 1}: the table must be UTF-8 text without NUL bytes; save it as UTF-8"
        return DomainError(message, row=row)

    def chunks(self, chosen: list[str], rows: int) -> Iterator[Chunk]:
        size = max(1, self.path.stat().st_size)
        places = [self.names.index(name) for name in chosen]
        with self._open() as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            start, cells = 0, [[] for _ in places]  # type: ignore[var-annotated]  # lists of cells
            for number, row in enumerate(self._rows(reader)):
                for column, place in zip(cells, places, strict=True):
                    column.append(row[place])
                if number + 1 - start == rows:
                    done = file.buffer.tell() / size  # type: ignore[attr-defined]  # a text file has one
                    yield Chunk(self.path, start, dict(zip(chosen, cells, strict=True)), done)
                    start, cells = number + 1, [[] for _ in places]
            if cells and cells[0]:
                yield Chunk(self.path, start, dict(zip(chosen, cells, strict=True)), 1.0)

    def _rows(self, reader: Iterator[list[str]]) -> Iterator[list[str]]:
        number = -1  # the header
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except UnicodeDecodeError:
                raise self._not_text(number) from None
            except csv.Error as error:
                message = f"{self.path}, row {number + 1}: the row must be CSV: {error}"
                raise DomainError(message, row=number) from None
            if number >= 0 and row:  # a blank line is no row
                if len(row) != len(self.names):
                    message = f"{self.path}, row {number + 1}: the row must have {len(self.names)} cells like the header, got {len(row)}"
                    raise DomainError(message, row=number)
                if any("\0" in cell for cell in row):
                    raise self._not_text(number)
                yield row
            number += bool(row)


class _Parquet:
    def __init__(self, path: Path) -> None:
        try:
            import pyarrow as pa  # noqa: PLC0415 - an extra
            import pyarrow.parquet as pq  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtra("pyarrow", "parquet") from None
        self.path = path
        self._broken = (pa.ArrowException, OSError)
        try:
            self._file = pq.ParquetFile(path)
        except self._broken as error:
            raise self._damaged(error) from None
        self.names = list(self._file.schema_arrow.names)

    def _damaged(self, error: Exception) -> DomainError:
        return DomainError(f"{self.path}: the table must be a Parquet file: {error}")

    def chunks(self, chosen: list[str], rows: int) -> Iterator[Chunk]:
        total = max(1, self._file.metadata.num_rows)
        start = 0
        try:
            for batch in self._file.iter_batches(rows, columns=chosen):
                columns = {name: batch.column(name).to_pylist() for name in chosen}
                yield Chunk(self.path, start, columns, min(1.0, (start + batch.num_rows) / total))
                start += batch.num_rows
        except self._broken as error:
            raise self._damaged(error) from None
