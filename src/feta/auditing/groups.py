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

    def add(self, finding: Finding, label: Outcome | None, epsilon: float | None) -> None:
        """Add one person; `epsilon` is the tolerance of a regression."""
        self.people += 1
        self.unfair += finding.status == "unfair"
        self.undecided += finding.status == "undecided"
        decision, fair = finding.decision, finding.fair_decision
        if decision is None or fair is None:
            return
        self.decided += 1
        self.flips += is_flip(finding, epsilon)
        if epsilon is not None:
            self.score_sum += Fraction(decision)
            self.fair_score_sum += Fraction(fair)
            return
        self.decisions[int(decision)] += 1
        self.fair_decisions[int(fair)] += 1
        self.labeled += label is not None
        self.right += decision == label
        self.right_fair += fair == label
        target = None if label is None else int(label)
        self.cases[DecisionCase(target, int(decision), int(fair))] += 1

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
        for finding, label, indices in zip(
            findings, labels, zip(*columns, strict=True), strict=True
        ):
            names = []
            for bands, index in zip(self.bands, indices, strict=True):
                names.append(bands.names[index])
                group = self.by_attribute[bands.attribute.name][names[-1]]
                group.add(finding, label, epsilon)
            self.by_intersection.setdefault(tuple(names), Group()).add(finding, label, epsilon)

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
