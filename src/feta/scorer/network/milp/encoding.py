"""Encoding of a network over a person's counterparts as a mixed-integer program.

Each function writes one equation, for the neurons of the equilibrated network. The objective is
bounded by ≥, never by > with an ε: so points on the threshold are found, and exact arithmetic
decides them.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from feta.arrays import Matrix, Vector
from feta.bounds import interval
from feta.bounds.first_layer import MAX_ROWS, FirstLayer, Sloped, Tabled
from feta.cells.cells import Cells
from feta.interval_box import IntervalBox
from feta.program import Indices, Program, ProgramBuilder
from feta.rounding import DIFFERENCE, FLOAT64
from feta.scorer.network.activation import Activation
from feta.scorer.network.layers import Affine
from feta.scorer.network.milp.equilibrate import Equilibrated
from feta.scorer.protocol import Objective
from feta.space.attribute import Integer, Levels
from feta.space.axis import Axis

# Larger integers are left continuous and rounded afterwards: solvers accept a number within 1e-6 of
# an integer, and lose that digit next to larger numbers.
LARGEST_INTEGER = 2.0**20


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The columns of one attribute: its number, or one binary selector per value."""

    axis: Axis
    columns: Indices
    selects: bool = False  # whether the columns are selectors
    unit: float = 1.0  # the number is in multiples of this power of two

    def index(self, point: Vector) -> float:
        """Round a solver's point into the attribute's domain: an index, or a real number."""
        values, (low, high) = point[self.columns], self.axis.ends
        if self.selects:
            return float(np.argmax(values))
        attribute, number = self.axis.attribute, float(values[0]) * self.unit
        if isinstance(attribute, Levels):
            return float(np.argmin(np.abs(np.array(attribute.numbers) - number)))
        index = np.rint(number - attribute.low) if isinstance(attribute, Integer) else number
        return float(np.clip(index, low, high))


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A program, and the columns that describe the counterpart."""

    program: Program
    inputs: tuple[Inputs, ...]

    def indices(self, point: Vector | None) -> Vector | None:
        """Return each attribute's index at a point, or its number if it is real-valued.

        Return None for an invalid point.
        """
        if point is None or point.shape != self.program.cost.shape or not np.isfinite(point).all():
            return None
        return np.array([inputs.index(point) for inputs in self.inputs])

    def chosen(self, indices: Vector) -> Indices:
        """Return the selectors of these coordinates; only if every value has one."""
        selectors = [
            inputs.columns[int(index)] for inputs, index in zip(self.inputs, indices, strict=True)
        ]
        return np.array(selectors, dtype=np.int32)

    @property
    def selectors(self) -> Indices:
        """All selectors; only if every value of every attribute has one."""
        return np.concatenate([inputs.columns for inputs in self.inputs])


def encode(
    network: Equilibrated,
    first: FirstLayer,
    boxes: list[IntervalBox],
    objective: Objective,
    *,
    maximize: bool,
    listed: bool = False,
) -> Encoded:
    """Write the program for a counterpart at the objective's level or above (Eq. ce).

    `maximize` selects the worst one (Eq. vio_obj). `boxes` bound the layers of the network before
    scaling, over one cell. `listed` gives every value a selector.
    """
    program = ProgramBuilder()
    inputs = tuple(
        encode_attribute(program, first, index, listed=listed)
        for index in range(len(first.terms.each))
    )
    z, scaled = encode_layers(program, network, first, boxes, inputs)
    value = encode_objective(program, z, scaled[-1], network.output, objective)
    cost = np.zeros(program.n_columns)
    cost[value] = -1.0 if maximize else 0.0
    return Encoded(program.program(cost), inputs)


def encode_layers(
    program: ProgramBuilder,
    network: Equilibrated,
    first: FirstLayer,
    boxes: list[IntervalBox],
    inputs: tuple[Inputs, ...],
) -> tuple[Indices, list[IntervalBox]]:
    """Write the layers that have a box; return the last one's columns, and the scaled boxes."""
    scaled = [
        IntervalBox(box.lower[0], box.upper[0]) * factors
        for box, factors in zip(boxes, network.factors, strict=False)
    ]
    z = encode_first(program, first, network.factors[0], scaled[0], inputs)
    steps = zip(network.network.piecewise_steps, scaled, scaled[1:], strict=False)
    for (activation, layer), before, after in steps:
        a = encode_activation(program, activation, z, before)
        z = encode_affine(program, layer, a, after)
    return z, scaled


