"""The summary of an audit: counts, rates and sums over all findings."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

from feta.arrays import Matrix
from feta.auditing.finding import Finding
from feta.metrics.estimate import wilson
from feta.model import Model
from feta.rule import Outcome
from feta.scorer.protocol import Provenance, has_scores
from feta.space.feature_space import FeatureSpace
from feta.space.limits import Outside

# Minimum number of people for a share to be meaningful.
MIN_PEOPLE = 20


NOTHING = Fraction(0)

# How two summaries are merged, by the names of their fields.
COUNTERS = (
    "decisions", "fair_decisions", "labels", "statuses", "alone", "outside", "unlisted",
)  # fmt: skip
SUMS = (
    "jointly", "flips", "decided", "violation_sum", "runtime_sensitive", "not_replayed", "labeled",
    "right", "right_fair", "error_sum", "error_fair_sum", "spanned", "span_sum",
    "nobody", "implausible", "own_differ", "combined", "combinations",
)  # fmt: skip
LARGEST = ("violation_max", "span_max")


@dataclass
class AuditSummary:
    """Counts and sums over findings, added in blocks; memory does not grow with the table.

    Sums of scores are exact, so they do not depend on the order: the summaries of the parts of a
    table, merged, equal the summary of the table.
    """

    attributes: tuple[str, ...]  # the sensitive ones
    epsilon: float | None = None  # regression: maximum span of the counterparts' scores
    outcomes: tuple[str, ...] = ("unfavorable", "favorable")  # names of the decisions
    decisions: Counter[str] = field(default_factory=Counter)  # of the model, by name
    fair_decisions: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)  # people for whom one attribute is enough
    jointly: int = 0  # people for whom only several attributes together are enough
    flips: int = 0
    decided: int = 0  # people whose fair decision is known
    violation_sum: Fraction = NOTHING
    violation_max: float = 0.0
    runtime_sensitive: int = 0
    not_replayed: int = 0
    labeled: int = 0
    right: int = 0  # decisions of the model that equal the label
    right_fair: int = 0  # fair decisions that equal the label
    error_sum: Fraction = NOTHING  # regression: distances of the model's scores from the labels
    error_fair_sum: Fraction = NOTHING  # regression: distances of the fair scores from the labels
    spanned: int = 0  # regression: people whose span is known
    span_sum: Fraction = NOTHING
    span_max: float = 0.0
    nobody: int = 0  # people with nobody to compare with; their status is undecided
    implausible: int = 0  # people whose own values the relation does not admit
    own_differ: int = 0  # of these, those whose decision differs from that of all plausible people
    combined: int = 0  # people with a number of plausible combinations of their own
    combinations: int = 0  # the sum of these numbers
    outside: Counter[Outside] = field(default_factory=Counter)  # people outside limits
    unlisted: Counter[str] = field(default_factory=Counter)  # people with other texts, by column
    space: FeatureSpace | None = None
    adjective: str = "plausible"  # which combinations are compared, if not all
    provenance: Provenance = "proved"
    has_gaps: bool = True  # False: the model returns labels only

    @classmethod
    def of(cls, model: Model) -> Self:
        """Create the empty summary for a model."""
        names = tuple(attribute.name for attribute in model.space.sensitive)
        epsilon, provenance = model.rule.tolerance, model.scorer.provenance
        return cls(
            names,
            epsilon,
            model.outcomes,
            space=model.space,
            adjective=model.relation.adjective or "plausible",
            provenance=provenance,
            has_gaps=has_scores(model.scorer),
        )

    def merged(self, other: Self) -> Self:
        """Return the summary of both parts of a table, which were audited in the same way."""
        question = (self.attributes, self.epsilon, self.outcomes, self.provenance)
        assert question == (other.attributes, other.epsilon, other.outcomes, other.provenance)
        merged: dict[str, Any] = {}
        for name in COUNTERS:
            merged[name] = Counter(getattr(self, name))
            merged[name].update(getattr(other, name))
        for name in SUMS:
            merged[name] = getattr(self, name) + getattr(other, name)
        for name in LARGEST:
            merged[name] = max(getattr(self, name), getattr(other, name))
        return replace(self, **merged)

    def count_outside(self, people: Matrix) -> None:
        """Count the people outside the limits of a column, or with a text that is not listed.

        What occurs first is listed first. Where that is not clear, people are counted one by one.
        """
        assert self.space is not None  # `of` sets it
        outside = {
            limit: int(flags.sum()) for limit, flags in self.space.open_limits.outside(people)
        }
        unlisted = self.space.unlisted(people)
        n_limits = len(outside.keys() - self.outside.keys())
        n_columns = len(unlisted.keys() - self.unlisted.keys())
        if len(people) > 1 and max(n_limits, n_columns) > 1:
            for person in people[:, None, :]:
                self.count_outside(person)
            return
        self.outside.update(outside)
        self.unlisted.update(unlisted)

    def add(self, findings: Sequence[Finding], labels: Sequence[Outcome | None]) -> None:
        """Add people with their labels."""
        for finding, label in zip(findings, labels, strict=True):
            status, pair = finding.status, finding.pair
            self.statuses[status] += 1
            if status == "not audited":
                continue
            self.nobody += finding.nobody
            self.implausible += not finding.plausible
            self.own_differ += finding.own_differs
            if finding.counterparts is not None:
                self.combined += 1
                self.combinations += finding.counterparts
            self.runtime_sensitive += status != "undecided" and finding.runtime == "sensitive"
            if pair is not None:
                self.alone.update(finding.alone)
                self.jointly += not finding.alone
                self.violation_sum += Fraction(pair.gap)
                self.violation_max = max(self.violation_max, pair.gap)
                self.not_replayed += finding.replayed is False
            if finding.span is not None:
                self.spanned += 1
                self.span_sum += Fraction(finding.span)
                self.span_max = max(self.span_max, finding.span)
            if finding.decision is not None and finding.fair_decision is not None:
                self._add_outcomes(finding.decision, finding.fair_decision, label)
                self.flips += is_flip(finding, self.epsilon)

    def _add_outcomes(self, decision: Outcome, fair: Outcome, label: Outcome | None) -> None:
        self.decided += 1
        if self.epsilon is None:
            self.decisions[self.outcomes[int(decision)]] += 1
            self.fair_decisions[self.outcomes[int(fair)]] += 1
        if label is None:
            return
        self.labeled += 1
        if self.epsilon is None:
            self.labels[self.outcomes[int(label)]] += 1
            self.right += decision == label
            self.right_fair += fair == label
        else:
            self.error_sum += abs(Fraction(decision) - Fraction(label))
            self.error_fair_sum += abs(Fraction(fair) - Fraction(label))

    @property
    def people(self) -> int:
        """How many people were audited."""
        return sum(self.statuses.values()) - self.statuses["not audited"]

    @property
    def ce_rate(self) -> float:
        """The share of people with a counterexample; a lower bound if some are undecided."""
        return _share(self.statuses["unfair"], self.people)

    @property
    def unfair_interval(self) -> tuple[float, float] | None:
        """An interval of 95 % for the share of people with a counterexample.

        It covers the draw of the people. People without an answer widen it to both sides.
        """
        if not self.people:
            return None
        low, _ = wilson(_share(self.statuses["unfair"], self.people), self.people)
        _, high = wilson(_share(self.people - self.statuses["fair"], self.people), self.people)
        return low, high

    @property
    def flip_rate(self) -> float:
        """The share of people for whom the model's decision differs from the fair one.

        Regression: for whom the two scores differ by more than epsilon.
        """
        return _share(self.flips, self.decided)

    @property
    def mean_violation(self) -> float:
        """The mean gap of the worst pairs, over people with a counterexample.

        Regression: the mean span of their counterparts' scores.
        """
        return _share(self.violation_sum, self.statuses["unfair"])

    @property
    def mean_violation_over_all(self) -> float:
        """The mean gap over everybody; people without a counterexample count as 0."""
        return _share(self.violation_sum, self.people)

    @property
    def accuracy(self) -> float | None:
        """The share of labeled people for whom the model's decision equals the label."""
        return self._per_label(self.right, regression=False)

    @property
    def fair_accuracy(self) -> float | None:
        """The share of labeled people for whom the fair decision equals the label."""
        return self._per_label(self.right_fair, regression=False)

    @property
    def mean_absolute_error(self) -> float | None:
        """The mean absolute error of the model's scores; regression only."""
        return self._per_label(self.error_sum, regression=True)

    @property
    def fair_mean_absolute_error(self) -> float | None:
        """The mean absolute error of the fair scores; regression only."""
        return self._per_label(self.error_fair_sum, regression=True)

    def _per_label(self, total: Fraction | int, *, regression: bool) -> float | None:
        if not self.labeled or regression != (self.epsilon is not None):
            return None
        return _share(total, self.labeled)

    @property
    def mean_span(self) -> float | None:
        """The mean span of the scores of a person's counterparts; regression only."""
        return None if self.epsilon is None else _share(self.span_sum, self.spanned)

    @property
    def max_span(self) -> float | None:
        """The largest span of the scores of a person's counterparts; regression only."""
        return None if self.epsilon is None else self.span_max

    @property
    def open(self) -> int:
        """How many people are undecided for other reasons than implausible values."""
        return self.statuses["undecided"] - self.nobody - self.own_differ

    @property
    def mean_combinations(self) -> float | None:
        """The mean number of plausible combinations; None if all combinations are."""
        return _share(self.combinations, self.combined) if self.combined else None

    @property
    def doubts(self) -> list[str]:
        """Signs that the schema does not describe this network, in words."""
        doubts = []
        if self.decided >= MIN_PEOPLE and len(self.decisions) == 1:
            (name,) = self.decisions
            doubts.append(
                f"everybody gets the decision {name!r}: check whether a center or scale is "
                "missing in the schema, and the order of its columns"
            )
        if self.accuracy is not None and self.labeled >= MIN_PEOPLE:
            name, count = self.labels.most_common(1)[0]
            if self.right <= count:
                doubts.append(
                    f"the model is no more accurate than the constant decision {name!r} "
                    f"({count / self.labeled:.1%}): check the order of columns and values, "
                    "centers and scales, and which outcome is the favorable one"
                )
        return doubts

    @property
    def everyone_fair(self) -> bool:
        """Whether everybody in the table was audited and proved fair."""
        return set(+self.statuses) == {"fair"}

    def _outside(self) -> dict[str, dict[str, int]]:
        """Count, by column, the people below and above its limits."""
        counts: dict[str, dict[str, int]] = {}
        for outside, count in self.outside.items():
            sides = counts.setdefault(outside.column, {"below": 0, "above": 0})
            sides[outside.side] += count
        return counts

    def as_dict(self) -> dict[str, object]:
        """Return all figures by name, as in audit.json."""
        plausible = {
            "nobody_to_compare_with": self.nobody,
            "own_values_not_plausible": self.implausible,
            "own_decision_differs": self.own_differ,
            "mean_combinations": self.mean_combinations,
        }
        return (plausible if self.combined else {}) | {
            "people": self.people,
            "fair": self.statuses["fair"],
            "unfair": self.statuses["unfair"],
            "undecided": self.statuses["undecided"],
            "not_audited": self.statuses["not audited"],
            "ce_rate": self.ce_rate,
            "flip_rate": self.flip_rate,
            "mean_violation": self.mean_violation if self.has_gaps else None,
            "mean_violation_over_all": self.mean_violation_over_all if self.has_gaps else None,
            "max_violation": self.violation_max if self.has_gaps else None,
            "one_attribute_is_enough": {name: self.alone[name] for name in self.attributes},
            "only_several_together": self.jointly,
            "runtime_sensitive": self.runtime_sensitive,
            "pairs_not_replayed": self.not_replayed,
            "decisions": dict(self.decisions),
            "fair_decisions": dict(self.fair_decisions),
            "doubts": self.doubts,
            "outside_limits": self._outside(),
            "accuracy": self.accuracy,
            "fair_accuracy": self.fair_accuracy,
            "mean_span": self.mean_span,
            "max_span": self.max_span,
            "mean_absolute_error": self.mean_absolute_error,
            "fair_mean_absolute_error": self.fair_mean_absolute_error,
        }


def is_flip(finding: Finding, epsilon: float | None) -> bool:
    """Return whether the fair decision differs from the model's; regression: by more than epsilon.

    A fair score is the score of a counterpart. So for a person proved fair it is within epsilon,
    even if the difference of the two rounded scores is not.
    """
    decision, fair = finding.decision, finding.fair_decision
    if decision is None or fair is None:
        return False
    if epsilon is None:
        return decision != fair
    return finding.status != "fair" and abs(decision - fair) > epsilon


def _share(part: Fraction | int, whole: int) -> float:
    return float(part / whole) if whole else 0.0
