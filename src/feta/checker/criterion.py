"""Criteria that all counterparts must satisfy, decided by the checker's own exact scores."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Matrix, Vector
from feta.checker.evaluators import Evaluator
from feta.checker.integers import exact
from feta.model import Model
from feta.rule.comparator import UNDECIDED, Comparator

# What is wrong with a counterpart that violates a decision, or a band of scores.
DIFFERENT = "with a different decision"
OUTSIDE = "with a score outside the band around the center"


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """What every counterpart must satisfy: the person's decision, or a band of scores."""

    model: Model
    evaluator: Evaluator
    comparator: Comparator
    violation: str = DIFFERENT

    def objection(self, people: Matrix) -> str:
        """Describe the first counterpart that does not provably agree; empty if all agree."""
        decisions = self.comparator.decide_exactly(self.evaluator.scores(people))
        rows = np.flatnonzero(decisions)
        if not rows.size:
            return ""
        counterpart = self.model.space.decode(people[rows[0]])
        if decisions[rows[0]] == UNDECIDED:
            return f"a counterpart whose score cannot be separated from a tie, {counterpart}"
        return f"a counterpart {self.violation}, {counterpart}"


class SpanCriterion:
    """The lowest and the highest score of the counterparts so far; it lives for one proof."""

    def __init__(
        self, model: Model, evaluator: Evaluator, person: Vector, tolerance: float
    ) -> None:
        self.model, self.evaluator = model, evaluator
        self.tolerance = exact(tolerance)
        self.ends = person[None, :]
        self.scores = evaluator.scores(self.ends)

    def objection(self, people: Matrix) -> str:
        """Describe two counterparts that are not provably within the tolerance; empty if none."""
        people = np.concatenate([self.ends, people])
        scores = self.scores.joined(self.evaluator.scores(people[len(self.ends) :]))
        lows, highs = scores.centers - scores.radius, scores.centers + scores.radius
        rows = [int(np.argmin(lows.numerators)), int(np.argmax(highs.numerators))]
        self.ends, self.scores = people[rows], scores[rows]
        if (highs[rows[1]] - lows[rows[0]]).compare(self.tolerance)[0] <= 0:
            return ""
        low, high = (self.model.space.decode(person) for person in self.ends)
        return f"two counterparts not provably within the tolerance, {low} and {high}"