def encode_attribute(
    program: ProgramBuilder, first: FirstLayer, index: int, *, listed: bool
) -> Inputs:
    """Add the columns of one sensitive attribute: selectors, or an integer or real number."""
    axis, term = first.terms.axes[index], first.terms.each[index]
    low, high = first.cells.lower[0, index], first.cells.upper[0, index]
    attribute = axis.attribute
    few = isinstance(attribute, Levels) and attribute.n_values <= MAX_ROWS
    if isinstance(term, Tabled) or few or listed:
        values = np.arange(axis.ends[1] + 1)
        allowed = ((values >= low) & (values <= high)).astype(float)
        chosen = program.columns(IntervalBox(np.zeros_like(values), allowed), integral=True)
        program.rows([(chosen, np.ones((1, len(values))))], lower=1.0, upper=1.0, n_rows=1)
        return Inputs(axis, chosen, selects=True)
    numbers = term.numbers(first.cells, index)
    ends = term.numbers(Cells.whole(first.terms.axes), index)
    low, high, largest = float(numbers.lower[0]), float(numbers.upper[0]), float(ends.size[0])
    integer = isinstance(attribute, Integer) and largest <= LARGEST_INTEGER
    unit = 1.0 if integer or not largest else 2.0 ** round(math.log2(largest))
    limits = IntervalBox(np.array([low / unit]), np.array([high / unit]))
    return Inputs(axis, program.columns(limits, integral=integer), unit=unit)


def encode_first(
    program: ProgramBuilder,
    first: FirstLayer,
    factors: Vector,
    box: IntervalBox,
    inputs: tuple[Inputs, ...],
) -> Indices:
    """Add columns z = c + Σ_j t_j(s_j); the person's shared columns give the constant c."""
    z = program.columns(box)
    terms: list[tuple[Indices, Matrix | Vector | float]] = [(z, 1.0)]
    for term, attribute in zip(first.terms.each, inputs, strict=True):
        terms.append((attribute.columns, -_weights(term, attribute) * factors[:, None]))
    error = first.error[0] * 2 * factors
    constant = first.constant * factors
    program.rows(terms, lower=constant, upper=constant, slack=error, n_rows=len(z))
    return z


def _weights(term: Sloped | Tabled, inputs: Inputs) -> Matrix:
    """Return the weight of each of an attribute's columns in each first-layer neuron."""
    if isinstance(term, Tabled):
        return term.rows.T
    if not inputs.selects:
        return term.slope[:, None] * inputs.unit
    low, high = inputs.axis.ends
    return term.slope[:, None] * inputs.axis.codes(np.arange(low, high + 1)).T


def encode_activation(
    program: ProgramBuilder, activation: Activation, z: Indices, box: IntervalBox
) -> Indices:
    """Add columns a = s_0·z + t_0 + Σ_k (s_k − s_{k−1})·max(0, z − b_k), for any pieces."""
    hinges = [
        encode_hinge(program, z, at, box)
        for at in np.broadcast_to(activation.breaks, (activation.n_pieces - 1, len(z)))
    ]
    order_hinges(program, [active for _, active in hinges])
    slopes = np.broadcast_to(activation.slopes, (activation.n_pieces, len(z)))
    rises = np.diff(slopes, axis=0)
    is_relu = len(hinges) == 1 and not slopes[0].any() and (rises == 1).all()
    if is_relu and not activation.intercepts[0].any():
        return hinges[0][0]
    activated = interval.activate(activation, IntervalBox(box.lower[None], box.upper[None]))
    a = program.columns(IntervalBox(activated.lower[0], activated.upper[0]))
    terms: list[tuple[Indices, Matrix | Vector | float]] = [(a, 1.0), (z, -slopes[0])]
    terms += [(hinge, -rise) for (hinge, _), rise in zip(hinges, rises, strict=True)]
    largest = box.size + np.abs(activation.breaks).max(axis=0, initial=0.0)
    size = (np.abs(slopes[0]) + np.abs(rises).sum(axis=0)) * largest
    intercept = np.broadcast_to(activation.intercepts[0], len(z))
    slack = 2 * DIFFERENCE * size + FLOAT64.tiny  # a rise is the difference of two slopes
    program.rows(terms, lower=intercept, upper=intercept, slack=slack, n_rows=len(z))
    return a


