"""Span: the lowest and highest scores of a person's counterparts found so far; what a tolerance compares.

It is mutable, and lives no longer than the question.
"""

import numpy as np

from feta.arrays import Matrix, Vector
from feta.model import Model
from feta.network.dyadic import Dyadic
from feta.rule import Objective
from feta.verdict.counterexample import Counterexample

# What an end of the span maximizes: the score, or the score with its sign changed.
LOWEST = Objective(np.array([[-1.0]]))
HIGHEST = Objective(np.array([[1.0]]))


class Span:
    """Two counterparts of one person, scored exactly; the span between them only widens."""

    def __init__(self, model: Model, person: Vector) -> None:
        self.model = model
        self.lowest = self.highest = person
        self.scores = model.exact.scores(np.stack([person, person]))
        self.moves = 0

    def widen(self, people: Matrix) -> None:
        """Take the lowest and the highest of some counterparts, if they are beyond those so far."""
        for person, score in zip(people, self._exact(people), strict=True):
            if score.compare(self.scores[0])[0] < 0:
                self.lowest = person
                self._move(0, score)
            elif score.compare(self.scores[1])[0] > 0:
                self.highest = person
                self._move(1, score)

    def _exact(self, people: Matrix) -> list[Dyadic]:
        scores = self.model.exact.scores(people)
        return [scores[row] for row in range(len(people))]

    def _move(self, end: int, score: Dyadic) -> None:
        exponent = min(score.exponent, self.scores.exponent)
        numerators = np.array(self.scores.at(exponent), dtype=object)
        numerators[end] = score.at(exponent)
        self.scores = Dyadic(numerators, exponent)
        self.moves += 1

    def pair(self) -> Counterexample | None:
        """Return the two as a counterexample, the lower score first; None within the tolerance."""
        return Counterexample.witness(self.model, self.lowest, self.highest)
