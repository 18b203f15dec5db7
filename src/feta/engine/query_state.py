"""State of one query, shared by all engines: budget, exact comparisons, verdicts."""

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Counts, Vector
from feta.dyadic import Dyadic
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.counterparts import IndexedCounterparts
from feta.engine.protocol import Budget
from feta.engine.span import Span
from feta.model import EXACT_CHUNK
from feta.query import FairAt
from feta.rule import Comparator, Tolerance
from feta.scorer.protocol import Objective
from feta.verdict.certificate import BoundsProof, Certificate, LatticeProof, Proof
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown, Verdict

# A counterpart: its assignment ID, or its row, since real-valued attributes have no IDs.
Point = int | Vector


class QueryState:
    """One query about one person; it is mutable and lives no longer than the query."""

    def __init__(self, query: FairAt, budget: Budget, engine: str) -> None:
        self.query = query
        self.model = query.model
        self.engine = engine
        self.budget_tracker = BudgetTracker(budget)
        self.counterparts = IndexedCounterparts(self.model, query.person)
        self.span: Span | None = None  # regression: the extreme scores known so far
        if isinstance(self.model.rule, Tolerance):
            self.span = Span(self.model, query.person)

    @cached_property
    def reference(self) -> Dyadic:
        """The person's own scores, exact."""
        return self.model.exact_scores(self.query.person[None, :])

    @property
    def comparator(self) -> Comparator:
        """Comparator with the person's decision; regression: with the band around the span."""
        return (
            self._comparator if self.span is None else self.model.rule.comparator(self.span.scores)
        )

    @property
    def objective(self) -> Objective:
        """Objective that grows as a counterpart gets worse."""
        return self._objective if self.span is None else self.model.rule.objective(self.span.scores)

    @cached_property
    def _comparator(self) -> Comparator:
        return self.model.rule.comparator(self.reference)

    @cached_property
    def _objective(self) -> Objective:
        return self.model.rule.objective(self.reference)

    def differs(self, assignment_ids: Counts) -> Counts | None:
        """Select the counterparts with a different decision, exactly; None when out of time."""
        matches, comparator = [], self.comparator
        for start in range(0, len(assignment_ids), EXACT_CHUNK):
            if self.budget_tracker.late():
                return None
            chunk = assignment_ids[start : start + EXACT_CHUNK]
            differs = comparator.decide_exactly(self.counterparts.exact_scores(chunk))
            matches.append(chunk[differs == 1])
        return np.concatenate([np.zeros(0, dtype=np.int64), *matches])

    def find_worst(self, assignment_ids: Counts, objective: Objective | None = None) -> int | None:
        """Select the counterpart with the largest objective, exactly; None when out of time.

        The objective is that of the query unless another one is given.
        """
        if len(assignment_ids) == 1:
            return int(assignment_ids[0])
        objective, comparator = objective or self.objective, self.comparator
        best: tuple[Dyadic, int, int] | None = None
        for start in range(0, len(assignment_ids), EXACT_CHUNK):
            if self.budget_tracker.late():
                return None
            chunk = assignment_ids[start : start + EXACT_CHUNK]
            scores = self.counterparts.exact_scores(chunk)
            # Among equals, prefer a different decision: with a margin of 0, both can occur.
            differences = comparator.decide_exactly(scores)
            value, differs, assignment_id = largest(objective, scores, differences, chunk)
            order = 1 if best is None else int(value.compare(best[0]))
            if best is None or order > 0 or (order == 0 and differs > best[1]):
                best = value, differs, assignment_id
        assert best is not None  # there is at least one candidate
        return best[2]

    def fair(self, *, runtime_safe: bool, proof: Proof | None = None) -> Fair:
        """Return the verdict that all counterparts get the same decision.

        Without a proof by bounds, every counterpart must have been decided.
        """
        proof = proof or LatticeProof(self.model.relation.count(self.query.person))
        rule = self.model.rule
        if isinstance(rule, Tolerance) and isinstance(proof, BoundsProof):
            assert self.span is not None
            proof = replace(proof, center=rule.comparator(self.span.scores).center)
        certificate = Certificate(self.query.digest, self.engine, proof)
        return Fair(
            certificate, "safe" if runtime_safe else "sensitive", self.budget_tracker.effort()
        )

    def unfair(self, counterpart: Point) -> Verdict:
        """Return the verdict for a counterpart with a different decision, if it replays."""
        pair = self.witness(counterpart)
        if pair is None:
            return Unknown(Reason.NOT_REPRODUCED, effort=self.budget_tracker.effort())
        return Unfair(pair, effort=self.budget_tracker.effort())

    def worst(self, assignment_id: int, *, runtime_safe: bool) -> Verdict:
        """Return the verdict for the worst counterpart; fair if it gets the same decision."""
        pair = self.witness(assignment_id)
        if pair is None:
            return self.fair(runtime_safe=runtime_safe)
        return Unfair(pair, optimal=True, effort=self.budget_tracker.effort())

    def unknown(self, assignment_id: int | None = None) -> Unknown:
        """Return the verdict for a spent budget; the counterpart may be a counterexample."""
        best = None if assignment_id is None else self.witness(assignment_id)
        if best is None and self.span is not None:
            best = self.span.pair()
        return Unknown(
            self.budget_tracker.reason or Reason.OUT_OF_TIME,
            best,
            effort=self.budget_tracker.effort(),
        )

    def counterpart(self, assignment_id: int) -> Vector:
        """Return the counterpart with this assignment."""
        return np.asarray(self.model.relation.counterpart(self.query.person, assignment_id))

    def witness(self, counterpart: Point) -> Counterexample | None:
        """Replay a counterpart; return None if it gets the same decision.

        Regression: widen the span by it, and replay the two ends.
        """
        person = self.query.person
        if isinstance(counterpart, int):
            counterpart = self.counterpart(counterpart)
        if self.span is not None:
            self.span.widen(np.asarray(counterpart)[None, :])
            return self.span.pair()
        return Counterexample.witness(self.model, person, counterpart)


def largest(
    objective: Objective, scores: Dyadic, differs: NDArray[np.int8], assignment_ids: Counts
) -> tuple[Dyadic, int, int]:
    """Return the largest value, whether its decision differs, and its assignment ID.

    Among equal values, a different decision comes first, then the first row.
    """
    values = scores @ Dyadic.of(objective.directions).mT + objective.offsets
    combine = min if objective.least else max
    rows = [combine(row) for row in values.numerators.tolist()]
    index = max(range(len(rows)), key=lambda row: (rows[row], differs[row], -row))
    value = Dyadic(np.array(rows[index], dtype=object), values.exponent)
    return value, int(differs[index]), int(assignment_ids[index])
