"""Span of the scores of one person's counterparts, which a tolerance limits."""

import numpy as np

from feta.arrays import Matrix, Vector
from feta.dyadic import Dyadic
from feta.model import Model
from feta.rule.band import Band
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Objective
from feta.verdict.counterexample import Counterexample

# The objectives of the two ends: the negated score, and the score.
LOWEST = Objective(np.array([[-1.0]]))
HIGHEST = Objective(np.array([[1.0]]))

ZERO = Dyadic.of(0.0)


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
            if scores[row : row + 1].minus(self.scores[:1]).signs(ZERO)[0, 0] == -1:
                self._set_end(0, person, scores[row : row + 1])
            elif scores[row : row + 1].minus(self.scores[1:]).signs(ZERO)[0, 0] == 1:
                self._set_end(1, person, scores[row : row + 1])

    def set_optimum(self, objective: Objective, person: Vector) -> None:
        """Make a counterpart that maximizes the objective an end, also if its score is known."""
        end = 0 if objective is LOWEST else 1
        self._set_end(end, person, self.model.exact_scores(person[None, :]))

    def _set_end(self, end: int, person: Vector, score: ExactScores) -> None:
        ends = (score, self.scores[1:]) if end == 0 else (self.scores[:1], score)
        self.scores = ends[0].joined(ends[1])
        self.ends[end] = person
        self.moves += 1
        self._pair = None

    def is_within(self) -> bool:
        """Return whether the two ends provably differ by the tolerance at most."""
        tolerance = self.model.rule.tolerance
        assert tolerance is not None  # only a tolerance has a span
        signs = self.scores[1:].minus(self.scores[:1]).signs(Dyadic.of(tolerance))
        return int(signs[0, 0]) in (-1, 0)

    @property
    def band(self) -> Band:
        """The band of the width of the tolerance around the middle of the known scores."""
        tolerance = self.model.rule.tolerance
        assert tolerance is not None  # only a tolerance has a span
        return Band.around(tolerance, self.scores.centers)

    def pair(self) -> Counterexample | None:
        """Return both ends as a counterexample, the lower first; None within the tolerance."""
        if self._pair is None and self.model.rule.separates(self.scores):
            self._pair = Counterexample.witness(self.model, *self.ends)
        return self._pair
