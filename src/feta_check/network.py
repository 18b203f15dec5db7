"""Piecewise-linear networks in integers.

On a line, values are followed with their slopes. Until a neuron reaches the end of its piece, all
scores are affine, so a few evaluations decide many counterparts, without rounding.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from operator import mul
from typing import Any, NamedTuple

from feta_check.bounds import Bounds
from feta_check.model_file import ModelFile, Tensor, exponent_of, scaled
from feta_check.people import Space
from feta_check.reading import Refuted, Unchecked, Unreadable
from feta_check.segments import Box, Number, Segment

# Exponents are multiples of this number, so that most people share the same integers.
STEP = 32


class Layer(NamedTuple):
    """Activations, then an affine layer: breaks, slopes and intercepts by neuron, and rows."""

    units: list[tuple[list[int], list[int], list[int]]]
    rows: list[list[int]]
    bias: list[int]
    slope_exponent: int


class Network:
    """The numbers of a network, and of its first layer by columns."""

    def __init__(self, file: ModelFile, space: Space, levels: Sequence[Fraction]) -> None:
        facts = file.description["network"]
        self.space = space
        names, tabled = facts.get("activations"), facts.get("tables")
        if type(names) is not list or type(tabled) is not list:
            raise Unreadable("the model has an invalid description of its layers")
        if any(f"layer{index}.parameter" in file.tensors for index in range(len(names))):
            raise Unchecked("not checkable by this program: smooth activations")
        self.bias, self.slopes = file.tensor("first.bias", 1), file.tensor("first.slopes", 2)
        width = self._width(self.slopes, self.bias, space.width)
        self.tables: dict[int, tuple[dict[Fraction, int], Tensor]] = {}
        for index, column in enumerate(tabled):
            numbers = file.tensor(f"table{index}.numbers", 1)
            rows = file.tensor(f"table{index}.rows", 2)
            shape = (len(numbers.numbers), width)
            if type(column) is not int or column in self.tables or rows.shape != shape:
                raise Unreadable(f"invalid table {index} of the model")
            unit = Fraction(1, 1 << -numbers.exponent)
            places = {number * unit: place for place, number in enumerate(numbers.numbers)}
            self.tables[column] = places, rows
        self.layers = []
        for index in range(len(names)):
            layer = {
                name: file.tensor(f"layer{index}.{name}", 2)
                for name in ("breaks", "slopes", "intercepts", "weight")
            }
            layer["bias"] = file.tensor(f"layer{index}.bias", 1)
            _check_pieces(layer, width)
            width = self._width(layer["weight"], layer["bias"], width)
            self.layers.append(layer)
        self.outputs = width
        self._frames: dict[int, Frame] = {}
        self._limit = self._exponent_limit(levels)

    @staticmethod
    def _width(weight: Tensor, bias: Tensor, inputs: int) -> int:
        if weight.shape[1] != inputs or weight.shape[0] != bias.shape[0] or not inputs:
            raise Unreadable("the model has layers whose shapes do not fit")
        return weight.shape[0]

    def _exponent_limit(self, levels: Sequence[Fraction]) -> int:
        """Return the largest exponent of the first layer with which everything is an integer."""
        limits = [self.bias.exponent, *(rows.exponent for _, rows in self.tables.values())]
        codes = [
            Fraction(number)
            for axis in self.space.axes
            for number in (*axis.column.numbers, axis.column.low, axis.column.high)
            if axis.column.kind in {"levels", "number"}
        ]
        limits.append(self.slopes.exponent + min(map(exponent_of, codes), default=0))
        offset = 0
        for layer in self.layers:
            limits.append(layer["breaks"].exponent - offset)
            limits.append(layer["intercepts"].exponent - layer["slopes"].exponent - offset)
            offset += layer["slopes"].exponent + layer["weight"].exponent
            limits.append(layer["bias"].exponent - offset)
        limits += [exponent_of(level) - offset for level in levels]
        return min(limits)

    def restrict(self, row: list[Fraction]) -> "RestrictedNetwork":
        """Fix the columns of a person that counterparts share."""
        moved = set[int]().union(*(axis.moved for axis in self.space.axes))
        shared = [(place, code) for place, code in enumerate(row) if place not in moved]
        natural = self.slopes.exponent + min(map(exponent_of, row))
        exponent = min(self._limit, natural) // STEP * STEP
        if exponent not in self._frames:
            if len(self._frames) > STEP:
                self._frames.clear()
            self._frames[exponent] = Frame(self, exponent)
        return RestrictedNetwork(self._frames[exponent], shared)


def _check_pieces(layer: dict[str, Tensor], width: int) -> None:
    """Check shapes of an activation, and that its pieces are continuous."""
    slopes, intercepts, breaks = (layer[name] for name in ("slopes", "intercepts", "breaks"))
    n_pieces, columns = slopes.shape
    fits = intercepts.shape == slopes.shape and breaks.shape == (n_pieces - 1, columns)
    if not n_pieces or columns not in (1, width) or not fits:
        raise Unreadable("the model has an activation whose shapes do not fit")
    exponent = min(intercepts.exponent, slopes.exponent + breaks.exponent)
    jumps, starts = breaks.rows() if n_pieces > 1 else [], intercepts.rows(exponent)
    for piece, row in enumerate(jumps):
        if piece and not all(low < high for low, high in zip(jumps[piece - 1], row, strict=True)):
            raise Unreadable("the model has an activation whose breaks do not ascend")
        for place, at in enumerate(row):
            values = {
                (slopes.rows()[side][place] * at << slopes.exponent + breaks.exponent - exponent)
                + starts[side][place]
                for side in (piece, piece + 1)
            }
            if len(values) > 1:
                raise Unreadable("the model has an activation that is not continuous")


class Frame:
    """All numbers of a network as integers, for one exponent of the first layer."""

    def __init__(self, network: Network, exponent: int) -> None:
        self.network, self.exponent = network, exponent
        self.terms: dict[tuple[int, Any], list[int]] = {}
        self.columns = list(zip(*network.slopes.rows(), strict=True))
        self.layers = []
        for layer in network.layers:
            slopes, weight = layer["slopes"], layer["weight"]
            after = exponent + slopes.exponent
            groups = layer["breaks"].rows(exponent), slopes.rows(), layer["intercepts"].rows(after)
            columns = [[list(c) for c in zip(*rows, strict=True)] for rows in groups]
            columns[0] = columns[0] or [[]] * slopes.shape[1]  # one piece has no breaks
            units = list(zip(*columns, strict=True))
            exponent = after + weight.exponent
            units *= weight.shape[1] // len(units)
            bias = layer["bias"].at(exponent)
            self.layers.append(Layer(units, weight.rows(), bias, slopes.exponent))
        self.unit = Fraction(1, 1 << -exponent) if exponent <= 0 else Fraction(1 << exponent)

    def sum(self, codes: Sequence[tuple[int, Fraction]]) -> list[int]:
        """Return the sum of the terms of some columns in the first layer."""
        network = self.network
        total = [0] * len(network.bias.numbers)
        shift = self.exponent - network.slopes.exponent
        for place, code in codes:
            if place in network.tables:
                places, rows = network.tables[place]
                if code not in places:
                    raise Refuted(f"encoded column {place}: got a number that is not in its table")
                total = _added(total, rows.row(places[code], self.exponent))
            elif code:
                factor = scaled(code, shift)
                total = [
                    t + factor * slope for t, slope in zip(total, self.columns[place], strict=True)
                ]
        return total

    def term(self, axis: int, value: Any) -> list[int]:
        """Return the terms of one value of an axis."""
        if (axis, value) not in self.terms:
            if len(self.terms) > 2**14:
                self.terms.clear()
            codes = self.network.space.axes[axis].codes(value)
            self.terms[axis, value] = self.sum(codes)
        return self.terms[axis, value]


def _added(left: list[int], right: list[int]) -> list[int]:
    return [a + b for a, b in zip(left, right, strict=True)]


class RestrictedNetwork:
    """A network on the counterparts of one person."""

    denominator = 1

    def __init__(self, frame: Frame, shared: list[tuple[int, Fraction]]) -> None:
        self.frame, self.unit = frame, frame.unit
        self.axes = frame.network.space.axes
        self.constant = _added(frame.network.bias.at(frame.exponent), frame.sum(shared))
        self.strides = [1] * len(self.axes)
        for index in range(len(self.axes) - 2, -1, -1):
            self.strides[index] = self.strides[index + 1] * self.axes[index + 1].column.count

    def scores(self, values: list[int]) -> list[int]:
        """Compute the scores of one counterpart."""
        total = self.constant
        for axis, value in enumerate(values):
            total = _added(total, self.frame.term(axis, value))
        return self._forward(total)

    def _forward(self, values: Sequence[int]) -> list[int]:
        for layer in self.frame.layers:
            active = []
            for (breaks, slopes, intercepts), value in zip(layer.units, values, strict=True):
                piece = bisect_right(breaks, value)
                active.append(slopes[piece] * value + intercepts[piece])
            values = [
                sum(map(mul, row, active), bias)
                for row, bias in zip(layer.rows, layer.bias, strict=True)
            ]
        return list(values)

    def segments(self, box: Box) -> Iterator[Segment]:
        """Yield segments along the longest line, for all combinations of the other axes."""
        yield from self._visit(box, self._line(box), 0, self.constant, 0)

    def _is_line(self, axis: int) -> bool:
        """Return whether the terms of an axis are a slope times its numbers."""
        column = self.axes[axis].column
        tabled = column.start in self.frame.network.tables
        return bool(column.numbers) and not self.axes[axis].derived and not tabled

    def _line(self, box: Box) -> int:
        """Return the longest line; −1 without any."""
        lengths = [
            min(high, len(axis.column.numbers) - 1) - low if self._is_line(index) else 0
            for index, (axis, (low, high)) in enumerate(zip(self.axes, box, strict=True))
        ]
        return lengths.index(max(lengths)) if max(lengths) > 1 else -1

    def _visit(
        self, box: Box, line: int, axis: int, total: list[int], number: int
    ) -> Iterator[Segment]:
        if axis == len(box):
            if line < 0:
                yield Segment((number,), self._forward(total))
            else:
                yield from self._follow(line, box[line], total, number)
            return
        low, high = box[axis]
        if axis == line:
            yield from self._visit(box, line, axis + 1, total, number)
            return
        for value in range(low, high + 1):
            after = _added(total, self.frame.term(axis, value))
            place = number + value * self.strides[axis]
            yield from self._visit(box, line, axis + 1, after, place)

    def _follow(
        self, axis: int, ends: tuple[Any, Any], total: list[int], number: int
    ) -> Iterator[Segment]:
        """Follow a line from its first to its last value."""
        (low, high), column = ends, self.axes[axis].column
        slopes = self.frame.columns[column.start]
        shift = self.frame.exponent - self.frame.network.slopes.exponent
        last = min(high, len(column.numbers) - 1)
        numbers = [scaled(Fraction(x), shift) for x in column.numbers[low : last + 1]]
        stride, first, index = self.strides[axis], number + low * self.strides[axis], 0
        while index < len(numbers):
            at = numbers[index]
            values = [value + slope * at for value, slope in zip(total, slopes, strict=True)]
            scores, steps, reach = self._along(values, slopes)
            stop = len(numbers) if reach is None else bisect_right(numbers, at + reach)
            ids = range(first + index * stride, first + stop * stride, stride)
            yield Segment(ids, scores, steps, [x - at for x in numbers[index:stop]])
            index = stop
        if high > last:  # the missing value
            after = _added(total, self.frame.term(axis, high))
            yield Segment((number + high * stride,), self._forward(after))

    def _along(
        self, values: Sequence[int], slopes: Sequence[int]
    ) -> tuple[list[int], list[int], int | None]:
        """Return scores, their slopes, and how far no neuron leaves its piece; None: forever."""
        reach: int | None = None
        for layer in self.frame.layers:
            active, steps = [], []
            for (breaks, tilts, intercepts), value, step in zip(
                layer.units, values, slopes, strict=True
            ):
                piece = bisect_right(breaks, value)
                if step < 0 and piece and breaks[piece - 1] == value:
                    piece -= 1  # it leaves the break downward
                if step > 0 and piece < len(breaks):
                    room = (breaks[piece] - value) // step
                    reach = room if reach is None or room < reach else reach
                elif step < 0 and piece:
                    room = (value - breaks[piece - 1]) // -step
                    reach = room if reach is None or room < reach else reach
                active.append(tilts[piece] * value + intercepts[piece])
                steps.append(tilts[piece] * step)
            values = [
                sum(map(mul, row, active), bias)
                for row, bias in zip(layer.rows, layer.bias, strict=True)
            ]
            slopes = [sum(map(mul, row, steps)) for row in layer.rows]
        return list(values), list(slopes), reach

    def minimum(self, box: Box, row: Sequence[int]) -> Number:
        """Bound a linear function of the scores over a box from below."""
        terms = []
        for index, (axis, (low, high)) in enumerate(zip(self.axes, box, strict=True)):
            last = min(high, len(axis.column.numbers) - 1)  # of a line, with the ends only
            values = {low, max(low, last), high} if self._is_line(index) else range(low, high + 1)
            terms.append([self.frame.term(index, value) for value in values])
        return Bounds(self.frame.layers, self.constant, terms).minimum(row)
