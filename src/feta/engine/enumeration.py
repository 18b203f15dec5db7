"""Search for one query over all counterparts of one person, in blocks."""

from collections.abc import Iterator

import numpy as np

from feta.arrays import Counts, Vector
from feta.engine.counterparts import blocks
from feta.engine.protocol import Budget
from feta.engine.query_state import QueryState, undecided
from feta.engine.span import HIGHEST, LOWEST, Span
from feta.errors import UnreliableAnswer
from feta.query import FairAt, PersonQuery, WorstAt
from feta.rounding import FLOAT64
from feta.rule.comparator import UNDECIDED
from feta.scorer.protocol import CounterpartPoints, Enclosure, Objective, Points
from feta.verdict.verdict import Reason, Unfair, Unknown, Verdict


def solve_by_enumeration(query: PersonQuery, budget: Budget, engine: str) -> Verdict:
    """Answer one query; a score in doubt of a counted model leaves it undecided."""
    try:
        search, worst = EnumeratedSearch(query, budget, engine), isinstance(query, WorstAt)
        if search.state.span is not None:
            return search.span(search.state.span, worst=worst)
        return search.worst() if worst else search.any()
    except UnreliableAnswer:
        return undecided(query)


class EnumeratedSearch:
    """Search for one query over all counterparts of one person."""

    def __init__(self, query: FairAt, budget: Budget, engine: str) -> None:
        self.state = QueryState(query, budget, engine)
        self.model = query.model

    def any(self) -> Verdict:
        """Find the first counterpart with a different decision, or prove that there is none."""
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
                return state.unknown() if state.budget_tracker.late() else state.not_separable()
            runtime_safe &= bool(batch.runtime_safe.all())
        return state.fair(runtime_safe=runtime_safe)

    def worst(self) -> Verdict:
        """Find the counterexample with the largest gap; the first one among equals."""
        state, runtime_safe = self.state, True
        candidates, comparator = _Candidates(state.objective), state.comparator
        for points in self._blocks():
            if state.budget_tracker.spent(len(points)):
                return state.unknown(candidates.leader)
            scores = self.model.runtime_scores(points)
            runtime_safe &= bool((comparator.decide(scores) == 0).all())
            candidates.add(points.assignment_ids, scores)
        assignment_ids = candidates.refine(state.counterparts, candidates.assignment_ids())
        verdict = state.worst_of(assignment_ids, runtime_safe=runtime_safe)
        if isinstance(verdict, Unknown) and verdict.reason is Reason.OUT_OF_TIME:
            return state.unknown(candidates.leader)
        return verdict

    def span(self, span: Span, *, worst: bool) -> Verdict:
        """Find the lowest and the highest score, or, unless `worst`, any two too far apart."""
        state, ends = self.state, [_Candidates(LOWEST), _Candidates(HIGHEST)]
        for points in self._blocks():
            if state.budget_tracker.spent(len(points)):
                self._widen(ends)
                return state.unknown()
            scores = self.model.runtime_scores(points)
            for end in ends:
                end.add(points.assignment_ids, scores)
            if not worst and self._may_exceed_tolerance(ends):
                self._widen(ends)
                pair = span.pair()
                if pair is not None:
                    return Unfair(pair, effort=state.budget_tracker.effort())
        return self._compare_ends(span, ends, worst=worst)

    def _compare_ends(self, span: Span, ends: "list[_Candidates]", *, worst: bool) -> Verdict:
        """Find the exact ends among the candidates, and compare them with the tolerance."""
        state, optimal = self.state, True
        for end in ends:
            assignment_ids = end.refine(state.counterparts, end.assignment_ids())
            optimum = state.find_worst(assignment_ids, end.objective)
            if optimum is None:
                self._widen(ends)
                return state.unknown()
            optimal = optimal and optimum.optimal
            span.set_optimum(end.objective, state.counterpart(optimum.assignment_id))
        pair = span.pair()
        if pair is not None:
            return Unfair(pair, optimal=worst and optimal, effort=state.budget_tracker.effort())
        if self._is_runtime_safe(ends):
            return state.fair(runtime_safe=True)
        # Intervals may hide that the ends are too far apart, or that others are the ends.
        if not (optimal and span.is_within()):
            return state.not_separable()
        return state.fair(runtime_safe=False)

    def _widen(self, ends: "list[_Candidates]") -> None:
        for end in ends:
            if end.leader is not None:
                self.state.witness(end.leader)

    def _may_exceed_tolerance(self, ends: "list[_Candidates]") -> bool:
        """Estimate in float64 whether two known scores differ by more than the tolerance."""
        return sum(end.leader_value for end in ends) > self._epsilon

    def _is_runtime_safe(self, ends: "list[_Candidates]") -> bool:
        """Return whether rounding in the source keeps all scores within the tolerance (S6)."""
        upper = sum(end.ceiling for end in ends)
        return bool(np.nextafter(upper, np.inf) <= self._epsilon)

    @property
    def _epsilon(self) -> float:
        tolerance = self.model.rule.tolerance
        assert tolerance is not None  # only a tolerance has a span
        return tolerance

    def _blocks(self) -> Iterator[CounterpartPoints]:
        for points, _ in blocks(self.model, self.state.query.person[None, :], None):
            yield points


class _Candidates:
    """The counterparts that may maximize an objective, given the error bounds so far."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.floor = -np.inf  # some counterpart provably reaches this value
        self.ceiling = -np.inf  # no counterpart so far exceeds this value
        self.leader: int | None = None  # the counterpart with the largest float64 value
        self.leader_value = -np.inf
        self._blocks: list[tuple[Counts, Vector]] = []  # assignment IDs, upper bounds

    def add(self, assignment_ids: Counts, scores: Enclosure) -> None:
        """Add the candidates of a block of counterparts."""
        lows, highs, middles = self.objective.range(scores)
        self.floor = max(self.floor, float(np.max(lows)))
        self.ceiling = max(self.ceiling, float(np.max(highs)))
        index = int(np.argmax(middles))
        if middles[index] > self.leader_value:
            self.leader_value, self.leader = float(middles[index]), int(assignment_ids[index])
        possible = np.flatnonzero(~(highs < self.floor))
        self._blocks.append((assignment_ids[possible], highs[possible]))

    def assignment_ids(self) -> Counts:
        """Return the IDs of the remaining candidates in ascending order."""
        return np.concatenate(
            [assignment_ids[~(highs < self.floor)] for assignment_ids, highs in self._blocks]
        )

    def refine(self, points: Points, assignment_ids: Counts) -> Counts:
        """Drop candidates that the tighter error bound of float64 rules out."""
        scores = points.scores(FLOAT64, assignment_ids)
        lows, highs, _ = self.objective.range(scores)
        return assignment_ids[~(highs < lows.max())]
