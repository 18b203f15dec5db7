"""Table files: people from CSV or Parquet, read in chunks, so that a file may exceed memory.

Messages name file, row and column; rows are counted from 1, after the header.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from feta.errors import DomainError, missing
from feta.io.chunk import Chunk
from feta.io.column_format import ColumnFormat, FormatSummary, dtypes_of
from feta.io.csv_table import CHUNK_ROWS, CsvTable
from feta.io.parquet_table import ParquetTable
from feta.io.regular_file import path_problem
from feta.io.table_options import TableOptions

if TYPE_CHECKING:
    import pandas as pd


class TableFile:
    """An open CSV or Parquet file; `options` define how pandas reads a CSV file.

    `groups` are the row groups of a Parquet file that are read; all of them by default.
    """

    def __init__(
        self,
        path: str | Path,
        options: TableOptions | None = None,
        *,
        groups: range | None = None,
    ) -> None:
        self.path = Path(path)
        self.options = options or TableOptions()
        problem = path_problem(self.path)
        if problem:
            raise DomainError(f"{self.path}: {problem}")
        self._file: CsvTable | ParquetTable
        if self.path.suffix.lower() in (".parquet", ".pq"):
            self._file = ParquetTable(self.path, self.options, groups)
        else:
            self._file = CsvTable(self.path, self.options)
        self.names: list[str] = self._file.names
        seen: set[str] = set()
        for name in self.names:
            if name and name in seen:  # spreadsheets write several columns without a name
                message = (
                    f"{self.path}: repeated column: got {name!r} twice; expected different names; "
                    "rename or delete one of them"
                )
                raise DomainError(message, column=name)
            seen.add(name)

    @property
    def delimiter(self) -> str | None:
        """The delimiter of a CSV file; None for Parquet."""
        return self._file.delimiter if isinstance(self._file, CsvTable) else None

    @property
    def first_row(self) -> int:
        """The number of the first row that is read, counted from 0."""
        return self._file.first_row

    def require(self, names: Collection[str]) -> None:
        """Raise unless the table has all these columns."""
        for name in names:
            if name not in self.names:
                message = f"{self.path}: {missing(name, self.names)}{self._delimiter_hint}"
                raise DomainError(message, column=name)

    @property
    def _delimiter_hint(self) -> str:
        """Advice about a file with only one column, which may have another delimiter."""
        if self.delimiter is None or len(self.names) > 1:
            return ""
        return (
            f"; with the delimiter {self.delimiter!r} there is only one column: state the right "
            'one, such as sep = "|", in [table] of the schema'
        )

    def chunks(
        self,
        names: Collection[str],
        *,
        rows: int = CHUNK_ROWS,
        typed: Mapping[str, ColumnFormat] | None = None,
    ) -> Iterator[Chunk]:
        """Yield these columns in chunks; without names, the first column, to count the rows.

        `typed` contains the formats of the columns that pandas reads, as `formats` returns them.
        """
        chosen = [name for name in self.names if name in names] or self.names[:1]
        empty = True
        for chunk in self._file.chunks(chosen, rows, typed or {}):
            empty = False
            yield chunk
        if empty:
            raise DomainError(f"{self.path}: no rows: expected at least one row below the header")

    def formats(self, names: Collection[str]) -> dict[str, ColumnFormat]:
        """Return how pandas reads these columns, from every row of the file."""
        summaries = self.summaries(names)
        of_text = self.delimiter is not None
        return {name: summary.format(of_text=of_text) for name, summary in summaries.items()}

    def summaries(self, names: Collection[str]) -> dict[str, FormatSummary]:
        """Return what `formats` says about these columns, in a form that can be merged."""
        chosen = [name for name in self.names if name in names]
        return self._file.summaries(chosen) if chosen else {}

    def frames(self, formats: Mapping[str, ColumnFormat]) -> "Iterator[pd.DataFrame]":
        """Yield these columns as pandas itself reads them; it may reject the file."""
        chosen = [name for name in self.names if name in formats]
        for frame in self._file.frames(chosen, dtypes_of(formats)):
            yield frame.astype({name: formats[name].dtype for name in chosen})
