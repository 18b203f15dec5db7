"""Sums over the counterparts of people, between two bounds."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from feta.arrays import Counts, Vector
from feta.rounding import FLOAT64
from feta.scorer.protocol import CounterpartPoints, Points


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """A lower and an upper bound on each person's sum; exact where both are equal."""

    lows: Vector
    highs: Vector

    @property
    def middles(self) -> Vector:
        """The middles between the bounds; NaN where nothing is known."""
        with np.errstate(invalid="ignore"):  # inf − inf
            return self.lows / 2 + self.highs / 2

    def plus(self, other: "Totals") -> "Totals":
        """Return the sums of both, rounded outward where float64 rounds."""
        return Totals(
            _rounded(self.lows, other.lows, -np.inf), _rounded(self.highs, other.highs, np.inf)
        )


class MeanVote(Protocol):
    """What a counterpart contributes to the mean of a person: its score, or its grade."""

    @property
    def unit(self) -> int:
        """The contribution that counts as 1."""
        ...

    def totals(self, points: CounterpartPoints, votes: Counts) -> Totals:
        """Sum the contributions of each person's counterparts, times their votes."""
        ...

    def exact_total(self, points: CounterpartPoints, votes: Counts) -> Fraction | None:
        """Return the sum for one person without rounding; None if the scorer leaves it open."""
        ...


def score_range(points: Points) -> tuple[Vector, Vector]:
    """Return bounds on the score of each point; infinite where nothing is known."""
    scores = points.scores(FLOAT64)
    with np.errstate(invalid="ignore"):  # inf − inf where nothing is known
        return outward(scores.values[:, 0], scores.errors[:, 0])


def outward(values: Vector, errors: Vector) -> tuple[Vector, Vector]:
    """Return values ± errors, one step outward because both sums are rounded."""
    lows = np.nan_to_num(values - errors, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    highs = np.nan_to_num(values + errors, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    return np.nextafter(lows, -np.inf), np.nextafter(highs, np.inf)


def _rounded(left: Vector, right: Vector, toward: float) -> Vector:
    """Add; one step outward unless both are integers whose sum float64 holds exactly."""
    total = left + right
    largest = 2.0**53
    exact = (left == np.rint(left)) & (right == np.rint(right)) & (np.abs(total) < largest)
    return np.where(exact, total, np.nextafter(total, toward))
