"""CSV tables, read in chunks.

The csv module splits rows into cells, so that errors name their row; pandas converts the cells.
"""

import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feta.errors import DomainError
from feta.io.chunk import Chunk, constant
from feta.io.column_format import ColumnFormat, FormatSummary, dtypes_of, summarize_columns
from feta.io.table_options import TableOptions

if TYPE_CHECKING:
    import pandas as pd

# Rows per chunk: enough to make the overhead of numpy small, few enough for memory.
CHUNK_ROWS = 4096

# A chunk ends early at this many characters, so that long cells cannot exhaust memory.
CHUNK_CHARACTERS = 2**24

# No cell of a table about people is longer; a larger one is a broken quote or an attack.
LONGEST_CELL = 2**20

# 100,000 columns of a hundred characters fit in one line; a longer line is no table about people.
LONGEST_LINE = 2**24

DELIMITERS = (",", ";", "\t")

# A line with its end, which is one of three kinds.
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

# The start of the message about a row that has more or fewer cells than the header.
WRONG_CELLS = "wrong number of cells"


class CsvTable:
    """An open CSV file; messages name file and row."""

    def __init__(self, path: Path, options: TableOptions) -> None:
        self.path = path
        self.options = options
        self.bytes_read = 0
        self.first_row = 0
        csv.field_size_limit(LONGEST_CELL)
        headers = self._headers()
        self.delimiter = max(headers, key=lambda mark: len(headers[mark]))
        self.names = headers[self.delimiter]

    def frames(
        self, chosen: list[str], types: Mapping[str, object] | None = None
    ) -> "Iterator[pd.DataFrame]":
        """Yield the chosen columns as pandas reads them."""
        yield from self.options.frames(self.path, self.delimiter, chosen, dtypes=types)

    def summaries(self, chosen: list[str]) -> dict[str, FormatSummary]:
        """Return how pandas reads columns.

        If pandas rejects some row, only the rows that can be split count.
        """
        try:
            return summarize_columns(self.frames(chosen))
        except DomainError:
            raise
        except (ValueError, OverflowError):
            return summarize_columns(self._good_frames(chosen))

    def _good_frames(self, chosen: list[str]) -> "Iterator[pd.DataFrame]":
        types = {name: self.options.dtype[name] for name in chosen if name in self.options.dtype}
        for chunk in self.chunks(chosen, CHUNK_ROWS, {}):
            good = [index for index in range(len(chunk)) if index not in chunk.problems]
            cells = {name: [chunk.columns[name][index] for index in good] for name in chosen}
            yield self._convert(cells, types)

    def _convert(
        self, cells: dict[str, list[object]], types: Mapping[str, object]
    ) -> "pd.DataFrame":
        try:
            return self.options.frame(cells, types)
        except (ValueError, OverflowError) as error:
            reason = " ".join(str(error).split())
            raise DomainError(
                f"{self.path}: pandas cannot read the table with the options of [table]: "
                f"got {reason}; correct [table] in the schema"
            ) from None

    def _typed_frame(
        self,
        cells: dict[str, list[object]],
        formats: Mapping[str, ColumnFormat],
        problems: Collection[int],
    ) -> "pd.DataFrame | None":
        """Let pandas read the cells; a row that could not be split gets the values of another."""
        names = [name for name in cells if name in formats]
        n_rows = len(next(iter(cells.values())))
        good = [index for index in range(n_rows) if index not in problems]
        if not names or not good:
            return None
        chosen = {name: [cells[name][index] for index in good] for name in names}
        frame = self._convert(chosen, dtypes_of({name: formats[name] for name in names}))
        frame = frame.astype({name: formats[name].dtype for name in names})
        if not problems:
            return frame
        rows = np.zeros(n_rows, dtype=np.int64)
        rows[good] = np.arange(len(good))
        return frame.iloc[rows]

    def _headers(self) -> dict[str, list[str]]:
        """Read the header with each delimiter; quoted names can be read with the right one only."""
        headers, problems = {}, []
        for delimiter in DELIMITERS if self.options.sep is None else (self.options.sep,):
            try:
                headers[delimiter] = self._header(delimiter)
            except DomainError as error:
                # The traceback would keep the file open until the garbage is collected.
                problems.append(error.with_traceback(None))
        if not headers:
            raise problems[0]
        return headers

    def _header(self, delimiter: str) -> list[str]:
        for row, _, _ in self._rows(delimiter):
            return row
        raise DomainError(f"{self.path}: no header: got an empty file; expected a header line")

    def _lines(self) -> Iterator[str]:
        """Yield lines of bounded length, decoded one by one, so that errors can name the row."""
        self.bytes_read = 0
        with self.path.open("rb") as file:
            while content := file.readline(LONGEST_LINE):
                if len(content) == LONGEST_LINE:
                    raise _LongLineError(
                        f"a line is too long; expected fewer than {LONGEST_LINE} bytes"
                    )
                text = content.decode("utf-8-sig" if not self.bytes_read else "utf-8")
                if "\0" in text:
                    raise UnicodeError
                self.bytes_read += len(content)
                yield from LINE.findall(text) if "\r" in text[:-2] else [text]

    def _rows(self, delimiter: str) -> Iterator[tuple[list[str], str, int]]:
        """Yield each row, its problem, and the line in which it ends; blank lines are skipped.

        A line that cannot be decoded and a quote that is never closed raise, because the following
        rows are uncertain. After a row with too many or too few cells, reading continues.
        """
        number = -1  # of the header
        width = 0
        reader = csv.reader(self._lines(), delimiter=delimiter, strict=True)
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except (UnicodeError, _LongLineError, csv.Error) as error:
                raise self._read_error(error, number) from None
            if not row or (
                len(row) == 1 and row[0] and not row[0].strip(" \t")
            ):  # pandas skips these
                continue
            problem = ""
            if number >= 0 and len(row) != width:
                problem = (
                    f"{WRONG_CELLS}: got {len(row)}; expected {width}, like the header; "
                    f"look for a missing or extra {delimiter!r} or quote"
                )
            width = width or len(row)
            yield row, problem, reader.line_num
            number += 1

    def _read_error(self, error: Exception, number: int) -> DomainError:
        where = f"row {number + 1}" if number >= 0 else "the header"
        if isinstance(error, UnicodeError):
            what = (
                "the table is not CSV in UTF-8 without NUL bytes; "
                "save it as CSV UTF-8, or as .parquet"
            )
        elif isinstance(error, _LongLineError) or "field larger" not in str(error):
            what = f"the table is not valid CSV: {error}; look for a quote that is not closed"
        else:
            what = (
                f"a cell is too long; expected at most {LONGEST_CELL} characters; "
                "look for a quote that is not closed"
            )
        return DomainError(f"{self.path}, {where}: {what}", row=max(number, 0), what=what)

    def chunks(
        self, chosen: list[str], rows: int, formats: Mapping[str, ColumnFormat]
    ) -> Iterator[Chunk]:
        """Yield the chosen columns in chunks of at most `rows` rows."""
        size = max(1, self.path.stat().st_size)
        pick = _picker([self.names.index(name) for name in chosen])
        empty = ("",) * len(chosen)
        table = self._rows(self.delimiter)
        next(table)
        start, characters = 0, 0
        cells: list[tuple[str, ...]] = []
        problems: dict[int, str] = {}
        lines: list[int] = []

        def chunk(progress: float) -> Chunk:
            columns: dict[str, list[object]] = {
                name: [*column]
                for name, column in zip(chosen, zip(*cells, strict=True), strict=True)
            }
            frame = constant(self._typed_frame(columns, formats, problems))
            return Chunk(self.path, start, columns, progress, problems, tuple(lines), frame)

        for number, (row, problem, line) in enumerate(table):
            lines.append(line)
            if problem:
                problems[number - start] = problem
            picked = empty if problem else pick(row)
            cells.append(picked)
            characters += sum(map(len, picked))
            if number + 1 - start == rows or characters > CHUNK_CHARACTERS:
                yield chunk(self.bytes_read / size)
                start, characters = number + 1, 0
                cells, problems, lines = [], {}, []
        if cells:
            yield chunk(1.0)


def _picker(indices: list[int]) -> Callable[[list[str]], tuple[str, ...]]:
    """Return the function that reads these cells of a row."""
    if len(indices) > 1:
        return itemgetter(*indices)
    return lambda row: (row[indices[0]],)


class _LongLineError(Exception):  # never leaves this file
    pass
