"""The mean of several classes' probabilities: integer grades of a softmax.

A grade is a probability in units of 2^-20, rounded to the nearest integer. Unless all scores are
equal, a softmax of rational scores is irrational (Lindemann–Weierstrass), so it is never halfway
between two grades, and enough digits decide each grade.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np

from feta.arrays import Counts, Matrix
from feta.exponential import RELATIVE_ERROR, exponentials, softmax_bounds
from feta.rounding import FLOAT64
from feta.scorer.protocol import CounterpartPoints
from feta.vote.graded_ballot import UNIT
from feta.vote.totals import ExactTotals, Steps, Totals

# Added outward to a probability in units of a grade: covers e^-700 and the roundings of the bound.
SLACK = 2.0**-20

# Errors of scores beyond this are not propagated; (e^2x − 1) ≤ 2x + 4x² below it.
LARGEST_ERROR = 0.25

# Digits with which a grade is tried; more than the last would mean hours per person.
DIGITS = (40, 80, 160, 400, 1000)

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxMean:
    """Each counterpart contributes the grades of its classes' probabilities."""

    unit = UNIT

    @property
    def steps(self) -> Steps | None:
        """None: a probability depends on the scores of all classes."""
        return None

    def totals(self, points: CounterpartPoints, votes: Counts) -> Totals:
        """Sum the lowest and the highest possible grades; float64 holds such integers exactly."""
        scores = points.scores(FLOAT64)
        lows, highs = _grades(scores.values, scores.errors)
        shape = (len(points.people), len(votes), scores.values.shape[1])
        sums = [np.einsum("pvo,v->po", part.reshape(shape), votes) for part in (lows, highs)]
        return Totals(sums[0].astype(np.float64), sums[1].astype(np.float64))

    def exact_totals(self, points: CounterpartPoints, votes: Counts) -> ExactTotals | None:
        """Return the sums for one person; None for intervals of scores."""
        scores = points.exact_scores(np.arange(len(points)))
        if scores.radii is not None:
            return None
        n_classes = scores.centers.numerators.shape[1]
        exact = scores.centers.fractions()
        totals = [Fraction(0)] * n_classes
        for row, vote in enumerate(votes.tolist()):
            grades = exact_grades(exact[row * n_classes : (row + 1) * n_classes])
            if grades is None:
                return None
            totals = [total + vote * grade for total, grade in zip(totals, grades, strict=True)]
        return tuple(totals)


def _grades(values: Matrix, errors: Matrix) -> tuple[Counts, Counts]:
    """Return the lowest and the highest grade of each probability, given bounds on the scores."""
    error = errors.max(axis=1, keepdims=True)
    known = np.isfinite(values).all(axis=1, keepdims=True) & (error <= LARGEST_ERROR)
    values, error = np.where(known, values, 0.0), np.where(known, error, 0.0)
    powers = exponentials(values - values.max(axis=1, keepdims=True))
    shares = UNIT * (powers / powers.sum(axis=1, keepdims=True))
    relative = 2 * error + 4 * error**2 + RELATIVE_ERROR
    lows = np.floor(shares * (1 - relative) - SLACK + 0.5)
    highs = np.floor(shares * (1 + relative) + SLACK + 0.5)
    lows, highs = np.maximum(lows, 0.0), np.minimum(highs, UNIT)
    unknown = np.broadcast_to(~known, values.shape)
    return (
        np.where(unknown, 0, lows).astype(np.int64),
        np.where(unknown, UNIT, highs).astype(np.int64),
    )


def exact_grades(scores: list[Fraction]) -> list[int] | None:
    """Return the grade of each class; None if no reasonable number of digits decides."""
    if len(set(scores)) == 1:
        return [floor(Fraction(UNIT, len(scores)) + HALF)] * len(scores)
    for digits in DIGITS:
        shares, error = softmax_bounds(scores, digits)
        lows = [floor(UNIT * (share - error) + HALF) for share in shares]
        if lows == [floor(UNIT * (share + error) + HALF) for share in shares]:
            return lows
    return None
