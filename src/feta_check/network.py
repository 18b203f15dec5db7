"""Piecewise-linear networks in integers, over all counterparts of a person; nothing is rounded.

Along a line of numbers, values are followed with their slopes: until a neuron reaches the end of
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
from typing import Any, NamedTuple

from feta_check.model_file import ModelFile, places, scaled
from feta_check.people import Box, Column, Space
from feta_check.reading import Number, checkable, holds, readable
from feta_check.rules import Minimum, Scores

FACTS = {"activations", "equality", "link", "measured", "reading", "sigmoid", "source", "tables"}
PARTS = ("breaks", "slopes", "intercepts", "weight")
CHORD = 2**52
STEP = 32  # binary places of sums are multiples of it, so that most people share integers


class Layer(NamedTuple):
    """Activations (breaks, slopes, intercepts by neuron), then an affine layer."""

    units: list[Any]
    slope_places: int
    rows: list[list[int]]
    bias: list[int]


class Network:
    """The numbers of a network, and integers for some binary places of the first layer's sums."""

    def __init__(self, file: ModelFile, space: Space) -> None:
        facts, self.space = file.description["network"], space
        checkable(facts.keys() <= FACTS, "this network")
        smooth = any(name.endswith(".parameter") for name in file.arrays)
        checkable(not smooth, "smooth activations")
        slopes, self.bias = file.array("first.slopes", 2), file.array("first.bias", 1)
        _check_shape(slopes, len(self.bias), space.width)
        self.slope_places = places(chain(*slopes))
        self.columns = [scaled(column, self.slope_places) for column in zip(*slopes, strict=True)]
        self.tables: dict[int, dict[Number, list[float]]] = {}
        for index, column in enumerate(facts["tables"]):
            numbers = file.array(f"table{index}.numbers", 1)
            rows = file.array(f"table{index}.rows", 2)
            _check_shape(rows, len(numbers), len(self.bias))
            valid = column in range(space.width) and column not in self.tables
            readable(valid, "the model has two tables for a column, or one for none")
            self.tables[column] = dict(zip(numbers, rows, strict=True))
        rows = chain([self.bias], *(table.values() for table in self.tables.values()))
        levels = chain(*(axis.numbers for axis in space.axes if axis.kind == "levels"))
        needed = [places(chain(*rows)), self.slope_places + places(levels)]
        self.layers, self.outputs = list[Any](), len(self.bias)
        for index in range(len(facts["activations"])):
            *parts, weight = (file.array(f"layer{index}.{part}", 2) for part in PARTS)
            bias = file.array(f"layer{index}.bias", 1)
            n_pieces, columns = len(parts[1]), len(parts[1][0])
            for part, height in zip(parts, (n_pieces - 1, n_pieces, n_pieces), strict=True):
                _check_shape(part, height, columns)
            _check_shape(weight, len(bias), self.outputs)
            readable(columns in (1, self.outputs), "the model has an invalid activation")
            units = [[[row[i] for row in part] for part in parts] for i in range(columns)]
            self.layers.append((units, weight, bias))
            needed.append(places(chain(bias, *parts[0], *parts[2])))
            self.outputs = len(bias)
        self.places = max(needed)  # later layers have at least those of the first one
        self.term, self.scale = lru_cache(2**14)(self._term), lru_cache(8)(self._scale)
        self.scale(self.places)

    def _scale(self, n_places: int) -> tuple[list[Layer], Fraction]:
        """Return the layers in integers, and the unit of the scores."""
        layers = []
        for units, weight, bias in self.layers:
            tilts = places(chain(*(slopes for _, slopes, _ in units)))
            digits = (n_places, tilts, n_places + tilts)
            whole = [list(map(scaled, unit, digits)) for unit in units]
            for breaks, slopes, starts in whole:
                ascend = all(low < high for low, high in pairwise(breaks))
                lines = zip(breaks, pairwise(zip(slopes, starts, strict=True)), strict=True)
                meet = all(a * at + b == c * at + d for at, ((a, b), (c, d)) in lines)
                readable(ascend and meet, "the model has an activation that is not continuous")
            shift = places(chain(*weight))
            n_places += tilts + shift
            rows = [scaled(row, shift) for row in weight]
            whole *= len(weight[0]) // len(whole)  # one column stands for all neurons
            layers.append(Layer(whole, tilts, rows, scaled(bias, n_places)))
        return layers, Fraction(1, 1 << n_places)

    def sum(self, codes: Iterable[tuple[int, Number]], n_places: int) -> list[int]:
        """Return the sum of the terms of some codes in the first layer."""
        total = [0] * len(self.bias)
        for place, code in codes:
            (factor,) = scaled([code], n_places - self.slope_places)
            if factor:
                total = [t + factor * w for t, w in zip(total, self.columns[place], strict=True)]
            if place in self.tables:
                listed = code in self.tables[place]
                holds(listed, f"column {place}: got a number that is not in its table")
                total = list(map(add, total, scaled(self.tables[place][code], n_places)))
        return total

    def _term(self, axis: int, index: int, n_places: int) -> list[int]:
        """Return the terms of one value of an axis."""
        column = self.space.axes[axis]
        return self.sum(self.space.codes(column, column.at(index)), n_places)

    def is_line(self, axis: Column) -> bool:
        """Return whether the terms of an axis are a slope times its numbers."""
        derived = any(column.source == axis.name for column in self.space.derived)
        return axis.is_number and not derived and axis.start not in self.tables

    def restrict(self, row: dict[int, Number]) -> "Counterparts":
        """Fix the codes of a person that counterparts share."""
        return Counterparts(self, row)


