"""Span: the lowest and highest scores of a person's counterparts found so far; what a tolerance compares.

It is mutable, and lives no longer than the question.
"""

import numpy as np

from feta.arrays import Matrix, Vector
from feta.dyadic import Dyadic
from feta.model import Model
from feta.rule import Objective, separates
from feta.verdict.counterexample import Counterexample

# What an end of the span maximizes: the score, or the score with its sign changed.
LOWEST = Objective(np.array([[-1.0]]))
HIGHEST = Objective(np.array([[1.0]]))


class Span:
    """Two counterparts of one person, scored exactly; the span between them only widens."""

    def __init__(self, model: Model, person: Vector) -> None:
        self.model = model
        self.ends = [person, person]  # the lowest and the highest
        self.scores = model.exact.scores(np.stack(self.ends))
        self.moves = 0
        self._pair: Counterexample | None = None

    def widen(self, people: Matrix) -> None:
        """Take the lowest and the highest of some counterparts, if they are beyond those so far."""
        scores = self.model.exact.scores(people)
        for row, person in enumerate(people):
            if scores[row].compare(self.scores[0])[0] < 0:
                self._put(0, person, scores[row])
            elif scores[row].compare(self.scores[1])[0] > 0:
                self._put(1, person, scores[row])

    def reach(self, goal: Objective, person: Vector) -> None:
        """Make a counterpart the end that a goal seeks; nobody is beyond it, but some may be equal."""
        self._put(0 if goal is LOWEST else 1, person, self.model.exact.scores(person[None, :])[0])

    def _put(self, end: int, person: Vector, score: Dyadic) -> None:
        exponent = min(score.exponent, self.scores.exponent)
        numerators = np.array(self.scores.at(exponent), dtype=object)
        numerators[end] = score.at(exponent)
        self.scores = Dyadic(numerators, exponent)
        self.ends[end] = person
        self.moves += 1
        self._pair = None

    def pair(self) -> Counterexample | None:
        """Return the two as a counterexample, the lower score first; None within the tolerance."""
        if self._pair is None and separates(self.model.rule, self.scores):
            self._pair = Counterexample.witness(self.model, *self.ends)
        return self._pair
