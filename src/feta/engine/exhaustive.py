"""Engine that scores every counterpart: the simple reference for the other engines.

Counterparts are scored in blocks, so memory does not depend on the size of the lattice.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from feta.arrays import Answers, Counts, Matrix, Vector
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.counterparts import MAX_COUNTERPARTS, assignments, block_size, blocks
from feta.engine.means import means_of
from feta.engine.order_statistics import spread_of
from feta.engine.protocol import Budget, Until, check_countable
from feta.engine.query_state import QueryState, undecided
from feta.engine.sections import SectionModels, finite_size
from feta.engine.span import HIGHEST, LOWEST, Span
from feta.errors import UnreliableAnswer
from feta.model import Model
from feta.query import FairAt, PersonQuery, Query, WorstAt
from feta.rounding import FLOAT64
from feta.rule.comparator import UNDECIDED, Decisions
from feta.scorer.protocol import CounterpartPoints, Enclosure, Objective, Points
from feta.space.vote_weights import VoteWeights
from feta.verdict.means import Means
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally, complete_tally
from feta.verdict.verdict import Reason, Unfair, Unknown, Verdict
from feta.vote.mean_decision import MeanDecision


class ExhaustiveEngine:
    """Scores in float64 with an error bound, and exactly where the bound does not decide."""

    name: ClassVar[str] = "exhaustive"
    about: ClassVar[str] = (
        "verify, worst, tally on finite sensitive domains: every counterpart, exactly"
    )

    def __init__(self) -> None:
        self._section_models = SectionModels()

    def accepts(self, query: Query) -> bool:
        """Accept every finite lattice whose assignment IDs fit in int64.

        A real-valued attribute is finite if the scorer distinguishes only intervals of it.
        """
        size = finite_size(query.model)
        return size is not None and size < MAX_COUNTERPARTS

    def solve(self, query: PersonQuery, budget: Budget) -> Verdict:
        """Answer one query; a score in doubt of a counted model leaves it undecided."""
        if not query.model.relation.finite:
            return self._section_models.solve(query, budget, engine=self.name, solve=self.solve)
        try:
            return self._solve(query, budget)
        except UnreliableAnswer:
            return undecided(query)

    def _solve(self, query: PersonQuery, budget: Budget) -> Verdict:
        search, worst = _ExhaustiveSearch(query, budget), isinstance(query, WorstAt)
        if search.state.span is not None:
            return search.span(search.state.span, worst=worst)
        return search.worst() if worst else search.any()

    def solve_many(self, queries: Sequence[PersonQuery], budget: Budget) -> list[Verdict]:
        """Answer queries one by one."""
        return [self.solve(query, budget) for query in queries]

    def majority(self, model: Model, people: Matrix) -> Answers | None:
        """Return None: `tally` and `spread` decide."""
        del model, people
        return None

    def mean_decisions(
        self, model: Model, people: Matrix, mean: MeanDecision, *, weights: VoteWeights | None
    ) -> Decisions | None:
        """Return None: `means` decides."""
        del model, people, mean, weights
        return None

    def tally(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        until: Until,
        weights: VoteWeights | None = None,
    ) -> Tally:
        """Count the counterparts' decisions, several people at a time if the lattice is small."""
        check_countable(model)
        rule = model.rule
        budget_tracker = BudgetTracker(budget)
        group_size, totals = 1, np.zeros(len(people), dtype=np.int64)
        if model.relation.complete:
            group_size = max(
                1, block_size(model) // max(1, assignments(model, people, weights).size)
            )
        counts = np.zeros((len(people), rule.n_classes), dtype=np.int64)
        runtime_safe = np.ones(len(people), dtype=bool)
        for first in range(0, len(people), group_size):
            group = slice(first, min(first + group_size, len(people)))
            totals[group] = assignments(model, people[group], weights).total
            for points, votes in blocks(model, people[group], weights):
                if budget_tracker.spent(len(points)):
                    break
                batch = model.resolve(points, rule, deadline=budget_tracker.deadline)
                shape = (len(points.people), -1)
                decisions = batch.decisions.reshape(shape)
                runtime_safe[group] &= batch.runtime_safe.reshape(shape).all(axis=1)
                for decision in range(rule.n_classes):
                    counts[group, decision] += (decisions == decision) @ votes
                if until == "majority":
                    so_far = complete_tally(
                        counts[group], totals[group], runtime_safe[group], ties_to=rule.ties_to
                    )
                    if so_far.decided.all():
                        break
        return complete_tally(counts, totals, runtime_safe, ties_to=rule.ties_to)

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Compute each person's median, lowest and highest counterpart score, exactly."""
        return spread_of(model, people, budget, weights)

    def means(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        mean: MeanDecision,
        weights: VoteWeights | None = None,
    ) -> Means:
        """Decide each person by the mean of the counterparts' scores or grades, exactly."""
        return means_of(model, people, budget, mean=mean, weights=weights)


class _ExhaustiveSearch:
    """Search for one query over all counterparts of one person."""

    def __init__(self, query: FairAt, budget: Budget) -> None:
        self.state = QueryState(query, budget, ExhaustiveEngine.name)
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
