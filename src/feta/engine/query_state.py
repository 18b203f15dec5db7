"""Question: one query under way; what all engines share: the clock, the evidence, the exact end.

It is mutable, and lives no longer than the question.
"""

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Counts, Vector
from feta.dyadic import Dyadic
from feta.engine.protocol import Budget
from feta.engine.span import Span
from feta.model import EXACT_CHUNK, Model
from feta.query import FairAt
from feta.rounding import Arithmetic
from feta.rule import Comparator, Objective, Tolerance
from feta.scorer.network.error_bounds import Bounded
from feta.scorer.network.evaluation import Counterparts, Rows
from feta.verdict.certificate import BoundsProof, Certificate, LatticeProof, Proof
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Effort, Fair, Reason, Unfair, Unknown, Verdict

# A counterpart: its number on the lattice, or its row, since real-valued attributes have no numbers.
Point = int | Vector


@dataclass(slots=True)
class BudgetTracker:
    """Counts what a question has cost; it lives no longer than the question."""

    budget: Budget
    started: float = 0.0
    deadline: float = 0.0
    evaluations: int = 0
    solver_calls: int = 0
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

    def late(self) -> bool:
        """Say whether the time is up."""
        if time.monotonic() > self.deadline:
            self.reason = Reason.OUT_OF_TIME
        return self.reason is not None

    def left(self) -> float:
        """Tell how many seconds are left."""
        return max(0.0, self.deadline - time.monotonic())

    def effort(self) -> Effort:
        """Tell what was spent so far."""
        seconds = time.monotonic() - self.started
        return Effort(seconds, self.evaluations, solver_calls=self.solver_calls)


