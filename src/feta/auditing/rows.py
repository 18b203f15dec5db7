"""Audit rows: a table's rows with what was found about each, in order."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Vector
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.labels import read_label
from feta.auditing.runner import AuditRunner
from feta.errors import DomainError
from feta.io.bad_rows import BadRows
from feta.io.chunk import Chunk
from feta.model import Model
from feta.rule import Outcome


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A row: what was found, the person, what they should get, and what the user calls them."""

    finding: Finding
    person: Vector | None  # None: the row could not be read
    label: Outcome | None
    name: str


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Which columns hold labels and names, and whether bad rows are skipped."""

    label: str | None
    id: str | None
    skip_bad_rows: bool


def audited(
    runner: AuditRunner, chunk: Chunk, columns: RowColumns, bad_rows: BadRows
) -> Iterator[Row]:
    """Ask about a chunk in blocks; bad rows stop the audit unless they are to be skipped and counted."""
    model = runner.auditor.model
    rows: list[tuple[int, Vector | None, DomainError | None]] = []
    try:
        people = chunk.encode(model.space, id_column=columns.id, admit=runner.auditor.admit)
        rows = [(index, people[index], None) for index in range(len(chunk))]
    except DomainError:
        if not columns.skip_bad_rows:
            raise
        auditor = runner.auditor
        rows = [_single(auditor, chunk, columns, index) for index in range(len(chunk))]
    for start in range(0, len(rows), runner.at_once):
        block = rows[start : start + runner.at_once]
        good = [person for _, person, _ in block if person is not None]
        labels = {  # read before anything is computed: a bad one stops the audit
            index: _label(model, chunk, columns, index)
            for index, person, _ in block
            if person is not None
        }
        found = iter(runner.ask(np.stack(good)) if good else [])
        for index, person, error in block:
            row = chunk.start + index
            if error is not None:
                bad_rows.add(chunk.row(index), error)
                finding = Finding(row, "not audited", reason=str(error))
            else:
                finding = replace(next(found), row=row)
            yield Row(finding, person, labels.get(index), _name(chunk, columns, index))


def _single(
    auditor: Auditor, chunk: Chunk, columns: RowColumns, index: int
) -> tuple[int, Vector | None, DomainError | None]:
    row = chunk.row(index)
    try:
        one = row.encode(auditor.model.space, id_column=columns.id, admit=auditor.admit)
        return index, one[0], None
    except DomainError as error:
        return index, None, error


def _label(model: Model, chunk: Chunk, columns: RowColumns, index: int) -> Outcome | None:
    column = columns.label
    if column is None:
        return None
    row = chunk.start + index
    if chunk.columns[column][index] in ("", None):  # nobody has said yet
        return None
    try:
        return read_label(model, chunk.columns[column][index])
    except DomainError as error:
        message = f"{chunk.path}, row {row + 1}: the label {column!r} {error}"
        raise DomainError(message, column=column, row=row) from None


def _name(chunk: Chunk, columns: RowColumns, index: int) -> str:
    return str(chunk.columns[columns.id][index]) if columns.id else ""
