"""Encoding: a network over a person's counterparts as linear rows; one equation a function.

Neurons are those of the equilibrated network. Questions are relaxed (≥, never > with an ε): a point
on the threshold is found, and exact arithmetic tells what it is.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from feta.arrays import Matrix, Vector
from feta.bounds import interval
from feta.bounds.first_layer import MAX_ROWS, FirstLayer, Sloped, Tabled
from feta.cells.cells import Cells, Dimension
from feta.engine.milp.equilibrate import Equilibrated
from feta.interval_box import IntervalBox
from feta.program import Places, Program, ProgramBuilder
from feta.rounding import DIFFERENCE, FLOAT64
from feta.rule import Objective
from feta.scorer.network.activation import Activation
from feta.scorer.network.network import Affine
from feta.space.attribute import Integer, Levels

# Whole numbers beyond this are left continuous and rounded afterwards: solvers take a number for
# whole when it is within 1e-6 of one, and lose that digit beside larger ones.
LARGEST_WHOLE = 2.0**20


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The columns of one attribute: its own number, or a selector for each of its values."""

    dimension: Dimension
    columns: Places
    selects: bool = False  # whether there is a column a value
    unit: float = 1.0  # what a number's column is counted in, a power of two

    def index(self, point: Vector) -> float:
        """Round what a solver gives into the attribute's domain: a place, or a real number."""
        values, (low, high) = point[self.columns], self.dimension.ends
        if self.selects:
            return float(np.argmax(values))
        attribute, number = self.dimension.attribute, float(values[0]) * self.unit
        if isinstance(attribute, Levels):
            return float(np.argmin(np.abs(np.array(attribute.numbers) - number)))
        index = np.rint(number - attribute.low) if isinstance(attribute, Integer) else number
        return float(np.clip(index, low, high))


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A program, and where to read the counterpart in its points."""

    program: Program
    inputs: tuple[Inputs, ...]

    def indices(self, point: Vector | None) -> Vector | None:
        """Read a point: each attribute's place, or its number where it is real-valued."""
        if point is None or point.shape != self.program.cost.shape or not np.isfinite(point).all():
            return None
        return np.array([one.index(point) for one in self.inputs])

    @property
    def selectors(self) -> Places:
        """All selectors together; only where every value has one."""
        return np.concatenate([one.columns for one in self.inputs])


def encode(
    network: Equilibrated,
    first: FirstLayer,
    boxes: list[IntervalBox],
    goal: Objective,
    *,
    maximize: bool,
    listed: bool = False,
) -> Encoded:
    """Ask for a counterpart that reaches the goal's level (Eq. ce), or the farthest (Eq. vio_obj).

    `boxes` bound the network's own layers over one part; `listed` gives every value a selector.
    """
    program = ProgramBuilder()
    inputs = tuple(
        encode_attribute(program, first, index, listed=listed)
        for index in range(len(first.terms.each))
    )
    z, scaled = encode_layers(program, network, first, boxes, inputs)
    reached = encode_goal(program, z, scaled[-1], network.output, goal)
    cost = np.zeros(program.n_columns)
    cost[reached] = -1.0 if maximize else 0.0
    return Encoded(program.program(cost), inputs)


def encode_layers(
    program: ProgramBuilder,
    network: Equilibrated,
    first: FirstLayer,
    boxes: list[IntervalBox],
    inputs: tuple[Inputs, ...],
) -> tuple[Places, list[IntervalBox]]:
    """Write the layers that have a box; give the last one's columns, and all boxes as scaled."""
    scaled = [
        IntervalBox(box.lower[0], box.upper[0]) * f
        for box, f in zip(boxes, network.factors, strict=False)
    ]
    z = encode_first(program, first, network.factors[0], scaled[0], inputs)
    steps = zip(network.network.steps, scaled, scaled[1:], strict=False)
    for (activation, layer), before, after in steps:
        a = encode_activation(program, activation, z, before)
        z = encode_affine(program, layer, a, after)
    return z, scaled


