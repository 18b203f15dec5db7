"""The function `audit` and its result, for a table in memory.

The command line audits larger tables with the same stream of blocks (`table_audit.py`).
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.block import blocks_in_memory
from feta.auditing.certify import Certification, CertifiedFacts
from feta.auditing.executor import InProcess, MakeExecutor
from feta.auditing.finding import Finding
from feta.auditing.report_data import ReportSource, report_data
from feta.auditing.results import AuditResults
from feta.auditing.stream import AuditStream
from feta.auditing.summary import AuditSummary
from feta.engine.protocol import UNLIMITED, Budget
from feta.errors import DomainError, NetworkError
from feta.io.audit_folder import write_page
from feta.io.column_format import formats_of
from feta.model import Model
from feta.readers.comparison import Comparison, compare
from feta.readers.runtime import Replay, Runtime
from feta.rule import Outcome
from feta.scorer.protocol import expect
from feta.space.vote_weights import VoteWeights

if TYPE_CHECKING:
    import pandas as pd

    from feta.auditing.section import ReportSection
    from feta.space.records import Record

# Maximum rows of a frame that are compared with the user's model. They are evenly spaced.
COMPARED_ROWS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """The findings about each person of a table, and their summary.

    `pairs` are the people with a counterexample, `undecided` those without an answer.
    """

    model: Model
    findings: tuple[Finding, ...]
    results: AuditResults = field(repr=False)
    auditor: Auditor = field(repr=False)
    people: Matrix = field(repr=False)
    labels: tuple[Outcome, ...] | None = field(repr=False)
    compared: Comparison | None = field(default=None, repr=False)  # with the user's model
    stopped: str = ""  # why a counted model was not asked about everybody; empty if it was
    certify: bool = False  # whether `write` writes a certificate

    @property
    def summary(self) -> AuditSummary:
        """Counts, rates and sums over all findings."""
        return self.results.summary

    @property
    def ce_rate(self) -> float:
        """The share of people with a counterexample."""
        return self.summary.ce_rate

    @property
    def flip_rate(self) -> float:
        """The share of people for whom the model's decision differs from the fair one."""
        return self.summary.flip_rate

    @property
    def pairs(self) -> tuple[Finding, ...]:
        """The people with a counterexample, the largest gap first."""
        unfair = [finding for finding in self.findings if finding.pair is not None]
        return tuple(sorted(unfair, key=lambda finding: -finding.pair.gap if finding.pair else 0.0))

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """The people without an answer."""
        return tuple(finding for finding in self.findings if finding.status == "undecided")

    def to_html(self, path: str | Path, sections: "tuple[ReportSection, ...]" = ()) -> None:
        """Write the report as one HTML page that uses no network and no script.

        `sections` are shown after those of every report (`feta.auditing.section`).
        """
        self._write_page(Path(path), sections)

    def _write_page(
        self, path: Path, sections: "tuple[ReportSection, ...]" = (), certificate: str = ""
    ) -> None:
        # Imported on call: `report` is a layer above `auditing`.
        from feta.report.html import html  # noqa: PLC0415

        runtime = "" if self.compared is None else self.compared.runtime
        source = ReportSource(runtime=runtime, compared=self.compared)
        stopped = bool(self.stopped)
        data = report_data(
            self.auditor,
            self.results,
            source,
            partial=stopped,
            picture=not stopped,
            stopped=self.stopped,
        )
        write_page(path, html(replace(data, certificate=certificate), sections))

    def write(self, folder: str | Path) -> None:
        """Write the report to a folder; with `certify`, also the certificate, schema and model.

        `feta check` re-proves the certificate.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        if not self.certify:
            self.to_html(path / "report.html")
            return
        size = InProcess(self.auditor).block_size
        with Certification(path, self.auditor, CertifiedFacts()) as certification:
            people = self.people[: len(self.findings)]
            for block in blocks_in_memory(people, size):
                rows = slice(block.start, block.start + len(block))
                certification.write(block.audited(self.findings[rows]))
            seal = certification.seal(complete=not self.stopped)
            self._write_page(path / "report.html", certificate=seal)
            certification.publish()


def audit(
    model: Model,
    frame: "pd.DataFrame | Sequence[Record]",
    *,
    labels: Sequence[object] | None = None,
    engine: str = "auto",
    budget: Budget = UNLIMITED,
    replay: Replay | None = None,
    weights: VoteWeights | None = None,
    certify: bool = False,
    executor: MakeExecutor | None = None,
) -> Audit:
    """Audit every person of a table.

    Parameters
    ----------
    model
        The model to audit.
    frame
        People in raw columns. A person may be outside the limits of columns that are neither
        sensitive nor strict, if the model's formula is known to hold there; `summary.outside`
        counts these people. Anyone else outside is rejected, with column and reason.
    labels
        What each person should get, for accuracies. Two decisions: True or False, or the name of
        the decision. Several classes: the name of the class. Regression: the score, for mean
        absolute errors.
    engine
        The name of an engine, or "auto".
    budget
        Limits on the cost per person.
    replay
        The user's runtime, `feta.runtime_of(estimator, model)`; or any function that takes rows
        as encoded by `space.encode` and returns decisions (True is favorable), for several classes
        the class indices, for regression the scores.
    weights
        The votes of the counterparts in the fair decisions. Verdicts do not depend on them.
    certify
        Whether `write` also writes a certificate, which `feta check` re-proves without FETA.
    executor
        What answers: a `feta.Cluster`; None for this process. The findings are the same.

    Returns
    -------
    Audit
        One finding per person, and the summary. The audit of a counted model stops if its answers
        cannot be used; the result then has the people before, and `stopped` says why.

    Raises
    ------
    DomainError
        If a person or a label is invalid.

    Examples
    --------
    >>> import feta
    >>> age = feta.Integer("age", 18, 90, sensitive=True)
    >>> space = feta.FeatureSpace((age, feta.Real("income", 0, 9)))
    >>> model = feta.Model(space, feta.Network.from_layers([([[0.1, 1.0]], [-5.0])]), threshold=0.0)
    >>> result = feta.audit(model, [{"age": 18, "income": 2}, {"age": 60, "income": 8}])
    >>> result.ce_rate, result.flip_rate, [finding.row for finding in result.pairs]
    (0.5, 0.5, [0])
    """
    _check_model(model)
    people = model.space.encode(frame, limits="open")
    if labels is not None and len(labels) != len(people):
        raise DomainError(
            f"invalid number of labels: got {len(labels)}; expected one label per person, "
            f"{len(people)}"
        )
    outcomes = None if labels is None else _read_labels(model, labels)
    auditor = Auditor(model, engine, budget, replay, weights)
    if certify:
        auditor.check_certifiable()
    auditor.admit(people)
    compared = _compare(model, replay, frame, people) if isinstance(replay, Runtime) else None
    results = AuditResults.of(model)
    findings: list[Finding] = []
    answering = InProcess(auditor, interruptible=False) if executor is None else executor(auditor)
    blocks = blocks_in_memory(people, answering.block_size, outcomes)
    stream = AuditStream(answering)
    expect(model.scorer, people, model.relation)
    for audited in stream.blocks(blocks):
        results.add(audited)
        findings += audited.findings
    if stream.stopped:
        who = f"{len(findings):,} of {len(people):,} people"
        warnings.warn(f"the audit stopped after {who}: {stream.stopped}", stacklevel=2)
    stored_labels = None if outcomes is None else tuple(outcomes)
    return Audit(
        model,
        tuple(findings),
        results,
        auditor,
        people,
        stored_labels,
        compared,
        stream.stopped,
        certify,
    )


def _compare(
    model: Model, runtime: Runtime, frame: "pd.DataFrame | Sequence[Record]", people: Matrix
) -> Comparison:
    """Evaluate the user's model on the original frame; raise if it differs beyond rounding."""
    import pandas as pd  # noqa: PLC0415 - keeps `import feta` fast

    table = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(list(frame))
    columns = runtime.columns
    complete = columns is not None and set(columns) <= set(map(str, table.columns))
    named = table.set_axis([str(name) for name in table.columns], axis=1) if complete else None
    rows = range(0, len(people), max(1, -(-len(people) // COMPARED_ROWS)))
    part = None if named is None else named.iloc[list(rows)]
    if named is not None:
        formats_of(named[name] for name in columns or ())  # rejects two kinds of missing values
    compared = compare(model, runtime, people[list(rows)], part, rows=list(rows))
    compared.check()
    return replace(compared, on_table=True)


def _check_model(model: object) -> None:
    if not isinstance(model, Model):
        raise NetworkError(
            f"invalid model: got {type(model).__name__}; expected a Model; use "
            "feta.Model(space, feta.read_sklearn(estimator, space)), or schema.model(network)"
        )


def _read_labels(model: Model, labels: Sequence[object]) -> list[Outcome]:
    outcomes = []
    for row, label in enumerate(labels):
        try:
            outcomes.append(model.rule.read_label(label, model.outcomes))
        except DomainError as error:
            raise DomainError(f"invalid label of row {row}: {error}", row=row) from None
    return outcomes
