"""Linear bounds over a box of counterparts, in fractions: nothing is rounded.

docs/reference/certificates.md defines them.
"""

from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import Any

CHORD = 2**52

Number = int | Fraction
Line = tuple[Number, Number]  # slope and intercept


class Bounds:
    """A network over a box: lines below and above each neuron, from the first layer on."""

    def __init__(
        self, layers: Sequence[Any], constant: Sequence[int], terms: Sequence[Sequence[list[int]]]
    ) -> None:
        self.layers, self.constant, self.terms = layers, constant, terms
        self.lines: list[list[tuple[Line, Line]]] = []
        ranges: list[tuple[Number, Number]] = []
        for place, value in enumerate(constant):
            columns = [[term[place] for term in axis] for axis in terms]
            ranges.append((value + sum(map(min, columns)), value + sum(map(max, columns))))
        for index, layer in enumerate(layers):
            enclosed = [
                _enclose(unit, low, high, layer.slope_exponent)
                for unit, (low, high) in zip(layer.units, ranges, strict=True)
            ]
            self.lines.append([lines for lines, _ in enclosed])
            if index + 1 < len(layers):
                ranges = self._next(layer, [values for _, values in enclosed])

    def _next(
        self, layer: Any, outputs: list[tuple[Number, Number]]
    ) -> list[tuple[Number, Number]]:
        """Return the ranges after a layer: by lines, and by the ranges of its neurons."""
        ranges = []
        for row, bias in zip(layer.rows, layer.bias, strict=True):
            ends = [
                sorted((w * low, w * high)) for w, (low, high) in zip(row, outputs, strict=True)
            ]
            low = max(self._back(row, bias), bias + sum(end[0] for end in ends))
            high = min(-self._back([-w for w in row], -bias), bias + sum(end[1] for end in ends))
            ranges.append((low, high))
        return ranges

    def minimum(self, row: Sequence[int]) -> Number:
        """Bound row · scores from below."""
        if not self.layers:
            return self._first(list(row), 0)
        last = self.layers[-1]
        weights = [sum(map(mul, row, column)) for column in zip(*last.rows, strict=True)]
        return self._back(weights, sum(map(mul, row, last.bias)))

    def _back(self, row: Sequence[Number], constant: Number) -> Number:
        """Bound row · (outputs of the last enclosed neurons) + constant from below."""
        for index in reversed(range(len(self.lines))):
            pairs = [
                (weight, below if weight > 0 else above)
                for weight, (below, above) in zip(row, self.lines[index], strict=True)
            ]
            constant += sum(weight * line[1] for weight, line in pairs)
            row = [weight * line[0] for weight, line in pairs]
            if index:
                layer = self.layers[index - 1]
                constant += sum(map(mul, row, layer.bias))
                row = [sum(map(mul, row, column)) for column in zip(*layer.rows, strict=True)]
        return self._first(row, constant)

    def _first(self, row: Sequence[Number], constant: Number) -> Number:
        constant += sum(map(mul, row, self.constant))
        return constant + sum(min(sum(map(mul, row, term)) for term in axis) for axis in self.terms)


def _enclose(
    unit: tuple[list[int], list[int], list[int]], low: Number, high: Number, exponent: int
) -> tuple[tuple[Line, Line], tuple[Number, Number]]:
    """Return a line below and one above an activation, and the range of its values."""
    breaks, slopes, intercepts = unit
    first = sum(at <= low for at in breaks)
    last = max(first, sum(at < high for at in breaks))
    points = [low, *breaks[first:last], high]
    pieces = [*range(first, last + 1), last]
    values = [slopes[k] * x + intercepts[k] for k, x in zip(pieces, points, strict=True)]
    if first == last:
        line = slopes[first], intercepts[first]
        return (line, line), (min(values), max(values))
    # Slopes are integers times 2^exponent, so the chord is rounded in units of 2^-52.
    chord = Fraction(values[-1] - values[0]) / (high - low) * Fraction(2) ** exponent
    candidates: list[Number] = list(slopes[first : last + 1])
    candidates.append(Fraction(chord * CHORD // 1, CHORD) / Fraction(2) ** exponent)
    gaps = [[y - slope * x for x, y in zip(points, values, strict=True)] for slope in candidates]
    below = [(slope, min(gap)) for slope, gap in zip(candidates, gaps, strict=True)]
    above = [(slope, max(gap)) for slope, gap in zip(candidates, gaps, strict=True)]

    def height(line: Line) -> Number:
        return line[0] * (low + high) + 2 * line[1]

    return (max(below, key=height), min(above, key=height)), (min(values), max(values))
