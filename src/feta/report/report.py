"""The report of an audit: built person by person, then rendered in any format."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.summary import AuditSummary
from feta.auditing.top_pairs import PairView, TopPairs
from feta.engine.registry import choose
from feta.io.bad_rows import BadKind
from feta.model import Model
from feta.predict.latency import MAX_PEOPLE, Latency, measure
from feta.query import CountOf
from feta.readers.comparison import Comparison
from feta.report.groups import Groups
from feta.rule import Outcome

# Maximum rows that are listed by number; verdicts.csv has all of them.
LISTED_ROWS = 1000


@dataclass(frozen=True, slots=True)
class ReportSource:
    """The model, the table and the command of an audit."""

    model_file: str = ""
    data: str = ""
    data_sha256: str = ""
    command: str = ""  # that repeats the audit
    vote_weights: str | None = None
    unit: str = ""  # of the scores
    runtime: str = ""  # the user's runtime, in which pairs were replayed
    model_sha256: str = ""  # of the file, if it contains the whole model
    table: Mapping[str, Any] = field(default_factory=dict)  # options for reading it with pandas
    compared: Comparison | None = None  # with the user's model, on the user's table
    id_column: str | None = None
    notes: tuple[str, ...] = ()  # about how the model was read
    outcome_classes: tuple[tuple[str, str], ...] = ()  # outcomes with other names than classes


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The results of an audit."""

    model: Model
    source: ReportSource
    engine: str
    seconds_per_person: float | None  # the time limit
    summary: AuditSummary
    groups: Groups
    pairs: tuple[PairView, ...]
    unanswered: tuple[dict[str, Any], ...]
    runtime_sensitive_rows: tuple[str, ...]  # by number and id
    partial: bool
    seconds: float | None = None  # the duration of the audit
    latency: Latency | None = None
    bad_rows: tuple[BadKind, ...] = ()  # rows that could not be read, by column and reason
    files: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of the written tables

    @property
    def engine_used(self) -> str:
        """The engine that answered, also if "auto" was requested."""
        return choose(CountOf(self.model), self.engine).name

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the programs that computed the answers."""
        return {
            "FETA": version("feta-fair"),
            "Python": platform.python_version(),
            "NumPy": version("numpy"),
        }


@dataclass
class ReportBuilder:
    """The results of an audit so far; a report can be built at any time."""

    auditor: Auditor
    summary: AuditSummary = field(init=False)
    top_pairs: TopPairs = field(init=False)
    groups: Groups = field(init=False)
    unanswered: list[dict[str, Any]] = field(default_factory=list)
    runtime_sensitive_rows: list[str] = field(default_factory=list)
    sample: list[Vector] = field(default_factory=list)  # people for measuring the latency

    def __post_init__(self) -> None:
        self.summary = AuditSummary.of(self.auditor.model)
        self.top_pairs = TopPairs(self.auditor)
        self.groups = Groups.of(self.auditor.model)

    def take(
        self, finding: Finding, person: Vector | None, label: Outcome | None = None, name: str = ""
    ) -> None:
        """Add one row; a row that could not be read has no person."""
        self.summary.add(finding, label)
        self.top_pairs.add(finding, name, person)
        if person is not None:
            self._take_person(finding, person, label, name)
        if finding.status in ("undecided", "not audited") and len(self.unanswered) < LISTED_ROWS:
            row = {"row": finding.row + 1, "id": name, "status": finding.status}
            self.unanswered.append(row | {"reason": finding.reason})

    def _take_person(
        self, finding: Finding, person: Vector, label: Outcome | None, name: str
    ) -> None:
        self.summary.count_outside(person[None, :])
        self.groups.add(person, finding, label)
        if len(self.sample) < MAX_PEOPLE:
            self.sample.append(person)
        sensitive = finding.status != "undecided" and finding.runtime == "sensitive"
        if sensitive and len(self.runtime_sensitive_rows) < LISTED_ROWS:
            self.runtime_sensitive_rows.append(f"{finding.row + 1}{f' ({name})' if name else ''}")

    def report(
        self,
        source: ReportSource,
        *,
        partial: bool = False,
        seconds: float | None = None,
        bad_rows: tuple[BadKind, ...] = (),
    ) -> Report:
        """Build the report.

        A partial report must be fast, so its pairs are not simplified and no latency is measured.
        """
        auditor = self.auditor
        latency = None
        if not partial and self.sample and auditor.model.space.finite:
            latency = measure(auditor.model, np.stack(self.sample), auditor.engine)
        return Report(
            model=auditor.model,
            source=source,
            engine=auditor.engine,
            seconds_per_person=auditor.budget.seconds,
            summary=self.summary,
            groups=self.groups,
            pairs=tuple(self.top_pairs.pairs(simplify=not partial)),
            unanswered=tuple(self.unanswered),
            runtime_sensitive_rows=tuple(self.runtime_sensitive_rows),
            partial=partial,
            seconds=seconds,
            latency=latency,
            bad_rows=bad_rows,
        )
