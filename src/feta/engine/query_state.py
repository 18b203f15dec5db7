"""State of one query, shared by all engines: budget, exact comparisons, verdicts."""

from dataclasses import dataclass, replace
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
from feta.rule.comparator import UNDECIDED, Comparator, Decisions
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Objective, doubt_at, has_scores, prepare
from feta.verdict.certificate import BoundsProof, Certificate, LatticeProof, Proof
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import DOUBT_REASONS, Fair, Reason, Unfair, Unknown, Verdict

# What `worst` says about the pair of a model that returns labels only.
NO_GAP = (
    "the model returns labels only, so there is no gap: the pair is a counterexample, and no "
    "counterexample is worse than another"
)

# A counterpart: its assignment ID, or its row, since real-valued attributes have no IDs.
Point = int | Vector


@dataclass(frozen=True, slots=True, eq=False)
class ComparedIds:
    """Counterparts with a different decision, and whether all others have the same one."""

    differs: Counts
    decided: bool


@dataclass(frozen=True, slots=True)
class WorstId:
    """The counterpart with the largest objective; not optimal if scores are intervals."""

    assignment_id: int
    optimal: bool = True


class QueryState:
    """One query about one person; it is mutable and lives no longer than the query."""

    def __init__(self, query: FairAt, budget: Budget, engine: str) -> None:
        self.query = query
        self.model = query.model
        self.engine = engine
        self.budget_tracker = BudgetTracker(budget)
        self.counterparts = IndexedCounterparts(self.model, query.person)
        prepare(self.model.restricted, query.person)
        self.span: Span | None = None  # regression: the extreme scores known so far
        if self.model.rule.tolerance is not None:
            self.span = Span(self.model, query.person)

    @cached_property
    def reference(self) -> ExactScores:
        """The person's own scores, exact."""
        return self.model.exact_scores(self.query.person[None, :])

    @cached_property
    def decision(self) -> Decisions:
        """The decision about the person, one number in an array."""
        points = self.model.points(self.query.person[None, :])
        return self.model.resolve(points, self.model.rule).decisions

    @property
    def comparator(self) -> Comparator:
        """Comparator with the person's decision; regression: with the band around the span."""
        return self._comparator if self.span is None else self.span.band

    @property
    def objective(self) -> Objective:
        """Objective that grows as a counterpart gets worse."""
        return self._objective if self.span is None else self.span.band.objective()

    @cached_property
    def _comparator(self) -> Comparator:
        return self.model.rule.comparator(self.reference)

    @cached_property
    def _objective(self) -> Objective:
        return self.model.rule.objective(self.reference)

    def compare(self, assignment_ids: Counts) -> "ComparedIds | None":
        """Compare counterparts exactly with the person; None when out of time."""
        if not len(assignment_ids):
            return ComparedIds(assignment_ids, decided=True)
        matches, decided, comparator = [], True, self.comparator
        for start in range(0, len(assignment_ids), EXACT_CHUNK):
            if self.budget_tracker.late():
                return None
            chunk = assignment_ids[start : start + EXACT_CHUNK]
            differs = comparator.decide_exactly(self.counterparts.exact_scores(chunk))
            matches.append(chunk[differs == 1])
            decided = decided and not (differs == UNDECIDED).any()
        return ComparedIds(np.concatenate(matches), decided)

    def decide_rest(self, assignment_ids: Counts, *, runtime_safe: bool) -> Verdict:
        """Return the verdict if all other counterparts provably get the same decision."""
        compared = self.compare(assignment_ids)
        if compared is None:
            return self.unknown()
        if len(compared.differs):
            return self.unfair(int(compared.differs[0]))
        return self.fair(runtime_safe=runtime_safe) if compared.decided else self.not_separable()

    def find_worst(
        self, assignment_ids: Counts, objective: Objective | None = None
    ) -> "WorstId | None":
        """Select the counterpart with the largest objective, exactly; None when out of time.

        The objective is that of the query unless another one is given.
        """
        if len(assignment_ids) == 1:
            return WorstId(int(assignment_ids[0]))
        objective, comparator = objective or self.objective, self.comparator
        best: tuple[Dyadic, int, int] | None = None
        exact = True
        for start in range(0, len(assignment_ids), EXACT_CHUNK):
            if self.budget_tracker.late():
                return None
            chunk = assignment_ids[start : start + EXACT_CHUNK]
            scores = self.counterparts.exact_scores(chunk)
            exact = exact and scores.radii is None
            # Among equals, prefer a different decision: with a margin of 0, both can occur.
            differences = comparator.decide_exactly(scores)
            value, differs, assignment_id = largest(objective, scores, differences, chunk)
            order = 1 if best is None else int(value.compare(best[0]))
            if best is None or order > 0 or (order == 0 and differs > best[1]):
                best = value, differs, assignment_id
        assert best is not None  # there is at least one candidate
        return WorstId(best[2], optimal=exact)

    def worst_of(self, assignment_ids: Counts, *, runtime_safe: bool) -> Verdict:
        """Return the verdict for the worst of these candidates; all others are provably better."""
        worst = self.find_worst(assignment_ids)
        if worst is None:
            return self.unknown(int(assignment_ids[0]))
        pair = self._witness_of(worst.assignment_id)
        if pair is not None:
            gaps, effort = has_scores(self.model.scorer), self.budget_tracker.effort()
            optimal = worst.optimal and gaps
            return Unfair(pair, optimal, effort, detail="" if gaps else NO_GAP)
        return self.decide_rest(assignment_ids, runtime_safe=runtime_safe)

    def _witness_of(self, assignment_id: int) -> Counterexample | None:
        """Replay a counterpart, unless it is known to get the same decision."""
        scores = self.counterparts.exact_scores(np.array([assignment_id]))
        same = self.comparator.decide_exactly(scores)[0] == 0
        return None if same and self.span is None else self.witness(assignment_id)

    def fair(self, *, runtime_safe: bool, proof: Proof | None = None) -> Fair:
        """Return the verdict that all counterparts get the same decision.

        Without a proof by bounds, every counterpart must have been decided.
        """
        proof = proof or LatticeProof(self.model.relation.count(self.query.person))
        if self.span is not None and isinstance(proof, BoundsProof):
            proof = replace(proof, center=self.span.band.center)
        certificate = Certificate(self.query.digest, self.engine, proof)
        return Fair(
            certificate, "safe" if runtime_safe else "sensitive", self.budget_tracker.effort()
        )

    def unfair(self, counterpart: Point) -> Verdict:
        """Return the verdict for a counterpart with a different decision, if it replays."""
        pair = self.witness(counterpart)
        if pair is None:
            return self._not_reproduced()
        return Unfair(pair, effort=self.budget_tracker.effort())

    def _not_reproduced(self) -> Unknown:
        """Return the verdict for a pair that does not replay; a counted model may be the reason."""
        if doubt_at(self.model.restricted, self.query.person) is not None:
            return self.not_separable()
        return Unknown(Reason.NOT_REPRODUCED, effort=self.budget_tracker.effort())

    def not_separable(self) -> Unknown:
        """Return the verdict for scores that the scorer cannot separate from a tie.

        If the answers of the model itself are in doubt, the verdict shows a row.
        """
        return replace(undecided(self.query), effort=self.budget_tracker.effort())

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


def undecided(query: FairAt) -> Unknown:
    """Return the verdict for scores that are intervals, with the reason of a counted model."""
    doubt = doubt_at(query.model.restricted, query.person)
    if doubt is None:
        return Unknown(Reason.NOT_SEPARABLE)
    return Unknown(DOUBT_REASONS[doubt.kind], detail=doubt.message)


def largest(
    objective: Objective, scores: ExactScores, differs: NDArray[np.int8], assignment_ids: Counts
) -> tuple[Dyadic, int, int]:
    """Return the largest value, whether its decision differs, and its assignment ID.

    Among equal values, a different decision comes first, then the first row.
    """
    values = scores.combined(objective.directions, objective.offsets).centers
    combine = min if objective.least else max
    rows = [combine(row) for row in values.numerators.tolist()]
    index = max(range(len(rows)), key=lambda row: (rows[row], differs[row], -row))
    value = Dyadic(np.array(rows[index], dtype=object), values.exponent, values.denominator)
    return value, int(differs[index]), int(assignment_ids[index])