def _check_shape(matrix: Sequence[Sequence[float]], height: int, width: int) -> None:
    fits = len(matrix) == height and all(len(row) == width for row in matrix) and width > 0
    readable(fits, "the model has layers whose shapes do not fit")


class Counterparts:
    """A network on the counterparts of one person."""

    denominator = 1  # of stated scores

    def __init__(self, network: Network, row: dict[int, Number]) -> None:
        self.network, self.space = network, network.space
        needed = max(network.places, network.slope_places + places(row.values()))
        self.places = -(-needed // STEP) * STEP
        self.layers, self.unit = network.scale(self.places)
        bias = scaled(network.bias, self.places)
        self.constant = list(map(add, bias, network.sum(row.items(), self.places)))
        self.flat = [0] * len(bias)

    def _along(self, indices: Sequence[int], slopes: Scores) -> tuple[Scores, Scores, float]:
        """Return scores, their slopes, and how far no neuron leaves its piece."""
        values, reach = self.constant, inf
        for axis, index in enumerate(indices):
            values = list(map(add, values, self.network.term(axis, index, self.places)))
        for layer in self.layers:
            active, steps = [], []
            for (breaks, tilts, starts), value, step in zip(
                layer.units, values, slopes, strict=True
            ):
                piece = bisect_right(breaks, value)
                if step < 0 and piece and breaks[piece - 1] == value:
                    piece -= 1  # it leaves the break downward
                if step > 0 and piece < len(breaks):
                    reach = min(reach, (breaks[piece] - value) // step)
                elif step < 0 and piece:
                    reach = min(reach, (value - breaks[piece - 1]) // -step)
                active.append(tilts[piece] * value + starts[piece])
                steps.append(tilts[piece] * step)
            values = [
                _dot(row, active) + bias for row, bias in zip(layer.rows, layer.bias, strict=True)
            ]
            slopes = [_dot(row, steps) for row in layer.rows]
        return values, slopes, reach

    def scores(self, indices: Sequence[int]) -> Scores:
        """Compute the scores of one counterpart."""
        return self._along(indices, self.flat)[0]

    def _line_end(self, axis: int, box: Box) -> int:
        """Return where the numbers of a box end that are on a line; its first index, without."""
        column, (low, high) = self.space.axes[axis], box[axis]
        return min(high + 1, len(column.numbers)) if self.network.is_line(column) else low

    def points(self, box: Box) -> Iterator[tuple[int, Scores]]:
        """Yield the ids and scores of all counterparts in a box, along its longest line."""
        lengths = [self._line_end(axis, box) - low for axis, (low, _) in enumerate(box)]
        line = lengths.index(max(lengths))
        (low, high), column, stride = box[line], self.space.axes[line], self.space.strides[line]
        stop, tilts = low + lengths[line], self.network.columns[column.start]
        grid = scaled(column.numbers[low:stop], self.places - self.network.slope_places)
        runs = [range(start, end + 1) for start, end in box]
        runs[line] = range(low, low + 1)
        for indices in product(*runs):
            at = low
            while at <= high:
                here = [*indices[:line], at, *indices[line + 1 :]]
                start, steps, reach = self._along(here, tilts if at + 1 < stop else self.flat)
                number, first = _dot(here, self.space.strides), at
                yield number, start
                at += 1
                while at < stop and (offset := grid[at - low] - grid[first - low]) <= reach:
                    number, at = number + stride, at + 1
                    yield number, [y + step * offset for y, step in zip(start, steps, strict=True)]

    def bounds(self, box: Box) -> Minimum:
        """Return lower bounds, over a box, on linear functions of the scores."""
        terms = []
        for axis, (low, high) in enumerate(box):
            stop = self._line_end(axis, box)  # the ends of a line are enough, and a missing number
            indices = {low, stop - 1, high} if stop > low else range(low, high + 1)
            terms.append([self.network.term(axis, index, self.places) for index in indices])
        enclosed = list[tuple[Layer, list[Any]]]()  # layers; the lines of each neuron

        def minimum(row: Sequence[Number]) -> Number:
            constant: Number = 0
            for layer, lines in reversed(enclosed):
                constant += _dot(row, layer.bias)
                row = [_dot(row, column) for column in zip(*layer.rows, strict=True)]
                chosen = [pair[weight <= 0] for weight, pair in zip(row, lines, strict=True)]
                constant += _dot(row, [intercept for _, intercept in chosen])
                row = [weight * slope for weight, (slope, _) in zip(row, chosen, strict=True)]
            least = [min(_dot(row, term) for term in axis) for axis in terms]
            return constant + _dot(row, self.constant) + sum(least)

        def extremes(count: int) -> Iterator[list[Number]]:
            for place in range(count):
                row = [int(index == place) for index in range(count)]
                yield [minimum(row), -minimum([-weight for weight in row])]

        ranges = list(extremes(len(self.flat)))
        for layer in self.layers:
            units = [
                _enclose(unit, low, high, layer.slope_places)
                for unit, (low, high) in zip(layer.units, ranges, strict=True)
            ]
            enclosed.append((layer, [lines for lines, _ in units]))
            ranges = list(extremes(len(layer.bias)))
            for range_, row, bias in zip(ranges, layer.rows, layer.bias, strict=True):
                ends = [sorted((w * x, w * y)) for w, (_, (x, y)) in zip(row, units, strict=True)]
                low, high = (bias + sum(part) for part in zip(*ends, strict=True))
                range_[:] = max(low, range_[0]), min(high, range_[1])
        return minimum


def _dot(row: Sequence[Number], column: Sequence[Number]) -> Any:
    return sum(map(mul, row, column))


def _enclose(unit: Any, low: Number, high: Number, n_places: int) -> Any:
    """Return a line below and one above an activation, and the range of its values."""
    breaks, slopes, intercepts = unit
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
