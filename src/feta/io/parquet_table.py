"""Parquet tables, read in chunks."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feta.errors import DomainError, MissingExtra
from feta.io.chunk import ArrowCells, Chunk
from feta.io.column_format import ColumnFormat, FormatSummary, summarize_columns
from feta.io.table_options import PANDAS_ROWS, TableOptions

if TYPE_CHECKING:
    import pandas as pd

# Bytes of a column in one row group after decompression.
LARGEST_GROUP = 2**28


class ParquetTable:
    """An open Parquet file, or some of its row groups; messages name the file and its rows."""

    def __init__(self, path: Path, options: TableOptions, groups: range | None = None) -> None:
        try:
            import pyarrow as pa  # noqa: PLC0415 - an extra
            import pyarrow.parquet as pq  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtra("pyarrow", "parquet") from None
        self.path = path
        self.options = options
        self._errors = (pa.ArrowException, OSError, ValueError, OverflowError)
        try:
            self._file: Any = pq.ParquetFile(path)
            self.names: list[str] = list(self._file.schema_arrow.names)
        except self._errors as error:
            raise self._read_error(error) from None
        if not self.names:
            raise DomainError(f"{path}: no columns: expected a table with columns")
        n_groups = self._file.metadata.num_row_groups
        self._groups = range(n_groups) if groups is None else groups
        if self._groups.stop > n_groups:
            raise DomainError(
                f"{path}: the file has changed: got {n_groups} row groups; expected at least "
                f"{self._groups.stop}; run the command again"
            )

    def _read_error(self, error: Exception) -> DomainError:
        reason = next(iter(str(error).splitlines()), "")
        return DomainError(f"{self.path}: the file is not a complete Parquet file: got {reason}")

    def chunks(
        self, chosen: list[str], rows: int, formats: Mapping[str, ColumnFormat]
    ) -> Iterator[Chunk]:
        """Yield the chosen columns in chunks of at most `rows` rows."""
        start = first = self.first_row
        total = max(1, self._n_rows(self._groups))
        read = [name for name in chosen if name in formats]
        for batch in self._batches(chosen, rows):
            progress = min(1.0, (start - first + batch.num_rows) / total)
            make_frame = cache(partial(self._typed_frame, batch, read, formats))
            arrow = None if self.options.strip else batch
            yield Chunk(
                self.path,
                start,
                ArrowCells(batch),
                progress,
                make_frame=make_frame,
                batch=arrow,
            )
            start += batch.num_rows

    def _typed_frame(
        self,
        batch: Any,  # noqa: ANN401 - pyarrow ships no types
        names: list[str],
        formats: Mapping[str, ColumnFormat],
    ) -> "pd.DataFrame | None":
        frame = self._frame(batch, names)
        if frame is None:
            return None
        return frame.astype({name: formats[name].dtype for name in names})

    def frames(
        self, chosen: list[str], types: Mapping[str, object] | None = None
    ) -> "Iterator[pd.DataFrame]":
        """Yield the chosen columns as pandas reads them."""
        del types  # a Parquet file stores its types
        for batch in self._batches(chosen, PANDAS_ROWS):
            frame = self._frame(batch, chosen)
            assert frame is not None
            yield frame

    def summaries(self, chosen: list[str]) -> dict[str, FormatSummary]:
        """Return how pandas reads columns."""
        return summarize_columns(self.frames(chosen))

    @property
    def first_row(self) -> int:
        """The number of the first row that is read, counted from 0."""
        return self._n_rows(range(self._groups.start))

    def _n_rows(self, groups: range) -> int:
        """Return the number of rows of some row groups."""
        return sum(self._file.metadata.row_group(group).num_rows for group in groups)

    def _batches(self, chosen: list[str], rows: int) -> Iterator[Any]:
        try:
            self._check_size(chosen)
            groups = list(self._groups)
            yield from self._file.iter_batches(rows, row_groups=groups, columns=chosen)
        except DomainError:
            raise
        except self._errors as error:
            raise self._read_error(error) from None

    def _frame(self, batch: Any, names: list[str]) -> "pd.DataFrame | None":  # noqa: ANN401 - pyarrow ships no types
        if not names:
            return None
        try:
            frame = batch.select(names).to_pandas()
            return self.options.stripped(frame.reset_index()[names])
        except (*self._errors, KeyError) as error:
            raise self._read_error(error) from None

    def _check_size(self, chosen: list[str]) -> None:
        """Raise if a column would take too much memory when it is decompressed."""
        metadata = self._file.metadata
        for group in self._groups:
            for index in range(metadata.num_columns):
                column = metadata.row_group(group).column(index)
                size = column.total_uncompressed_size
                if column.path_in_schema.split(".")[0] in chosen and size > LARGEST_GROUP:
                    raise DomainError(
                        f"{self.path}: the column {column.path_in_schema!r} is too large: "
                        f"got {size // 2**20} MB in a row group; "
                        f"expected at most {LARGEST_GROUP // 2**20} MB; write smaller row groups"
                    )
