"""Branch and bound over cells of one person's counterparts.

Cells are split until bounds, rounded outward, decide each of them. This proves fairness and
optimality where a solver only makes claims. It may also find a counterexample that a solver missed.
"""

import heapq

import numpy as np

from feta.arrays import Matrix, Vector
from feta.cells.cells import Cells
from feta.engine.query_state import QueryState, largest
from feta.engine.span import HIGHEST, LOWEST
from feta.rounding import DIFFERENCE, FLOAT64, OPTIMAL
from feta.rule.comparator import UNDECIDED
from feta.scorer.cell_bounds import CellBounds
from feta.scorer.protocol import Objective
from feta.verdict.certificate import Cut, CutTree
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Unfair, Verdict

# Cells bounded at once, and in total: one or two seconds for three layers of 16 neurons.
BATCH = 64
MAX_CELLS = 2**14

# An undecided cell that is this small relative to the whole touches the threshold, up to rounding,
# where a neuron changes its piece: further splits would not end.
MIN_RELATIVE_WIDTH = 2.0**-30

# Moves of a band of scores before the search gives up; engines start it near the middle.
MAX_MOVES = 64


class BranchAndBound:
    """Search for one query; it lives no longer than the query."""

    def __init__(self, state: QueryState, max_cells: int) -> None:
        self.state, self.max_cells = state, max_cells
        self.model, self.person = state.model, state.query.person
        self.axes = self.model.relation.axes

    def prove(self) -> Fair | Vector | None:
        """Prove fairness, or return a counterpart with a different decision, or give up."""
        tree, runtime_safe = CutTree(), True
        objective, comparator = self.state.objective, self.state.comparator
        cells, nodes = Cells.whole(self.axes), np.zeros(1, dtype=np.int64)
        while len(cells):
            if not self._has_budget(len(tree)):
                return None
            bounds = self._bound(cells[:BATCH], objective)
            cells, nodes, batch_nodes = cells[BATCH:], nodes[BATCH:], nodes[:BATCH]
            runtime_safe = runtime_safe and bool(bounds.runtime_safe()[bounds.agrees].all())
            for row in np.flatnonzero(~bounds.agrees):
                counterparts = bounds.deciding_counterparts(int(row), self.person)
                if counterparts is not None:
                    batch = self.model.resolve(self.model.points(counterparts), comparator)
                    differs = np.flatnonzero(batch.decisions == 1)
                    if differs.size:
                        return np.array(counterparts[differs[0]])
                    if (batch.decisions == UNDECIDED).any():
                        return None
                    runtime_safe = runtime_safe and bool(batch.runtime_safe.all())
                    continue
                cut = _choose_cut(bounds, int(row))
                if cut is None or self._is_tiny(bounds.cells, int(row)):
                    return None
                cells = bounds.cells.cut(int(row), *cut).followed_by(cells)
                nodes = np.concatenate([tree.cut(int(batch_nodes[row]), *cut), nodes])
        return self.state.fair(runtime_safe=runtime_safe, proof=tree.proof())

    def resolve(self) -> Verdict | None:
        """Prove fairness, or find a counterexample, or give up.

        Regression: a score beyond the band moves it, until the span exceeds the tolerance or the
        band contains all scores.
        """
        for _ in range(MAX_MOVES):
            result = self.prove()
            if result is None or isinstance(result, Fair):
                return result
            verdict = self.state.unfair(result)
            if self.state.span is None or isinstance(verdict, Unfair):
                return verdict
        return None

    def improve(self, pair: Counterexample) -> tuple[Counterexample, bool]:
        """Find a counterexample with a larger gap; return it, and whether it is proved optimal."""
        if self.state.span is None:
            return self._maximize(_Incumbent(self.state, self.state.objective, pair, OPTIMAL))
        pair, low = self._maximize(_Incumbent(self.state, LOWEST, pair, OPTIMAL / 2))
        pair, high = self._maximize(_Incumbent(self.state, HIGHEST, pair, OPTIMAL / 2))
        return pair, low and high

    def _maximize(self, incumbent: "_Incumbent") -> tuple[Counterexample, bool]:
        """Split cells that may exceed the incumbent, until none is left."""
        cells = Cells.whole(self.axes)
        queue: list[tuple[float, int, Cells]] = [(-np.inf, 0, cells)]
        n_cells = 1
        while queue and -queue[0][0] > incumbent.ceiling:
            if not self._has_budget(n_cells):
                return incumbent.pair, False
            batch = [heapq.heappop(queue)[2] for _ in range(min(BATCH, len(queue)))]
            bounds = self._bound(_stack(batch), incumbent.objective)
            incumbent.update(bounds.maximizers(self.person)[:1])
            for row in np.flatnonzero(~(bounds.highs <= incumbent.ceiling)):
                counterparts = bounds.deciding_counterparts(int(row), self.person)
                if counterparts is not None:
                    incumbent.update(counterparts)
                    continue
                cut = _choose_cut(bounds, int(row))
                if cut is None:
                    return incumbent.pair, False
                halves = bounds.cells.cut(int(row), *cut)
                for half in range(2):
                    n_cells += 1
                    heapq.heappush(queue, (-bounds.highs[row], n_cells, halves[half : half + 1]))
        return incumbent.pair, True

    def _is_tiny(self, cells: Cells, row: int) -> bool:
        ends = np.array([axis.ends for axis in self.axes])
        widths = cells.upper[row] - cells.lower[row]
        return bool((widths <= MIN_RELATIVE_WIDTH * (ends[:, 1] - ends[:, 0])).all())

    def _bound(self, cells: Cells, objective: Objective) -> CellBounds:
        return self.model.restricted.over(
            self.person, cells, objective, source_error=self.model.runtime_error
        )

    def _has_budget(self, n_cells: int) -> bool:
        return n_cells < self.max_cells and not self.state.budget_tracker.spent(BATCH)


