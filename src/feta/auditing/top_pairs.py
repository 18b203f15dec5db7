"""The counterexamples to show: a single changed attribute if possible, the largest gap first."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Self

import numpy as np

from feta.arrays import Matrix, Vector
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.record import record_of
from feta.model import Model
from feta.space.attribute import Value
from feta.space.feature_space import FeatureSpace
from feta.verdict.counterexample import Counterexample

# Pairs shown per attribute, and for people who need several changed attributes.
PAIRS_PER_ATTRIBUTE = 3


@dataclass(frozen=True, slots=True, eq=False)
class TopEntry:
    """A person with a counterexample, and the person's id in the table."""

    finding: Finding
    rank: tuple[float, int]  # the negative gap and the row: on a tie the first row wins
    person: Vector  # in regression, the pair need not contain that person
    name: str


# By the attribute that is enough; None: only several together are.
Entries = dict[str | None, list[TopEntry]]


@dataclass(frozen=True, slots=True, eq=False)
class PairView:
    """A pair to show, with its finding, the person's id in the table, and both records."""

    finding: Finding
    pair: Counterexample
    name: str
    before: dict[str, Value]
    after: dict[str, Value]
    changed: tuple[str, ...]  # the attributes in which the two people differ

    @classmethod
    def of(
        cls, finding: Finding, pair: Counterexample, name: str, *, space: FeatureSpace
    ) -> "PairView":
        """Decode the two people of a pair."""
        before, after = record_of(space, pair.person), record_of(space, pair.counterpart)
        changed = [attribute for attribute in before if before[attribute] != after[attribute]]
        return cls(finding, pair, name, before, after, tuple(changed))


@dataclass
class TopPairs:
    """The people with the largest gaps, by the attribute that is enough for them."""

    attributes: tuple[str, ...]  # the sensitive ones
    best: Entries = field(default_factory=dict)  # the largest gap first

    @classmethod
    def of(cls, model: Model) -> Self:
        """Create the empty list for a model."""
        return cls(tuple(attribute.name for attribute in model.space.sensitive))

    def add(self, findings: Sequence[Finding], people: Matrix, names: Sequence[str]) -> None:
        """Consider more people."""
        entries: Entries = {}
        for finding, person, name in zip(findings, people, names, strict=True):
            if finding.pair is not None:
                rank = (-finding.pair.gap, finding.row)
                entry = TopEntry(finding, rank, person, name)
                for attribute in finding.alone or (None,):
                    entries.setdefault(attribute, []).append(entry)
        self.best = _best(self.best, entries)

    def merged(self, other: Self) -> Self:
        """Return the best people of both parts of a table."""
        return type(self)(self.attributes, _best(self.best, other.best))

    def pairs(self, auditor: Auditor, *, simplify: bool = True) -> list[PairView]:
        """Return the pairs, attribute by attribute, with at most one pair per person.

        `simplify` runs the engine again for pairs that differ in one attribute only. Without it,
        or if the engine is not done in time, a pair is the person's worst one.
        """
        views: dict[int, PairView] = {}
        for attribute in [*self.attributes, None]:
            entries = [
                entry for entry in self.best.get(attribute, []) if entry.finding.row not in views
            ]
            simplest: Sequence[Counterexample | None] = [None] * len(entries)
            if simplify and attribute is not None and entries:
                people = np.stack([entry.person for entry in entries])
                simplest = auditor.simplest_pairs(attribute, people)
            for entry, simple in zip(entries, simplest, strict=True):
                pair = simple or entry.finding.pair
                assert pair is not None  # only people with a pair are entries
                views[entry.finding.row] = PairView.of(
                    entry.finding, pair, entry.name, space=auditor.model.space
                )
        return list(views.values())


def _best(entries: Entries, more: Entries) -> Entries:
    """Return the people with the largest gaps per attribute."""
    best = dict(entries)
    for attribute, found in more.items():
        candidates = best.get(attribute, []) + found
        best[attribute] = sorted(candidates, key=attrgetter("rank"))[:PAIRS_PER_ATTRIBUTE]
    return best
