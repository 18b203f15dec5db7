"""Curves that turn scores into probabilities: the sigmoid and the softmax."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Array, Matrix
from feta.exponential import RELATIVE_ERROR, exponentials, power_of_e
from feta.rounding import DIFFERENCE, FLOAT64, SIGMOID_ULPS, Arithmetic, upward
from feta.scorer.ensemble.curve import (
    SCALE,
    Ends,
    affine,
    enclosing,
    from_ends,
    interval_ends,
    monotone,
)
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure

# e^-7000 is below 2^-SCALE, and arguments up to here have an error far below 2^-SCALE.
SATURATED = 7000

# Bits of exponentials, each of which has an error below 2 units.
BITS = SCALE + 16
UNITS = 2

# No probability changes by more than this share of a change of the score: σ' ≤ 1/4. Of a softmax,
# the absolute derivatives of one output add up to 2·p·(1 − p) ≤ 1/2.
SIGMOID_SLOPE, SOFTMAX_SLOPE = 0.25, 0.5


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """σ(slope · score + offset) = 1 / (1 + e^-(slope · score + offset))."""

    slope: float = 1.0
    offset: float = 0.0
    kind = "sigmoid"
    inputs = 1
    outputs = 1
    limits = (0.0, 1.0)

    @property
    def numbers(self) -> Mapping[str, Array]:
        """Slope and offset."""
        return {"slope": np.array(self.slope), "offset": np.array(self.offset)}

    def enclose(self, scores: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Return values with error bounds, which also cover the given arithmetic."""
        arguments, sizes = affine(scores.values, self.slope, self.offset)
        errors = abs(self.slope) * scores.errors + rounding_of_arguments(sizes, arithmetic)
        return Enclosure(
            sigmoids(arguments), (SIGMOID_SLOPE * errors + rounding_of(arithmetic)) * upward(8)
        )

    def exactly(self, scores: ExactScores) -> ExactScores:
        """Return intervals; exactly 1/2 where the argument is 0."""
        slope, offset = Fraction(self.slope), Fraction(self.offset)
        return monotone(
            scores, lambda score: sigmoid_ends(slope * score + offset), rising=self.slope >= 0
        )


@dataclass(frozen=True, slots=True)
class Softmax:
    """The softmax of factor · scores."""

    classes: int
    factor: float = 1.0
    kind = "softmax"
    limits = (0.0, 1.0)

    @property
    def inputs(self) -> int:
        """One score per class."""
        return self.classes

    @property
    def outputs(self) -> int:
        """One probability per class."""
        return self.classes

    @property
    def numbers(self) -> Mapping[str, Array]:
        """The number of classes and the factor."""
        return {"classes": np.array(self.classes), "factor": np.array(self.factor)}

    def enclose(self, scores: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Return values with error bounds, which also cover the given arithmetic."""
        arguments, sizes = affine(scores.values, self.factor, 0.0)
        highest = arguments.max(axis=1, keepdims=True)
        powers = exponentials(arguments - highest)
        values = powers / powers.sum(axis=1, keepdims=True)
        # A softmax in the source subtracts the largest argument: two roundings of its size more.
        sizes = 4 * sizes.max(axis=1, keepdims=True)
        changed = abs(self.factor) * scores.errors.max(axis=1, keepdims=True)
        errors = SOFTMAX_SLOPE * (changed + rounding_of_arguments(sizes, arithmetic))
        total = (errors + self.classes * rounding_of(arithmetic)) * upward(16)
        return Enclosure(values, np.broadcast_to(total, values.shape).copy())

    def exactly(self, scores: ExactScores) -> ExactScores:
        """Return intervals."""
        shape = scores.centers.numerators.shape
        lows, highs = interval_ends(scores)
        ends: list[Ends] = []
        for start in range(0, len(lows), self.classes):
            row = slice(start, start + self.classes)
            ends += self._ends(lows[row], highs[row])
        return from_ends(ends, shape)

    def _ends(self, lows: list[Fraction], highs: list[Fraction]) -> list[Ends]:
        factor = Fraction(self.factor)
        middles = [factor * (low + high) / 2 for low, high in zip(lows, highs, strict=True)]
        widest = max(abs(factor) * (high - low) / 2 for low, high in zip(lows, highs, strict=True))
        highest = max(middles)
        powers = [power_of_e(max(m - highest, Fraction(-SATURATED)), BITS) for m in middles]
        # The largest power is 1, so no share changes by more than all powers together.
        error = Fraction(UNITS * self.classes, 2**BITS) + widest * Fraction(SOFTMAX_SLOPE)
        return [enclosing(Fraction(power, sum(powers)), error) for power in powers]


def sigmoids(arguments: Matrix) -> Matrix:
    """Compute sigmoids, the same on every machine."""
    powers = exponentials(-np.abs(arguments))
    return np.asarray(np.where(arguments >= 0, 1.0, powers) / (1.0 + powers))


def rounding_of_arguments(sizes: Matrix, arithmetic: Arithmetic) -> Matrix:
    """Bound the rounding of slope · score + offset, here and in the source."""
    source = 0.0 if arithmetic is FLOAT64 else arithmetic.gamma(1)
    return np.asarray(sizes * (DIFFERENCE + source))


def rounding_of(arithmetic: Arithmetic) -> float:
    """Bound the rounding of a probability, and of 1 minus it, here and in the source."""
    source = 0.0 if arithmetic is FLOAT64 else (SIGMOID_ULPS + 1) * arithmetic.unit
    return 2 * RELATIVE_ERROR + source


def sigmoid_ends(argument: Fraction) -> Ends:
    """Return bounds on σ(argument)."""
    if argument == 0:
        return enclosing(Fraction(1, 2))
    if argument > SATURATED:
        return 2**SCALE - 1, 2**SCALE
    if argument < -SATURATED:
        return 0, 1
    power = power_of_e(-abs(argument), BITS)
    larger = Fraction(2**BITS, 2**BITS + power)  # it changes by less than the power
    value = larger if argument > 0 else 1 - larger
    return enclosing(value, Fraction(UNITS, 2**BITS))
