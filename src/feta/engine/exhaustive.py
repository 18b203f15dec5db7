"""Exhaustive: scores every counterpart; the readable reference that other engines are held to.

Memory is bounded by a block of counterparts, whatever the lattice's size.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.engine.blocks import block_size, blocks
from feta.engine.protocol import Budget, Until
from feta.engine.question import Meter, Question
from feta.engine.score_ranges import spread_of
from feta.engine.span import HIGHEST, LOWEST, Span
from feta.model import Model
from feta.network.bounded import Bounded
from feta.network.points import Counterparts, Points
from feta.query import FairAt, Query, WorstAt
from feta.rounding import FLOAT64
from feta.rule import OPEN, Objective, Tolerance
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Unfair, Verdict

# Counts and numbers are int64; sums of two of them must fit as well.
MOST_COUNTERPARTS = 2**62


class Exhaustive:
    """Every counterpart in blocks, an error bound, and exact arithmetic for what it leaves open."""

    name: ClassVar[str] = "exhaustive"
    about: ClassVar[str] = (
        "verify, worst, tally on finite sensitive domains: every counterpart, exactly"
    )

    def accepts(self, model: Model) -> bool:
        """Take every finite lattice whose assignments int64 can number."""
        return model.space.finite and model.space.lattice.size < MOST_COUNTERPARTS

    def solve(self, query: Query, budget: Budget) -> Verdict:
        """Answer one question."""
        search, worst = _Search(query, budget), isinstance(query, WorstAt)
        if search.question.span is not None:
            return search.span(search.question.span, worst=worst)
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
        meter = Meter(budget)
        size = model.space.lattice.size if weights is None else len(weights.numbers)
        total = size if weights is None else weights.total
        at_once = max(1, block_size(model) // size)
        counts = np.zeros((len(people), model.rule.n_classes), dtype=np.int64)
        safe = np.ones(len(people), dtype=bool)
        for first in range(0, len(people), at_once):
            group = slice(first, min(first + at_once, len(people)))
            for points, votes in blocks(model, people[group], weights):
                if meter.spent(len(points)):
                    break
                settled = model.settle(points, model.rule, deadline=meter.deadline)
                table = settled.decisions.reshape(len(points.people), -1)
                safe[group] &= settled.safe.reshape(len(points.people), -1).all(axis=1)
                for number in range(model.rule.n_classes):
                    counts[group, number] += (table == number) @ votes
                if until == "majority":
                    so_far = _tally(model, counts[group], total, safe[group])
                    if so_far.settled.all():
                        break
        return _tally(model, counts, total, safe)

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Find each person's median, lowest and highest counterpart score, exactly."""
        return spread_of(model, people, budget, weights)


class _Search:
    """One question about one person, counterpart by counterpart."""

    def __init__(self, query: FairAt, budget: Budget) -> None:
        self.question = Question(query, budget, Exhaustive.name)
        self.model = query.model

    def any(self) -> Verdict:
        """Find the first counterpart treated apart, or prove that there is none."""
        question, safe = self.question, True
        judge = question.judge
        for points in self._blocks():
            if question.meter.spent(len(points)):
                return question.unknown()
            settled = self.model.settle(points, judge, deadline=question.meter.deadline)
            apart = np.flatnonzero(settled.decisions == 1)
            if apart.size:
                return question.unfair(int(points.numbers[apart[0]]))
            if (settled.decisions == OPEN).any():
                return question.unknown()
            safe &= bool(settled.safe.all())
        return question.fair(safe=safe)

    def worst(self) -> Verdict:
        """Find the counterpart farthest on the other side, the first of them on a tie."""
        question, safe = self.question, True
        candidates, judge = _Candidates(question.objective), question.judge
        for points in self._blocks():
            if question.meter.spent(len(points)):
                return question.unknown(candidates.leader)
            scores = self.model.runtime_scores(points)
            safe &= bool((judge.settle(scores) == 0).all())
            candidates.add(points.numbers, scores)
        numbers = candidates.sharpened(question.counterparts, candidates.numbers())
        best = question.farthest(numbers)
        if best is None:
            return question.unknown(candidates.leader)
        return question.worst(best, safe=safe)

    def span(self, span: Span, *, worst: bool) -> Verdict:
        """Find the lowest and the highest score; unless asked for the worst, any pair too far apart."""
        question, ends = self.question, [_Candidates(LOWEST), _Candidates(HIGHEST)]
        for points in self._blocks():
            if question.meter.spent(len(points)):
                self._widen(ends)
                return question.unknown()
            scores = self.model.runtime_scores(points)
            for end in ends:
                end.add(points.numbers, scores)
            if not worst and self._far_apart(ends):
                self._widen(ends)
                found = span.pair()
                if found is not None:
                    return Unfair(found, effort=question.meter.effort())
        for end in ends:
            numbers = end.sharpened(question.counterparts, end.numbers())
            best = question.farthest(numbers, end.objective)
            if best is None:
                self._widen(ends)
                return question.unknown()
            span.reach(end.objective, question.counterpart(best))
        found = span.pair()
        if found is None:
            return question.fair(safe=self._within(ends))
        return Unfair(found, optimal=worst, effort=question.meter.effort())

    def _widen(self, ends: "list[_Candidates]") -> None:
        for end in ends:
            if end.leader is not None:
                self.question.witness(end.leader)

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
        for points, _ in blocks(self.model, self.question.query.person[None, :], None):
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

    def add(self, numbers: Counts, scores: Bounded) -> None:
        """Look at a block of counterparts."""
        lows, highs, middles = self.objective.range(scores)
        self.floor = max(self.floor, float(np.max(lows)))
        self.ceiling = max(self.ceiling, float(np.max(highs)))
        place = int(np.argmax(middles))
        if middles[place] > self.highest:
            self.highest, self.leader = float(middles[place]), int(numbers[place])
        kept = np.flatnonzero(~(highs < self.floor))
        self._kept.append((numbers[kept], highs[kept]))

    def numbers(self) -> Counts:
        """Give the numbers that are still possible, ascending."""
        return np.concatenate([kept[~(highs < self.floor)] for kept, highs in self._kept])

    def sharpened(self, points: Points, numbers: Counts) -> Counts:
        """Drop those that FETA's own, tighter error bound rules out."""
        scores = points.scores(FLOAT64, numbers)
        lows, highs, _ = self.objective.range(scores)
        return numbers[~(highs < lows.max())]


def _tally(model: Model, counts: Counts, total: int, safe: Flags) -> Tally:
    assert not isinstance(model.rule, Tolerance)  # the front door refuses it
    undecided = total - counts.sum(axis=1)
    return Tally(counts, undecided, safe & (undecided == 0), model.rule.ties_to)
