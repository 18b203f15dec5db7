"""Parquet tables, read in chunks."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feta.errors import DomainError, MissingExtra
from feta.io.chunk import Chunk
from feta.io.column_format import ColumnFormat, summarize_formats
from feta.io.table_options import PANDAS_ROWS, TableOptions

if TYPE_CHECKING:
    import pandas as pd

# Bytes of a column in one row group after decompression.
LARGEST_GROUP = 2**28


class ParquetTable:
    """An open Parquet file; messages name the file."""

    def __init__(self, path: Path, options: TableOptions) -> None:
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

    def _read_error(self, error: Exception) -> DomainError:
        reason = next(iter(str(error).splitlines()), "")
        return DomainError(f"{self.path}: the file is not a complete Parquet file: got {reason}")

    def chunks(
        self, chosen: list[str], rows: int, formats: Mapping[str, ColumnFormat]
    ) -> Iterator[Chunk]:
        """Yield the chosen columns in chunks of at most `rows` rows."""
        start = 0
        total = max(1, self._file.metadata.num_rows)
        for batch in self._batches(chosen, rows):
            columns = {name: batch.column(name).to_pylist() for name in chosen}
            progress = min(1.0, (start + batch.num_rows) / total)
            frame = self._frame(batch, [name for name in chosen if name in formats])
            if frame is not None:
                frame = frame.astype({name: formats[name].dtype for name in frame.columns})
            yield Chunk(self.path, start, columns, progress, frame=frame)
            start += batch.num_rows

    def frames(
        self, chosen: list[str], types: Mapping[str, object] | None = None
    ) -> "Iterator[pd.DataFrame]":
        """Yield the chosen columns as pandas reads them."""
        del types  # a Parquet file stores its types
        for batch in self._batches(chosen, PANDAS_ROWS):
            frame = self._frame(batch, chosen)
            assert frame is not None
            yield frame

    def formats(self, chosen: list[str]) -> dict[str, ColumnFormat]:
        """Return the formats of columns as pandas reads the file."""
        return summarize_formats(self.frames(chosen), of_text=False)

    def _batches(self, chosen: list[str], rows: int) -> Iterator[Any]:
        try:
            self._check_size(chosen)
            yield from self._file.iter_batches(rows, columns=chosen)
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
        for group in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                column = metadata.row_group(group).column(index)
                size = column.total_uncompressed_size
                if column.path_in_schema.split(".")[0] in chosen and size > LARGEST_GROUP:
                    raise DomainError(
                        f"{self.path}: the column {column.path_in_schema!r} is too large: "
                        f"got {size // 2**20} MB in a row group; "
                        f"expected at most {LARGEST_GROUP // 2**20} MB; write smaller row groups"
                    )
