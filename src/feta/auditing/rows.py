"""The rows of a table with the findings about them, in order."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Vector
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.read_labels import read_label_cell
from feta.auditing.runner import AuditRunner
from feta.errors import DomainError
from feta.io.bad_rows import BadRows
from feta.io.chunk import Chunk
from feta.model import Model
from feta.rule import Outcome


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One row: the finding, the person, the label, and the person's id in the table."""

    finding: Finding
    person: Vector | None  # None: the row could not be read
    label: Outcome | None
    name: str


@dataclass(frozen=True, slots=True)
class RowColumns:
    """The columns with labels and ids, and whether bad rows are skipped."""

    label: str | None
    id: str | None
    skip_bad_rows: bool


@dataclass(frozen=True, slots=True, eq=False)
class _EncodedRow:
    """A row of a chunk with its person, or with the error that prevents reading it."""

    index: int
    person: Vector | None
    error: DomainError | None = None


def audit_rows(
    runner: AuditRunner, chunk: Chunk, columns: RowColumns, bad_rows: BadRows
) -> Iterator[Row]:
    """Audit a chunk in blocks.

    A bad row stops the audit, unless bad rows are to be skipped: then it is counted.
    """
    model = runner.auditor.model
    rows = _encode_rows(runner.auditor, chunk, columns)
    for start in range(0, len(rows), runner.block_size):
        block = rows[start : start + runner.block_size]
        people = [row.person for row in block if row.person is not None]
        # Labels are read before anything is computed, because an invalid one stops the audit.
        labels = {
            row.index: _label(model, chunk, columns, row.index)
            for row in block
            if row.person is not None
        }
        findings = iter(runner.audit(np.stack(people)) if people else [])
        for row in block:
            number = chunk.start + row.index
            if row.error is not None:
                bad_rows.add(chunk.row(row.index), row.error)
                finding = Finding(number, "not audited", reason=str(row.error))
            else:
                finding = replace(next(findings), row=number)
            name = _name(chunk, columns, row.index)
            yield Row(finding, row.person, labels.get(row.index), name)


def _encode_rows(auditor: Auditor, chunk: Chunk, columns: RowColumns) -> list[_EncodedRow]:
    """Encode all rows together; if that fails and bad rows are skipped, one by one."""
    try:
        people = chunk.encode(auditor.model.space, id_column=columns.id, admit=auditor.admit)
        return [_EncodedRow(index, people[index]) for index in range(len(chunk))]
    except DomainError:
        if not columns.skip_bad_rows:
            raise
    return [_encode_row(auditor, chunk, columns, index) for index in range(len(chunk))]


def _encode_row(auditor: Auditor, chunk: Chunk, columns: RowColumns, index: int) -> _EncodedRow:
    row = chunk.row(index)
    try:
        person = row.encode(auditor.model.space, id_column=columns.id, admit=auditor.admit)
        return _EncodedRow(index, person[0])
    except DomainError as error:
        return _EncodedRow(index, None, error)


def _label(model: Model, chunk: Chunk, columns: RowColumns, index: int) -> Outcome | None:
    column = columns.label
    if column is None or chunk.columns[column][index] in ("", None):  # no label known yet
        return None
    return read_label_cell(model, chunk, column, index)


def _name(chunk: Chunk, columns: RowColumns, index: int) -> str:
    return str(chunk.columns[columns.id][index]) if columns.id else ""
