"""A model and a box of people as plain arrays: what a proof by half-spaces needs to know.

The first layer is a constant plus one term per axis: a slope times a number, or a row of a table.
All combinations of sensitive values are one more table. The rounding errors of all bounds are
bounded once for the whole box (docs/explanation/rounding.md, lemma 25).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.bounds.first_layer import needs_table
from feta.bounds.layers import BoundedActivation, BoundedAffine, BoundedColumns, BoundedNetwork
from feta.everybody.shares import Stratum, Weights
from feta.model import Model
from feta.rounding import FLOAT64, FLOOR, upward
from feta.space.attribute import Integer
from feta.space.axis import Axis

# Combinations of sensitive values that are bounded one by one.
MOST_COMBINATIONS = 64

# Columns that counterparts share: a node of a certificate has one byte.
MOST_AXES = 127

# Values of an axis whose terms are a table.
LONGEST_TABLE = 4096

# A line below or above an activation has |slope · z| + |intercept| of at most this many times
# steepest · |z|, plus twice the largest intercept.
LINE_SIZE = 3.0

# Networks with larger numbers are refused, so that no bound overflows.
LARGEST = 1e200

# Different terms that are rounded to the same number are moved apart by so many units of their
# size: as much as one more rounding in `_errors`.
APART = 4

# Roundings when a form is closed over a box, in addition to one product and sum per axis.
CLOSING = 16


@dataclass(frozen=True, slots=True, eq=False)
class BoxAxis:
    """An axis that counterparts share: integers or real numbers with a slope, or a table."""

    slope: Vector | None  # (neurons,)
    table: Matrix | None  # (values, neurons)
    start: float  # the number of the first integer
    ends: Counts | None  # cumulative weights of the values, from 0; None for real numbers
    low: float  # the first and the last coordinate that have a share
    high: float
    size: Vector  # bounds the absolute term of each neuron

    @property
    def real(self) -> bool:
        """Whether it has uncountably many values."""
        return self.ends is None

    def weights(self, low: float, high: float) -> Counts:
        """Return the weight of each value in a range."""
        assert self.ends is not None
        return np.diff(self.ends[int(low) : int(high) + 2])

    def trimmed(self, low: float, high: float) -> tuple[float, float]:
        """Return the first and the last value with a weight; the first is larger if none has."""
        if self.ends is None:
            return low, high
        first = np.searchsorted(self.ends, self.ends[int(low)], side="right") - 1
        last = np.searchsorted(self.ends, self.ends[int(high) + 1], side="left") - 1
        return float(first), float(last)

    def terms(self, low: float, high: float) -> Matrix:
        """Return the terms of each value in a range, or of both ends of real numbers."""
        if self.table is not None:
            return self.table[int(low) : int(high) + 1]
        assert self.slope is not None
        numbers = np.array([low, high]) if self.real else np.arange(low, high + 1) + self.start
        return np.asarray(numbers[:, None] * self.slope)

    def ends_of(self, low: float, high: float) -> Matrix:
        """Return terms among which every linear function of them has its minimum in a range."""
        if self.table is not None:
            return self.table[int(low) : int(high) + 1]
        assert self.slope is not None
        return np.asarray((np.array([low, high]) + self.start)[:, None] * self.slope)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A network with one score, a threshold, and a box of people and all their counterparts."""

    constant: Vector  # of the first layer
    axes: tuple[BoxAxis, ...]
    combinations: Matrix  # the terms of the sensitive values, (combinations, neurons)
    activations: tuple[BoundedActivation, ...]
    layers: tuple[BoundedAffine, ...]
    threshold: float
    sizes: tuple[Vector, ...]  # bounds on the values of each layer
    errors: tuple[Vector, ...]  # bounds on the rounding errors of bounds, one vector per layer

    @classmethod
    def of(cls, model: Model, part: Stratum) -> "Problem | str":
        """Return the arrays of a model over a box, or why it has none."""
        network: BoundedNetwork | None = getattr(model.scorer, "piecewise_layers", None)
        refused = _refusal(model, part, network)
        if refused:
            return refused
        assert network is not None
        assert model.rule.threshold is not None
        first = network.first
        axes = tuple(
            _axis(first, part.axes[i], part.weights[i], part.lower[i], part.upper[i])
            for i in part.shared
        )
        constant, size = _constant(first, part)
        combinations, widest = _combinations(first, part)
        size = size + widest + sum((axis.size for axis in axes), np.zeros(len(constant)))
        n_terms = first.width + len(axes) + 1 + CLOSING  # 1: `APART`
        sizes, errors = _errors(network, size, abs(model.rule.threshold), n_terms)
        if not all(np.isfinite(each).all() and each.max() < LARGEST for each in sizes):
            return "the numbers of the network are too large"
        return cls(
            constant,
            axes,
            combinations,
            tuple(network.activations),
            tuple(network.layers),
            model.rule.threshold,
            sizes,
            errors,
        )

    @property
    def box(self) -> tuple[Vector, Vector]:
        """The coordinates of the whole box."""
        low = np.array([axis.low for axis in self.axes])
        return low, np.array([axis.high for axis in self.axes])

    def reads(self) -> bool:
        """Whether sensitive values change the first layer at all; equal numbers are compared."""
        return bool((self.combinations != self.combinations[:1]).any())


