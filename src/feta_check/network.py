"""Piecewise-linear networks in integers.

On a line, values are followed with their slopes. Until a neuron reaches the end of its piece, all
scores are affine, so a few evaluations decide many counterparts, without rounding.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, pairwise, product
from operator import add, mul
from typing import Any, NamedTuple

from feta_check.bounds import Bounds
from feta_check.model_file import ModelFile, places, scaled
from feta_check.people import Column, Space
from feta_check.reading import Number, Refuted, Unchecked, expect
from feta_check.segments import Box, Segment

FACTS = {"activations", "equality", "link", "measured", "reading", "sigmoid", "source", "tables"}

# Binary places are rounded up to a multiple of this number, so that people share integers.
STEP = 32

Matrix = list[list[Any]]


class Layer(NamedTuple):
    """Activations in integers (breaks, slopes, intercepts by neuron), then an affine layer."""

    units: list[Any]
    slope_places: int
    rows: list[list[int]]
    bias: list[int]


class Network:
    """The numbers of a network, and how many binary places its first layer needs."""

    def __init__(self, file: ModelFile, space: Space, level: Number) -> None:
        facts = file.description["network"]
        expect(facts.keys() <= FACTS, "not checkable by this program: this network", Unchecked)
        self.space, self.bias = space, file.array("first.bias", 1)
        self.slopes = file.array("first.slopes", 2)
        _check_shape(self.slopes, len(self.bias), space.width)
        self.tables: dict[int, dict[Number, list[float]]] = {}
        for index, column in enumerate(facts["tables"]):
            numbers = file.array(f"table{index}.numbers", 1)
            rows = file.array(f"table{index}.rows", 2)
            _check_shape(rows, len(numbers), len(self.bias))
            expect(column not in self.tables, "the model has two tables for a column")
            self.tables[column] = dict(zip(numbers, rows, strict=True))
        tabled = chain(*(row for table in self.tables.values() for row in table.values()))
        self.places, offset, width = places([*self.bias, *tabled]), 0, len(self.bias)
        self.layers = []
        for index in range(len(facts["activations"])):
            names = ("breaks", "slopes", "intercepts", "weight")
            breaks, slopes, starts, weight = layer = [
                file.array(f"layer{index}.{name}", 2) for name in names
            ]
            bias = file.array(f"layer{index}.bias", 1)
            _check_pieces(breaks, slopes, starts, width)
            _check_shape(weight, len(bias), width)
            needs = places(chain(*breaks)), places(chain(*starts)) - places(chain(*slopes))
            self.places = max(self.places, *(need - offset for need in needs))
            offset += places(chain(*slopes)) + places(chain(*weight))
            self.places, width = max(self.places, places(bias) - offset), len(bias)
            self.layers.append((*layer, bias))
        self.places = max(self.places, places([level]) - offset)
        self.outputs, self.slope_places = width, places(chain(*self.slopes))
        numbers = chain(*(axis.numbers for axis in space.axes if axis.kind == "levels"))
        self.axis_places = places(numbers)
        self._frame = Frame(self, self.places)

    def restrict(self, row: dict[int, Number]) -> "Counterparts":
        """Fix the codes of a person that counterparts share."""
        needed = self.slope_places + max(self.axis_places, places(row.values()))
        n_places = -(-max(self.places, needed) // STEP) * STEP
        if self._frame.places != n_places:
            self._frame = Frame(self, n_places)
        return Counterparts(self._frame, row)

    def is_line(self, axis: Column) -> bool:
        """Return whether the terms of an axis are a slope times its numbers."""
        derived = any(column.source == axis.name for column in self.space.derived)
        return bool(axis.numbers) and not derived and axis.start not in self.tables


def _check_shape(matrix: Matrix, height: int, width: int) -> None:
    fits = len(matrix) == height and all(len(row) == width for row in matrix) and width > 0
    expect(fits, "the model has layers whose shapes do not fit")


def _check_pieces(breaks: Matrix, slopes: Matrix, starts: Matrix, width: int) -> None:
    """Check shapes of an activation, and that its pieces are continuous."""
    columns = len(slopes[0])
    _check_shape(starts, len(slopes), columns)
    expect(columns in (1, width) and len(breaks) == len(slopes) - 1, "invalid activation")
    for column in range(columns):
        cuts = [Fraction(row[column]) for row in breaks]
        lines = [(Fraction(s[column]), t[column]) for s, t in zip(slopes, starts, strict=True)]
        valid = all(low < high for low, high in pairwise(cuts))
        for at, ((slope, start), (after, onward)) in zip(cuts, pairwise(lines), strict=True):
            valid &= (slope - after) * at == Fraction(onward) - Fraction(start)
        expect(valid, "the model has an activation that is not continuous")


class Frame:
    """All numbers of a network as integers, for some binary places of its first layer."""

    def __init__(self, network: Network, n_places: int) -> None:
        self.network, self.places = network, n_places
        self.terms: dict[tuple[int, int], list[int]] = {}
        self.bias = scaled(network.bias, n_places)
        self.columns = list(zip(*(self.slopes(row) for row in network.slopes), strict=True))
        self.layers = []
        for breaks, slopes, starts, weight, bias in network.layers:
            tilts, shift = places(chain(*slopes)), places(chain(*weight))
            parts = (breaks, n_places), (slopes, tilts), (starts, n_places + tilts)
            pieces = [[scaled(row, n) for row in rows] for rows, n in parts]
            columns = [list(zip(*rows, strict=True)) for rows in pieces]
            columns[0] = columns[0] or [()] * len(slopes[0])  # one piece has no breaks
            units = list(zip(*columns, strict=True))
            units *= len(weight[0]) // len(units)
            n_places += tilts + shift
            rows = [scaled(row, shift) for row in weight]
            self.layers.append(Layer(units, tilts, rows, scaled(bias, n_places)))
        self.unit = Fraction(1, 1 << n_places)

    def slopes(self, row: Sequence[float]) -> list[int]:
        """Return slopes of the first layer as integers."""
        return scaled(row, self.network.slope_places)

    def factors(self, codes: Sequence[Number]) -> list[int]:
        """Return codes as integers, by which the integers of slopes are multiplied."""
        return scaled(codes, self.places - self.network.slope_places)

    def sum(self, codes: list[tuple[int, Number]]) -> list[int]:
        """Return the sum of the terms of some codes in the first layer."""
        total = [0] * len(self.bias)
        for place, code in codes:
            (factor,) = self.factors([code])
            total = [
                t + factor * slope for t, slope in zip(total, self.columns[place], strict=True)
            ]
            if place in self.network.tables:
                row = self.network.tables[place].get(code)
                expect(row is not None, f"column {place}: a number is not in its table", Refuted)
                total = list(map(add, total, scaled(row or (), self.places)))
        return total

    def term(self, axis: int, index: int) -> list[int]:
        """Return the terms of one value of an axis."""
        if (axis, index) not in self.terms:
            if len(self.terms) > 2**14:
                self.terms.clear()
            space = self.network.space
            self.terms[axis, index] = self.sum(space.codes_at(space.axes[axis], index))
        return self.terms[axis, index]

    def along(
        self, values: Sequence[int], slopes: Sequence[int]
    ) -> tuple[list[int], list[int], int | None]:
        """Return scores, their slopes, and how far no neuron leaves its piece; None: forever."""
        rooms = []
        for layer in self.layers:
            active, steps = [], []
            for (breaks, tilts, starts), value, step in zip(
                layer.units, values, slopes, strict=True
            ):
                piece = bisect_right(breaks, value)
                if step < 0 and piece and breaks[piece - 1] == value:
                    piece -= 1  # it leaves the break downward
                if step > 0 and piece < len(breaks):
                    rooms.append((breaks[piece] - value) // step)
                elif step < 0 and piece:
                    rooms.append((value - breaks[piece - 1]) // -step)
                active.append(tilts[piece] * value + starts[piece])
                steps.append(tilts[piece] * step)
            sums = [sum(map(mul, row, active)) for row in layer.rows]
            values = list(map(add, sums, layer.bias))
            slopes = [sum(map(mul, row, steps)) for row in layer.rows]
        return list(values), list(slopes), min(rooms, default=None)


class Counterparts:
    """A network on the counterparts of one person."""

    denominator = 1  # of stated scores

    def __init__(self, frame: Frame, row: dict[int, Number]) -> None:
        self.frame, self.unit, self.space = frame, frame.unit, frame.network.space
        shared = [(place, code) for place, code in row.items() if place not in self.space.moved]
        self.constant = list(map(add, frame.bias, frame.sum(shared)))
        self.flat = [0] * len(self.constant)

    def _first(self, indices: Sequence[int]) -> list[int]:
        total = self.constant
        for axis, index in enumerate(indices):
            total = list(map(add, total, self.frame.term(axis, index)))
        return total

    def scores(self, indices: Sequence[int]) -> list[int]:
        """Compute the scores of one counterpart."""
        return self.frame.along(self._first(indices), self.flat)[0]

    def _lengths(self, box: Box) -> list[int]:
        """Return how many numbers of a box are on a line, by axis."""
        return [
            min(high + 1, len(axis.numbers)) - low if self.frame.network.is_line(axis) else 0
            for axis, (low, high) in zip(self.space.axes, box, strict=True)
        ]

    def segments(self, box: Box) -> Iterator[Segment]:
        """Yield segments along the longest line, for all values of the other axes."""
        lengths = self._lengths(box)
        line = lengths.index(max(lengths))
        axis, (low, high) = self.space.axes[line], box[line]
        stop = low + max(1, lengths[line])
        runs = [[(index, index + 1) for index in range(start, end + 1)] for start, end in box]
        runs[line] = [(low, stop), *((index, index + 1) for index in range(stop, high + 1))]
        numbers = self.frame.factors(axis.numbers[low:stop])
        for combination in product(*runs):
            first, last = combination[line]
            while first < last:
                indices = [start for start, _ in combination]
                indices[line] = first
                slopes, offsets = self.flat, [0]
                if last - first > 1:
                    slopes = self.frame.columns[axis.start]
                    offsets = [number - numbers[first - low] for number in numbers[first - low :]]
                scores, steps, reach = self.frame.along(self._first(indices), slopes)
                count = len(offsets) if reach is None else bisect_right(offsets, reach)
                ids = range(self.space.id(indices), self.space.size, self.space.strides[line])
                yield Segment(ids[:count], scores, steps, offsets[:count])
                first += count

    def minimum(self, box: Box, row: Sequence[int]) -> Number:
        """Bound a linear function of the scores over a box from below."""
        terms = []
        for axis, (length, (low, high)) in enumerate(zip(self._lengths(box), box, strict=True)):
            # Of a line, the ends are enough, and the missing value.
            ends = {low, low + length - 1, high} if length > 0 else range(low, high + 1)
            terms.append([self.frame.term(axis, index) for index in ends])
        return Bounds(self.frame.layers, self.constant, terms).minimum(row)
