"""A band of scores, which reduces a tolerance to one counterpart at a time."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from feta.dyadic import Dyadic
from feta.errors import CertificateError
from feta.rounding import DIFFERENCE, FLOAT64
from feta.rule.comparator import UNDECIDED, Decisions
from feta.rule.intervals import decisions_of, interval_ends
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure, Objective

# Half of a smaller tolerance may be rounded, because it is near the smallest float64 numbers.
SMALLEST_EPSILON = 2.0**-900


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """A comparator: 0 within epsilon / 2 of a center, 1 outside.

    If the scores of all counterparts are in one band, no two differ by more than epsilon. This
    also holds for the rounded scores of a source. Let the center be the middle of known scores
    whose span is at most epsilon: a score outside the band is then below or above all of them.
    """

    epsilon: float
    doubled_center: Dyadic  # (1,); twice the center, so that nothing is halved

    @classmethod
    def around(cls, epsilon: float, known: Dyadic) -> Self:
        """Return the band around the middle of the lowest and the highest known score."""
        scores = known.numerators[:, 0].tolist()
        middle = np.array([min(scores) + max(scores)], object)
        return cls(epsilon, Dyadic(middle, known.exponent, known.denominator))

    @classmethod
    def at(cls, epsilon: float, center: Fraction) -> Self:
        """Return the band around a center, which must be an integer times a power of two."""
        exponent = 1 - center.denominator.bit_length()
        if center.denominator != 1 << -exponent:
            raise CertificateError(
                f"invalid center of a band: got {center}; expected an integer times a power of two"
            )
        return cls(epsilon, Dyadic(np.array([2 * center.numerator], object), exponent))

    @property
    def center(self) -> Fraction:
        """The exact center."""
        return self.doubled_center.fractions()[0] / 2

    @property
    def half(self) -> float:
        """A lower bound on epsilon / 2; 0 where float64 cannot halve, which proves nothing."""
        return self.epsilon / 2 if self.epsilon > SMALLEST_EPSILON else 0.0

    def decide(self, scores: Enclosure) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors remain undecided."""
        center, values = float(self.doubled_center.floats()[0]), 2 * scores.values[:, 0]
        distance = np.abs(values - center)
        # The center is rounded once, and so is the difference.
        size = np.abs(values) + abs(center) + self.epsilon
        radius = 2 * scores.errors[:, 0] + DIFFERENCE * size + FLOAT64.tiny
        undecided = ~(np.abs(distance - self.epsilon) > radius)
        return np.where(undecided, UNDECIDED, distance > self.epsilon).astype(np.int8)

    def decide_exactly(self, scores: ExactScores) -> Decisions:
        """Decide exact scores; a score exactly epsilon / 2 away is within the band.

        Intervals with scores inside and outside remain undecided.
        """
        doubled = scores.combined(np.array([[2.0]]), -self.doubled_center)
        low, high = (ends[:, 0] for ends in interval_ends(doubled))
        top, bottom = Dyadic.of(self.epsilon), Dyadic.of(-self.epsilon)
        outside = (low.compare(top) > 0) | (high.compare(bottom) < 0)
        inside = (low.compare(bottom) >= 0) & (high.compare(top) <= 0)
        return decisions_of(outside, inside)

    def objective(self) -> Objective:
        """Return the distance to the center, above and below."""
        center = self.doubled_center
        both = np.concatenate([-center.numerators, center.numerators])
        offsets = Dyadic(both, center.exponent - 1, center.denominator)
        return Objective(np.array([[1.0], [-1.0]]), offsets, level=self.half)
