"""The results of an audit so far: values that are added in blocks, and merged."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, Self, TypeVar

import numpy as np

from feta.arrays import Vector
from feta.auditing.block import AuditedBlock
from feta.auditing.finding import Status
from feta.auditing.groups import Groups
from feta.auditing.summary import AuditSummary
from feta.auditing.top_pairs import TopPairs
from feta.metrics.proxy_measures import MAX_PEOPLE as MEASURED_PEOPLE
from feta.model import Model
from feta.predict.latency import MAX_PEOPLE
from feta.rule import Outcome

# Maximum rows that are listed by number; verdicts.csv has all of them.
LISTED_ROWS = 1000


class Unanswered(NamedTuple):
    """A row without an answer."""

    row: int  # counted from 1
    id: str
    status: Status
    reason: str


class NamedRow(NamedTuple):
    """A row by its number, counted from 1, and its id in the table."""

    row: int
    id: str

    def __str__(self) -> str:
        return f"{self.row} ({self.id})" if self.id else str(self.row)


class SampledPerson(NamedTuple):
    """One of the first people, for measuring the latency."""

    row: int
    person: Vector


class MeasuredPerson(NamedTuple):
    """One of the people on whom proxies are measured: those whose order is lowest."""

    order: int
    person: Vector
    label: Outcome | None


# An odd number near 2^64 / golden ratio: multiplied by it, row numbers are spread evenly.
SPREAD = 0x9E3779B97F4A7C15


def _order(row: int) -> int:
    """Return a number that spreads the chosen rows over the table, in whatever parts it is read."""
    return (row + 1) * SPREAD % 2**64


@dataclass
class AuditResults:
    """The results so far; their memory does not grow with the table.

    The results of the parts of a table, merged, equal those of the table.
    """

    summary: AuditSummary
    groups: Groups
    top_pairs: TopPairs
    unanswered: list[Unanswered] = field(default_factory=list)
    runtime_sensitive_rows: list[NamedRow] = field(default_factory=list)
    sample: list[SampledPerson] = field(default_factory=list)
    measured: list[MeasuredPerson] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model) -> Self:
        """Create the empty results for a model."""
        return cls(AuditSummary.of(model), Groups.of(model), TopPairs.of(model))

    def add(self, audited: AuditedBlock) -> None:
        """Add one block of rows."""
        block = audited.block
        findings, labels, names = audited.of_people
        self.summary.add(audited.findings, block.labels)
        self.summary.count_outside(block.people)
        self.groups.add(block.people, findings, labels)
        # The pairs that are shown begin with the person of their row.
        own = [row for row, finding in enumerate(findings) if finding.plausible]
        shown = [findings[row] for row in own], [names[row] for row in own]
        self.top_pairs.add(shown[0], block.people[own], shown[1])
        unanswered, sensitive = [], []
        for finding, name in zip(audited.findings, block.names, strict=True):
            row, status = finding.row + 1, finding.status
            if status in ("undecided", "not audited"):
                unanswered.append(Unanswered(row, name, status, finding.reason))
            elif finding.runtime == "sensitive":
                sensitive.append(NamedRow(row, name))
        self.unanswered = _first(LISTED_ROWS, self.unanswered, unanswered)
        self.runtime_sensitive_rows = _first(LISTED_ROWS, self.runtime_sensitive_rows, sensitive)
        if len(self.sample) < MAX_PEOPLE:
            rows = [
                SampledPerson(finding.row, np.array(person))
                for finding, person in zip(findings, block.people, strict=True)
            ]
            self.sample = _first(MAX_PEOPLE, self.sample, rows)
        self._measure(
            MeasuredPerson(_order(finding.row), person, label)
            for finding, person, label in zip(findings, block.people, labels, strict=True)
        )

    def _measure(self, people: Iterable[MeasuredPerson]) -> None:
        """Keep the people whose order is lowest."""
        limit = self.measured[-1].order if len(self.measured) == MEASURED_PEOPLE else 2**64
        # A row of a block would keep the whole block in memory.
        more = [one._replace(person=np.array(one.person)) for one in people if one.order < limit]
        self.measured = _lowest(self.measured, more)

    def merged(self, other: Self) -> Self:
        """Return the results of both parts of a table."""
        return type(self)(
            self.summary.merged(other.summary),
            self.groups.merged(other.groups),
            self.top_pairs.merged(other.top_pairs),
            _first(LISTED_ROWS, self.unanswered, other.unanswered),
            _first(LISTED_ROWS, self.runtime_sensitive_rows, other.runtime_sensitive_rows),
            _first(MAX_PEOPLE, self.sample, other.sample),
            _lowest(self.measured, other.measured),
        )


def _lowest(people: list[MeasuredPerson], more: list[MeasuredPerson]) -> list[MeasuredPerson]:
    if not more:
        return people
    return sorted(people + more, key=attrgetter("order"))[:MEASURED_PEOPLE]


Listed = TypeVar("Listed", bound=Unanswered | NamedRow | SampledPerson)


def _first(most: int, rows: list[Listed], more: list[Listed]) -> list[Listed]:
    """Return the first rows of both lists."""
    if not more:
        return rows
    return sorted(rows + more, key=attrgetter("row"))[:most]
