"""Piecewise-linear networks in integers.

On a line, values are followed with their slopes. Until a neuron reaches the end of its piece, all
scores are affine, so a few evaluations decide many counterparts, without rounding.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import chain, pairwise, product
from operator import add, mul
from typing import Any

from feta_check.bounds import Bounds, Layer
from feta_check.model_file import ModelFile, places, scaled
from feta_check.people import Column, Space
from feta_check.reading import Number, Refuted, checkable, holds, readable
from feta_check.segments import Box, Segment

FACTS = {"activations", "equality", "link", "measured", "reading", "sigmoid", "source", "tables"}

# Binary places are multiples of STEP, so that most people share integers; float64 have up to 1074.
STEP, MAX_PLACES = 32, 1088

Matrix = list[list[Any]]


class Network:
    """All numbers of a network as integers, for some binary places of the first layer's sums."""

    def __init__(self, file: ModelFile, space: Space, n_places: int) -> None:
        facts, slopes = file.description["network"], file.array("first.slopes", 2)
        checkable(facts.keys() <= FACTS, "this network")
        self.file, self.space, self.places = file, space, n_places
        self.bias = scaled(file.array("first.bias", 1), n_places)
        _check_shape(slopes, len(self.bias), space.width)
        self.slope_places = places(chain(*slopes))
        self.columns = [scaled(column, self.slope_places) for column in zip(*slopes, strict=True)]
        self.tables: dict[int, dict[Number, list[int]]] = {}
        for index, column in enumerate(facts["tables"]):
            numbers = file.array(f"table{index}.numbers", 1)
            rows = file.array(f"table{index}.rows", 2)
            _check_shape(rows, len(numbers), len(self.bias))
            readable(column not in self.tables, "the model has two tables for a column")
            terms = [scaled(row, n_places) for row in rows]
            self.tables[column] = dict(zip(numbers, terms, strict=True))
        self.layers: list[Layer] = []
        self.outputs = len(self.bias)
        for index in range(len(facts["activations"])):
            n_places = self._add_layer(f"layer{index}", n_places)
        self.unit = Fraction(1, 1 << n_places)
        self.term = lru_cache(2**14)(self._term)
        levels = chain(*(axis.numbers for axis in space.axes if axis.kind == "levels"))
        self.axis_places, self._finer = places(levels), self

    @classmethod
    def read(cls, file: ModelFile, space: Space) -> "Network":
        """Read a network with as many binary places as its numbers need."""
        for n_places in range(0, MAX_PLACES, STEP):
            with suppress(Refuted):  # a number with more places
                return cls(file, space, n_places)
        return cls(file, space, MAX_PLACES)

    def _add_layer(self, name: str, n_places: int) -> int:
        """Add activations and an affine layer; return the binary places of its sums."""
        parts = ("breaks", "slopes", "intercepts", "weight")
        breaks, slopes, starts, weight = (self.file.array(f"{name}.{part}", 2) for part in parts)
        bias, columns = self.file.array(f"{name}.bias", 1), len(slopes[0])
        _check_shape(starts, len(slopes), columns)
        _check_shape(weight, len(bias), self.outputs)
        readable(columns in (1, self.outputs), "the model has an invalid activation")
        tilts, shift = places(chain(*slopes)), places(chain(*weight))
        pieces = [scaled(row, n_places + tilts) for row in starts]
        cuts = list(zip(*(scaled(row, n_places) for row in breaks), strict=True)) or [()] * columns
        tilted = [scaled(row, tilts) for row in slopes]
        columnwise = (zip(*rows, strict=True) for rows in (tilted, pieces))
        units = list(zip(cuts, *columnwise, strict=True))
        for unit in units:
            _check_pieces(*unit)
        self.outputs, n_places = len(bias), n_places + tilts + shift
        units *= len(weight[0]) // len(units)
        rows = [scaled(row, shift) for row in weight]
        self.layers.append(Layer(units, tilts, rows, scaled(bias, n_places)))
        return n_places

    def restrict(self, row: dict[int, Number]) -> "Counterparts":
        """Fix the codes of a person that counterparts share."""
        needed = self.slope_places + max(self.axis_places, places(row.values()))
        n_places = max(self.places, -(-needed // STEP) * STEP)
        if self._finer.places != n_places:
            self._finer = Network(self.file, self.space, n_places)
        return Counterparts(self._finer, row)

    def is_line(self, axis: Column) -> bool:
        """Return whether the terms of an axis are a slope times its numbers."""
        derived = any(column.source == axis.name for column in self.space.derived)
        return bool(axis.numbers) and not derived and axis.start not in self.tables

    def factors(self, codes: Sequence[Number]) -> list[int]:
        """Return codes as integers, by which the integers of slopes are multiplied."""
        return scaled(codes, self.places - self.slope_places)

    def sum(self, codes: list[tuple[int, Number]]) -> list[int]:
        """Return the sum of the terms of some codes in the first layer."""
        total = [0] * len(self.bias)
        for place, code in codes:
            (factor,) = self.factors([code])
            total = [
                t + factor * slope for t, slope in zip(total, self.columns[place], strict=True)
            ]
            if place in self.tables:
                listed = code in self.tables[place]
                holds(listed, f"column {place}: got a number that is not in its table")
                total = list(map(add, total, self.tables[place][code]))
        return total

    def _term(self, axis: int, index: int) -> list[int]:
        """Return the terms of one value of an axis."""
        return self.sum(self.space.codes_at(self.space.axes[axis], index))

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


def _check_shape(matrix: Matrix, height: int, width: int) -> None:
    fits = len(matrix) == height and all(len(row) == width for row in matrix) and width > 0
    readable(fits, "the model has layers whose shapes do not fit")


def _check_pieces(breaks: Sequence[int], slopes: Sequence[int], starts: Sequence[int]) -> None:
    """Raise unless the pieces of an activation meet."""
    ascend = all(low < high for low, high in pairwise(breaks))
    lines = zip(breaks, pairwise(zip(slopes, starts, strict=True)), strict=True)
    meet = all(a * at + b == c * at + d for at, ((a, b), (c, d)) in lines)
    readable(ascend and meet, "the model has an activation that is not continuous")


class Counterparts:
    """A network on the counterparts of one person."""

    denominator = 1  # of stated scores

    def __init__(self, network: Network, row: dict[int, Number]) -> None:
        self.network, self.unit, self.space = network, network.unit, network.space
        shared = [(place, code) for place, code in row.items() if place not in self.space.moved]
        self.constant = list(map(add, network.bias, network.sum(shared)))
        self.flat = [0] * len(self.constant)

    def _first(self, indices: Sequence[int]) -> list[int]:
        total = self.constant
        for axis, index in enumerate(indices):
            total = list(map(add, total, self.network.term(axis, index)))
        return total

    def scores(self, indices: Sequence[int]) -> list[int]:
        """Compute the scores of one counterpart."""
        return self.network.along(self._first(indices), self.flat)[0]

    def _lengths(self, box: Box) -> list[int]:
        """Return how many numbers of a box are on a line, by axis."""
        return [
            min(high + 1, len(axis.numbers)) - low if self.network.is_line(axis) else 0
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
        numbers = self.network.factors(axis.numbers[low:stop])
        for combination in product(*runs):
            first, last = combination[line]
            while first < last:
                indices = [start for start, _ in combination]
                indices[line] = first
                slopes, offsets = self.flat, [0]
                if last - first > 1:
                    slopes = self.network.columns[axis.start]
                    offsets = [number - numbers[first - low] for number in numbers[first - low :]]
                scores, steps, reach = self.network.along(self._first(indices), slopes)
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
            terms.append([self.network.term(axis, index) for index in ends])
        return Bounds(self.network.layers, self.constant, terms).minimum(row)
