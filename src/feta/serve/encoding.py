"""Records of a request as rows of numbers; rows that cannot be decided, by column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import DomainError
from feta.io.sanitize import shortened
from feta.serve.served import Served

# More refused rows than this in one request are looked for one by one.
SINGLE_REFUSALS = 8

# Characters of a reason: values of a request are shown in it.
MAX_WORDS = 400

# Characters of an unknown name that are shown.
MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row of a request that is not decided, and why."""

    row: int
    column: str | None
    why: str

    @property
    def content(self) -> dict[str, Any]:
        """The row as JSON."""
        return {"row": self.row, "column": self.column, "why": self.why}


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPeople:
    """The people who can be decided, their rows in the request, and all other rows."""

    people: Matrix
    rows: tuple[int, ...]
    refused: tuple[RefusedRow, ...]


def encode_people(served: Served, records: Sequence[Mapping[str, object]]) -> Matrix:
    """Encode records; the only place of the service that reads cells.

    Raise `DomainError`, with the row among these records, for one that cannot be decided.
    """
    predictor = served.predictor
    who = records[0] if len(records) == 1 else records  # one record needs no columns
    people = predictor.model.space.encode(who, sensitive="ignore", limits="open")
    predictor.admit(people)
    return people


def encode_request(served: Served, records: Sequence[object]) -> EncodedPeople:
    """Encode all records that can be decided, and list the others."""
    people = _usual(served, records)
    if people is not None:
        return EncodedPeople(people, tuple(range(len(records))), ())
    refused = {
        row: why for row, record in enumerate(records) if (why := _shape(served, row, record))
    }
    rows = [row for row in range(len(records)) if row not in refused]
    people = np.zeros((0, served.model.space.width))
    while rows:
        try:
            people = encode_people(served, [records[row] for row in rows])  # type: ignore[misc]  # _shape checks
            break
        except DomainError as error:
            if error.row is None or len(refused) >= SINGLE_REFUSALS:
                people, rows = _one_by_one(served, records, rows, refused)
                break
            row = rows.pop(error.row)
            refused[row] = refused_row(row, error)
    return EncodedPeople(people, tuple(rows), tuple(refused[row] for row in sorted(refused)))


def _usual(served: Served, records: Sequence[Any]) -> Matrix | None:
    """Encode records whose columns are all known and whose cells are all usual, else None.

    The row plan reads every required column, so none of them is missing.
    """
    if set(map(type, records)) != {dict}:  # a list of one list is not a list of records
        return None
    who = records[0] if len(records) == 1 else records  # one record needs no columns
    people = served.row_plan.encode(who)
    if people is None or not all(map(served.known.issuperset, records)):
        return None
    return None if served.model.space.open_limits.outside(people) else people


def _one_by_one(
    served: Served, records: Sequence[Any], rows: list[int], refused: dict[int, RefusedRow]
) -> tuple[Matrix, list[int]]:
    """Encode each record alone; add those that cannot be decided to `refused`."""
    parts, good = [np.zeros((0, served.model.space.width))], []
    for row in rows:
        try:
            parts.append(encode_people(served, [records[row]]))
            good.append(row)
        except DomainError as error:
            refused[row] = refused_row(row, error)
    return np.concatenate(parts), good


@lru_cache(maxsize=1000)
def _hint(name: str, known: frozenset[str]) -> str:
    """Return the nearest column; a search takes longer than a decision."""
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; GET /v1/schema lists the columns"


def refused_row(row: int, error: DomainError) -> RefusedRow:
    """Return why a row cannot be decided, without the number of the row."""
    why = f"{error.column!r} {error.what}" if error.what else str(error)
    return RefusedRow(row, error.column, shortened(why, MAX_WORDS))


def _shape(served: Served, row: int, record: object) -> RefusedRow | None:
    """Return why a record has the wrong columns; None if it has the right ones."""
    if not isinstance(record, dict):
        kind = type(record).__name__
        return RefusedRow(row, None, f"not a record: got {kind}; expected an object of columns")
    if not record.keys() <= served.known:
        name = next(name for name in record if name not in served.known)
        name = name[:MAX_NAME]
        return RefusedRow(row, name, f"unknown column: got {name!r}{_hint(name, served.known)}")
    for name in served.required:
        if name not in record:
            return RefusedRow(row, name, f"missing column: expected {name!r}; null if it is empty")
        if isinstance(record[name], dict | list):
            kind = type(record[name]).__name__
            return RefusedRow(row, name, f"{name!r} is invalid: got a {kind}; expected one value")
    return None
