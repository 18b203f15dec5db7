"""Results by group: by sensitive attribute and by intersection; people are added one by one."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from feta.arrays import Vector
from feta.auditing.finding import Finding
from feta.auditing.summary import is_flip
from feta.model import Model
from feta.report.bands import Bands
from feta.rule import Outcome, Tolerance


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
    score_sum: float = 0.0  # regression
    fair_score_sum: float = 0.0  # regression
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
            self.score_sum += decision
            self.fair_score_sum += fair
            return
        target = None if label is None else int(label)
        self.cases[DecisionCase(target, int(decision), int(fair))] += 1

    @property
    def decisions(self) -> Counter[int]:
        """The model's decisions, by index."""
        return self._count(lambda case: case.model)

    @property
    def fair_decisions(self) -> Counter[int]:
        """The fair decisions, by index."""
        return self._count(lambda case: case.fair)

    @property
    def labeled(self) -> int:
        """The number of people with a label."""
        return sum(n for case, n in self.cases.items() if case.label is not None)

    @property
    def right(self) -> int:
        """The number of people for whom the model's decision equals the label."""
        return sum(n for case, n in self.cases.items() if case.model == case.label)

    @property
    def right_fair(self) -> int:
        """The number of people for whom the fair decision equals the label."""
        return sum(n for case, n in self.cases.items() if case.fair == case.label)

    def _count(self, decision: Callable[[DecisionCase], int]) -> Counter[int]:
        counts: Counter[int] = Counter()
        for case, n in self.cases.items():
            counts[decision(case)] += n
        return counts

    def share(self, part: float) -> float:
        """Return the share of the people with both decisions known."""
        return part / self.decided if self.decided else 0.0


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

    def add(self, person: Vector, finding: Finding, label: Outcome | None = None) -> None:
        """Add one audited person."""
        space, rule = self.model.space, self.model.rule
        epsilon = rule.epsilon if isinstance(rule, Tolerance) else None
        names = tuple(bands.name(person[space.columns_of(bands.attribute)]) for bands in self.bands)
        for bands, name in zip(self.bands, names, strict=True):
            self.by_attribute[bands.attribute.name][name].add(finding, label, epsilon)
        self.by_intersection.setdefault(names, Group()).add(finding, label, epsilon)

    def present(self, attribute: str) -> list[tuple[str, Group]]:
        """Return the groups of an attribute that have at least one person."""
        groups = self.by_attribute[attribute]
        return [(name, group) for name, group in groups.items() if group.people]
