"""The counterexamples to show: a single changed attribute if possible, the largest gap first."""

import heapq
from dataclasses import dataclass, field

from feta.arrays import Vector
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.verdict.counterexample import Counterexample

# The gap, the negative row (on a tie the first row wins), the finding, the person's id, and the
# audited person.
Entry = tuple[float, int, Finding, str, Vector | None]

# Pairs shown per attribute, and for people who need several changed attributes.
PAIRS_PER_ATTRIBUTE = 3


@dataclass(frozen=True, slots=True, eq=False)
class PairView:
    """A pair to show, with its finding and the person's id in the table."""

    finding: Finding
    pair: Counterexample
    name: str


@dataclass
class TopPairs:
    """The people with the largest gaps, by the attribute that is enough for them."""

    auditor: Auditor
    best: dict[str | None, list[Entry]] = field(default_factory=dict)

    def add(self, finding: Finding, name: str = "", person: Vector | None = None) -> None:
        """Consider one more person; in regression, the pair need not contain that person."""
        if finding.pair is None:
            return
        for attribute in finding.alone or (None,):
            heap = self.best.setdefault(attribute, [])
            heapq.heappush(heap, (finding.pair.gap, -finding.row, finding, name, person))
            if len(heap) > PAIRS_PER_ATTRIBUTE:
                heapq.heappop(heap)

    def pairs(self, *, simplify: bool = True) -> list[PairView]:
        """Return the pairs, attribute by attribute, with at most one pair per person.

        `simplify` runs the engine again for pairs that differ in one attribute only. Without it,
        or if the engine is not done in time, a pair is the person's worst one.
        """
        views: dict[int, PairView] = {}
        for attribute in [*self.auditor.models_by_attribute, None]:
            for _, _, finding, name, person in sorted(
                self.best.get(attribute, []), reverse=True, key=_gap_and_row
            ):
                if finding.row not in views and finding.pair is not None:
                    changed = attribute if simplify else None
                    simplest = self.auditor.simplest_pair(finding, changed, person)
                    views[finding.row] = PairView(finding, simplest or finding.pair, name)
        return list(views.values())


def _gap_and_row(entry: Entry) -> tuple[float, int]:
    return entry[:2]