def _refusal(model: Model, part: Stratum, network: BoundedNetwork | None) -> str:
    """Return why half-spaces prove nothing about a model; empty if they do."""
    if model.rule.threshold is None or model.rule.n_classes != 2 or model.scorer.outputs != 1:  # noqa: PLR2004
        return "the rule is no threshold on one score"
    if network is None:
        return "the model is no network with piecewise-linear activations only"
    sensitive = [axis for i, axis in enumerate(part.axes) if i not in part.shared]
    if any(axis.real for axis in sensitive):
        return "a sensitive column is real-valued"
    if prod(len(axis) for axis in sensitive) > MOST_COMBINATIONS:
        return f"there are more than {MOST_COMBINATIONS} combinations of sensitive values"
    if len(part.shared) > MOST_AXES:
        return f"there are more than {MOST_AXES} columns"
    for index in part.shared:
        axis = part.axes[index]
        tabled = needs_table(network.first, axis) or not (
            axis.real or isinstance(axis.attribute, Integer)
        )
        if tabled and (axis.real or len(axis) > LONGEST_TABLE):
            return f"the column {axis.attribute.name!r} has a table of too many values"
    return ""


def _axis(
    first: BoundedColumns, axis: Axis, weights: Weights, lower: float, upper: float
) -> BoxAxis:
    ends = None if weights.ends is None else np.array(weights.ends, dtype=np.int64)
    linear = axis.real or isinstance(axis.attribute, Integer)
    if linear and not needs_table(first, axis):
        (column,) = axis.columns
        slope = np.array(first.slopes[:, column])
        start = float(axis.attribute.low) if isinstance(axis.attribute, Integer) else 0.0
        largest = max(abs(lower + start), abs(upper + start))
        size = (abs(largest) + FLOOR) * (np.abs(slope) + FLOOR)
        made = BoxAxis(slope, None, start, ends, lower, upper, size)
    else:
        rows, sizes = first.terms(axis.codes(np.arange(len(axis))), axis.columns)
        made = BoxAxis(None, rows, 0.0, ends, lower, upper, sizes.max(axis=0))
    low, high = made.trimmed(lower, upper)
    return BoxAxis(made.slope, made.table, made.start, ends, low, high, made.size)


def _constant(first: BoundedColumns, part: Stratum) -> tuple[Vector, Vector]:
    """Return the sum of the bias and of the columns that are no axis, and its size."""
    moving = {column for axis in part.axes for column in axis.columns}
    fixed = [column for column in range(first.width) if column not in moving]
    values, sizes = first.terms(part.person[None, fixed], fixed)
    return values[0] + first.bias, sizes[0] + np.abs(first.bias)


def _combinations(first: BoundedColumns, part: Stratum) -> tuple[Matrix, Vector]:
    """Return the terms of all combinations of sensitive values, and bounds on their size.

    Equal terms mean that a neuron reads no sensitive value. So terms that are different, but are
    rounded to the same number, are moved apart by less than the errors that are counted anyway.
    """
    total, largest = np.zeros((1, len(first.bias))), np.zeros(len(first.bias))
    moving = [axis for index, axis in enumerate(part.axes) if index not in part.shared]
    for axis in moving:
        rows, sizes = first.terms(axis.codes(np.arange(len(axis))), axis.columns)
        total = (total[:, None, :] + rows[None, :, :]).reshape(-1, len(first.bias))
        largest = largest + sizes.max(axis=0)
    for neuron in np.flatnonzero((total == total[:1]).all(axis=0)).tolist():
        if any(_varies(first, axis, neuron) for axis in moving):
            total[-1, neuron] += APART * FLOAT64.unit * largest[neuron]
    return total, largest


def _varies(first: BoundedColumns, axis: Axis, neuron: int) -> bool:
    """Return whether a neuron's terms of an axis are not all equal; nothing is rounded."""
    sums = set[Fraction]()
    for row in axis.codes(np.arange(len(axis))).tolist():
        total = Fraction(0)
        for code, column in zip(row, axis.columns, strict=True):
            total += Fraction(code) * Fraction(float(first.slopes[neuron, column]))
            if column in first.tabled:  # its slope is zero
                total += Fraction(float(first.terms(np.array([[code]]), [column])[0][0, neuron]))
        sums.add(total)
    return len(sums) > 1


def _errors(
    network: BoundedNetwork, size: Vector, threshold: float, n_terms: int
) -> tuple[tuple[Vector, ...], tuple[Vector, ...]]:
    """Bound the values of each layer, and the errors of their bounds; lemma 25."""
    sizes = [size * upward(n_terms)]
    errors = [4 * FLOAT64.gamma(n_terms) * sizes[0]]
    for index, (activation, layer) in enumerate(
        zip(network.activations, network.layers, strict=True)
    ):
        largest = LINE_SIZE * (activation.steepest + FLOOR) * sizes[-1] + 2 * activation.lift
        weight = np.abs(layer.weight) + FLOOR
        last = index == len(network.layers) - 1
        size = weight @ (largest + FLOOR) + np.abs(layer.bias) + (threshold if last else 0.0)
        n_terms += sum(layer.weight.shape) + CLOSING
        sizes.append(size * upward(n_terms))
        errors.append(4 * FLOAT64.gamma(n_terms) * sizes[-1])
    if not network.layers:
        errors[-1] = errors[-1] + 4 * FLOAT64.gamma(n_terms) * threshold
    return tuple(sizes), tuple(errors)


def share_of(axes: Sequence[BoxAxis], lower: Vector, upper: Vector) -> Fraction:
    """Return the share of a box."""
    share = Fraction(1)
    for axis, low, high in zip(axes, lower.tolist(), upper.tolist(), strict=True):
        if axis.ends is not None:
            part = int(axis.ends[int(high) + 1]) - int(axis.ends[int(low)])
            share *= Fraction(part, int(axis.ends[-1]))
        elif axis.low < axis.high:
            share *= (Fraction(high) - Fraction(low)) / (Fraction(axis.high) - Fraction(axis.low))
    return share
