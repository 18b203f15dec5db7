"""Summary: what an audit of many people comes to."""

from collections import Counter
from dataclasses import dataclass, field

from feta.audit.finding import Finding


@dataclass
class Summary:
    """Counts and sums over findings; people are added one by one, so any number fits."""

    attributes: tuple[str, ...]  # the sensitive ones
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

    def add(self, finding: Finding, label: bool | None = None) -> None:
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
        if finding.fair_decision is not None:
            self.decided += 1
            self.flips += finding.decision != finding.fair_decision
            if label is not None:
                self.labeled += 1
                self.right += finding.decision == label
                self.right_fair += finding.fair_decision == label

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
        """The share of people whose own decision differs from the fair one."""
        return _share(self.flips, self.decided)

    @property
    def mean_violation(self) -> float:
        """How far the scores of the farthest pairs lie apart, over people with a counterexample."""
        return _share(self.violation_sum, self.statuses["unfair"])

    @property
    def mean_violation_over_all(self) -> float:
        """The same, over everybody; who has no counterexample counts as 0."""
        return _share(self.violation_sum, self.people)

    @property
    def accuracy(self) -> float | None:
        """The share of labeled people whom the model decides as labeled."""
        return _share(self.right, self.labeled) if self.labeled else None

    @property
    def fair_accuracy(self) -> float | None:
        """The share of labeled people whom the majority decides as labeled."""
        return _share(self.right_fair, self.labeled) if self.labeled else None

    @property
    def everyone_fair(self) -> bool:
        """Whether everybody in the table was asked about and proved to be treated fairly."""
        return set(+self.statuses) == {"fair"}

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
            "accuracy": self.accuracy,
            "fair_accuracy": self.fair_accuracy,
        }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
