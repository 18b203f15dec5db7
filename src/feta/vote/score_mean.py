"""The mean of scores: sums of dyadic numbers, compared exactly."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Counts
from feta.rounding import FLOAT64
from feta.scorer.protocol import CounterpartPoints
from feta.vote.totals import ExactTotals, Steps, Totals, outward


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMean:
    """Each counterpart contributes its scores.

    With `of_margins`, a score is the difference 2y − 1 of two shares, and contributes the share y.
    """

    of_margins: bool = False

    unit = 1

    @property
    def steps(self) -> Steps | None:
        """No thresholds: the score itself."""
        return None if self.of_margins else (np.zeros(0), np.zeros(0, dtype=np.int64))

    def totals(self, points: CounterpartPoints, votes: Counts) -> Totals:
        """Sum the scores in float64; the bounds cover every order of summation."""
        scores = points.scores(FLOAT64)
        shape = (len(points.people), len(votes), scores.values.shape[1])
        values, errors = (part.reshape(shape) for part in (scores.values, scores.errors))
        weights = votes.astype(np.float64)
        relative = FLOAT64.gamma(len(votes) + 2)
        with np.errstate(invalid="ignore", over="ignore"):  # unknown or huge scores
            total, size, error = (
                np.einsum("pvo,v->po", part, weights) for part in (values, np.abs(values), errors)
            )
            errors = error * (1 + relative) + relative * size + FLOAT64.tiny
            if self.of_margins:  # the sum is rounded once more
                n_votes = float(votes.sum())
                total, errors = (total + n_votes) / 2, errors + relative * n_votes
            return Totals(*outward(total, errors))

    def exact_totals(self, points: CounterpartPoints, votes: Counts) -> ExactTotals | None:
        """Return the sums for one person without rounding; None for intervals of scores."""
        scores = points.exact_scores(np.arange(len(points)))
        if scores.radii is not None:
            return None
        centers = scores.centers
        sums = votes.astype(object) @ centers.numerators
        unit = Fraction(2) ** centers.exponent / centers.denominator
        totals = [int(total) * unit for total in sums]
        if self.of_margins:
            n_votes = int(votes.sum())
            totals = [(total + n_votes) / 2 for total in totals]
        return tuple(totals)
