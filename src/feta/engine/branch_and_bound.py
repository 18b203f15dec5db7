"""Cover: a person's counterparts cut in parts until bounds rounded outward settle each of them.

This, and no solver, is what proves fairness and optimality. It may also find what a solver missed.
"""

import heapq

import numpy as np

from feta.arrays import Matrix, Vector
from feta.bounds.cell_bounds import CellBounds
from feta.bounds.first_layer import Terms
from feta.cells.cells import Cells
from feta.engine.partition import Partition
from feta.engine.query_state import QueryState, largest
from feta.engine.span import HIGHEST, LOWEST
from feta.rounding import DIFFERENCE, FLOAT64, OPTIMAL
from feta.rule import Objective
from feta.scorer.network.evaluation import Rows
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Unfair, Verdict

# Parts bounded at once, and at most: a second or two of a network of three layers of 16.
BATCH = 64
MAX_PARTS = 2**14

# A part this small beside the whole, and still open, touches the threshold to the last digits where a
# neuron bends: cutting on would not end.
SMALLEST = 2.0**-30


# How often a band of scores moves before it is given up; engines give one near the middle.
MAX_MOVES = 64


class BranchAndBound:
    """One question's parts under way; it lives no longer than the question."""

    def __init__(self, state: QueryState, terms: Terms, most: int) -> None:
        self.state, self.terms, self.most = state, terms, most
        self.model, self.person = state.model, state.query.person

    def prove(self) -> Fair | Vector | None:
        """Prove that nobody is treated apart, or find somebody who is, or give up."""
        tree, runtime_safe = Partition(), True
        goal, comparator = self.state.objective, self.state.comparator
        cells, ids = Cells.whole(self.terms.dimensions), np.zeros(1, dtype=np.int64)
        while len(cells):
            if not self._may_go_on(len(tree)):
                return None
            over = self._over(cells[:BATCH], goal)
            cells, ids, now = cells[BATCH:], ids[BATCH:], ids[:BATCH]
            runtime_safe = runtime_safe and bool(over.runtime_safe()[over.agrees].all())
            for row in np.flatnonzero(~over.agrees):
                deciding = over.deciding(int(row), self.person)
                if deciding is not None:
                    batch = self.model.resolve(Rows(self.model.exact, deciding), comparator)
                    differs = np.flatnonzero(batch.decisions == 1)
                    if differs.size:
                        return np.array(deciding[differs[0]])
                    runtime_safe = runtime_safe and bool(batch.runtime_safe.all())
                    continue
                cut = _cut(over, int(row))
                if cut is None or self._is_tiny(over.first.cells, int(row)):
                    return None
                cells = over.first.cells.cut(int(row), *cut).followed_by(cells)
                ids = np.concatenate([tree.cut(int(now[row]), *cut), ids])
        return self.state.fair(runtime_safe=runtime_safe, proof=tree.proof())

    def resolve(self) -> Verdict | None:
        """Prove, or find a counterexample, or give up.

        Regression: somebody beyond the band moves it, until the ends are too far apart or all are in.
        """
        for _ in range(MAX_MOVES):
            proved = self.prove()
            if proved is None or isinstance(proved, Fair):
                return proved
            verdict = self.state.unfair(proved)
            if self.state.span is None or isinstance(verdict, Unfair):
                return verdict
        return None

    def improve(self, found: Counterexample) -> tuple[Counterexample, bool]:
        """Find a farther counterpart, and return whether it is proved that none is farther still."""
        span = self.state.span
        if span is None:
            return self._raise(_Best(self.state, self.state.objective, found, OPTIMAL))
        found, low = self._raise(_Best(self.state, LOWEST, found, OPTIMAL / 2))
        found, high = self._raise(_Best(self.state, HIGHEST, found, OPTIMAL / 2))
        return found, low and high

    def _raise(self, best: "_Best") -> tuple[Counterexample, bool]:
        """Cut where the objective may be larger than the best one, until nothing is left."""
        cells = Cells.whole(self.terms.dimensions)
        open_: list[tuple[float, int, Cells]] = [(-np.inf, 0, cells)]
        made = 1
        while open_ and -open_[0][0] > best.ceiling:
            if not self._may_go_on(made):
                return best.found, False
            batch = [heapq.heappop(open_)[2] for _ in range(min(BATCH, len(open_)))]
            lower, upper = (
                np.vstack([getattr(one, end) for one in batch]) for end in ("lower", "upper")
            )
            over = self._over(Cells(self.terms.dimensions, lower, upper), best.goal)
            best.offer(over.likeliest(self.person)[:1])
            for row in np.flatnonzero(~(over.highs <= best.ceiling)):
                deciding = over.deciding(int(row), self.person)
                if deciding is not None:
                    best.offer(deciding)
                    continue
                cut = _cut(over, int(row))
                if cut is None:
                    return best.found, False
                halves = over.first.cells.cut(int(row), *cut)
                for half in range(2):
                    made += 1
                    heapq.heappush(open_, (-over.highs[row], made, halves[half : half + 1]))
        return best.found, True

    def _is_tiny(self, cells: Cells, row: int) -> bool:
        ends = np.array([one.ends for one in self.terms.dimensions])
        extents = cells.upper[row] - cells.lower[row]
        return bool((extents <= SMALLEST * (ends[:, 1] - ends[:, 0])).all())

    def _over(self, cells: Cells, goal: Objective) -> CellBounds:
        return CellBounds.of(self.model, self.terms, self.person, cells, goal)

    def _may_go_on(self, made: int) -> bool:
        return made < self.most and not self.state.budget_tracker.spent(BATCH)


def _cut(over: CellBounds, row: int) -> tuple[int, float] | None:
    dimension = over.longest(row)
    if dimension is None:
        return None
    return dimension, float(over.first.cells.middles(row)[dimension])


class _Best:
    """The farthest counterpart so far, replayed exactly; `share` of its gap may be missing."""

    def __init__(
        self, state: QueryState, goal: Objective, found: Counterexample, share: float
    ) -> None:
        self.state, self.goal, self.found, self.share = state, goal, found, share
        self._take(found, (found.person if goal is LOWEST else found.counterpart)[None, :])

    def offer(self, people: Matrix) -> None:
        """Take the farthest of some people, if nobody so far comes near; compared exactly."""
        goal, exact = self.goal, self.state.model.exact
        highs = goal.range(Rows(exact, people).scores(FLOAT64))[1]
        near = people[~(highs <= self.ceiling)]
        if not len(near):
            return
        scores = exact.scores(near)
        differs = np.ones(len(near), dtype=np.int8)  # beyond an end of a span too wide
        if self.state.span is None:
            differs = self.state.comparator.decide_exactly(scores)
        value, is_apart, index = largest(goal, scores, differs, np.arange(len(near)))
        if is_apart and value.compare(self.value) > 0:
            better = self.state.witness(near[index])
            assert better is not None  # it was just judged
            self._take(better, near[index : index + 1])

    def _take(self, found: Counterexample, row: Matrix) -> None:
        scores = self.state.model.exact.scores(row)
        self.found = found
        self.value = largest(self.goal, scores, np.ones(1, dtype=np.int8), np.zeros(1, np.int64))[0]
        # Parts that cannot exceed this hold nobody whose gap is larger by more than that share.
        value = float(self.value.floats())
        self.ceiling = value + self.share * found.gap - DIFFERENCE * abs(value)
