"""Report: everything an audit found, gathered person by person and then handed to whoever shows it."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from feta.arrays import Matrix, Vector
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.summary import AuditSummary
from feta.auditing.top_pairs import PairView, TopPairs
from feta.engine.registry import choose
from feta.io.bad_rows import BadKind
from feta.model import Model
from feta.predict.latency import MAX_PEOPLE, Latency, measure
from feta.readers.comparison import Comparison
from feta.report.groups import Groups
from feta.rule import Outcome

LISTED_ROWS = 1000  # rows without an answer that are named; verdicts.csv has all


@dataclass(frozen=True, slots=True)
class ReportSource:
    """Where an audit's people and model came from, and how it was asked for."""

    model_file: str = ""
    data: str = ""
    data_sha256: str = ""
    command: str = ""  # to run it again
    vote_weights: str | None = None
    unit: str = ""  # of the scores
    runtime: str = ""  # the user's own, in which pairs were replayed
    model_sha256: str = ""  # of the file, if it holds the whole model
    table: Mapping[str, Any] = field(default_factory=dict)  # how pandas reads it, by its options
    compared: Comparison | None = None  # with the user's own model, on the user's own table
    id_column: str | None = None
    notes: tuple[str, ...] = ()  # what a reader should know about how the model was read


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What an audit comes to."""

    model: Model
    source: ReportSource
    engine: str
    seconds_a_person: float | None  # the limit
    summary: AuditSummary
    groups: Groups
    pairs: tuple[PairView, ...]
    unanswered: tuple[dict[str, Any], ...]
    tipping: tuple[str, ...]  # runtime-sensitive rows, by number and name
    partial: bool
    seconds: float | None = None  # that it took
    latency: Latency | None = None
    bad_rows: tuple[BadKind, ...] = ()  # rows that were not read, by column and reason
    files: Mapping[str, str] = field(default_factory=dict)  # sha256 of the tables written, by name

    @property
    def engine_used(self) -> str:
        """The engine that answered, where "auto" was asked for."""
        return choose(self.model, self.engine).name

    @property
    def versions(self) -> dict[str, str]:
        """The programs that the answers rest on."""
        return {
            "FETA": version("feta-fair"),
            "Python": platform.python_version(),
            "NumPy": version("numpy"),
        }


@dataclass
class ReportBuilder:
    """An audit under way: what is found so far, whatever stops it."""

    auditor: Auditor
    summary: AuditSummary = field(init=False)
    top_pairs: TopPairs = field(init=False)
    groups: Groups = field(init=False)
    unanswered: list[dict[str, Any]] = field(default_factory=list)
    tipping: list[str] = field(default_factory=list)
    first: list[Vector] = field(default_factory=list)  # people to measure latencies with

    def __post_init__(self) -> None:
        self.summary = AuditSummary.of(self.auditor.model)
        self.top_pairs = TopPairs(self.auditor)
        self.groups = Groups.of(self.auditor.model)

    def take(
        self, finding: Finding, person: Vector | None, label: Outcome | None = None, name: str = ""
    ) -> None:
        """Count one more row; a row that could not be read has no person."""
        self.summary.add(finding, label)
        self.top_pairs.add(finding, name, person)
        if person is not None:
            self.summary.count_outside(person[None, :])
            self.groups.add(person, finding, label)
            if len(self.first) < MAX_PEOPLE:
                self.first.append(person)
            tips = finding.status != "undecided" and finding.runtime == "sensitive"
            if tips and len(self.tipping) < LISTED_ROWS:
                self.tipping.append(f"{finding.row + 1}{f' ({name})' if name else ''}")
        if finding.status in ("undecided", "not audited") and len(self.unanswered) < LISTED_ROWS:
            row = {"row": finding.row + 1, "id": name, "status": finding.status}
            self.unanswered.append(row | {"reason": finding.reason})

    def report(
        self,
        source: ReportSource,
        *,
        partial: bool = False,
        seconds: float | None = None,
        bad_rows: tuple[BadKind, ...] = (),
    ) -> Report:
        """Put it together; what was interrupted is not kept waiting for simpler pairs or latencies."""
        auditor = self.auditor
        measured = None
        if not partial and self.first and auditor.model.space.finite:
            measured = measure(auditor.model, self._people(), auditor.engine)
        pairs = self.top_pairs.pairs(simplify=not partial)
        limit = auditor.budget.seconds
        return Report(
            auditor.model, source, auditor.engine, limit, self.summary, self.groups, tuple(pairs),
            tuple(self.unanswered), tuple(self.tipping), partial, seconds, measured, bad_rows,
        )  # fmt: skip

    def _people(self) -> Matrix:
        return np.stack(self.first)
