"""Exhaustive: scores every counterpart; the readable reference that other engines are held to.

Memory is bounded by a block of counterparts, whatever the lattice's size.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.engine.protocol import Budget, Until
from feta.engine.score_ranges import ScoreRanges
from feta.model import EXACT_CHUNK, Model
from feta.network.bounded import Bounded
from feta.network.dyadic import Dyadic
from feta.network.points import Counterparts, Points, Rows
from feta.query import FairAt, Query, WorstAt
from feta.rounding import DIFFERENCE, FLOAT64, Arithmetic
from feta.rule import OPEN, Objective, Tolerance
from feta.space.vote_weights import VoteWeights
from feta.verdict.certificate import Certificate, LatticeProof
from feta.verdict.counterexample import Counterexample, Runtime
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Effort, Fair, Reason, Unfair, Unknown, Verdict

# Numbers held per array of a block: some ten arrays of 2^16 float64 are about what a core caches.
BLOCK_NUMBERS = 2**16


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
        search = _Search(query, budget)
        return search.worst() if isinstance(query, WorstAt) else search.any()

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
        meter = _Meter(budget)
        size = model.space.lattice.size if weights is None else len(weights.numbers)
        total = size if weights is None else weights.total
        at_once = max(1, _block_size(model) // size)
        counts = np.zeros((len(people), model.rule.n_classes), dtype=np.int64)
        safe = np.ones(len(people), dtype=bool)
        for first in range(0, len(people), at_once):
            group = slice(first, min(first + at_once, len(people)))
            for points, votes in _blocks(model, people[group], weights):
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
        meter = _Meter(budget)
        found = np.full((3, len(people)), np.nan)
        for row in range(len(people)):
            ranges = ScoreRanges()
            for points, votes in _blocks(model, people[row : row + 1], weights):
                if meter.spent(len(points)):
                    break
                ranges.add(points.numbers, votes, points.scores(FLOAT64))
            else:
                found[:, row] = ranges.spread(_Numbered(model, people[row]))
        return Spread(found[0], found[1], found[2], ~np.isnan(found[0]))


@dataclass(slots=True)
class _Meter:
    """Counts what a question has cost; it lives no longer than the question."""

    budget: Budget
    started: float = 0.0
    deadline: float = 0.0
    evaluations: int = 0
    reason: Reason | None = None

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.deadline = self.budget.deadline()

    def spent(self, n_points: int) -> bool:
        """Say whether scoring this many more points is too much; if not, count them."""
        limit = self.budget.evaluations
        if time.monotonic() > self.deadline:
            self.reason = Reason.OUT_OF_TIME
        elif limit is not None and self.evaluations + n_points > limit:
            self.reason = Reason.OUT_OF_NODES
        else:
            self.evaluations += n_points
        return self.reason is not None

    def effort(self) -> Effort:
        return Effort(time.monotonic() - self.started, self.evaluations)


class _Search:
    """One question about one person."""

    def __init__(self, query: FairAt, budget: Budget) -> None:
        self.query = query
        self.model = query.model
        self.meter = _Meter(budget)
        self.own = Rows(self.model.exact, query.person[None, :]).exact_scores(np.zeros(1, np.int64))
        self.judge = self.model.rule.judge(self.own)

    def any(self) -> Verdict:
        """Find the first counterpart treated apart, or prove that there is none."""
        safe = True
        for points in self._blocks():
            if self.meter.spent(len(points)):
                return self._unknown()
            settled = self.model.settle(points, self.judge, deadline=self.meter.deadline)
            apart = np.flatnonzero(settled.decisions == 1)
            if apart.size:
                return self._unfair(int(points.numbers[apart[0]]))
            if (settled.decisions == OPEN).any():
                self.meter.reason = Reason.OUT_OF_TIME
                return self._unknown()
            safe &= bool(settled.safe.all())
        return self._fair(safe=safe)

    def worst(self) -> Verdict:
        """Find the counterpart farthest on the other side, the first of them on a tie."""
        candidates = _Candidates(self.model.rule.objective(self.own))
        safe = True
        for points in self._blocks():
            if self.meter.spent(len(points)):
                return self._unknown(candidates)
            scores = self.model.runtime_scores(points)
            safe &= bool((self.judge.settle(scores) == 0).all())
            candidates.add(points.numbers, scores.values, scores.errors)
        best = self._exact_best(candidates)
        if best is None:
            return self._unknown(candidates)
        found = self._witness(best)
        if found is None:  # even the farthest is treated alike
            return self._fair(safe=safe)
        return Unfair(found, optimal=True, effort=self.meter.effort())

    def _blocks(self) -> Iterator[Counterparts]:
        for points, _ in _blocks(self.model, self.query.person[None, :], None):
            yield points

    def _witness(self, number: int) -> Counterexample | None:
        other = self.model.space.lattice.counterpart(self.query.person, number)
        return Counterexample.witness(self.model, self.query.person, other)

    def _exact_best(self, candidates: "_Candidates") -> int | None:
        """Settle by exact arithmetic what the error bounds leave open; None when out of time."""
        numbers = candidates.numbers()
        whole = _Numbered(self.model, self.query.person)
        numbers = candidates.sharpened(whole, numbers)
        if len(numbers) == 1:
            return int(numbers[0])
        best: tuple[Dyadic, int, int] | None = None
        for start in range(0, len(numbers), EXACT_CHUNK):
            if time.monotonic() > self.meter.deadline:
                self.meter.reason = Reason.OUT_OF_TIME
                return None
            chunk = numbers[start : start + EXACT_CHUNK]
            scores = whole.exact_scores(chunk)
            # Among equals, one that is treated apart comes first: a margin of 0 may be either.
            apart = self.judge.settle_exactly(scores)
            value, is_apart, number = _largest(candidates.objective, scores, apart, chunk)
            if (
                best is None
                or (order := int(value.compare(best[0]))) > 0
                or (order == 0 and is_apart > best[1])
            ):
                best = value, is_apart, number
        assert best is not None  # a lattice is never empty
        return best[2]

    def _fair(self, *, safe: bool) -> Fair:
        proof = LatticeProof(self.model.space.lattice.size)
        certificate = Certificate(self.query.digest, Exhaustive.name, proof)
        runtime: Runtime = "safe" if safe else "sensitive"
        return Fair(certificate, runtime, self.meter.effort())

    def _unfair(self, number: int) -> Verdict:
        found = self._witness(number)
        if found is None:
            return Unknown(Reason.NOT_REPRODUCED, effort=self.meter.effort())
        return Unfair(found, effort=self.meter.effort())

    def _unknown(self, candidates: "_Candidates | None" = None) -> Unknown:
        leader = None if candidates is None else candidates.leader
        best = None if leader is None else self._witness(leader)
        return Unknown(self.meter.reason or Reason.OUT_OF_TIME, best, effort=self.meter.effort())


class _Candidates:
    """The counterparts that may be the farthest, given what the error bounds say so far."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.floor = -np.inf  # the largest value that some counterpart surely reaches
        self.leader: int | None = None  # the one that seems farthest
        self._highest = -np.inf
        self._kept: list[tuple[Counts, Vector]] = []  # numbers, and what they may reach at most

    def add(self, numbers: Counts, values: Matrix, errors: Matrix) -> None:
        """Look at a block of counterparts."""
        lows, highs, middles = self._range(values, errors)
        self.floor = max(self.floor, float(np.max(lows)))
        place = int(np.argmax(middles))
        if middles[place] > self._highest:
            self._highest, self.leader = float(middles[place]), int(numbers[place])
        kept = np.flatnonzero(~(highs < self.floor))
        self._kept.append((numbers[kept], highs[kept]))

    def _range(self, values: Matrix, errors: Matrix) -> tuple[Vector, Vector, Vector]:
        """Bound each counterpart's value of the objective."""
        directions = self.objective.directions
        offsets = self.objective.offsets.floats()
        middles = values @ directions.T + offsets
        sizes = np.abs(values) @ np.abs(directions).T + np.abs(offsets)
        reach = errors @ np.abs(directions).T * (1 + DIFFERENCE) + DIFFERENCE * sizes
        with np.errstate(invalid="ignore"):  # inf − inf where nothing is known
            lows = np.nan_to_num(middles - reach, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            highs = np.nan_to_num(middles + reach, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        if self.objective.least:
            return lows.min(axis=1), highs.min(axis=1), middles.min(axis=1)
        return lows.max(axis=1), highs.max(axis=1), middles.max(axis=1)

    def numbers(self) -> Counts:
        """Give the numbers that are still possible, ascending."""
        return np.concatenate([kept[~(highs < self.floor)] for kept, highs in self._kept])

    def sharpened(self, points: Points, numbers: Counts) -> Counts:
        """Drop those that FETA's own, tighter error bound rules out."""
        scores = points.scores(FLOAT64, numbers)
        lows, highs, _ = self._range(scores.values, scores.errors)
        return numbers[~(highs < lows.max())]


def _largest(
    objective: Objective, scores: Dyadic, apart: NDArray[np.int8], numbers: Counts
) -> tuple[Dyadic, int, int]:
    """Find the largest value; among equals one that is treated apart, then the first."""
    values = scores @ Dyadic.of(objective.directions).mT + objective.offsets
    least = min if objective.least else max
    rows = [least(row) for row in values.numerators.tolist()]
    place = max(range(len(rows)), key=lambda row: (rows[row], apart[row], -row))
    value = Dyadic(np.array(rows[place], dtype=object), values.exponent)
    return value, int(apart[place]), int(numbers[place])


def _block_size(model: Model) -> int:
    widths = [model.network.first.outputs, *(len(layer.bias) for layer in model.network.layers)]
    return max(1, BLOCK_NUMBERS // max(widths))


def _blocks(
    model: Model, people: Matrix, weights: VoteWeights | None
) -> Iterator[tuple[Counterparts, Counts]]:
    """Give counterparts a block at a time, and the votes that each number has."""
    size = model.space.lattice.size if weights is None else len(weights.numbers)
    step = max(1, _block_size(model) // len(people))
    for start in range(0, size, step):
        stop = min(start + step, size)
        if weights is None:
            numbers, votes = np.arange(start, stop), np.ones(stop - start, dtype=np.int64)
        else:
            numbers, votes = weights.numbers[start:stop], weights.votes[start:stop]
        yield model.tabulated.counterparts(people, numbers), votes


@dataclass(frozen=True, eq=False)
class _Numbered:
    """All counterparts of one person, addressed by their numbers; none is made until asked for."""

    model: Model
    person: Vector

    def __len__(self) -> int:
        return self.model.space.lattice.size

    def _points(self, chosen: Counts) -> Counterparts:
        return self.model.tabulated.counterparts(self.person[None, :], chosen)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Bounded:
        assert chosen is not None  # never all of them at once
        return self._points(chosen).scores(arithmetic)

    def exact_scores(self, chosen: Counts) -> Dyadic:
        return self._points(chosen).exact_scores(np.arange(len(chosen)))


def _tally(model: Model, counts: Counts, total: int, safe: Flags) -> Tally:
    assert not isinstance(model.rule, Tolerance)  # the front door refuses it
    undecided = total - counts.sum(axis=1)
    return Tally(counts, undecided, safe & (undecided == 0), model.rule.ties_to)
