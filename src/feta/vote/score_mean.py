"""The mean of scores: sums of dyadic numbers, compared exactly."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Counts
from feta.rounding import FLOAT64
from feta.scorer.protocol import CounterpartPoints
from feta.vote.totals import Totals, outward


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMean:
    """Each counterpart contributes its score."""

    unit = 1

    def totals(self, points: CounterpartPoints, votes: Counts) -> Totals:
        """Sum the scores in float64; the bounds cover every order of summation."""
        scores = points.scores(FLOAT64)
        shape = (len(points.people), -1)
        values, errors = (part[:, 0].reshape(shape) for part in (scores.values, scores.errors))
        weights = votes.astype(np.float64)
        relative = FLOAT64.gamma(len(votes) + 2)
        with np.errstate(invalid="ignore", over="ignore"):  # unknown or huge scores
            total, size, error = values @ weights, np.abs(values) @ weights, errors @ weights
            return Totals(*outward(total, error * (1 + relative) + relative * size + FLOAT64.tiny))

    def exact_total(self, points: CounterpartPoints, votes: Counts) -> Fraction | None:
        """Return the sum for one person without rounding; None for intervals of scores."""
        scores = points.exact_scores(np.arange(len(points)))
        if scores.radii is not None:
            return None
        pairs = zip(scores.centers.fractions(), votes.tolist(), strict=True)
        return sum((score * vote for score, vote in pairs), Fraction(0))