def _stack(cells: list[Cells]) -> Cells:
    """Join several cells in one value."""
    lower, upper = (np.vstack([getattr(cell, end) for cell in cells]) for end in ("lower", "upper"))
    return Cells(cells[0].axes, lower, upper)


def _choose_cut(bounds: CellBounds, row: int) -> Cut | None:
    axis = bounds.axis_to_split(row)
    if axis is None:
        return None
    return axis, float(bounds.cells.middles(row)[axis])


class _Incumbent:
    """The worst counterexample so far, replayed exactly.

    `tolerance` is the share of its gap by which a better one may exceed it without being found.
    """

    def __init__(
        self, state: QueryState, objective: Objective, pair: Counterexample, tolerance: float
    ) -> None:
        self.state, self.objective, self.pair, self.tolerance = state, objective, pair, tolerance
        self._set(pair, (pair.person if objective is LOWEST else pair.counterpart)[None, :])

    def update(self, people: Matrix) -> None:
        """Replace the incumbent if one of these people is worse; compare exactly."""
        objective, model = self.objective, self.state.model
        highs = objective.range(model.points(people).scores(FLOAT64))[1]
        near = people[~(highs <= self.ceiling)]
        if not len(near):
            return
        scores = model.exact_scores(near)
        differences = np.ones(len(near), dtype=np.int8)  # regression: any wider span counts
        if self.state.span is None:
            differences = self.state.comparator.decide_exactly(scores)
        value, differs, index = largest(objective, scores, differences, np.arange(len(near)))
        if differs == 1 and value.compare(self.value) > 0:
            better = self.state.witness(near[index])
            assert better is not None  # the comparator has just decided that it differs
            self._set(better, near[index : index + 1])

    def _set(self, pair: Counterexample, row: Matrix) -> None:
        scores = self.state.model.exact_scores(row)
        self.pair = pair
        self.value = largest(
            self.objective, scores, np.ones(1, dtype=np.int8), np.zeros(1, np.int64)
        )[0]
        # In a cell that cannot exceed the ceiling, no gap is larger by more than the tolerance.
        value = float(self.value.floats())
        self.ceiling = value + self.tolerance * pair.gap - DIFFERENCE * abs(value)
