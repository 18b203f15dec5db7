"""Clearest: the few pairs worth showing; one changed attribute if that is enough, widest gap first."""

import heapq
from dataclasses import dataclass, field

from feta.arrays import Vector
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.verdict.counterexample import Counterexample

# How wide the gap is, the row (ties: the first one), the finding, its name, and who was asked about.
Entry = tuple[float, int, Finding, str, Vector | None]

# Pairs kept for each attribute, and for people who need several attributes changed.
EACH = 3


@dataclass(frozen=True, slots=True, eq=False)
class PairView:
    """A pair to show, whose it is, and what the user calls them."""

    finding: Finding
    pair: Counterexample
    name: str


@dataclass
class TopPairs:
    """Keeps the people with the widest gaps, by the attribute that is enough for them."""

    auditor: Auditor
    best: dict[str | None, list[Entry]] = field(default_factory=dict)

    def add(self, finding: Finding, name: str = "", person: Vector | None = None) -> None:
        """Look at one more person; regression: a pair need not hold the person asked about."""
        if finding.pair is None:
            return
        for attribute in finding.alone or (None,):
            heap = self.best.setdefault(attribute, [])
            heapq.heappush(heap, (finding.pair.gap, -finding.row, finding, name, person))
            if len(heap) > EACH:
                heapq.heappop(heap)

    def pairs(self, *, simplify: bool = True) -> list[PairView]:
        """Give the pairs, attribute by attribute; nobody is shown twice.

        Unless simplified, which asks the engine again, they are the farthest ones.
        """
        shown: dict[int, PairView] = {}
        for attribute in [*self.auditor.singles, None]:
            for _, _, finding, name, person in sorted(
                self.best.get(attribute, []), reverse=True, key=_order
            ):
                if finding.row not in shown and finding.pair is not None:
                    wanted = attribute if simplify else None
                    simplest = self.auditor.simplest(finding, wanted, person)  # None: not in time
                    shown[finding.row] = PairView(finding, simplest or finding.pair, name)
        return list(shown.values())


def _order(entry: Entry) -> tuple[float, int]:
    return entry[:2]