def encode_attribute(
    program: ProgramBuilder, first: FirstLayer, index: int, *, listed: bool
) -> Inputs:
    """Columns for one sensitive attribute: exactly one selector is 1, whole numbers are whole."""
    dimension, term = first.terms.dimensions[index], first.terms.each[index]
    low, high = first.cells.lower[0, index], first.cells.upper[0, index]
    attribute = dimension.attribute
    few = isinstance(attribute, Levels) and attribute.n_values <= MAX_ROWS
    if isinstance(term, Tabled) or few or listed:
        values = np.arange(dimension.ends[1] + 1)
        allowed = ((values >= low) & (values <= high)).astype(float)
        chosen = program.columns(IntervalBox(np.zeros_like(values), allowed), whole=True)
        program.rows([(chosen, np.ones((1, len(values))))], lower=1.0, upper=1.0, n_rows=1)
        return Inputs(dimension, chosen, selects=True)
    numbers = term.numbers(first.cells, index)
    ends = term.numbers(Cells.whole(first.terms.dimensions), index)
    low, high, largest = float(numbers.lower[0]), float(numbers.upper[0]), float(ends.size[0])
    whole = isinstance(attribute, Integer) and largest <= LARGEST_WHOLE
    unit = 1.0 if whole or not largest else 2.0 ** round(math.log2(largest))
    limits = IntervalBox(np.array([low / unit]), np.array([high / unit]))
    return Inputs(dimension, program.columns(limits, whole=whole), unit=unit)


def encode_first(
    program: ProgramBuilder,
    first: FirstLayer,
    factors: Vector,
    box: IntervalBox,
    inputs: tuple[Inputs, ...],
) -> Places:
    """Columns z with z = c + Σ_j t_j(s_j): the person's other columns are a constant."""
    z = program.columns(box)
    terms: list[tuple[Places, Matrix | Vector | float]] = [(z, 1.0)]
    for term, one in zip(first.terms.each, inputs, strict=True):
        terms.append((one.columns, -_weights(term, one) * factors[:, None]))
    error = first.error[0] * 2 * factors
    constant = first.constant * factors
    program.rows(terms, lower=constant, upper=constant, slack=error, n_rows=len(z))
    return z


def _weights(term: Sloped | Tabled, inputs: Inputs) -> Matrix:
    """Say what each of an attribute's columns adds to each first-layer neuron."""
    if isinstance(term, Tabled):
        return term.rows.T
    if not inputs.selects:
        return term.slope[:, None] * inputs.unit
    low, high = inputs.dimension.ends
    return term.slope[:, None] * inputs.dimension.codes(np.arange(low, high + 1)).T


def encode_activation(
    program: ProgramBuilder, activation: Activation, z: Places, box: IntervalBox
) -> Places:
    """Columns a = s_0·z + t_0 + Σ_k (s_k − s_{k−1})·max(0, z − b_k), whatever the pieces."""
    bends = [
        encode_bend(program, z, at, box)
        for at in np.broadcast_to(activation.breaks, (activation.n_pieces - 1, len(z)))
    ]
    order_bends(program, [active for _, active in bends])
    slopes = np.broadcast_to(activation.slopes, (activation.n_pieces, len(z)))
    rises = np.diff(slopes, axis=0)
    is_relu = len(bends) == 1 and not slopes[0].any() and (rises == 1).all()
    if is_relu and not activation.intercepts[0].any():
        return bends[0][0]
    bent = interval.activate(activation, IntervalBox(box.lower[None], box.upper[None]))
    a = program.columns(IntervalBox(bent.lower[0], bent.upper[0]))
    terms: list[tuple[Places, Matrix | Vector | float]] = [(a, 1.0), (z, -slopes[0])]
    terms += [(over, -rise) for (over, _), rise in zip(bends, rises, strict=True)]
    farthest = box.size + np.abs(activation.breaks).max(axis=0, initial=0.0)
    radius = (np.abs(slopes[0]) + np.abs(rises).sum(axis=0)) * farthest
    intercept = np.broadcast_to(activation.intercepts[0], len(z))
    slack = 2 * DIFFERENCE * radius + FLOAT64.tiny  # a rise is the difference of two slopes
    program.rows(terms, lower=intercept, upper=intercept, slack=slack, n_rows=len(z))
    return a


