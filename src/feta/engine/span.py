"""Span of the scores of one person's counterparts, which a tolerance limits."""

import numpy as np

from feta.arrays import Matrix, Vector
from feta.dyadic import Dyadic
from feta.model import Model
from feta.rule import separates
from feta.scorer.protocol import Objective
from feta.verdict.counterexample import Counterexample

# The objectives of the two ends: the negated score, and the score.
LOWEST = Objective(np.array([[-1.0]]))
HIGHEST = Objective(np.array([[1.0]]))


class Span:
    """The lowest and the highest score known so far, exact; it only widens.

    It is mutable and belongs to one query.
    """

    def __init__(self, model: Model, person: Vector) -> None:
        self.model = model
        self.ends = [person, person]  # the counterparts with the lowest and the highest score
        self.scores = model.exact_scores(np.stack(self.ends))
        self.moves = 0
        self._pair: Counterexample | None = None

    def widen(self, people: Matrix) -> None:
        """Extend the span to the scores of some counterparts."""
        scores = self.model.exact_scores(people)
        for row, person in enumerate(people):
            if scores[row].compare(self.scores[0])[0] < 0:
                self._set_end(0, person, scores[row])
            elif scores[row].compare(self.scores[1])[0] > 0:
                self._set_end(1, person, scores[row])

    def set_optimum(self, objective: Objective, person: Vector) -> None:
        """Make a counterpart that maximizes the objective an end, also if its score is known."""
        end = 0 if objective is LOWEST else 1
        self._set_end(end, person, self.model.exact_scores(person[None, :])[0])

    def _set_end(self, end: int, person: Vector, score: Dyadic) -> None:
        exponent = min(score.exponent, self.scores.exponent)
        numerators = np.array(self.scores.at(exponent), dtype=object)
        numerators[end] = score.at(exponent)
        self.scores = Dyadic(numerators, exponent)
        self.ends[end] = person
        self.moves += 1
        self._pair = None

    def pair(self) -> Counterexample | None:
        """Return both ends as a counterexample, the lower first; None within the tolerance."""
        if self._pair is None and separates(self.model.rule, self.scores):
            self._pair = Counterexample.witness(self.model, *self.ends)
        return self._pair
