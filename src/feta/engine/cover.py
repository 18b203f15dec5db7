"""Cover: a person's counterparts cut in parts until bounds rounded outward settle each of them.

This, and no solver, is what proves fairness and optimality. It may also find what a solver missed.
"""

import heapq

import numpy as np

from feta.arrays import Matrix, Vector
from feta.bounds.first_layer import Terms
from feta.bounds.over_parts import OverParts
from feta.engine.partition import Partition
from feta.engine.question import Question, largest
from feta.engine.span import HIGHEST, LOWEST
from feta.network.points import Rows
from feta.rounding import DIFFERENCE, FLOAT64, OPTIMAL
from feta.rule import Objective
from feta.space.parts import Parts
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Unfair, Verdict

# Parts bounded at once, and at most: a second or two of a network of three layers of 16.
BATCH = 64
MOST_PARTS = 2**14

# A part this small beside the whole, and still open, touches the threshold to the last digits where a
# neuron bends: cutting on would not end.
SMALLEST = 2.0**-30


# How often a band of scores moves before it is given up; engines give one near the middle.
MOST_MOVES = 64


class Cover:
    """One question's parts under way; it lives no longer than the question."""

    def __init__(self, question: Question, terms: Terms, most: int) -> None:
        self.question, self.terms, self.most = question, terms, most
        self.model, self.person = question.model, question.query.person

    def prove(self) -> Fair | Vector | None:
        """Prove that nobody is treated apart, or find somebody who is, or give up."""
        tree, safe = Partition(), True
        goal, judge = self.question.objective, self.question.judge
        parts, ids = Parts.whole(self.terms.dimensions), np.zeros(1, dtype=np.int64)
        while len(parts):
            if not self._may_go_on(len(tree)):
                return None
            over = self._over(parts[:BATCH], goal)
            parts, ids, now = parts[BATCH:], ids[BATCH:], ids[:BATCH]
            safe = safe and bool(over.safe()[over.alike].all())
            for row in np.flatnonzero(~over.alike):
                deciding = over.deciding(int(row), self.person)
                if deciding is not None:
                    settled = self.model.settle(Rows(self.model.exact, deciding), judge)
                    apart = np.flatnonzero(settled.decisions == 1)
                    if apart.size:
                        return np.array(deciding[apart[0]])
                    safe = safe and bool(settled.safe.all())
                    continue
                cut = _cut(over, int(row))
                if cut is None or self._is_tiny(over.first.parts, int(row)):
                    return None
                parts = over.first.parts.cut(int(row), *cut).followed_by(parts)
                ids = np.concatenate([tree.cut(int(now[row]), *cut), ids])
        return self.question.fair(safe=safe, proof=tree.proof())

    def settle(self) -> Verdict | None:
        """Prove, or find a counterexample, or give up.

        Regression: somebody beyond the band moves it, until the ends are too far apart or all are in.
        """
        for _ in range(MOST_MOVES):
            proved = self.prove()
            if proved is None or isinstance(proved, Fair):
                return proved
            verdict = self.question.unfair(proved)
            if self.question.span is None or isinstance(verdict, Unfair):
                return verdict
        return None

    def improve(self, found: Counterexample) -> tuple[Counterexample, bool]:
        """Find a farther counterpart, and return whether it is proved that none is farther still."""
        span = self.question.span
        if span is None:
            return self._raise(_Best(self.question, self.question.objective, found, OPTIMAL))
        found, low = self._raise(_Best(self.question, LOWEST, found, OPTIMAL / 2))
        found, high = self._raise(_Best(self.question, HIGHEST, found, OPTIMAL / 2))
        return found, low and high

    def _raise(self, best: "_Best") -> tuple[Counterexample, bool]:
        """Cut where the objective may be larger than the best one, until nothing is left."""
        parts = Parts.whole(self.terms.dimensions)
        open_: list[tuple[float, int, Parts]] = [(-np.inf, 0, parts)]
        made = 1
        while open_ and -open_[0][0] > best.ceiling:
            if not self._may_go_on(made):
                return best.found, False
            batch = [heapq.heappop(open_)[2] for _ in range(min(BATCH, len(open_)))]
            lower, upper = (
                np.vstack([getattr(one, end) for one in batch]) for end in ("lower", "upper")
            )
            over = self._over(Parts(self.terms.dimensions, lower, upper), best.goal)
            best.offer(over.likeliest(self.person)[:1])
            for row in np.flatnonzero(~(over.highs <= best.ceiling)):
                deciding = over.deciding(int(row), self.person)
                if deciding is not None:
                    best.offer(deciding)
                    continue
                cut = _cut(over, int(row))
                if cut is None:
                    return best.found, False
                halves = over.first.parts.cut(int(row), *cut)
                for half in range(2):
                    made += 1
                    heapq.heappush(open_, (-over.highs[row], made, halves[half : half + 1]))
        return best.found, True

    def _is_tiny(self, parts: Parts, row: int) -> bool:
        ends = np.array([one.ends for one in self.terms.dimensions])
        extents = parts.upper[row] - parts.lower[row]
        return bool((extents <= SMALLEST * (ends[:, 1] - ends[:, 0])).all())

    def _over(self, parts: Parts, goal: Objective) -> OverParts:
        return OverParts.of(self.model, self.terms, self.person, parts, goal)

    def _may_go_on(self, made: int) -> bool:
        return made < self.most and not self.question.meter.spent(BATCH)


def _cut(over: OverParts, row: int) -> tuple[int, float] | None:
    dimension = over.longest(row)
    if dimension is None:
        return None
    return dimension, float(over.first.parts.middles(row)[dimension])


class _Best:
    """The farthest counterpart so far, replayed exactly; `share` of its gap may be missing."""

    def __init__(
        self, question: Question, goal: Objective, found: Counterexample, share: float
    ) -> None:
        self.question, self.goal, self.found, self.share = question, goal, found, share
        self._take(found, (found.person if goal is LOWEST else found.counterpart)[None, :])

    def offer(self, people: Matrix) -> None:
        """Take the farthest of some people, if nobody so far comes near; compared exactly."""
        goal, exact = self.goal, self.question.model.exact
        highs = goal.range(Rows(exact, people).scores(FLOAT64))[1]
        near = people[~(highs <= self.ceiling)]
        if not len(near):
            return
        scores = exact.scores(near)
        apart = np.ones(len(near), dtype=np.int8)  # beyond an end of a span too wide
        if self.question.span is None:
            apart = self.question.judge.settle_exactly(scores)
        value, is_apart, place = largest(goal, scores, apart, np.arange(len(near)))
        if is_apart and value.compare(self.value) > 0:
            better = self.question.witness(near[place])
            assert better is not None  # it was just judged
            self._take(better, near[place : place + 1])

    def _take(self, found: Counterexample, row: Matrix) -> None:
        scores = self.question.model.exact.scores(row)
        self.found = found
        self.value = largest(self.goal, scores, np.ones(1, dtype=np.int8), np.zeros(1, np.int64))[0]
        # Parts that cannot exceed this hold nobody whose gap is larger by more than that share.
        value = float(self.value.floats())
        self.ceiling = value + self.share * found.gap - DIFFERENCE * abs(value)