def encode_bend(
    program: ProgramBuilder, z: Places, at: Vector, box: IntervalBox
) -> tuple[Places, Places]:
    """Columns r with r = max(0, z − b), for z within its box (Eq. 2b), and δ.

    The binary δ says whether z is beyond the break b. Bounds that settle it cost no search.
    """
    slack = DIFFERENCE * (box.size + np.abs(at)) + FLOAT64.tiny
    lower, upper = box.lower - at, box.upper - at
    # No tiny widths: solvers stumble over them.
    highest = np.where(upper > 0, upper + slack, 0.0)
    r = program.columns(IntervalBox(np.maximum(lower - slack, 0), highest))
    must, may = (lower >= 0).astype(float), (upper > 0).astype(float)
    delta = program.columns(IntervalBox(must, np.maximum(must, may)), whole=True)
    n_rows = len(z)
    low, high = np.minimum(lower, 0), np.maximum(upper, 0)
    program.rows([(r, 1.0), (z, -1.0)], lower=-at, n_rows=n_rows)  #           r ≥ z − b
    program.rows([(r, 1.0), (delta, -high)], upper=0.0, slack=slack, n_rows=n_rows)  # r ≤ (u − b)·δ
    # r ≤ z − b − (l − b)·(1 − δ)
    program.rows([(r, 1.0), (z, -1.0), (delta, -low)], upper=-at - low, slack=slack, n_rows=n_rows)
    return r, delta


def order_bends(program: ProgramBuilder, active: list[Places]) -> None:
    """Say that a neuron beyond one break is beyond those before it: δ_k ≥ δ_{k+1}."""
    for one, after in pairwise(active):
        program.rows([(one, 1.0), (after, -1.0)], lower=0.0, n_rows=len(one))


def encode_affine(program: ProgramBuilder, layer: Affine, a: Places, box: IntervalBox) -> Places:
    """Columns z with z = W·a + b (Eq. 2a)."""
    z = program.columns(box)
    program.rows([(z, 1.0), (a, -layer.weight)], lower=layer.bias, upper=layer.bias, n_rows=len(z))
    return z


def encode_goal(
    program: ProgramBuilder, z: Places, box: IntervalBox, factor: float, goal: Objective
) -> Places:
    """Add v, how far apart a counterpart is at least: at the level or above (Eq. ce).

    The smallest of several margins is v ≤ each; the largest is v ≤ one of them, which a selector
    chooses.
    """
    offsets = np.broadcast_to(goal.offsets.floats(), len(goal.directions)) * factor
    positive, negative = np.maximum(goal.directions, 0), np.minimum(goal.directions, 0)
    highs = positive @ box.upper + negative @ box.lower + offsets
    lows = positive @ box.lower + negative @ box.upper + offsets
    level = goal.level * factor
    highest = max(float(highs.min() if goal.least else highs.max()), level)
    v = program.columns(IntervalBox(np.array([level]), np.array([highest])))
    each = np.repeat(v, len(highs))
    if goal.least or len(highs) == 1:
        program.rows([(each, 1.0), (z, -goal.directions)], upper=offsets, n_rows=len(highs))
        return v
    chosen = program.columns(IntervalBox(np.zeros(len(highs)), np.ones(len(highs))), whole=True)
    program.rows([(chosen, np.ones((1, len(highs))))], lower=1.0, upper=1.0, n_rows=1)
    room = np.maximum(highest - lows, 0.0)
    terms: list[tuple[Places, Matrix | Vector | float]]
    terms = [(each, 1.0), (z, -goal.directions), (chosen, room)]
    program.rows(terms, upper=offsets + room, n_rows=len(highs))
    return v
