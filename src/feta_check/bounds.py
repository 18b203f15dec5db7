"""Linear bounds over a box of counterparts, in fractions: nothing is rounded.

docs/reference/certificates.md defines them.
"""

from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import Any, NamedTuple

from feta_check.reading import Number

CHORD = 2**52

Line = tuple[Number, Number]  # slope and intercept
Range = tuple[Number, Number]


class Layer(NamedTuple):
    """Activations in integers (breaks, slopes, starts by neuron), then an affine layer."""

    units: list[Any]
    slope_places: int
    rows: list[list[int]]
    bias: list[int]


class Bounds:
    """A network over a box: lines below and above each neuron, from the first layer on.

    `terms` are the terms of the first layer: per axis, one list per value.
    """

    def __init__(
        self, layers: Sequence[Layer], constant: Sequence[int], terms: Sequence[Sequence[list[int]]]
    ) -> None:
        self.layers, self.constant, self.terms = layers, constant, terms
        self.lines: list[list[tuple[Line, Line]]] = []
        ranges: list[Range] = []
        for place, value in enumerate(constant):
            columns = [[term[place] for term in axis] for axis in terms]
            ranges.append((value + sum(map(min, columns)), value + sum(map(max, columns))))
        for layer in layers:
            enclosed = [
                _enclose(unit, low, high, layer.slope_places)
                for unit, (low, high) in zip(layer.units, ranges, strict=True)
            ]
            self.lines.append([lines for lines, _ in enclosed])
            outputs = [values for _, values in enclosed]
            ranges = [self._range(layer, place, outputs) for place in range(len(layer.rows))]

    def _range(self, layer: Layer, place: int, outputs: Sequence[Range]) -> Range:
        """Return the range of a neuron after a layer: by lines, and by the ranges before."""
        weights, bias = layer.rows[place], layer.bias[place]
        ends = [sorted((w * x, w * y)) for w, (x, y) in zip(weights, outputs, strict=True)]
        row = [int(index == place) for index in range(len(layer.rows))]
        low, high = (bias + sum(end[side] for end in ends) for side in (0, 1))
        return max(low, self.minimum(row)), min(high, -self.minimum([-w for w in row]))

    def minimum(self, row: Sequence[Number]) -> Number:
        """Bound row · outputs of the last enclosed layer from below."""
        constant: Number = 0
        for layer, lines in reversed(list(zip(self.layers, self.lines, strict=False))):
            constant += _dot(row, layer.bias)
            row = [_dot(row, column) for column in zip(*layer.rows, strict=True)]
            chosen = [
                below if w > 0 else above for w, (below, above) in zip(row, lines, strict=True)
            ]
            constant += _dot(row, [intercept for _, intercept in chosen])
            row = [w * slope for w, (slope, _) in zip(row, chosen, strict=True)]
        constant += _dot(row, self.constant)
        return constant + sum(min(_dot(row, term) for term in axis) for axis in self.terms)


def _dot(row: Sequence[Number], column: Sequence[Number]) -> Number:
    return sum(map(mul, row, column))


def _enclose(
    unit: Any, low: Number, high: Number, n_places: int
) -> tuple[tuple[Line, Line], Range]:
    """Return a line below and one above an activation, and the range of its values."""
    breaks, slopes, intercepts = unit
    first = sum(at <= low for at in breaks)
    last = max(first, sum(at < high for at in breaks))
    points = [low, *breaks[first:last], high]
    pieces = [*range(first, last + 1), last]
    values = [slopes[k] * x + intercepts[k] for k, x in zip(pieces, points, strict=True)]
    candidates: list[Number] = list(slopes[first : last + 1])
    if first < last:  # slopes are integers times 2^-places, and so is the chord's unit
        chord = Fraction(values[-1] - values[0]) / (high - low) / 2**n_places
        candidates.append(Fraction(chord * CHORD // 1, CHORD) * 2**n_places)
    gaps = [[y - slope * x for x, y in zip(points, values, strict=True)] for slope in candidates]
    below = [(slope, min(gap)) for slope, gap in zip(candidates, gaps, strict=True)]
    above = [(slope, max(gap)) for slope, gap in zip(candidates, gaps, strict=True)]

    def height(line: Line) -> Number:
        return line[0] * (low + high) + 2 * line[1]

    return (max(below, key=height), min(above, key=height)), (min(values), max(values))
