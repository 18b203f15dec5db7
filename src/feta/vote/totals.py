"""Sums over the counterparts of people, between two bounds."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.rounding import FLOAT64
from feta.rule.comparator import Decisions
from feta.scorer.protocol import CounterpartPoints, Points

# The exact sums of one person, one per output.
ExactTotals = tuple[Fraction, ...]

# Thresholds on the score and the grades between them; without thresholds, the score itself.
Steps = tuple[Vector, Counts]


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """A lower and an upper bound on each sum, (people, outputs); exact where both are equal."""

    lows: Matrix
    highs: Matrix

    @property
    def middles(self) -> Matrix:
        """The middles between the bounds; NaN where nothing is known."""
        with np.errstate(invalid="ignore"):  # inf − inf
            return self.lows / 2 + self.highs / 2

    def plus(self, other: "Totals") -> "Totals":
        """Return the sums of both, rounded outward where float64 rounds."""
        return Totals(
            _rounded(self.lows, other.lows, -np.inf), _rounded(self.highs, other.highs, np.inf)
        )

    def first(self) -> tuple[Vector, Vector]:
        """Return the bounds of the only output."""
        return self.lows[:, 0], self.highs[:, 0]


class MeanVote(Protocol):
    """What a counterpart contributes to the means of a person: scores, or grades."""

    @property
    def unit(self) -> int:
        """The contribution that counts as 1."""
        ...

    @property
    def steps(self) -> Steps | None:
        """The contribution as a function of one score; None if it depends on several scores."""
        ...

    def totals(self, points: CounterpartPoints, votes: Counts) -> Totals:
        """Sum the contributions of each person's counterparts, times their votes."""
        ...

    def exact_totals(self, points: CounterpartPoints, votes: Counts) -> ExactTotals | None:
        """Return the sums for one person without rounding; None if the scorer leaves them open."""
        ...


class SumRule(Protocol):
    """How sums of contributions become a decision; `scale` times the mean is the sum."""

    def decide(self, totals: Totals, scale: int) -> Decisions:
        """Decide sums; UNDECIDED where the bounds do not decide."""
        ...

    def decide_exactly(self, totals: ExactTotals, scale: int) -> int:
        """Decide the sums of one person."""
        ...


def score_range(points: Points) -> tuple[Vector, Vector]:
    """Return bounds on the first score of each point; infinite where nothing is known."""
    scores = points.scores(FLOAT64)
    with np.errstate(invalid="ignore"):  # inf − inf where nothing is known
        return outward(scores.values[:, 0], scores.errors[:, 0])


def outward(values: Matrix, errors: Matrix) -> tuple[Matrix, Matrix]:
    """Return values ± errors, one step outward because both sums are rounded."""
    lows = np.nan_to_num(values - errors, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    highs = np.nan_to_num(values + errors, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    return np.nextafter(lows, -np.inf), np.nextafter(highs, np.inf)


def _rounded(left: Matrix, right: Matrix, toward: float) -> Matrix:
    """Add; one step outward unless both are integers whose sum float64 holds exactly."""
    with np.errstate(invalid="ignore"):  # inf − inf where nothing is known
        total = left + right
    largest = 2.0**53
    exact = (left == np.rint(left)) & (right == np.rint(right)) & (np.abs(total) < largest)
    unknown = np.isnan(total)
    return np.where(exact, total, np.where(unknown, toward, np.nextafter(total, toward)))
