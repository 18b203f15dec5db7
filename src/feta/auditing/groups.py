"""Results by group: by sensitive attribute and by intersection; people are added in blocks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import NamedTuple, Self

from feta.arrays import Matrix
from feta.auditing.finding import Finding
from feta.auditing.summary import NOTHING, is_flip
from feta.metrics.bands import Bands
from feta.model import Model
from feta.rule import Outcome


class DecisionCase(NamedTuple):
    """The label of a person, if known, the model's decision and the fair one, by index."""

    label: int | None
    model: int
    fair: int


@dataclass
class Group:
    """Counts of the people of a group."""

    people: int = 0
    unfair: int = 0
    undecided: int = 0
    decided: int = 0  # people whose decision and fair decision are both known
    flips: int = 0
    score_sum: Fraction = NOTHING  # regression
    fair_score_sum: Fraction = NOTHING  # regression
    decisions: Counter[int] = field(default_factory=Counter)  # of the model, by index
    fair_decisions: Counter[int] = field(default_factory=Counter)  # by index
    labeled: int = 0
    right: int = 0  # decisions of the model that equal the label
    right_fair: int = 0  # fair decisions that equal the label
    cases: Counter[DecisionCase] = field(default_factory=Counter)

    def add(
        self, finding: Finding, label: Outcome | None, epsilon: float | None, *, people: int = 1
    ) -> None:
        """Add people with the same results; `epsilon` is the tolerance of a regression."""
        self.people += people
        self.unfair += people * (finding.status == "unfair")
        self.undecided += people * (finding.status == "undecided")
        decision, fair = finding.decision, finding.fair_decision
        if decision is None or fair is None:
            return
        self.decided += people
        self.flips += people * is_flip(finding, epsilon)
        if epsilon is not None:
            self.score_sum += people * Fraction(decision)
            self.fair_score_sum += people * Fraction(fair)
            return
        self.decisions[int(decision)] += people
        self.fair_decisions[int(fair)] += people
        self.labeled += people * (label is not None)
        self.right += people * (decision == label)
        self.right_fair += people * (fair == label)
        target = None if label is None else int(label)
        self.cases[DecisionCase(target, int(decision), int(fair))] += people

    def merged(self, other: Self) -> Self:
        """Return the counts of the people of both groups."""
        names = [group_field.name for group_field in fields(self)]
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in names))

    def share(self, part: Fraction | int) -> float:
        """Return the share of the people with both decisions known."""
        return float(part / self.decided) if self.decided else 0.0


@dataclass
class Groups:
    """All people, by each sensitive attribute and by the intersection of all of them."""

    model: Model
    bands: tuple[Bands, ...]
    by_attribute: dict[str, dict[str, Group]]  # in the order of the values
    by_intersection: dict[tuple[str, ...], Group] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model) -> Self:
        """Create the empty groups of a model."""
        all_bands = tuple(Bands.of(attribute) for attribute in model.space.sensitive)
        return cls(
            model,
            all_bands,
            {bands.attribute.name: {name: Group() for name in bands.names} for bands in all_bands},
        )

    def add(
        self, people: Matrix, findings: Sequence[Finding], labels: Sequence[Outcome | None]
    ) -> None:
        """Add audited people with their labels."""
        space, epsilon = self.model.space, self.model.rule.tolerance
        columns = [
            bands.indices(people[:, space.columns_of(bands.attribute)]).tolist()
            for bands in self.bands
        ]
        # Many people of a block are in the same groups, with the same results.
        first: dict[tuple[object, ...], tuple[Finding, Outcome | None, tuple[int, ...]]] = {}
        alike = Counter[tuple[object, ...]]()
        rows = zip(findings, labels, zip(*columns, strict=True), strict=True)
        for finding, label, indices in rows:
            person = (indices, finding.status, finding.decision, finding.fair_decision, label)
            alike[person] += 1
            first.setdefault(person, (finding, label, indices))
        for key, (finding, label, indices) in first.items():
            pairs = zip(self.bands, indices, strict=True)
            named = [(bands.attribute.name, bands.names[index]) for bands, index in pairs]
            names = tuple(name for _, name in named)
            groups = [self.by_attribute[attribute][name] for attribute, name in named]
            for group in (*groups, self.by_intersection.setdefault(names, Group())):
                group.add(finding, label, epsilon, people=alike[key])

    def merged(self, other: Self) -> Self:
        """Return the groups of both parts of a table."""
        by_attribute = {
            attribute: {
                name: group.merged(other.by_attribute[attribute][name])
                for name, group in groups.items()
            }
            for attribute, groups in self.by_attribute.items()
        }
        by_intersection = dict(self.by_intersection)
        for names, group in other.by_intersection.items():
            by_intersection[names] = by_intersection.get(names, Group()).merged(group)
        return type(self)(self.model, self.bands, by_attribute, by_intersection)

    def present(self, attribute: str) -> list[tuple[str, Group]]:
        """Return the groups of an attribute that have at least one person."""
        groups = self.by_attribute[attribute]
        return [(name, group) for name, group in groups.items() if group.people]
