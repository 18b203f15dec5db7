"""Groups: how people fare by sensitive attribute and by intersection; people are added one by one."""

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


class Judged(NamedTuple):
    """What somebody should get, if that is known, and gets; decisions by number."""

    label: int | None
    own: int
    fair: int


@dataclass
class Group:
    """Counts of the people who have something in common."""

    people: int = 0
    unfair: int = 0
    undecided: int = 0
    decided: int = 0  # people whose own and fair answers are both known
    flips: int = 0
    own_sum: float = 0.0  # regression: of the scores
    fair_sum: float = 0.0
    judged: Counter[Judged] = field(default_factory=Counter)

    def add(self, finding: Finding, label: Outcome | None, epsilon: float | None) -> None:
        """Take one more person; `epsilon` is the tolerance of a regression."""
        self.people += 1
        self.unfair += finding.status == "unfair"
        self.undecided += finding.status == "undecided"
        own, fair = finding.decision, finding.fair_decision
        if own is None or fair is None:
            return
        self.decided += 1
        self.flips += is_flip(finding, epsilon)
        if epsilon is not None:
            self.own_sum += own
            self.fair_sum += fair
            return
        self.judged[Judged(None if label is None else int(label), int(own), int(fair))] += 1

    @property
    def own(self) -> Counter[int]:
        """The model's own decisions, by number."""
        return self._counted(lambda one: one.own)

    @property
    def fair(self) -> Counter[int]:
        """The fair decisions, by number."""
        return self._counted(lambda one: one.fair)

    @property
    def labeled(self) -> int:
        """People of whom it is known what they should get."""
        return sum(n for one, n in self.judged.items() if one.label is not None)

    @property
    def right(self) -> int:
        """People who get what they should."""
        return sum(n for one, n in self.judged.items() if one.own == one.label)

    @property
    def right_fair(self) -> int:
        """People who would get what they should by the fair decision."""
        return sum(n for one, n in self.judged.items() if one.fair == one.label)

    def _counted(self, decision: Callable[[Judged], int]) -> Counter[int]:
        counts: Counter[int] = Counter()
        for one, n in self.judged.items():
            counts[decision(one)] += n
        return counts

    def share(self, part: float) -> float:
        """Give the share of the people with both answers."""
        return part / self.decided if self.decided else 0.0


@dataclass
class Groups:
    """Everybody, by each sensitive attribute and by all of them together."""

    model: Model
    bands: tuple[Bands, ...]
    by_attribute: dict[str, dict[str, Group]]  # in the order of the values
    by_intersection: dict[tuple[str, ...], Group] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model) -> Self:
        """Start with nobody."""
        bands = tuple(Bands.of(one) for one in model.space.sensitive)
        return cls(model, bands, {one.attribute.name: _empty(one) for one in bands})

    def add(self, person: Vector, finding: Finding, label: Outcome | None = None) -> None:
        """Take one more person who was asked about."""
        space, rule = self.model.space, self.model.rule
        epsilon = rule.epsilon if isinstance(rule, Tolerance) else None
        names = tuple(one.name(person[space.columns_of(one.attribute)]) for one in self.bands)
        for bands, name in zip(self.bands, names, strict=True):
            self.by_attribute[bands.attribute.name][name].add(finding, label, epsilon)
        self.by_intersection.setdefault(names, Group()).add(finding, label, epsilon)

    def present(self, attribute: str) -> list[tuple[str, Group]]:
        """Give an attribute's groups that have somebody in them."""
        return [(name, one) for name, one in self.by_attribute[attribute].items() if one.people]


def _empty(bands: Bands) -> dict[str, Group]:
    return {name: Group() for name in bands.names}
