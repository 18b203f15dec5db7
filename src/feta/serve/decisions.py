"""Fair decisions about the records of a request."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from http import HTTPStatus
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import Undecided
from feta.rule.protocol import Outcome
from feta.serve.encoding import EncodedPeople, RefusedRow, encode_request
from feta.serve.limits import LIMITS
from feta.serve.refusal import Refusal
from feta.serve.served import Served


@dataclass(frozen=True, eq=False)
class DecidedPeople:
    """The people of a request who were decided, their outcomes, and all other rows."""

    served: Served
    people: Matrix
    rows: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    refused: tuple[RefusedRow, ...]

    @cached_property
    def names(self) -> list[str | float]:
        """The name of each outcome, in the order of `rows`."""
        return [self.served.describe(outcome) for outcome in self.outcomes]

    def moved(self, start: int) -> "DecidedPeople":
        """Return the same people with rows that begin at another number."""
        return replace(
            self,
            rows=tuple(row + start for row in self.rows),
            refused=tuple(replace(one, row=one.row + start) for one in self.refused),
        )

    @classmethod
    def joined(cls, parts: Sequence["DecidedPeople"]) -> "DecidedPeople":
        """Return the people of all parts of one request."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            parts[0].served,
            np.concatenate([part.people for part in parts]),
            tuple(row for part in parts for row in part.rows),
            tuple(outcome for part in parts for outcome in part.outcomes),
            tuple(one for part in parts for one in part.refused),
        )

    def counts(self) -> dict[str, int]:
        """Return the number of people by outcome; scores of a regression are one group."""
        counts: dict[str, int] = {}
        for name in self.names:
            text = name if isinstance(name, str) else "(score)"
            counts[text] = counts.get(text, 0) + 1
        if self.refused:
            counts["(refused)"] = len(self.refused)
        return counts

    def single(self) -> dict[str, Any]:
        """Return the answer about one record; raise if it was refused."""
        if self.refused:
            first = self.refused[0]
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, first.why, column=first.column)
        return {"decision": self.names[0], "model": self.served.digest}

    def many(self, n_records: int) -> dict[str, Any]:
        """Return the answer about a list of records; refused ones are null."""
        decisions: list[str | float | None] = [None] * n_records
        for row, name in zip(self.rows, self.names, strict=True):
            decisions[row] = name
        refused = [row.content for row in self.refused]
        return {"decisions": decisions, "refused": refused, "model": self.served.digest}


def decide_records(served: Served, records: Sequence[object]) -> DecidedPeople:
    """Decide all records that can be decided."""
    check_number(len(records))
    return _decide(served, encode_request(served, records))


def check_number(n_records: int) -> None:
    """Raise unless this number of people can be decided in one request."""
    if not n_records:
        raise Refusal(
            HTTPStatus.BAD_REQUEST, "no people: got an empty list; expected one record or more"
        )
    if n_records > LIMITS.people:
        raise Refusal(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"too many people: got {n_records:,}; expected at most {LIMITS.people:,} per "
            "request; send several requests",
        )


def _decide(served: Served, encoded: EncodedPeople) -> DecidedPeople:
    people, rows, refused = encoded.people, list(encoded.rows), list(encoded.refused)
    while rows:
        try:
            outcomes = tuple(served.predictor.decide(people).tolist())
            return DecidedPeople(served, people, tuple(rows), outcomes, tuple(refused))
        except Undecided as error:
            why = f"undecided: {error.reason}"
            refused += [RefusedRow(rows[row], None, why) for row in error.rows]
            kept = [row for row in range(len(rows)) if row not in set(error.rows)]
            people, rows = people[kept], [rows[row] for row in kept]
    refused.sort(key=lambda row: row.row)
    return DecidedPeople(served, people, (), (), tuple(refused))
