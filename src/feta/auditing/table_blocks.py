"""Blocks from the chunks of a table file."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.block import Block, UnreadRow
from feta.auditing.read_labels import read_label_cell
from feta.errors import DomainError
from feta.io.chunk import Chunk
from feta.model import Model
from feta.rule import Outcome


@dataclass(frozen=True, slots=True)
class RowColumns:
    """The columns with labels and ids, and whether bad rows are skipped."""

    label: str | None
    id: str | None
    skip_bad_rows: bool


@dataclass(frozen=True, slots=True, eq=False)
class TableBlocks:
    """The chunks of a table as blocks of at most `size` rows, for an auditor.

    A bad row stops the iteration, unless bad rows are to be skipped.
    """

    auditor: Auditor
    columns: RowColumns
    size: int
    before: int = 0  # rows of the table that are in files before this one
    fitting: Callable[[], int] | None = None  # how many people to audit before progress is shown

    def blocks(self, chunks: Iterable[Chunk]) -> Iterator[Block]:
        """Yield the blocks of each chunk; labels are read when their block is reached."""
        before = 0.0
        for chunk in chunks:
            people, unread = self._encode(chunk)
            readable = [index not in unread for index in range(len(chunk))]
            good = np.cumsum([0, *readable])
            start = 0
            while start < len(chunk):
                size = self.size if self.fitting is None else min(self.size, self.fitting())
                rows = range(start, min(start + size, len(chunk)))
                share = (chunk.progress - before) * rows.stop / len(chunk)
                yield Block(
                    self.before + chunk.start + start,
                    people[good[rows.start] : good[rows.stop]],
                    _labels(self.auditor.model, chunk, self.columns.label, rows, unread),
                    _names(chunk, self.columns.id, rows),
                    {index - start: unread[index] for index in rows if index in unread},
                    before + share,
                )
                start = rows.stop
            before = chunk.progress

    def _encode(self, chunk: Chunk) -> tuple[Matrix, dict[int, UnreadRow]]:
        """Encode all rows together; if that fails and bad rows are skipped, one by one."""
        space, admit = self.auditor.model.space, self.auditor.admit
        try:
            return chunk.encode(space, id_column=self.columns.id, admit=admit), {}
        except DomainError:
            if not self.columns.skip_bad_rows:
                raise
        people: list[Matrix] = [np.zeros((0, space.width))]
        unread: dict[int, UnreadRow] = {}
        for index in range(len(chunk)):
            row = chunk.row(index)
            try:
                people.append(row.encode(space, id_column=self.columns.id, admit=admit))
            except DomainError as error:
                unread[index] = UnreadRow(error, row)
        return np.concatenate(people), unread


def _labels(
    model: Model, chunk: Chunk, column: str | None, rows: range, unread: dict[int, UnreadRow]
) -> tuple[Outcome | None, ...]:
    """Parse the labels of the rows that could be read; an empty cell is no label yet."""
    if column is None:
        return (None,) * len(rows)
    parsed: dict[object, Outcome | None] = {}  # most labels are one of a few texts
    labels: list[Outcome | None] = []
    for index in rows:
        cell = chunk.columns[column][index]
        if index in unread or cell in ("", None):
            labels.append(None)
        elif isinstance(cell, str) and cell in parsed:
            labels.append(parsed[cell])
        else:
            labels.append(read_label_cell(model, chunk, column, index))
            parsed |= {cell: labels[-1]} if isinstance(cell, str) else {}
    return tuple(labels)


def _names(chunk: Chunk, column: str | None, rows: range) -> tuple[str, ...]:
    if column is None:
        return ("",) * len(rows)
    return tuple(str(chunk.columns[column][index]) for index in rows)
