"""What a report shows, as values: computed here, and only rendered by `feta.report`."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from feta.auditing.auditor import Auditor
from feta.auditing.grid import Grid, grid
from feta.auditing.groups import Groups
from feta.auditing.results import AuditResults, Unanswered
from feta.auditing.summary import AuditSummary
from feta.auditing.top_pairs import PairView
from feta.engine.registry import choose
from feta.errors import UnreliableAnswer
from feta.io.bad_rows import BadKind
from feta.metrics.proxy_measures import MIN_PEOPLE, ProxyMeasures, measure_proxies
from feta.model import Model
from feta.predict.latency import Latency, measure
from feta.query import CountOf
from feta.readers.comparison import Comparison


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
class ReportData:
    """The results of an audit, complete for every format."""

    model: Model
    source: ReportSource
    engine: str
    engine_used: str  # that answered, also if "auto" was requested
    seconds_per_person: float | None  # the time limit
    summary: AuditSummary
    groups: Groups
    pairs: tuple[PairView, ...]
    unanswered: tuple[Unanswered, ...]
    runtime_sensitive_rows: tuple[str, ...]  # by number and id
    partial: bool
    stopped: str = ""  # why the audit ended early; empty if it was interrupted or is complete
    seconds: float | None = None  # the duration of the audit
    latency: Latency | None = None
    picture: tuple[Grid, PairView] | None = None
    proxies: ProxyMeasures | None = None  # None: partial, or too few people
    bad_rows: tuple[BadKind, ...] = ()  # rows that could not be read, by column and reason
    certificate: str = ""  # its seal; empty without one
    files: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of the written tables

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the programs that computed the answers."""
        return {
            "FETA": version("feta-fair"),
            "Python": platform.python_version(),
            "NumPy": version("numpy"),
        }


def report_data(
    auditor: Auditor,
    results: AuditResults,
    source: ReportSource,
    *,
    partial: bool = False,
    picture: bool = True,
    seconds: float | None = None,
    bad_rows: tuple[BadKind, ...] = (),
    stopped: str = "",
) -> ReportData:
    """Compute what a report shows besides the results: the simplest pairs, a picture, the latency.

    A partial report must be fast, so its pairs are not simplified, and neither latency nor proxies
    are measured. Proxies are shown by files only, so they are measured with the picture.
    """
    model = auditor.model
    pairs = tuple(results.top_pairs.pairs(auditor, simplify=not partial))
    return ReportData(
        model=model,
        source=source,
        engine=auditor.engine,
        engine_used=_engine_used(auditor),
        seconds_per_person=auditor.budget.seconds,
        summary=results.summary,
        groups=results.groups,
        pairs=pairs,
        unanswered=tuple(results.unanswered),
        runtime_sensitive_rows=tuple(map(str, results.runtime_sensitive_rows)),
        partial=partial,
        stopped=stopped,
        seconds=seconds,
        latency=None if partial else _latency(auditor, results),
        picture=_picture(model, pairs) if picture else None,
        proxies=_proxies(model, results) if picture and not partial else None,
        bad_rows=bad_rows,
    )


def _engine_used(auditor: Auditor) -> str:
    """Return the engine that `auto` selects; similar people have an engine person by person."""
    if not auditor.model.relation.finite and not auditor.model.relation.has_key:
        return auditor.engine
    return choose(CountOf(auditor.model), auditor.engine).name


def _latency(auditor: Auditor, results: AuditResults) -> Latency | None:
    if not results.sample or not auditor.model.space.finite:
        return None
    if not auditor.model.relation.has_key:  # no fair decisions exist
        return None
    if auditor.model.scorer.provenance == "counted":
        return None  # the answers are known, so that the time would be that of the cache
    people = np.stack([sampled.person for sampled in results.sample])
    return measure(auditor.model, people, auditor.engine)


def _proxies(model: Model, results: AuditResults) -> ProxyMeasures | None:
    """Measure proxies on people who are spread evenly over the table."""
    if len(results.measured) < MIN_PEOPLE:
        return None
    people = np.stack([measured.person for measured in results.measured])
    labels = [measured.label for measured in results.measured if measured.label is not None]
    complete = len(labels) == len(people)
    return measure_proxies(model, people, np.array(labels, dtype=float) if complete else None)


def _picture(model: Model, pairs: tuple[PairView, ...]) -> tuple[Grid, PairView] | None:
    """Return the picture of the first pair that has one."""
    for view in pairs:
        try:
            picture = grid(model, view.pair)
        except UnreliableAnswer:  # a counted model
            continue
        if picture is not None:
            return picture, view
    return None
