"""Exhaustive: scores every counterpart; the readable reference that other engines are held to.

Memory is bounded by a block of counterparts, whatever the lattice's size.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.engine.blocks import block_size, blocks
from feta.engine.order_statistics import spread_of
from feta.engine.protocol import Budget, Until
from feta.engine.query_state import BudgetTracker, QueryState
from feta.engine.span import HIGHEST, LOWEST, Span
from feta.model import Model
from feta.query import FairAt, Query, WorstAt
from feta.rounding import FLOAT64
from feta.rule import UNDECIDED, Objective, Tolerance
from feta.scorer.network.error_bounds import Bounded
from feta.scorer.network.evaluation import Counterparts, Points
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Unfair, Verdict

# Counts and numbers are int64; sums of two of them must fit as well.
MAX_COUNTERPARTS = 2**62


class ExhaustiveEngine:
    """Every counterpart in blocks, an error bound, and exact arithmetic for what it leaves open."""

    name: ClassVar[str] = "exhaustive"
    about: ClassVar[str] = (
        "verify, worst, tally on finite sensitive domains: every counterpart, exactly"
    )

    def accepts(self, model: Model) -> bool:
        """Take every finite lattice whose assignments int64 can number."""
        return model.space.finite and model.space.lattice.size < MAX_COUNTERPARTS

    def solve(self, query: Query, budget: Budget) -> Verdict:
        """Answer one question."""
        search, worst = _ExhaustiveSearch(query, budget), isinstance(query, WorstAt)
        if search.state.span is not None:
            return search.span(search.state.span, worst=worst)
        return search.worst() if worst else search.any()

    def tally(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        until: Until,
        weights: VoteWeights | None = None,
    ) -> Tally:
        """Count the counterparts' decisions, several people at a time where the lattice is small."""
        assert not isinstance(model.rule, Tolerance)  # the front door refuses it
        budget_tracker = BudgetTracker(budget)
        size = model.space.lattice.size if weights is None else len(weights.assignment_ids)
        total = size if weights is None else weights.total
        at_once = max(1, block_size(model) // size)
        counts = np.zeros((len(people), model.rule.n_classes), dtype=np.int64)
        runtime_safe = np.ones(len(people), dtype=bool)
        for first in range(0, len(people), at_once):
            group = slice(first, min(first + at_once, len(people)))
            for points, votes in blocks(model, people[group], weights):
                if budget_tracker.spent(len(points)):
                    break
                batch = model.resolve(points, model.rule, deadline=budget_tracker.deadline)
                table = batch.decisions.reshape(len(points.people), -1)
                runtime_safe[group] &= batch.runtime_safe.reshape(len(points.people), -1).all(
                    axis=1
                )
                for number in range(model.rule.n_classes):
                    counts[group, number] += (table == number) @ votes
                if until == "majority":
                    so_far = _tally(model, counts[group], total, runtime_safe[group])
                    if so_far.decided.all():
                        break
        return _tally(model, counts, total, runtime_safe)

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Find each person's median, lowest and highest counterpart score, exactly."""
        return spread_of(model, people, budget, weights)


class _ExhaustiveSearch:
    """One question about one person, counterpart by counterpart."""

    def __init__(self, query: FairAt, budget: Budget) -> None:
        self.state = QueryState(query, budget, ExhaustiveEngine.name)
        self.model = query.model

    def any(self) -> Verdict:
        """Find the first counterpart treated apart, or prove that there is none."""
        state, runtime_safe = self.state, True
        comparator = state.comparator
        for points in self._blocks():
            if state.budget_tracker.spent(len(points)):
                return state.unknown()
            batch = self.model.resolve(points, comparator, deadline=state.budget_tracker.deadline)
            differs = np.flatnonzero(batch.decisions == 1)
            if differs.size:
                return state.unfair(int(points.assignment_ids[differs[0]]))
            if (batch.decisions == UNDECIDED).any():
                return state.unknown()
            runtime_safe &= bool(batch.runtime_safe.all())
        return state.fair(runtime_safe=runtime_safe)

    def worst(self) -> Verdict:
        """Find the counterpart farthest on the other side, the first of them on a tie."""
        state, runtime_safe = self.state, True
        candidates, comparator = _Candidates(state.objective), state.comparator
        for points in self._blocks():
            if state.budget_tracker.spent(len(points)):
                return state.unknown(candidates.leader)
            scores = self.model.runtime_scores(points)
            runtime_safe &= bool((comparator.decide(scores) == 0).all())
            candidates.add(points.assignment_ids, scores)
        assignment_ids = candidates.sharpened(state.counterparts, candidates.assignment_ids())
        best = state.farthest(assignment_ids)
        if best is None:
            return state.unknown(candidates.leader)
        return state.worst(best, runtime_safe=runtime_safe)

    def span(self, span: Span, *, worst: bool) -> Verdict:
        """Find the lowest and the highest score; unless asked for the worst, any pair too far apart."""
        state, ends = self.state, [_Candidates(LOWEST), _Candidates(HIGHEST)]
        for points in self._blocks():
            if state.budget_tracker.spent(len(points)):
                self._widen(ends)
                return state.unknown()
            scores = self.model.runtime_scores(points)
            for end in ends:
                end.add(points.assignment_ids, scores)
            if not worst and self._far_apart(ends):
                self._widen(ends)
                found = span.pair()
                if found is not None:
                    return Unfair(found, effort=state.budget_tracker.effort())
        for end in ends:
            assignment_ids = end.sharpened(state.counterparts, end.assignment_ids())
            best = state.farthest(assignment_ids, end.objective)
            if best is None:
                self._widen(ends)
                return state.unknown()
            span.reach(end.objective, state.counterpart(best))
        found = span.pair()
        if found is None:
            return state.fair(runtime_safe=self._within(ends))
        return Unfair(found, optimal=worst, effort=state.budget_tracker.effort())

    def _widen(self, ends: "list[_Candidates]") -> None:
        for end in ends:
            if end.leader is not None:
                self.state.witness(end.leader)

    def _far_apart(self, ends: "list[_Candidates]") -> bool:
        """Guess, by float64, whether two counterparts seen so far are too far apart."""
        return sum(end.highest for end in ends) > self._epsilon

    def _within(self, ends: "list[_Candidates]") -> bool:
        """Return whether the source's own rounding keeps all scores within the tolerance (S6)."""
        most = sum(end.ceiling for end in ends)
        return bool(np.nextafter(most, np.inf) <= self._epsilon)

    @property
    def _epsilon(self) -> float:
        assert isinstance(self.model.rule, Tolerance)
        return self.model.rule.epsilon

    def _blocks(self) -> Iterator[Counterparts]:
        for points, _ in blocks(self.model, self.state.query.person[None, :], None):
            yield points


class _Candidates:
    """The counterparts that may be the farthest, given what the error bounds say so far."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.floor = -np.inf  # the largest value that some counterpart surely reaches
        self.leader: int | None = None  # the one that seems farthest
        self.highest = -np.inf  # what that one seems to reach
        self.ceiling = -np.inf  # what no counterpart exceeds
        self._kept: list[tuple[Counts, Vector]] = []  # numbers, and what they may reach at most

    def add(self, assignment_ids: Counts, scores: Bounded) -> None:
        """Look at a block of counterparts."""
        lows, highs, middles = self.objective.range(scores)
        self.floor = max(self.floor, float(np.max(lows)))
        self.ceiling = max(self.ceiling, float(np.max(highs)))
        index = int(np.argmax(middles))
        if middles[index] > self.highest:
            self.highest, self.leader = float(middles[index]), int(assignment_ids[index])
        kept = np.flatnonzero(~(highs < self.floor))
        self._kept.append((assignment_ids[kept], highs[kept]))

    def assignment_ids(self) -> Counts:
        """Give the numbers that are still possible, ascending."""
        return np.concatenate([kept[~(highs < self.floor)] for kept, highs in self._kept])

    def sharpened(self, points: Points, assignment_ids: Counts) -> Counts:
        """Drop those that FETA's own, tighter error bound rules out."""
        scores = points.scores(FLOAT64, assignment_ids)
        lows, highs, _ = self.objective.range(scores)
        return assignment_ids[~(highs < lows.max())]


def _tally(model: Model, counts: Counts, total: int, runtime_safe: Flags) -> Tally:
    assert not isinstance(model.rule, Tolerance)  # the front door refuses it
    undecided = total - counts.sum(axis=1)
    return Tally(counts, undecided, runtime_safe & (undecided == 0), model.rule.ties_to)