def encode_hinge(
    program: ProgramBuilder, z: Indices, at: Vector, box: IntervalBox
) -> tuple[Indices, Indices]:
    """Add columns r = max(0, z − b), for z within its box (Eq. 2b), and binary columns δ.

    δ is 1 where z is beyond the break b. Where the box decides δ, the solver need not branch.
    """
    slack = DIFFERENCE * (box.size + np.abs(at)) + FLOAT64.tiny
    lower, upper = box.lower - at, box.upper - at
    # Where r is 0, its box has no width: solvers cannot handle tiny widths.
    highest = np.where(upper > 0, upper + slack, 0.0)
    r = program.columns(IntervalBox(np.maximum(lower - slack, 0), highest))
    always, possibly = (lower >= 0).astype(float), (upper > 0).astype(float)
    delta = program.columns(IntervalBox(always, np.maximum(always, possibly)), integral=True)
    n_rows = len(z)
    low, high = np.minimum(lower, 0), np.maximum(upper, 0)
    program.rows([(r, 1.0), (z, -1.0)], lower=-at, n_rows=n_rows)  #           r ≥ z − b
    program.rows([(r, 1.0), (delta, -high)], upper=0.0, slack=slack, n_rows=n_rows)  # r ≤ (u − b)·δ
    # r ≤ z − b − (l − b)·(1 − δ)
    program.rows([(r, 1.0), (z, -1.0), (delta, -low)], upper=-at - low, slack=slack, n_rows=n_rows)
    return r, delta


def order_hinges(program: ProgramBuilder, active: list[Indices]) -> None:
    """Add δ_k ≥ δ_{k+1}: a neuron beyond one break is beyond those before it."""
    for before, after in pairwise(active):
        program.rows([(before, 1.0), (after, -1.0)], lower=0.0, n_rows=len(before))


def encode_affine(program: ProgramBuilder, layer: Affine, a: Indices, box: IntervalBox) -> Indices:
    """Add columns z = W·a + b (Eq. 2a)."""
    z = program.columns(box)
    program.rows([(z, 1.0), (a, -layer.weight)], lower=layer.bias, upper=layer.bias, n_rows=len(z))
    return z


def encode_objective(
    program: ProgramBuilder, z: Indices, box: IntervalBox, factor: float, objective: Objective
) -> Indices:
    """Add v, a lower bound of the objective that is at the level or above (Eq. ce).

    If the objective is the smallest of several margins, v ≤ each of them. If it is the largest,
    v ≤ the one that a selector chooses.
    """
    offsets = np.broadcast_to(objective.offsets.floats(), len(objective.directions)) * factor
    positive, negative = np.maximum(objective.directions, 0), np.minimum(objective.directions, 0)
    highs = positive @ box.upper + negative @ box.lower + offsets
    lows = positive @ box.lower + negative @ box.upper + offsets
    level = objective.level * factor
    highest = max(float(highs.min() if objective.least else highs.max()), level)
    v = program.columns(IntervalBox(np.array([level]), np.array([highest])))
    values = np.repeat(v, len(highs))
    if objective.least or len(highs) == 1:
        program.rows([(values, 1.0), (z, -objective.directions)], upper=offsets, n_rows=len(highs))
        return v
    chosen = program.columns(IntervalBox(np.zeros(len(highs)), np.ones(len(highs))), integral=True)
    program.rows([(chosen, np.ones((1, len(highs))))], lower=1.0, upper=1.0, n_rows=1)
    room = np.maximum(highest - lows, 0.0)
    terms: list[tuple[Indices, Matrix | Vector | float]]
    terms = [(values, 1.0), (z, -objective.directions), (chosen, room)]
    program.rows(terms, upper=offsets + room, n_rows=len(highs))
    return v
