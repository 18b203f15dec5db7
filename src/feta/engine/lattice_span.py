"""SpanSearch: the lowest and the highest score of a person's counterparts, by the compiled kernel."""

from typing import Any, Protocol

import numpy as np

from feta.arrays import Counts
from feta.engine.query_state import QueryState
from feta.engine.span import HIGHEST, LOWEST, Span
from feta.rule import Objective
from feta.verdict.verdict import Fair, Unfair, Unknown, Verdict


class KernelSearch(Protocol):
    """What the kernel can be asked about one person; it returns its answers by name."""

    state: QueryState

    def farthest(self, goal: Objective, floor: float, *, nearly: bool) -> dict[str, Any]:
        """Find the counterparts that may have the largest objective, or nearly so."""
        ...

    def find(self) -> dict[str, Any]:
        """Find a counterpart that is treated apart, or lies outside the band."""
        ...

    def spent(self, number: int | None) -> Unknown:
        """Return that the budget ran out."""
        ...


class SpanSearch:
    """One question about a tolerance.

    Nearly the lowest and nearly the highest are found fast also where many are equal, and mostly they
    decide. The ends themselves are needed for the worst pair, and where the span differs from the
    tolerance by rounding errors only.
    """

    def __init__(self, search: KernelSearch, span: Span) -> None:
        self.search, self.state, self.span = search, search.state, span

    def solve(self, *, worst: bool) -> Verdict:
        """Find two counterparts too far apart, the worst pair if asked for, or prove that all are near."""
        span = self.span
        spent = self._widen_nearly()
        if spent is None and span.pair() is None:
            proved = self._in_band()
            if proved is not None:
                return proved
        if spent is None and (worst or span.pair() is None):
            spent = self._widen()
        found = span.pair()
        if found is not None and (spent is None or not worst):
            return Unfair(found, optimal=worst, effort=self.state.budget_tracker.effort())
        if spent is not None:
            return spent
        proved = self._in_band()  # the ends are known; whether the runtime keeps to them is not
        return proved if isinstance(proved, Fair) else self.state.fair(runtime_safe=False)

    def _widen_nearly(self) -> Unknown | None:
        """Widen the span nearly to both ends; Unknown where the budget is spent."""
        for goal in (LOWEST, HIGHEST):
            # No floor: at the one known, all of its equals would be looked at.
            told = self.search.farthest(goal, -np.inf, nearly=True)
            assignment_ids = open_numbers(told)
            if not told["finished"][0]:
                return self.search.spent(int(assignment_ids[0]) if len(assignment_ids) else None)
            if len(assignment_ids):
                self.state.witness(int(assignment_ids[0]))
        return None

    def _widen(self) -> Unknown | None:
        """Widen the span to both ends, the first of equals, whoever asks."""
        for goal in (LOWEST, HIGHEST):
            # The one known so far is among them.
            low, high = self.span.scores.floats()[:, 0]
            floor = float(np.nextafter(-low if goal is LOWEST else high, -np.inf))
            told = self.search.farthest(goal, floor, nearly=False)
            assignment_ids = open_numbers(told)
            if not told["finished"][0]:
                return self.search.spent(int(assignment_ids[0]) if len(assignment_ids) else None)
            best = self.state.farthest(assignment_ids, goal)
            if best is None:
                return self.state.unknown(int(assignment_ids[0]))
            self.span.reach(goal, self.state.counterpart(best))
        return None

    def _in_band(self) -> Fair | Unknown | None:
        """Prove that all lie in the band around the span; None where somebody is beyond it."""
        told = self.search.find()
        if told["found"][0]:
            self.state.witness(int(told["number"][0]))
            return None
        if not told["finished"][0]:
            return self.search.spent(None)
        differs = self.state.differs(open_numbers(told))
        if differs is None:
            return self.state.unknown()
        if len(differs):
            return None
        return self.state.fair(runtime_safe=bool(told["safe"][0]) and not told["open"])


def open_numbers(told: dict[str, Any]) -> Counts:
    """Return the counterparts that the kernel hands back, ascending: open ones, or the one found."""
    assignment_ids = told["open"].get(0)
    if assignment_ids is None:
        return told["number"][:1].astype(np.int64) if told["found"][0] else np.zeros(0, np.int64)
    return np.sort(assignment_ids.astype(np.int64))
