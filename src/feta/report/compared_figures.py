"""The figures of a comparison as columns of a table: values, and differences to the first row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from feta.comparing.model_comparison import ComparedRow, ModelComparison
from feta.metrics.decision_figures import GroupPair
from feta.metrics.estimate import Estimate
from feta.report.proxy_words import INTERVALS

FORMAT = "feta-comparison"
VERSION = 1

NONE = "none"

EXPLANATIONS = (
    "accuracy: share of decisions that equal the label. favorable: share of favorable decisions. "
    "counterexample: share of people for whom another combination of sensitive values gets another "
    "decision.",
    "slope: how much of what a guess of the sensitive values adds is in the score; 0 as in a mean "
    "over the sensitive values, 1 as in a score that guesses. It is measured against a score of "
    "the same kind that reads the sensitive columns. The majority has none: with equal weights, it "
    "is another mean. proxy discrimination: share of the score's "
    "variance that no fixed mean over the sensitive values explains. A distilled network has "
    "neither: its scores are distances from the cut-off, and no other score is of that kind.",
    "gap: favorable share of one group minus that of another. The groups are the two that are "
    "farthest apart by the first model, so its own gap is somewhat too large. gap at equal "
    "approval: the same if every row approved as many people as the first model does, those with "
    "the highest scores; people with the same score at the cut-off share the remaining approvals.",
)


@dataclass(frozen=True, slots=True)
class Measure:
    """One column: its key in files, its heading, and where its figure is."""

    key: str
    heading: str
    percent: bool
    of: Callable[[ComparedRow], Estimate | None]

    def text(self, row: ComparedRow) -> str:
        """Return the figure with its interval."""
        estimate = self.of(row)
        return NONE if estimate is None else self._interval(estimate)

    def difference(self, row: ComparedRow, baseline: ComparedRow) -> str:
        """Return the paired difference to the first row; empty for the first row itself."""
        estimate = difference(self, row, baseline)
        return "" if estimate is None else self._interval(estimate, sign="+")

    def _interval(self, estimate: Estimate, sign: str = "") -> str:
        low, high = estimate.interval
        if self.percent:
            return f"{100 * estimate.value:{sign}z.1f} [{100 * low:z.1f}, {100 * high:z.1f}]"
        return f"{estimate.value:{sign}z.2f} [{low:z.2f}, {high:z.2f}]"


def difference(measure: Measure, row: ComparedRow, baseline: ComparedRow) -> Estimate | None:
    """Return a row's figure minus that of the first row, about the same people."""
    one, other = measure.of(row), measure.of(baseline)
    if row is baseline or one is None or other is None:
        return None
    return one.minus(other)


@dataclass(frozen=True, slots=True)
class MeasureGroup:
    """Measures that are shown together."""

    title: str
    measures: tuple[Measure, ...]


def measure_groups(comparison: ModelComparison) -> list[MeasureGroup]:
    """Return the columns of a comparison, one group per table."""
    gaps = [_gaps(pair, index) for index, pair in enumerate(comparison.pairs)]
    return [MeasureGroup("Decisions", DECISIONS), MeasureGroup("Proxies", PROXIES), *gaps]


def measures(comparison: ModelComparison) -> list[Measure]:
    """Return the columns of a comparison."""
    return [measure for group in measure_groups(comparison) for measure in group.measures]


DECISIONS = (
    Measure("accuracy", "accuracy, %", True, lambda row: row.decisions.accuracy),
    Measure("favorable", "favorable, %", True, lambda row: row.decisions.favorable),
    Measure("counterexamples", "counterexample, %", True, lambda row: row.unfair),
)

PROXIES = (
    Measure("slope", "slope", False, lambda row: row.reinference.slope),
    Measure(
        "proxy_discrimination",
        "proxy discrimination, %",
        True,
        lambda row: row.reinference.discrimination,
    ),
)


def _gaps(pair: GroupPair, index: int) -> MeasureGroup:
    """Return both gaps between two groups."""
    name = pair.attribute
    own = Measure(f"gap {name}", "gap, points", True, lambda row: row.decisions.gaps[index])
    equal = Measure(
        f"gap_at_equal_approval {name}",
        "gap at equal approval, points",
        True,
        lambda row: row.equal_gaps[index],
    )
    return MeasureGroup(pair.title, (own, equal))


def remarks(comparison: ModelComparison) -> list[str]:
    """Return what was done with whom, and what limits the figures."""
    lines = [] if comparison.finished else ["Interrupted: some candidates are missing."]
    lines += [
        f"Fitted to {comparison.n_fitted:,} people and measured on the other "
        f"{comparison.n_measured:,}, divided at random with seed {comparison.seed}; slope and "
        f"proxy discrimination on {comparison.n_scored:,} of them. A given model may have been "
        "trained on people who are measured here, which favors it.",
        *EXPLANATIONS,
        f"Differences to the first row are paired. {INTERVALS}",
    ]
    lines += [f"{left.name}: left out: {left.reason}" for left in comparison.left_out]
    return lines


def comparison_json(comparison: ModelComparison) -> dict[str, Any]:
    """Return a comparison as JSON values."""
    columns = measures(comparison)
    return {
        "format": FORMAT,
        "version": VERSION,
        "finished": comparison.finished,
        "seed": comparison.seed,
        "people_fitted": comparison.n_fitted,
        "people_measured": comparison.n_measured,
        "people_scored": comparison.n_scored,
        "groups": {pair.attribute: list(pair.names) for pair in comparison.pairs},
        "overlap": [overlap.as_json() for overlap in comparison.overlaps],
        "rows": [_row_json(row, comparison.baseline, columns) for row in comparison.rows],
        "left_out": [{"name": left.name, "reason": left.reason} for left in comparison.left_out],
    }


def _row_json(row: ComparedRow, baseline: ComparedRow, columns: list[Measure]) -> dict[str, Any]:
    figures, differences = {}, {}
    for column in columns:
        figure, change = column.of(row), difference(column, row, baseline)
        figures[column.key] = None if figure is None else figure.as_json()
        differences[column.key] = None if change is None else change.as_json()
    about = {"name": row.name, "about": row.about}
    return about | {"figures": figures, "differences": differences}
