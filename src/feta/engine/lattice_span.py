"""Search of the native kernel for the lowest and the highest score, for a tolerance."""

import numpy as np

from feta.engine.lattice_search import LatticeSearch
from feta.engine.span import HIGHEST, LOWEST, Span
from feta.scorer.kernel import KernelSearch
from feta.verdict.verdict import Fair, Unfair, Unknown, Verdict


class SpanSearch:
    """One query about a tolerance.

    Scores close to the lowest and the highest one are found fast, even if many are equal, and they
    usually decide. The exact ends are needed for the worst pair, and where the span differs from
    the tolerance only by rounding errors.
    """

    def __init__(self, search: LatticeSearch, span: Span) -> None:
        self.search, self.state, self.span = search, search.state, span

    def solve(self, *, worst: bool) -> Verdict:
        """Find two scores too far apart, the worst two if `worst`, or prove that there are none."""
        span = self.span
        spent = self._widen_approximately()
        if spent is None and span.pair() is None:
            verdict = self._prove_band()
            if verdict is not None:
                return verdict
        if spent is None and (worst or span.pair() is None):
            spent = self._widen()
        pair = span.pair()
        if pair is not None and (spent is None or not worst):
            return Unfair(pair, optimal=worst, effort=self.state.budget_tracker.effort())
        if spent is not None:
            return spent
        # Both ends are known, so the person is fair; the band may prove it for the runtime, too.
        verdict = self._prove_band()
        if isinstance(verdict, Fair):
            return verdict
        within = span.is_within()
        return self.state.fair(runtime_safe=False) if within else self.state.not_separable()

    def _widen_approximately(self) -> Unknown | None:
        """Widen the span nearly to both ends; return Unknown if the budget is spent."""
        for objective in (LOWEST, HIGHEST):
            # No floor: with the known score as floor, all equal ones would be scored.
            result = self.search.find_worst(objective, -np.inf, approximate=True)
            assignment_ids = result.candidates(0)
            if not result.finished[0]:
                return self._spent(result)
            if len(assignment_ids):
                self.state.witness(int(assignment_ids[0]))
        return None

    def _widen(self) -> Unknown | None:
        """Widen the span to both ends; among equals the first, whoever the person is."""
        for objective in (LOWEST, HIGHEST):
            # The floor is just below the known score, so that its counterpart is found as well.
            low, high = self.span.scores.floats()[:, 0]
            floor = float(np.nextafter(-low if objective is LOWEST else high, -np.inf))
            result = self.search.find_worst(objective, floor, approximate=False)
            assignment_ids = result.candidates(0)
            if not result.finished[0]:
                return self._spent(result)
            optimum = self.state.find_worst(assignment_ids, objective)
            if optimum is None:
                return self.state.unknown(int(assignment_ids[0]))
            self.span.set_optimum(objective, self.state.counterpart(optimum.assignment_id))
        return None

    def _spent(self, result: KernelSearch) -> Unknown:
        assignment_ids = result.candidates(0)
        return self.search.spent(int(assignment_ids[0]) if len(assignment_ids) else None)

    def _prove_band(self) -> Fair | Unknown | None:
        """Prove that all scores lie in the band around the span; None if one is outside."""
        result = self.search.find()
        if result.found[0]:
            self.state.witness(int(result.assignment_ids[0]))
            return None
        if not result.finished[0]:
            return self.search.spent(None)
        compared = self.state.compare(result.candidates(0))
        if compared is None:
            return self.state.unknown()
        if len(compared.differs):
            return None
        if not compared.decided:
            return self.state.not_separable()
        return self.state.fair(runtime_safe=bool(result.runtime_safe[0]) and not result.undecided)
