"""The protocol of curves: how the scores of a member enter an ensemble."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from feta.arrays import Array, Matrix
from feta.dyadic import Dyadic
from feta.rounding import Arithmetic
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure

# Exact intervals end at multiples of 2^-SCALE. Every float64 number is such a multiple.
SCALE = 1100

# Bounds that contain a value: two integers, in units of 2^-SCALE.
Ends = tuple[int, int]


class Curve(Protocol):
    """A function of a member's scores."""

    @property
    def kind(self) -> str:
        """The name of the function in files."""
        ...

    @property
    def inputs(self) -> int:
        """The number of scores that it takes."""
        ...

    @property
    def outputs(self) -> int:
        """The number of values that it returns."""
        ...

    @property
    def limits(self) -> tuple[float, float]:
        """Bounds on all its values; infinite if there are none."""
        ...

    @property
    def numbers(self) -> Mapping[str, Array]:
        """The numbers that define it."""
        ...

    def enclose(self, scores: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Return values with error bounds, which also cover the given arithmetic."""
        ...

    def exactly(self, scores: ExactScores) -> ExactScores:
        """Return exact values, or intervals of a few units of 2^-SCALE."""
        ...


def interval_ends(scores: ExactScores) -> tuple[list[Fraction], list[Fraction]]:
    """Return the lower and the upper ends of all scores, row by row."""
    if scores.radii is None:
        centers = scores.centers.fractions()
        return centers, centers
    return (scores.centers - scores.radii).fractions(), (scores.centers + scores.radii).fractions()


def from_ends(ends: Sequence[Ends], shape: tuple[int, ...]) -> ExactScores:
    """Return intervals in the form of exact scores."""
    centers = np.array([low + high for low, high in ends], dtype=object).reshape(shape)
    radii = np.array([high - low for low, high in ends], dtype=object).reshape(shape)
    exact = all(low == high for low, high in ends)
    half = -SCALE - 1  # centers and radii are halves of sums and differences
    return ExactScores(Dyadic(centers, half), None if exact else Dyadic(radii, half))


def monotone(
    scores: ExactScores, function: Callable[[Fraction], Ends], *, rising: bool = True
) -> ExactScores:
    """Apply a monotone function to every score, of which it returns bounds."""
    lows, highs = interval_ends(scores)
    shape = scores.centers.numerators.shape
    ends: list[Ends] = []
    for low, high in zip(lows, highs, strict=True):
        at_low = function(low)
        at_high = at_low if high == low else function(high)
        ends.append((at_low[0], at_high[1]) if rising else (at_high[0], at_low[1]))
    return from_ends(ends, shape)


def enclosing(value: Fraction, error: Fraction = Fraction(0)) -> Ends:
    """Return the multiples of 2^-SCALE around a value with an error bound."""
    low, high = (value - error) * 2**SCALE, (value + error) * 2**SCALE
    return low.numerator // low.denominator, -(-high.numerator // high.denominator)


def affine(scores: Matrix, slope: float, offset: float) -> tuple[Matrix, Matrix]:
    """Return slope · scores + offset in float64, and the sizes of the terms."""
    products = slope * scores
    return products + offset, np.abs(products) + abs(offset)
