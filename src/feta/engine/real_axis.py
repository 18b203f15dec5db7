"""Along: the farthest counterpart where one sensitive attribute is real-valued, in compiled code.

The kernel follows the score along that number for the combinations of the others that matter, and
bounds what lies between. What it finds is replayed exactly; what it does not find, bounds must prove.
"""

from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.bounds.first_layer import Terms
from feta.engine.branch_and_bound import MAX_PARTS, BranchAndBound
from feta.engine.query_state import QueryState
from feta.model import Model
from feta.query import WorstAt
from feta.rounding import DIFFERENCE, OPTIMAL
from feta.scorer.network.native_kernel import Axis, RealAxis, kernel_of
from feta.space.attribute import Attribute, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Reason, Unfair, Unknown, Verdict


def real_attribute(space: FeatureSpace) -> Real | None:
    """Give the sensitive attribute that is real-valued, if there is just one."""
    reals = [one for one in space.sensitive if isinstance(one, Real)]
    return reals[0] if len(reals) == 1 else None


class RealAxisSearch:
    """A model handed over to the kernel, its real-valued attribute as a line."""

    def __init__(self, model: Model, *, simd: bool) -> None:
        real = real_attribute(model.space)
        assert real is not None  # the engine accepts no other model
        # The others' lattice: the real number stands at its lowest value.
        still = FeatureSpace(tuple(_stilled(one, real) for one in model.space.attributes))
        self.model, self.lattice = model, still.lattice
        self.line = [axis.attribute.name for axis in self.lattice.axes].index(real.name)
        self.column = self.lattice.axes[self.line].columns[0]
        first = model.network.first
        taken = set(self.lattice.columns)
        self.shared = [column for column in range(first.width) if column not in taken]
        axes: list[Axis] = [
            first.terms(axis.codes(np.arange(len(axis))), axis.columns)
            for axis in self.lattice.axes
        ]
        axes[self.line] = RealAxis(real.low, real.high, first.slopes[:, self.column])
        self.native: Any = kernel_of(model.network, axes, source_error=model.runtime_error)
        self.native.finish(simd)
        self.terms = Terms.of(model)

    def solve(self, state: QueryState) -> Verdict:
        """Answer one question."""
        found, optimal = self._farthest(state)
        if found is not None:
            asked = isinstance(state.query, WorstAt)
            return Unfair(found, optimal=asked and optimal, effort=state.budget_tracker.effort())
        verdict = BranchAndBound(state, self.terms, MAX_PARTS).resolve()
        if verdict is not None:
            return verdict
        return Unknown(
            state.budget_tracker.reason or Reason.NOT_REPRODUCED,
            effort=state.budget_tracker.effort(),
        )

    def _farthest(self, state: QueryState) -> tuple[Counterexample | None, bool]:
        """Replay the farthest counterpart each way; return whether bounds prove that none is farther."""
        reference = float(state.reference.floats()[0, 0])
        best: Counterexample | None = None
        ceilings, whole = [], True
        for sign in state.objective.directions[:, 0]:
            told = self._follow(state, float(sign))
            whole = whole and bool(told["finished"][0])
            ceilings.append(float(told["most"][0]))
            if told["found"][0]:
                index = (int(told["number"][0]), float(told["at"][0]))
                found = state.witness(self._counterpart(state.query.person, *index))
                best = found or best
            if state.span is None:
                ceilings.append(-sign * reference)
        # The gap's upper bound; the sum is rounded, too.
        ceiling = sum(ceilings) + DIFFERENCE * sum(map(abs, ceilings))
        optimal = whole and best is not None and ceiling <= best.gap * (1 + OPTIMAL)
        return best, bool(optimal)

    def _follow(self, state: QueryState, sign: float) -> dict[str, Any]:
        """Find the highest score, or the lowest, and bound it."""
        person, budget_tracker = state.query.person, state.budget_tracker
        values, sizes = self.model.network.first.terms(person[None, self.shared], self.shared)
        evaluations = budget_tracker.budget.evaluations
        told: dict[str, Any] = self.native.worst_real(
            np.ascontiguousarray(values),
            np.ascontiguousarray(sizes),
            np.array([sign]),
            np.array([-np.inf]),
            budget_tracker.left() if budget_tracker.budget.seconds is not None else -1.0,
            0 if evaluations is None else max(1, int(evaluations)),  # there 0 is no limit
            1,
        )
        return told

    def _counterpart(self, person: Vector, number: int, at: float) -> Vector:
        other = np.array(self.lattice.counterpart(person, number))
        other[self.column] = at
        return other


def _stilled(attribute: Attribute, real: Real) -> Attribute:
    if attribute is not real:
        return attribute
    return Levels(real.name, (real.low,), sensitive=True)
