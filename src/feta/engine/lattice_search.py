"""Searches of a kernel for one query about one person."""

import numpy as np

from feta.engine.budget_tracker import kernel_limits
from feta.engine.enumeration import solve_by_enumeration
from feta.engine.query_state import QueryState
from feta.rule.comparator import UNDECIDED
from feta.scorer.kernel import KernelSearch, LatticeKernel, Limits, References
from feta.scorer.protocol import Objective
from feta.verdict.verdict import Fair, Reason, Unknown, Verdict


class LatticeSearch:
    """The kernel's searches for one query."""

    def __init__(self, kernel: LatticeKernel, state: QueryState) -> None:
        self.kernel = kernel
        self.state = state
        self.model = state.model
        self.people = state.query.person[None, :]

    def any(self) -> Verdict:
        """Find a counterpart with a different decision, or prove that there is none."""
        state = self.state
        if self._tied:
            return solve_by_enumeration(state.query, state.budget_tracker.budget, state.engine)
        result = self.find()
        if result.found[0]:
            return state.unfair(int(result.assignment_ids[0]))
        if not result.finished[0]:
            return self.spent(None)
        return state.decide_rest(
            result.candidates(0), runtime_safe=bool(result.runtime_safe[0]) and not result.undecided
        )

    def worst(self) -> Verdict:
        """Find the counterexample with the largest gap; the first one among equals."""
        objective = self.state.objective
        return self.worst_of(self.find_worst(objective, objective.level, approximate=False))

    def worst_of(self, result: KernelSearch, row: int = 0) -> Verdict:
        """Return the verdict for the candidates in one row of a search."""
        state, candidates = self.state, result.candidates(row)
        if not result.finished[row]:
            return self.spent(int(candidates[0]) if len(candidates) else None)
        if len(candidates):  # otherwise no counterpart reaches the level
            verdict = state.worst_of(candidates, runtime_safe=False)
            if not isinstance(verdict, Fair):
                return verdict
        if self._tied:
            return state.not_separable()
        # Everybody gets the same decision; a second search tells whether the runtime agrees.
        again = self.find()
        if again.found[0]:
            return state.unfair(int(again.assignment_ids[0]))
        runtime_safe = again.finished[0] and again.runtime_safe[0] and not again.undecided
        return state.fair(runtime_safe=bool(runtime_safe))

    @property
    def _tied(self) -> bool:
        """Whether the person's own decision is open: a smooth score may tie with the threshold."""
        return self.state.span is None and bool((self.state.decision == UNDECIDED).any())

    def find(self) -> KernelSearch:
        """Find a counterpart with a different decision; regression: one outside the band."""
        span = self.state.span
        if span is not None:
            band = span.band
            center, half = np.array([float(band.center)]), band.half
            references = References(np.zeros(1, dtype=np.int64), center, half)
        else:
            references = References(self.state.decision.astype(np.int64), np.zeros(1))
        result = self.kernel.find(self.people, references, self._limits)
        self._charge(result)
        return result

    def find_worst(self, objective: Objective, floor: float, *, approximate: bool) -> KernelSearch:
        """Find the counterparts that may have the largest objective, or one that nearly has it."""
        result = self.kernel.worst(
            self.people,
            [objective],
            np.array([floor]),
            approximate=approximate,
            limits=self._limits,
            threads=1,
        )
        self._charge(result)
        return result

    def spent(self, assignment_id: int | None) -> Unknown:
        """Return the verdict for a spent budget, and which limit was reached."""
        budget_tracker = self.state.budget_tracker
        in_time = budget_tracker.seconds_left()
        budget_tracker.reason = Reason.OUT_OF_NODES if in_time else Reason.OUT_OF_TIME
        return self.state.unknown(assignment_id)

    def _charge(self, result: KernelSearch) -> None:
        """Count the cost of a search; several searches of a regression query share its budget."""
        if self.state.span is not None:
            self.state.budget_tracker.evaluations += int(result.cost[0])

    @property
    def _limits(self) -> Limits:
        budget_tracker = self.state.budget_tracker
        limits = kernel_limits(budget_tracker.budget, budget_tracker.deadline)
        if not limits.evaluations:
            return limits
        rest = max(1, limits.evaluations - budget_tracker.evaluations)
        return Limits(limits.seconds, rest)
