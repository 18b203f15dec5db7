"""Exhaustive: scores every counterpart; the readable reference that other engines are held to.

Memory is bounded by a block of counterparts, whatever the lattice's size.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.engine.protocol import Budget, Until
from feta.model import EXACT_CHUNK, Model
from feta.network.dyadic import Dyadic
from feta.network.points import Counterparts, Points, Rows
from feta.query import FairAt, Query, WorstAt
from feta.rounding import FLOAT64
from feta.rule import OPEN
from feta.verdict.certificate import Certificate, LatticeProof
from feta.verdict.counterexample import Counterexample, Runtime
from feta.verdict.tally import Tally
from feta.verdict.verdict import Effort, Fair, Reason, Unfair, Unknown, Verdict

# Numbers held per array of a block: some ten arrays of 2^16 float64 are about what a core caches.
BLOCK_NUMBERS = 2**16


class Exhaustive:
    """Every counterpart in blocks, an error bound, and exact arithmetic for what it leaves open."""

    name: ClassVar[str] = "exhaustive"
    about: ClassVar[str] = (
        "verify, worst, tally on finite sensitive domains: every counterpart, exactly"
    )

    def accepts(self, model: Model) -> bool:
        """Take every finite lattice."""
        return model.space.finite

    def solve(self, query: Query, budget: Budget) -> Verdict:
        """Answer one question."""
        search = _Search(query, budget)
        return search.worst() if isinstance(query, WorstAt) else search.any()

    def tally(self, model: Model, people: Matrix, budget: Budget, *, until: Until) -> Tally:
        """Count the counterparts' decisions, several people at a time where the lattice is small."""
        meter = _Meter(budget)
        size = model.space.lattice.size
        at_once = max(1, _block_size(model) // size)
        counts = np.zeros((len(people), model.rule.n_classes), dtype=np.int64)
        safe = np.ones(len(people), dtype=bool)
        for first in range(0, len(people), at_once):
            group = slice(first, min(first + at_once, len(people)))
            for points in _blocks(model, people[group]):
                if meter.spent(len(points)):
                    break
                settled = model.settle(points, deadline=meter.deadline)
                table = settled.decisions.reshape(len(points.people), -1)
                safe[group] &= settled.safe.reshape(len(points.people), -1).all(axis=1)
                for number in range(model.rule.n_classes):
                    counts[group, number] += (table == number).sum(axis=1)
                if until == "majority" and _tally(counts[group], size, safe[group]).settled.all():
                    break
        return _tally(counts, size, safe)


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
        self.own = int(
            self.model.settle(Rows(self.model.exact, query.person[None, :])).decisions[0]
        )

    def any(self) -> Verdict:
        """Find the first counterpart decided apart, or prove that there is none."""
        safe = True
        for points in self._blocks():
            if self.meter.spent(len(points)):
                return self._unknown()
            settled = self.model.settle(points, deadline=self.meter.deadline)
            apart = np.flatnonzero((settled.decisions != self.own) & (settled.decisions != OPEN))
            if apart.size:
                return self._unfair(points.start + int(apart[0]))
            if (settled.decisions == OPEN).any():
                self.meter.reason = Reason.OUT_OF_TIME
                return self._unknown()
            safe &= bool(settled.safe.all())
        return self._fair(safe=safe)

    def worst(self) -> Verdict:
        """Find the counterpart farthest on the other side, the first of them on a tie."""
        candidates = _Candidates(self.model.rule.directions(self.own))
        safe = True
        for points in self._blocks():
            if self.meter.spent(len(points)):
                return self._unknown(candidates)
            scores = self.model.runtime_scores(points)
            safe &= bool((self.model.rule.settle(scores) == self.own).all())
            candidates.add(points.start, scores.values, scores.errors)
        best = self._exact_best(candidates)
        if best is None:
            return self._unknown(candidates)
        found = self._witness(best)
        if found is None:  # even the farthest is decided alike
            return self._fair(safe=safe)
        return Unfair(found, optimal=True, effort=self.meter.effort())

    def _blocks(self) -> Iterator[Counterparts]:
        return _blocks(self.model, self.query.person[None, :])

    def _witness(self, number: int) -> Counterexample | None:
        other = self.model.space.lattice.counterpart(self.query.person, number)
        return Counterexample.witness(self.model, self.query.person, other)

    def _exact_best(self, candidates: "_Candidates") -> int | None:
        """Settle by exact arithmetic what the error bounds leave open; None when out of time."""
        numbers = candidates.numbers()
        whole = self.model.tabulated.counterparts(
            self.query.person[None, :], 0, self.model.space.lattice.size
        )
        numbers = candidates.sharpened(whole, numbers)
        if len(numbers) == 1:
            return int(numbers[0])
        directions = Dyadic.of(candidates.directions)
        best: tuple[int, Dyadic] | None = None
        for start in range(0, len(numbers), EXACT_CHUNK):
            if time.monotonic() > self.meter.deadline:
                self.meter.reason = Reason.OUT_OF_TIME
                return None
            chunk = numbers[start : start + EXACT_CHUNK]
            values = whole.exact_scores(chunk) @ directions.mT
            number, value = _largest(chunk, values)
            if best is None or value.compare(best[1]) > 0:
                best = number, value
        assert best is not None
        return best[0]

    def _fair(self, *, safe: bool) -> Fair:
        proof = LatticeProof(self.model.space.lattice.size, self.own)
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

    def __init__(self, directions: Matrix) -> None:
        self.directions = directions
        self.floor = -np.inf  # the largest value that some counterpart surely reaches
        self.leader: int | None = None  # the one that seems farthest
        self._highest = -np.inf
        self._kept: list[tuple[Counts, Vector]] = []  # numbers, and what they may reach at most

    def add(self, start: int, values: Matrix, errors: Matrix) -> None:
        """Look at a block of counterparts numbered from start."""
        lows, highs, middles = self._range(values, errors)
        self.floor = max(self.floor, float(np.max(lows)))
        place = int(np.argmax(middles))
        if middles[place] > self._highest:
            self._highest, self.leader = float(middles[place]), start + place
        kept = np.flatnonzero(~(highs < self.floor))
        self._kept.append((start + kept, highs[kept]))

    def _range(self, values: Matrix, errors: Matrix) -> tuple[Vector, Vector, Vector]:
        """Bound each counterpart's largest value over the directions.

        The last rounding of a sum of two is covered by stretching the error by a billionth.
        """
        middles = values @ self.directions.T
        reach = (errors @ np.abs(self.directions).T) * (1 + 1e-9)
        reach = reach + np.abs(values) @ np.abs(self.directions).T * 2.0**-50
        with np.errstate(invalid="ignore"):  # inf − inf where nothing is known
            lows = np.nan_to_num(middles - reach, nan=-np.inf)
            highs = np.nan_to_num(middles + reach, nan=np.inf, posinf=np.inf)
        return lows.max(axis=1), highs.max(axis=1), middles.max(axis=1)

    def numbers(self) -> Counts:
        """Give the numbers that are still possible, ascending."""
        return np.concatenate([kept[~(highs < self.floor)] for kept, highs in self._kept])

    def sharpened(self, points: Points, numbers: Counts) -> Counts:
        """Drop those that FETA's own, tighter error bound rules out."""
        scores = points.scores(FLOAT64, numbers)
        lows, highs, _ = self._range(scores.values, scores.errors)
        return numbers[~(highs < lows.max())]


def _largest(numbers: Counts, values: Dyadic) -> tuple[int, Dyadic]:
    """Find the first of the largest values over all directions."""
    rows = [max(row) for row in values.numerators.tolist()]
    place = max(range(len(rows)), key=lambda row: (rows[row], -row))
    return int(numbers[place]), Dyadic(np.array(rows[place], dtype=object), values.exponent)


def _block_size(model: Model) -> int:
    widths = [model.network.first.outputs, *(len(layer.bias) for layer in model.network.layers)]
    return max(1, BLOCK_NUMBERS // max(widths))


def _blocks(model: Model, people: Matrix) -> Iterator[Counterparts]:
    size = model.space.lattice.size
    step = max(1, _block_size(model) // len(people))
    for start in range(0, size, step):
        yield model.tabulated.counterparts(people, start, min(start + step, size))


def _tally(counts: Counts, size: int, safe: Flags) -> Tally:
    undecided = size - counts.sum(axis=1)
    return Tally(counts, undecided, safe & (undecided == 0))
