"""Piecewise-linear networks in integers, over all counterparts of a person; nothing is rounded.

Along a line of integers, values are followed with their slopes: until a neuron reaches the end of
its piece, all scores are affine. Over a box, lines below and above each neuron bound the scores, as
docs/reference/certificates.md defines.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, pairwise, product
from math import inf
from operator import add, mul
from typing import Any

from feta_check.model_file import ModelFile
from feta_check.people import Box, Space
from feta_check.reading import Number, checkable, holds, places, readable, scaled
from feta_check.rules import Minimum, Scores

FACTS = {"activations", "equality", "link", "measured", "reading", "sigmoid", "source", "tables"}
CHORD = 2**52

# Breaks, slopes and intercepts of each neuron, the binary places of the slopes; weights, bias.
Layer = tuple[list[Any], int, list[list[int]], list[int]]


class Network:
    """The numbers of a network, and integers for some binary places of the first layer's sums."""

    def __init__(self, file: ModelFile, space: Space) -> None:
        facts, self.space = file.description["network"], space
        checkable(facts.keys() <= FACTS, "this network")
        checkable(not any(".parameter" in name for name in file.arrays), "smooth activations")
        self.bias, self.tables = file.vector("first.bias"), dict[int, dict[Number, list[float]]]()
        width = len(self.bias)
        slopes = file.matrix("first.slopes", width, space.width)
        self.slope_places = places(chain(*slopes))
        self.columns = [scaled(column, self.slope_places) for column in zip(*slopes, strict=True)]
        for index, column in enumerate(facts["tables"]):
            numbers = file.vector(f"table{index}.numbers")
            rows = file.matrix(f"table{index}.rows", len(numbers), width)
            valid = column in range(space.width) and column not in self.tables
            readable(valid, "the model has two tables for a column, or one for none")
            self.tables[column] = dict(zip(numbers, rows, strict=True))
        tabulated = chain(*(chain(*table.values()) for table in self.tables.values()))
        levels = chain(*(axis.numbers for axis in space.axes if axis.kind == "levels"))
        needed = [places(chain(self.bias, tabulated)), self.slope_places + places(levels)]
        self.layers = list[Any]()
        for index in range(len(facts["activations"])):
            slopes = file.matrix(f"layer{index}.slopes")
            columns = len(slopes[0])  # one column stands for all neurons
            starts = file.matrix(f"layer{index}.intercepts", len(slopes), columns)
            breaks = file.matrix(f"layer{index}.breaks", len(slopes) - 1, columns)
            bias = file.vector(f"layer{index}.bias")
            weight = file.matrix(f"layer{index}.weight", len(bias), width)
            readable(columns in (1, width), "the model has an invalid activation")
            parts, width = (breaks, slopes, starts), len(bias)
            units = [[[row[i] for row in part] for part in parts] for i in range(columns)]
            self.layers.append((units, weight, bias))
            needed.append(places(chain(bias, *breaks, *starts)))
        self.outputs, self.places = width, max(needed)  # later layers have at least those places
        self.term, self.scale = lru_cache(2**14)(self._term), lru_cache(8)(self._scale)
        self.scale(self.places)

    def _scale(self, n_places: int) -> tuple[list[Layer], Fraction]:
        """Return the layers in integers, and the unit of the scores."""
        layers = []
        for units, weight, bias in self.layers:
            tilt, shift = places(chain(*(unit[1] for unit in units))), places(chain(*weight))
            digits = (n_places, tilt, n_places + tilt)
            whole = [list(map(scaled, unit, digits)) for unit in units]
            for breaks, slopes, starts in whole:
                ascend = all(low < high for low, high in pairwise(breaks))
                lines = zip(breaks, pairwise(zip(slopes, starts, strict=True)), strict=True)
                meet = all(a * at + b == c * at + d for at, ((a, b), (c, d)) in lines)
                readable(ascend and meet, "the model has an activation that is not continuous")
            n_places += tilt + shift
            whole *= len(weight[0]) // len(whole)
            rows = [scaled(row, shift) for row in weight]
            layers.append((whole, tilt, rows, scaled(bias, n_places)))
        return layers, Fraction(1, 1 << n_places)

    def added(self, codes: Iterable[tuple[int, Number]], n_places: int) -> list[int]:
        """Return the sum of the terms of some codes in the first layer."""
        terms = [[0] * len(self.bias)]
        for place, code in codes:
            (factor,) = scaled([code], n_places - self.slope_places)
            terms.append([factor * weight for weight in self.columns[place]])
            if place in self.tables:
                listed = code in self.tables[place]
                holds(listed, f"column {place}: got a number that is not in its table")
                terms.append(scaled(self.tables[place][code], n_places))
        return list(map(sum, zip(*terms, strict=True)))

    def _term(self, axis: int, index: int, n_places: int) -> list[int]:
        """Return the terms of one value of an axis."""
        column = self.space.axes[axis]
        return self.added(column.codes(column.at(index)), n_places)

    def restrict(self, row: dict[int, Number]) -> "Counterparts":
        """Fix the codes of a person that counterparts share."""
        return Counterparts(self, row)


