"""Audit rows: a table's rows with what was found about each, in order."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Vector
from feta.audit.answer import Answer, read_label
from feta.audit.asking import Asking
from feta.audit.auditor import Auditor
from feta.audit.finding import Finding
from feta.errors import DomainError
from feta.model import Model
from feta.space.bad_rows import BadRows
from feta.space.table_file import Chunk


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A row: what was found, the person, what they should get, and what the user calls them."""

    finding: Finding
    person: Vector | None  # None: the row could not be read
    label: Answer | None
    name: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns hold labels and names, and whether bad rows are skipped."""

    label: str | None
    id: str | None
    skip_bad_rows: bool


def audited(asking: Asking, chunk: Chunk, columns: Columns, bad_rows: BadRows) -> Iterator[Row]:
    """Ask about a chunk in blocks; bad rows stop the audit unless they are to be skipped and counted."""
    model = asking.auditor.model
    rows: list[tuple[int, Vector | None, DomainError | None]] = []
    try:
        people = chunk.encode(model.space, id_column=columns.id, admit=asking.auditor.admit)
        rows = [(place, people[place], None) for place in range(len(chunk))]
    except DomainError:
        if not columns.skip_bad_rows:
            raise
        auditor = asking.auditor
        rows = [_single(auditor, chunk, columns, place) for place in range(len(chunk))]
    for start in range(0, len(rows), asking.at_once):
        block = rows[start : start + asking.at_once]
        good = [person for _, person, _ in block if person is not None]
        labels = {  # read before anything is computed: a bad one stops the audit
            place: _label(model, chunk, columns, place)
            for place, person, _ in block
            if person is not None
        }
        found = iter(asking.ask(np.stack(good)) if good else [])
        for place, person, error in block:
            row = chunk.start + place
            if error is not None:
                bad_rows.add(chunk.row(place), error)
                finding = Finding(row, "not audited", reason=str(error))
            else:
                finding = replace(next(found), row=row)
            yield Row(finding, person, labels.get(place), _name(chunk, columns, place))


def _single(
    auditor: Auditor, chunk: Chunk, columns: Columns, place: int
) -> tuple[int, Vector | None, DomainError | None]:
    row = chunk.row(place)
    try:
        one = row.encode(auditor.model.space, id_column=columns.id, admit=auditor.admit)
        return place, one[0], None
    except DomainError as error:
        return place, None, error


def _label(model: Model, chunk: Chunk, columns: Columns, place: int) -> Answer | None:
    column = columns.label
    if column is None:
        return None
    row = chunk.start + place
    if chunk.columns[column][place] in ("", None):  # nobody has said yet
        return None
    try:
        return read_label(model, chunk.columns[column][place])
    except DomainError as error:
        message = f"{chunk.path}, row {row + 1}: the label {column!r} {error}"
        raise DomainError(message, column=column, row=row) from None


def _name(chunk: Chunk, columns: Columns, place: int) -> str:
    return str(chunk.columns[columns.id][place]) if columns.id else ""
