"""Audit: a whole table in memory; the command line streams larger ones through the same parts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.labels import read_label
from feta.auditing.summary import AuditSummary
from feta.engine.protocol import UNLIMITED, Budget
from feta.errors import DomainError
from feta.io.column_format import formats_of
from feta.model import Model
from feta.readers.comparison import Comparison, compare
from feta.readers.runtime import Replay, Runtime
from feta.rule import Outcome
from feta.space.vote_weights import VoteWeights

if TYPE_CHECKING:
    import pandas as pd

    from feta.space.records import Record

# People asked together: enough to share numpy's overhead.
BLOCK = 512

# Rows of a frame that are compared with the user's own model, evenly spread.
COMPARED_ROWS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """What was found about each person of a table, and in sum.

    `pairs` are the people with a counterexample, `undecided` those without an answer.
    """

    model: Model
    findings: tuple[Finding, ...]
    summary: AuditSummary
    auditor: Auditor = field(repr=False)
    people: Matrix = field(repr=False)
    labels: tuple[Outcome, ...] | None = field(repr=False)
    compared: Comparison | None = field(default=None, repr=False)  # with the user's own model

    @property
    def ce_rate(self) -> float:
        """The share of people with a counterexample."""
        return self.summary.ce_rate

    @property
    def flip_rate(self) -> float:
        """The share of people whose own decision differs from the fair one."""
        return self.summary.flip_rate

    @property
    def pairs(self) -> tuple[Finding, ...]:
        """The people with a counterexample, the widest gap first."""
        found = [finding for finding in self.findings if finding.pair is not None]
        return tuple(sorted(found, key=lambda one: -one.pair.gap if one.pair else 0.0))

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """The people without an answer."""
        return tuple(finding for finding in self.findings if finding.status == "undecided")

    def to_html(self, path: str | Path) -> None:
        """Write the report: one page that needs no network and no script, to read or to print."""
        from feta.report.html import html  # noqa: PLC0415 - reports stand above audits
        from feta.report.report import ReportBuilder, ReportSource  # noqa: PLC0415 - the same

        builder = ReportBuilder(self.auditor)
        for finding in self.findings:
            label = None if self.labels is None else self.labels[finding.row]
            builder.take(finding, self.people[finding.row], label)
        runtime = "" if self.compared is None else self.compared.runtime
        source = ReportSource(runtime=runtime, compared=self.compared)
        Path(path).write_text(html(builder.report(source)), encoding="utf-8")


def audit(
    model: Model,
    frame: "pd.DataFrame | Sequence[Record]",
    *,
    labels: Sequence[object] | None = None,
    engine: str = "auto",
    budget: Budget = UNLIMITED,
    replay: Replay | None = None,
    weights: VoteWeights | None = None,
) -> Audit:
    """Ask about every person of a table.

    Parameters
    ----------
    model
        The model to ask about.
    frame
        People in raw columns. Those outside the limits of columns that are neither sensitive nor
        strict are asked about as well, and counted in `summary.outside`, where the model's formula
        is known to hold beyond the limits; others are refused by column and reason.
    labels
        What each person should get, for accuracies: True or False, or the decision's name; several
        classes: the class's name; regression: the score, for mean absolute errors.
    engine
        An engine's name, or "auto".
    budget
        What each person may cost.
    replay
        The user's own runtime, `feta.runtime_of(estimator, model)`; or any function that takes rows
        as `space.encode` makes them and gives decisions (True is favorable), several classes: the
        classes' numbers, regression: the scores.
    weights
        The votes that counterparts have in the fair decisions; verdicts do not hang on them.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 9)))
    >>> model = feta.Model(space, feta.Network.from_layers([([[0.1, 1.0]], [-5.0])]), threshold=0.0)
    >>> result = feta.audit(model, [{"age": 18, "income": 2}, {"age": 60, "income": 8}])
    >>> result.ce_rate, result.flip_rate, [finding.row for finding in result.pairs]
    (0.5, 0.5, [0])
    """
    people = model.space.encode(frame, limits="open")
    if labels is not None and len(labels) != len(people):
        raise DomainError(
            f"there must be a label for each of {len(people)} people, got {len(labels)}"
        )
    right = None if labels is None else _read_labels(model, labels)
    auditor = Auditor(model, engine, budget, replay, weights)
    auditor.admit(people)
    compared = _compare(model, replay, frame, people) if isinstance(replay, Runtime) else None
    summary = AuditSummary.of(model)
    summary.count_outside(people)
    findings: list[Finding] = []
    for start in range(0, len(people), BLOCK):
        findings += auditor.ask(people[start : start + BLOCK], start)
    for finding in findings:
        summary.add(finding, None if right is None else right[finding.row])
    kept = None if right is None else tuple(right)
    return Audit(model, tuple(findings), summary, auditor, people, kept, compared)


def _compare(
    model: Model, runtime: Runtime, frame: "pd.DataFrame | Sequence[Record]", people: Matrix
) -> Comparison:
    """Let the user's own model decide the frame as it is; any difference beyond rounding raises."""
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    given = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(list(frame))
    columns = runtime.columns
    whole = columns is not None and set(columns) <= set(map(str, given.columns))
    named = given.set_axis([str(name) for name in given.columns], axis=1) if whole else None
    rows = range(0, len(people), max(1, -(-len(people) // COMPARED_ROWS)))
    part = None if named is None else named.iloc[list(rows)]
    if named is not None:
        formats_of(named[name] for name in columns or ())  # refuses two kinds of missing values
    compared = compare(model, runtime, people[list(rows)], part, rows=list(rows))
    compared.check()
    return replace(compared, on_table=True)


def _read_labels(model: Model, labels: Sequence[object]) -> list[Outcome]:
    found = []
    for row, label in enumerate(labels):
        try:
            found.append(read_label(model, label))
        except DomainError as error:
            raise DomainError(f"the label of row {row} {error}", row=row) from None
    return found
