"""Lines that enclose the piecewise-linear functions of a layer, without rounding.

A line is above a continuous piecewise-linear function if it is above it at both ends of an interval
and at the breaks between them. So slopes may be chosen freely; intercepts follow from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.checker.exact_network import StoredLayer
from feta.dyadic import Dyadic

# Slopes of chords have this many more bits than those of pieces. Fewer bits would give lines that
# are farther from the function, and therefore more cells to split; the proof holds for any number.
CHORD_BITS = 52


@dataclass(frozen=True, slots=True, eq=False)
class Enclosed:
    """One line below and one above each neuron, and the range of its values; (neurons,) each."""

    low_slope: Dyadic
    low_intercept: Dyadic
    high_slope: Dyadic
    high_intercept: Dyadic
    lowest: Dyadic
    highest: Dyadic
    is_affine: bool  # no neuron changes its piece

    @classmethod
    def of(cls, layer: StoredLayer, lower: Dyadic, upper: Dyadic) -> "Enclosed":
        """Enclose the functions of a layer over an interval of each neuron."""
        # With this exponent of points, slope · point and intercepts have a common exponent.
        exponent = min(
            lower.exponent,
            upper.exponent,
            layer.breaks.exponent,
            layer.intercepts.exponent - layer.slopes.exponent,
        )
        product = exponent + layer.slopes.exponent
        neurons = [
            _Neuron(*columns)
            for columns in zip(
                lower.at(exponent).tolist(),
                upper.at(exponent).tolist(),
                layer.breaks.at(exponent).T.tolist(),
                layer.slopes.numerators.T.tolist(),
                layer.intercepts.at(product).T.tolist(),
                strict=True,
            )
        ]
        below, above = zip(*(neuron.lines() for neuron in neurons), strict=True)
        return cls(
            _vector([slope for slope, _ in below], layer.slopes.exponent - CHORD_BITS),
            _vector([intercept for _, intercept in below], product - CHORD_BITS),
            _vector([slope for slope, _ in above], layer.slopes.exponent - CHORD_BITS),
            _vector([intercept for _, intercept in above], product - CHORD_BITS),
            _vector([min(neuron.values) for neuron in neurons], product),
            _vector([max(neuron.values) for neuron in neurons], product),
            is_affine=all(neuron.first == neuron.last for neuron in neurons),
        )


def _vector(numerators: Sequence[int], exponent: int) -> Dyadic:
    return Dyadic(np.array(numerators, dtype=object), exponent)


class _Neuron:
    """The pieces of one neuron between two points, in integers of suitable exponents."""

    def __init__(
        self, low: int, high: int, breaks: list[int], slopes: list[int], intercepts: list[int]
    ) -> None:
        self.first = sum(at <= low for at in breaks)
        # At its upper break, a piece has the same value as the next one.
        self.last = max(self.first, sum(at < high for at in breaks))
        self.slopes, self.intercepts = slopes, intercepts
        self.points = [low, *breaks[self.first : self.last], high]
        pieces = [*range(self.first, self.last + 1), self.last]
        self.values = [
            slopes[piece] * point + intercepts[piece]
            for piece, point in zip(pieces, self.points, strict=True)
        ]

    def lines(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return slope and intercept of a line below and of a line above.

        Of the lines with the slope of a piece or of the chord, these are the closest ones in the
        middle of the interval.
        """
        slopes = [slope << CHORD_BITS for slope in self.slopes[self.first : self.last + 1]]
        if self.first == self.last:
            piece = slopes[0], self.intercepts[self.first] << CHORD_BITS
            return piece, piece
        rise, width = self.values[-1] - self.values[0], self.points[-1] - self.points[0]
        slopes.append((rise << CHORD_BITS) // width)
        # A line touches the function where it is lowest, or highest, in relation to the slope.
        below = [(slope, min(self._offsets(slope))) for slope in slopes]
        above = [(slope, max(self._offsets(slope))) for slope in slopes]
        return max(below, key=self._height), min(above, key=self._height)

    def _offsets(self, slope: int) -> list[int]:
        """Return function − slope · point at all points."""
        pairs = zip(self.values, self.points, strict=True)
        return [(value << CHORD_BITS) - slope * point for value, point in pairs]

    def _height(self, line: tuple[int, int]) -> int:
        """Return twice the value of a line in the middle of the interval."""
        slope, intercept = line
        return slope * (self.points[0] + self.points[-1]) + 2 * intercept