class Counterparts:
    """A network on the counterparts of one person."""

    denominator = 1  # of stated scores

    def __init__(self, network: Network, row: dict[int, Number]) -> None:
        self.network, self.space = network, network.space
        needed = max(network.places, network.slope_places + places(row.values()))
        self.places = needed | 31  # more than needed, so that most people share integers
        self.layers, self.unit = network.scale(self.places)
        terms = scaled(network.bias, self.places), network.added(row.items(), self.places)
        self.constant, self.flat = list(map(add, *terms)), [0] * len(network.bias)

    def _along(self, indices: Sequence[int], slopes: Scores) -> tuple[Scores, Scores, Any]:
        """Return scores, their slopes, and how many steps no neuron leaves its piece."""
        terms = [self.network.term(*place, self.places) for place in enumerate(indices)]
        values, reach = list(map(sum, zip(self.constant, *terms, strict=True))), inf
        for units, _, rows, bias in self.layers:
            active, steps = [], []
            for (breaks, tilts, starts), x, step in zip(units, values, slopes, strict=True):
                piece = (bisect_right if step > 0 else bisect_left)(breaks, x)
                end = piece if step > 0 else piece - 1  # the break that it moves to
                if step and 0 <= end < len(breaks):
                    reach = min(reach, (breaks[end] - x) // step)
                active.append(tilts[piece] * x + starts[piece])
                steps.append(tilts[piece] * step)
            values = [_dot(row, active) + b for row, b in zip(rows, bias, strict=True)]
            slopes = [_dot(row, steps) for row in rows]
        return values, slopes, reach

    def scores(self, indices: Sequence[int]) -> Scores:
        """Compute the scores of one counterpart."""
        return self._along(indices, self.flat)[0]

    def _stop(self, axis: int, box: Box) -> int:
        """Return the index after the last number of a box on a line; its first index, without."""
        (low, high), column = box[axis], self.space.axes[axis]
        bent = column.derived or column.start in self.network.tables
        straight = column.kind == "integer" and not bent
        return min(high + 1, len(column.numbers)) if straight else low

    def points(self, box: Box) -> Iterator[tuple[int, Scores]]:
        """Yield the ids and scores of all counterparts in a box, along its longest line."""
        lengths = [self._stop(axis, box) - low for axis, (low, _) in enumerate(box)]
        line = lengths.index(max(lengths))
        (low, high), column, stride = box[line], self.space.axes[line], self.space.strides[line]
        digits = self.places - self.network.slope_places
        slopes = [slope << digits for slope in self.network.columns[column.start]]
        runs = [range(start, end + 1) for start, end in box]
        runs[line] = range(1)
        for indices in map(list, product(*runs)):
            at = low
            while at <= high:
                indices[line], length = at, low + lengths[line] - at
                number = _dot(indices, self.space.strides)
                start, steps, reach = self._along(indices, slopes if length > 1 else self.flat)
                for step in range(max(1, min(reach + 1, length))):
                    yield number, [y + step * slope for y, slope in zip(start, steps, strict=True)]
                    number, at = number + stride, at + 1

    def bounds(self, box: Box) -> Minimum:
        """Return lower bounds, over a box, on linear functions of the scores."""
        terms = []
        for axis, (low, high) in enumerate(box):
            stop = self._stop(axis, box)  # the ends of a line are enough, and a missing number
            indices = {low, stop - 1, high} if stop > low else range(low, high + 1)
            terms.append([self.network.term(axis, index, self.places) for index in indices])
        enclosed = list[Any]()  # layers; lines and values of their activations

        def minimum(row: Sequence[Number]) -> Number:
            constant, found = 0, list[Number]()
            for (_, _, rows, bias), units in reversed(enclosed):
                constant += _dot(row, bias)
                row = [_dot(row, column) for column in zip(*rows, strict=True)]
                ends = [(w * x, w * y) for w, (_, (x, y)) in zip(row, units, strict=True)]
                found.append(constant + sum(map(min, ends)))
                chosen = [lines[w <= 0] for w, (lines, _) in zip(row, units, strict=True)]
                constant += _dot(row, [intercept for _, intercept in chosen])
                row = [w * slope for w, (slope, _) in zip(row, chosen, strict=True)]
            least = sum(min(_dot(row, term) for term in axis) for axis in terms)
            return max([constant + _dot(row, self.constant) + least, *found])

        def ranges(count: int) -> Iterator[tuple[Number, Number]]:
            for place in range(count):
                row = [int(index == place) for index in range(count)]
                yield minimum(row), -minimum([-weight for weight in row])

        inputs = list(ranges(len(self.flat)))
        for layer in self.layers:
            units, tilt, _, bias = layer
            lines = [_enclose(*pair, tilt) for pair in zip(units, inputs, strict=True)]
            enclosed.append((layer, lines))
            inputs = list(ranges(len(bias)))
        return minimum


def _dot(row: Sequence[Number], column: Sequence[Number]) -> Any:
    return sum(map(mul, row, column))


def _enclose(unit: Any, ends: tuple[Number, Number], n_places: int) -> Any:
    """Return a line below and one above an activation, and the range of its values."""
    (breaks, slopes, intercepts), (low, high) = unit, ends
    first = bisect_right(breaks, low)
    last = max(first, bisect_left(breaks, high))
    points = [low, *breaks[first:last], high]
    pieces = [*range(first, last + 1), last]
    values = [slopes[k] * x + intercepts[k] for k, x in zip(pieces, points, strict=True)]
    candidates: list[Number] = list(slopes[first : last + 1])
    if first < last:  # slopes are integers times 2^-places, and so is the chord's unit
        chord = Fraction(values[-1] - values[0]) / (high - low) / 2**n_places
        candidates.append(Fraction(chord * CHORD // 1, CHORD) * 2**n_places)
    lines = []
    for touch, nearest in ((min, max), (max, min)):  # the line below, the line above
        gaps = [touch(y - s * x for x, y in zip(points, values, strict=True)) for s in candidates]
        sides = list(zip(candidates, gaps, strict=True))
        lines.append(nearest(sides, key=lambda line: line[0] * (low + high) + 2 * line[1]))
    return lines, (min(values), max(values))
