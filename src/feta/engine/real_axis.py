"""Search along one real-valued sensitive attribute, in the native kernel.

The kernel follows the score along that attribute, for those combinations of the other attributes
that matter, and bounds what lies between its points. A counterpart that it finds is replayed
exactly. If it finds none, branch and bound must prove fairness.
"""

from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.bounds.first_layer import Terms
from feta.engine.branch_and_bound import MAX_CELLS, BranchAndBound
from feta.engine.budget_tracker import kernel_limits
from feta.engine.query_state import QueryState
from feta.model import Model
from feta.query import WorstAt
from feta.rounding import DIFFERENCE, OPTIMAL
from feta.scorer.network.native_kernel import AxisTerms, RealTerms, kernel_of
from feta.scorer.network.network import network_of
from feta.space.attribute import Attribute, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Reason, Unfair, Unknown, Verdict


def real_attribute(space: FeatureSpace) -> Real | None:
    """Return the real-valued sensitive attribute, if there is exactly one."""
    reals = [attribute for attribute in space.sensitive if isinstance(attribute, Real)]
    return reals[0] if len(reals) == 1 else None


class RealAxisSearch:
    """A model passed to the native kernel, with its real-valued attribute as a line."""

    def __init__(self, model: Model, *, simd: bool) -> None:
        real = real_attribute(model.space)
        assert real is not None  # the engine accepts no other model
        # The lattice of the other attributes: the real-valued one has its lowest value only.
        fixed = FeatureSpace(tuple(_fix(attribute, real) for attribute in model.space.attributes))
        self.model, self.lattice = model, fixed.lattice
        line = [axis.attribute.name for axis in self.lattice.axes].index(real.name)
        self.column = self.lattice.axes[line].columns[0]
        self.network = network_of(model.scorer)
        first = self.network.first
        sensitive = set(self.lattice.columns)
        self.shared = [column for column in range(first.width) if column not in sensitive]
        axes: list[AxisTerms] = [
            first.terms(axis.codes(np.arange(len(axis))), axis.columns)
            for axis in self.lattice.axes
        ]
        axes[line] = RealTerms(real.low, real.high, first.slopes[:, self.column])
        self.native: Any = kernel_of(self.network, axes, source_error=model.runtime_error)
        self.native.finish(simd)
        self.terms = Terms.of(model)

    def solve(self, state: QueryState) -> Verdict:
        """Answer one query."""
        pair, optimal = self._find_worst(state)
        if pair is not None:
            optimal = isinstance(state.query, WorstAt) and optimal
            return Unfair(pair, optimal=optimal, effort=state.budget_tracker.effort())
        verdict = BranchAndBound(state, self.terms, MAX_CELLS).resolve()
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
        for sign in state.objective.directions[:, 0]:
            result = self._follow(state, float(sign))
            finished = finished and bool(result["finished"][0])
            ceilings.append(float(result["most"][0]))
            if result["found"][0]:
                place = (int(result["number"][0]), float(result["at"][0]))
                pair = state.witness(self._counterpart(state.query.person, *place))
                best = pair or best
            if state.span is None:
                ceilings.append(-sign * reference)
        # An upper bound on the gap; the sum itself is rounded as well.
        ceiling = sum(ceilings) + DIFFERENCE * sum(map(abs, ceilings))
        optimal = finished and best is not None and ceiling <= best.gap * (1 + OPTIMAL)
        return best, bool(optimal)

    def _follow(self, state: QueryState, sign: float) -> dict[str, Any]:
        """Find the highest score, or the lowest for a negative sign, and a bound on it."""
        person, budget_tracker = state.query.person, state.budget_tracker
        values, sizes = self.network.first.terms(person[None, self.shared], self.shared)
        result: dict[str, Any] = self.native.worst_real(
            np.ascontiguousarray(values),
            np.ascontiguousarray(sizes),
            np.array([sign]),
            np.array([-np.inf]),
            *kernel_limits(budget_tracker.budget, budget_tracker.deadline),
            1,
        )
        return result

    def _counterpart(self, person: Vector, assignment_id: int, value: float) -> Vector:
        counterpart = np.array(self.lattice.counterpart(person, assignment_id))
        counterpart[self.column] = value
        return counterpart


def _fix(attribute: Attribute, real: Real) -> Attribute:
    """Replace the real-valued attribute by one with its lowest value only."""
    if attribute is not real:
        return attribute
    return Levels(real.name, (real.low,), sensitive=True)
