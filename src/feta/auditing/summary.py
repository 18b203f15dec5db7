"""Summary: what an audit of many people comes to."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Self

from feta.arrays import Matrix
from feta.auditing.finding import Finding
from feta.model import Model
from feta.rule import Outcome, Tolerance
from feta.scorer.network.network import Provenance
from feta.space.feature_space import FeatureSpace
from feta.space.limits import Outside

# People needed before a share of them says anything.
ENOUGH = 20


@dataclass
class AuditSummary:
    """Counts and sums over findings; people are added one by one, so any number fits."""

    attributes: tuple[str, ...]  # the sensitive ones
    epsilon: float | None = None  # regression: how far apart any two counterparts' scores may be
    outcomes: tuple[str, ...] = ("unfavorable", "favorable")  # what the decisions are called
    decisions: Counter[str] = field(default_factory=Counter)  # the model's own, by name
    fair_decisions: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)
    jointly: int = 0  # people for whom only several attributes together are enough
    flips: int = 0
    decided: int = 0  # people whose fair decision is known
    violation_sum: float = 0.0
    violation_max: float = 0.0
    runtime_sensitive: int = 0
    not_replayed: int = 0
    labeled: int = 0
    right: int = 0  # own decisions as labeled
    right_fair: int = 0  # fair decisions as labeled
    error_sum: float = 0.0  # regression: how far own scores are from labels
    error_fair_sum: float = 0.0  # and fair ones
    spanned: int = 0  # regression: people whose span is known
    span_sum: float = 0.0
    span_max: float = 0.0
    outside: Counter[Outside] = field(default_factory=Counter)  # people outside of limits
    unlisted: Counter[str] = field(default_factory=Counter)  # people with other texts, by column
    space: FeatureSpace | None = None
    provenance: Provenance = "proved"

    @classmethod
    def of(cls, model: Model) -> Self:
        """Start a summary for a model."""
        names = tuple(attribute.name for attribute in model.space.sensitive)
        epsilon = model.rule.epsilon if isinstance(model.rule, Tolerance) else None
        provenance = model.network.provenance
        return cls(names, epsilon, model.outcomes, space=model.space, provenance=provenance)

    def count_outside(self, people: Matrix) -> None:
        """Count those of some people who are outside the limits of a column."""
        assert self.space is not None  # `of` sets it
        for one, flags in self.space.open_limits.outside(people):
            self.outside[one] += int(flags.sum())
        self.unlisted.update(self.space.unlisted(people))

    def add(self, finding: Finding, label: Outcome | None = None) -> None:
        """Take one more person."""
        self.statuses[finding.status] += 1
        if finding.status == "not audited":
            return
        self.runtime_sensitive += finding.status != "undecided" and finding.runtime == "sensitive"
        if finding.pair is not None:
            self.alone.update(finding.alone)
            self.jointly += not finding.alone
            self.violation_sum += finding.pair.gap
            self.violation_max = max(self.violation_max, finding.pair.gap)
            self.not_replayed += finding.replayed is False
        if finding.span is not None:
            self.spanned += 1
            self.span_sum += finding.span
            self.span_max = max(self.span_max, finding.span)
        if finding.decision is not None and finding.fair_decision is not None:
            self._compare(finding.decision, finding.fair_decision, label)
            self.flips += is_flip(finding, self.epsilon)

    def _compare(self, own: Outcome, fair: Outcome, label: Outcome | None) -> None:
        self.decided += 1
        if self.epsilon is None:
            self.decisions[self.outcomes[int(own)]] += 1
            self.fair_decisions[self.outcomes[int(fair)]] += 1
        if label is None:
            return
        self.labeled += 1
        if self.epsilon is None:
            self.labels[self.outcomes[int(label)]] += 1
            self.right += own == label
            self.right_fair += fair == label
        else:
            self.error_sum += abs(own - label)
            self.error_fair_sum += abs(fair - label)

    @property
    def people(self) -> int:
        """Everybody who was asked about."""
        return sum(self.statuses.values()) - self.statuses["not audited"]

    @property
    def ce_rate(self) -> float:
        """The share of people with a counterexample; a lower bound while some are undecided."""
        return _share(self.statuses["unfair"], self.people)

    @property
    def flip_rate(self) -> float:
        """The share of people whose own decision differs from the fair one.

        Regression: whose own score is farther than epsilon from the fair one.
        """
        return _share(self.flips, self.decided)

    @property
    def mean_violation(self) -> float:
        """How far the scores of the farthest pairs lie apart, over people with a counterexample.

        Regression: the mean span of their counterparts' scores.
        """
        return _share(self.violation_sum, self.statuses["unfair"])

    @property
    def mean_violation_over_all(self) -> float:
        """The same, over everybody; who has no counterexample counts as 0."""
        return _share(self.violation_sum, self.people)

    @property
    def accuracy(self) -> float | None:
        """The share of labeled people whom the model decides as labeled."""
        return self._per_label(self.right, regression=False)

    @property
    def fair_accuracy(self) -> float | None:
        """The share of labeled people whom the majority decides as labeled."""
        return self._per_label(self.right_fair, regression=False)

    @property
    def mean_absolute_error(self) -> float | None:
        """How far the model's scores are from the labels on average; regression only."""
        return self._per_label(self.error_sum, regression=True)

    @property
    def fair_mean_absolute_error(self) -> float | None:
        """How far the fair scores are from the labels on average; regression only."""
        return self._per_label(self.error_fair_sum, regression=True)

    def _per_label(self, total: float, *, regression: bool) -> float | None:
        if not self.labeled or regression != (self.epsilon is not None):
            return None
        return total / self.labeled

    @property
    def mean_span(self) -> float | None:
        """How far apart the scores of a person's counterparts are on average; regression only."""
        return None if self.epsilon is None else _share(self.span_sum, self.spanned)

    @property
    def max_span(self) -> float | None:
        """The largest such span; regression only."""
        return None if self.epsilon is None else self.span_max

    @property
    def doubts(self) -> list[str]:
        """What makes one doubt that the schema describes this network, in sentences."""
        doubts = []
        if self.decided >= ENOUGH and len(self.decisions) == 1:
            (name,) = self.decisions
            doubts.append(
                f"everybody is decided {name!r}: is a center or scale missing in the schema, or its column order wrong?"
            )
        if self.accuracy is not None and self.labeled >= ENOUGH:
            name, count = self.labels.most_common(1)[0]
            if self.right <= count:
                doubts.append(
                    f"the model is right no more often than always answering {name!r} ({count / self.labeled:.1%}): check the order of columns and values, centers and scales, and which outcome is the favorable one"
                )
        return doubts

    @property
    def everyone_fair(self) -> bool:
        """Whether everybody in the table was asked about and proved to be treated fairly."""
        return set(+self.statuses) == {"fair"}

    def _outside(self) -> dict[str, dict[str, int]]:
        """List by column how many people are below and above its limits."""
        counts: dict[str, dict[str, int]] = {}
        for one, count in self.outside.items():
            counts.setdefault(one.column, {"below": 0, "above": 0})[one.side] += count
        return counts

    def as_dict(self) -> dict[str, object]:
        """Give all figures by name, as audit.json holds them."""
        return {
            "people": self.people,
            "fair": self.statuses["fair"],
            "unfair": self.statuses["unfair"],
            "undecided": self.statuses["undecided"],
            "not_audited": self.statuses["not audited"],
            "ce_rate": self.ce_rate,
            "flip_rate": self.flip_rate,
            "mean_violation": self.mean_violation,
            "mean_violation_over_all": self.mean_violation_over_all,
            "max_violation": self.violation_max,
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
    """Return whether the fair answer differs from the model's own; regression: by more than epsilon.

    A fair score is a counterpart's score, so nobody proved fair has another one; rounded scores alone
    could differ by more.
    """
    own, fair = finding.decision, finding.fair_decision
    if own is None or fair is None:
        return False
    if epsilon is None:
        return own != fair
    return finding.status != "fair" and abs(own - fair) > epsilon


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
