"""Search along one real-valued sensitive attribute, in the native kernel.

The kernel follows the score along that attribute, for those combinations of the other attributes
that matter, and bounds what lies between its points. A counterpart that it finds is replayed
exactly. If it finds none, branch and bound must prove fairness.
"""

from feta.engine.branch_and_bound import MAX_CELLS, BranchAndBound
from feta.engine.budget_tracker import kernel_limits
from feta.engine.query_state import QueryState
from feta.model import Model
from feta.query import WorstAt
from feta.rounding import DIFFERENCE, OPTIMAL
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Reason, Unfair, Unknown, Verdict


class RealAxisSearch:
    """A model passed to a compiled kernel, with its real-valued attribute as a line."""

    def __init__(self, model: Model, *, simd: bool) -> None:
        self.line = model.restricted.line(source_error=model.runtime_error, simd=simd)

    def solve(self, state: QueryState) -> Verdict:
        """Answer one query."""
        pair, optimal = self._find_worst(state)
        if pair is not None:
            optimal = isinstance(state.query, WorstAt) and optimal
            return Unfair(pair, optimal=optimal, effort=state.budget_tracker.effort())
        verdict = BranchAndBound(state, MAX_CELLS).resolve()
        if verdict is not None:
            return verdict
        return Unknown(
            state.budget_tracker.reason or Reason.NOT_REPRODUCED,
            effort=state.budget_tracker.effort(),
        )

    def _find_worst(self, state: QueryState) -> tuple[Counterexample | None, bool]:
        """Replay the worst counterpart in each direction; return also whether it is optimal."""
        reference = float(state.reference.floats()[0, 0])
        best: Counterexample | None = None
        ceilings, finished = [], True
        tracker = state.budget_tracker
        for sign in state.objective.directions[:, 0]:
            limits = kernel_limits(tracker.budget, tracker.deadline)
            point = self.line.follow(state.query.person, sign=float(sign), limits=limits)
            finished = finished and point.finished
            ceilings.append(point.ceiling)
            if point.counterpart is not None:
                best = state.witness(point.counterpart) or best
            if state.span is None:
                ceilings.append(-sign * reference)
        # An upper bound on the gap; the sum itself is rounded as well.
        ceiling = sum(ceilings) + DIFFERENCE * sum(map(abs, ceilings))
        optimal = finished and best is not None and ceiling <= best.gap * (1 + OPTIMAL)
        return best, bool(optimal)