class QueryState:
    """One question about one person: their own scores, and the verdicts that can be given."""

    def __init__(self, query: FairAt, budget: Budget, engine: str) -> None:
        self.query = query
        self.model = query.model
        self.engine = engine
        self.budget_tracker = BudgetTracker(budget)
        self.counterparts = Numbered(self.model, query.person)
        self.span: Span | None = None  # regression: the extremes found so far
        if isinstance(self.model.rule, Tolerance):
            self.span = Span(self.model, query.person)

    @cached_property
    def reference(self) -> Dyadic:
        """The person's own scores, exact."""
        return Rows(self.model.exact, self.query.person[None, :]).exact_scores(
            np.zeros(1, np.int64)
        )

    @property
    def comparator(self) -> Comparator:
        """What distinguishes counterparts treated apart; regression: those beyond the band so far."""
        return (
            self._comparator if self.span is None else self.model.rule.comparator(self.span.scores)
        )

    @property
    def objective(self) -> Objective:
        """What grows as a counterpart gets worse."""
        return self._objective if self.span is None else self.model.rule.objective(self.span.scores)

    @cached_property
    def _comparator(self) -> Comparator:
        return self.model.rule.comparator(self.reference)

    @cached_property
    def _objective(self) -> Objective:
        return self.model.rule.objective(self.reference)

    def differs(self, assignment_ids: Counts) -> Counts | None:
        """Give those of the counterparts that are treated apart, exactly; None when out of time."""
        found, comparator = [], self.comparator
        for start in range(0, len(assignment_ids), EXACT_CHUNK):
            if self.budget_tracker.late():
                return None
            chunk = assignment_ids[start : start + EXACT_CHUNK]
            differs = comparator.decide_exactly(self.counterparts.exact_scores(chunk))
            found.append(chunk[differs == 1])
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def farthest(self, assignment_ids: Counts, goal: Objective | None = None) -> int | None:
        """Find the farthest of some counterparts, exactly; None when out of time.

        The goal is the question's own objective unless another one is given.
        """
        if len(assignment_ids) == 1:
            return int(assignment_ids[0])
        objective, comparator = goal or self.objective, self.comparator
        best: tuple[Dyadic, int, int] | None = None
        for start in range(0, len(assignment_ids), EXACT_CHUNK):
            if self.budget_tracker.late():
                return None
            chunk = assignment_ids[start : start + EXACT_CHUNK]
            scores = self.counterparts.exact_scores(chunk)
            # Among equals, one that is treated apart comes first: a margin of 0 may be either.
            differs = comparator.decide_exactly(scores)
            value, is_apart, number = largest(objective, scores, differs, chunk)
            order = 1 if best is None else int(value.compare(best[0]))
            if best is None or order > 0 or (order == 0 and is_apart > best[1]):
                best = value, is_apart, number
        assert best is not None  # there is always a candidate
        return best[2]

    def fair(self, *, runtime_safe: bool, proof: Proof | None = None) -> Fair:
        """Answer that nobody is treated apart: every counterpart was settled."""
        proof = proof or LatticeProof(self.model.space.lattice.size)
        rule = self.model.rule
        if isinstance(rule, Tolerance) and isinstance(proof, BoundsProof):
            assert self.span is not None
            proof = replace(proof, center=rule.comparator(self.span.scores).center)
        certificate = Certificate(self.query.digest, self.engine, proof)
        return Fair(
            certificate, "safe" if runtime_safe else "sensitive", self.budget_tracker.effort()
        )

    def unfair(self, counterpart: Point) -> Verdict:
        """Answer with a counterpart treated apart, if it replays."""
        found = self.witness(counterpart)
        if found is None:
            return Unknown(Reason.NOT_REPRODUCED, effort=self.budget_tracker.effort())
        return Unfair(found, effort=self.budget_tracker.effort())

    def worst(self, number: int, *, runtime_safe: bool) -> Verdict:
        """Answer with the farthest counterpart; if even that is treated alike, all are."""
        found = self.witness(number)
        if found is None:
            return self.fair(runtime_safe=runtime_safe)
        return Unfair(found, optimal=True, effort=self.budget_tracker.effort())

    def unknown(self, number: int | None = None) -> Unknown:
        """Answer that the budget ran out; the counterpart named may be a counterexample."""
        best = None if number is None else self.witness(number)
        if best is None and self.span is not None:
            best = self.span.pair()
        return Unknown(
            self.budget_tracker.reason or Reason.OUT_OF_TIME,
            best,
            effort=self.budget_tracker.effort(),
        )

    def counterpart(self, number: int) -> Vector:
        """Return the counterpart with this number."""
        return np.asarray(self.model.space.lattice.counterpart(self.query.person, number))

    def witness(self, counterpart: Point) -> Counterexample | None:
        """Replay a counterpart; None if it is treated alike.

        Regression: widen the span by it, and replay the two ends.
        """
        person = self.query.person
        if isinstance(counterpart, int):
            counterpart = self.counterpart(counterpart)
        if self.span is not None:
            self.span.widen(np.asarray(counterpart)[None, :])
            return self.span.pair()
        return Counterexample.witness(self.model, person, counterpart)


@dataclass(frozen=True, eq=False)
class Numbered:
    """All counterparts of one person, addressed by their numbers; none is made until asked for."""

    model: Model
    person: Vector

    def __len__(self) -> int:
        return self.model.space.lattice.size

    def _points(self, chosen: Counts) -> Counterparts:
        return self.model.tabulated.counterparts(self.person[None, :], chosen)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Bounded:
        """Compute scores in float64, with a bound that also covers the given arithmetic."""
        assert chosen is not None  # never all of them at once
        return self._points(chosen).scores(arithmetic)

    def exact_scores(self, chosen: Counts) -> Dyadic:
        """Compute scores exactly, (points, outputs)."""
        return self._points(chosen).exact_scores(np.arange(len(chosen)))


def largest(
    objective: Objective, scores: Dyadic, differs: NDArray[np.int8], assignment_ids: Counts
) -> tuple[Dyadic, int, int]:
    """Find the largest value; among equals one that is treated apart, then the first."""
    values = scores @ Dyadic.of(objective.directions).mT + objective.offsets
    least = min if objective.least else max
    rows = [least(row) for row in values.numerators.tolist()]
    index = max(range(len(rows)), key=lambda row: (rows[row], differs[row], -row))
    value = Dyadic(np.array(rows[index], dtype=object), values.exponent)
    return value, int(differs[index]), int(assignment_ids[index])
