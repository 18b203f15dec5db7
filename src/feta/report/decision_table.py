"""The table of fair decisions: one line per row, as CSV or as JSON lines."""

import csv
from collections import Counter
from collections.abc import Sequence
from typing import IO

from feta.io.chunk import Chunk
from feta.io.sanitize import csv_cell, json_text, write_row


class DecisionTable:
    """Writer of decisions; `key` is the name of the column with them."""

    def __init__(self, stream: IO[str], key: str, *, id_column: str | None, as_json: bool) -> None:
        self.stream, self.key, self.id_column, self.as_json = stream, key, id_column, as_json
        self.counts: Counter[str] = Counter()
        self._csv = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC)
        if not as_json:
            write_row(stream, ["row", *([id_column] if id_column else []), key])

    def write(self, chunk: Chunk, decisions: Sequence[str | float], *, before: int = 0) -> None:
        """Write the rows of a chunk; `before` rows are in files before that of the chunk."""
        self.counts.update(one if isinstance(one, str) else "scores" for one in decisions)
        rows = range(before + chunk.start + 1, before + chunk.start + 1 + len(chunk))
        names = self._names(chunk)
        if self.as_json:
            for row, name, decision in zip(rows, names or rows, decisions, strict=True):
                content: dict[str, object] = {"row": row} | ({"id": name} if names else {})
                self.stream.write(json_text(content | {self.key: decision}))
            return
        cells = [list(map(csv_cell, column)) for column in ([names] if names else [])]
        self._csv.writerows(zip(rows, *cells, map(csv_cell, decisions), strict=True))

    def _names(self, chunk: Chunk) -> list[str]:
        if self.id_column is None:
            return []
        return list(map(str, chunk.columns[self.id_column]))
