"""Search of the native kernel for one query about one person."""

from typing import Any

import numpy as np

from feta.arrays import Counts
from feta.engine.budget_tracker import kernel_limits
from feta.engine.lattice_kernel import LatticeKernel
from feta.engine.query_state import QueryState
from feta.rule import Tolerance
from feta.scorer.protocol import Objective
from feta.verdict.verdict import Fair, Reason, Unknown, Verdict


class LatticeSearch:
    """The kernel's searches for one query; the kernel returns its results by name."""

    def __init__(self, kernel: LatticeKernel, state: QueryState) -> None:
        self.kernel = kernel
        self.state = state
        self.model = state.model
        self.constants = kernel.constants(state.query.person[None, :])

    def any(self) -> Verdict:
        """Find a counterpart with a different decision, or prove that there is none."""
        state = self.state
        result = self.find()
        if result["found"][0]:
            return state.unfair(int(result["number"][0]))
        if not result["finished"][0]:
            return self.spent(None)
        differs = state.differs(returned_ids(result))
        if differs is None:
            return state.unknown()
        if len(differs):
            return state.unfair(int(differs[0]))
        return state.fair(runtime_safe=bool(result["safe"][0]) and not result["open"])

    def worst(self) -> Verdict:
        """Find the counterexample with the largest gap; the first one among equals."""
        state = self.state
        result = self.find_worst(state.objective, state.objective.level, approximate=False)
        assignment_ids = returned_ids(result)
        if not result["finished"][0]:
            return self.spent(int(assignment_ids[0]) if len(assignment_ids) else None)
        if len(assignment_ids):  # otherwise no counterpart reaches the level
            worst = state.find_worst(assignment_ids)
            if worst is None:
                return state.unknown(int(assignment_ids[0]))
            verdict = state.worst(worst, runtime_safe=False)
            if not isinstance(verdict, Fair):
                return verdict
        # Everybody gets the same decision; a second search tells whether the runtime agrees.
        result = self.find()
        if result["found"][0]:
            return state.unfair(int(result["number"][0]))
        runtime_safe = result["finished"][0] and result["safe"][0] and not result["open"]
        return state.fair(runtime_safe=bool(runtime_safe))

    def find(self) -> dict[str, Any]:
        """Find a counterpart with a different decision; regression: one outside the band."""
        rule = self.model.rule
        reference, center, half = 0, 0.0, 0.0
        if isinstance(rule, Tolerance):
            assert self.state.span is not None
            band = rule.comparator(self.state.span.scores)
            center, half = float(band.center), band.half
        else:
            rows = self.model.points(self.state.query.person[None, :])
            reference = int(self.model.resolve(rows, rule).decisions[0])
        result: dict[str, Any] = self.kernel.native.find(
            *self.constants,
            np.array([reference], dtype=np.int32),
            np.array([center]),
            half,
            *self._limits,
            self.kernel.nodes,
        )
        self._charge(result)
        return result

    def find_worst(
        self, objective: Objective, floor: float, *, approximate: bool
    ) -> dict[str, Any]:
        """Find the counterparts that may have the largest objective, or one that nearly has it."""
        offsets = np.broadcast_to(objective.offsets.floats(), len(objective.directions))
        result: dict[str, Any] = self.kernel.native.worst(
            *self.constants,
            np.ascontiguousarray(objective.directions)[None],
            np.ascontiguousarray(offsets)[None],
            np.zeros(1, dtype=np.int32),
            np.array([floor]),
            approximate,
            objective.least,
            *self._limits,
            1,
        )
        self._charge(result)
        return result

    def spent(self, assignment_id: int | None) -> Unknown:
        """Return the verdict for a spent budget, and which limit was reached."""
        budget_tracker = self.state.budget_tracker
        in_time = budget_tracker.seconds_left()
        budget_tracker.reason = Reason.OUT_OF_NODES if in_time else Reason.OUT_OF_TIME
        return self.state.unknown(assignment_id)

    def _charge(self, result: dict[str, Any]) -> None:
        """Count the cost of a search; several searches of a regression query share its budget."""
        if self.state.span is not None:
            cost = int(result["bounded"][0]) + int(result["scored"][0])
            self.state.budget_tracker.evaluations += cost

    @property
    def _limits(self) -> tuple[float, int]:
        budget_tracker = self.state.budget_tracker
        seconds, evaluations = kernel_limits(budget_tracker.budget, budget_tracker.deadline)
        return seconds, max(1, evaluations - budget_tracker.evaluations) if evaluations else 0


def returned_ids(result: dict[str, Any]) -> Counts:
    """Return the assignment IDs in a result, ascending: undecided ones, or the one it names."""
    assignment_ids = result["open"].get(0)
    if assignment_ids is None:
        named = result["found"][0]
        return result["number"][:1].astype(np.int64) if named else np.zeros(0, np.int64)
    return np.sort(assignment_ids.astype(np.int64))
