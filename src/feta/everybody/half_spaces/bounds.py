"""Linear bounds of a score over boxes of people, in readable NumPy.

Rows of weights are pulled back layer by layer. At every layer the pass may stop: the weights are
closed with the intervals of that layer, and the best of these bounds counts. At the first layer it
ends in a form: a constant plus one term per axis, below or above the score everywhere in the box.
All errors of rounding are at most `Problem.errors` (docs/explanation/rounding.md, lemma 25).
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Counts, Flags, Matrix, Vector
from feta.bounds import interval
from feta.bounds.relaxation import Lines, constant_pieces, relax
from feta.everybody.half_spaces.problem import BoxAxis, Problem
from feta.interval_box import IntervalBox


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Boxes of people, each with all combinations of sensitive values, or with one of them."""

    lower: Matrix  # (boxes, axes)
    upper: Matrix
    first: Counts  # the first and the last combination, (boxes,)
    last: Counts

    def __len__(self) -> int:
        return len(self.lower)

    @classmethod
    def joint(cls, problem: Problem, lower: Matrix, upper: Matrix) -> "Boxes":
        """Return boxes with all combinations."""
        n = len(lower)
        last = np.full(n, len(problem.combinations) - 1)
        return cls(lower, upper, np.zeros(n, dtype=np.int64), last)

    def with_each(self, n_combinations: int) -> "Boxes":
        """Return every box with each combination: first all of the first box, and so on."""
        rows = np.repeat(np.arange(len(self)), n_combinations)
        each = np.tile(np.arange(n_combinations), len(self))
        return Boxes(self.lower[rows], self.upper[rows], each, each)


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A constant plus weights of the first layer's neurons: a bound of the score in each box."""

    weights: Matrix  # (boxes, neurons)
    constant: Vector  # with the constants of the first layer; rounding errors are subtracted


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Bounds on the inputs of an activation, and its lines."""

    box: IntervalBox
    relaxed: IntervalBox
    lines: Lines


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBounds:
    """What is known about the score minus the threshold in each box."""

    layers: list[Layer]
    below: Form
    above: Form
    low: Vector
    high: Vector
    weights: list[Array]  # of each layer's neurons in both forms, (boxes, 2, neurons)


def bound(problem: Problem, boxes: Boxes) -> ScoreBounds:
    """Bound the score over boxes."""
    layers: list[Layer] = []
    for index in range(len(problem.layers)):
        if index == 0:
            box = _first(problem, boxes)
        else:
            layer = problem.layers[index - 1]
            eye = np.broadcast_to(
                np.eye(len(layer.bias)), (len(boxes), len(layer.bias), len(layer.bias))
            )
            low, high, *_ = _pull_back(problem, boxes, layers, eye, np.zeros(len(layer.bias)))
            error = problem.errors[index]
            box = IntervalBox(low - error, high + error)
        box = _clamped(box, problem.sizes[index])
        activation = problem.activations[index]
        layers.append(Layer(box, interval.activate(activation, box), relax(activation, box)))
    one = np.ones((len(boxes), 1, 1))
    low, high, below, above, weights = _pull_back(
        problem, boxes, layers, one, np.array([-problem.threshold])
    )
    error = problem.errors[-1]
    return ScoreBounds(
        layers,
        Form(below[0][:, 0], below[1][:, 0] - error),
        Form(above[0][:, 0], above[1][:, 0] + error),
        (low - error)[:, 0],
        (high + error)[:, 0],
        weights,
    )


def minimum(axis: BoxAxis, rows: Array, lower: Vector, upper: Vector) -> Array:
    """Return the minimum of rows · terms of an axis over each box; rows are (boxes, n, neurons)."""
    result = np.empty(rows.shape[:2])
    for box, (low, high) in enumerate(zip(lower, upper, strict=True)):
        result[box] = (rows[box] @ axis.ends_of(low, high).T).min(axis=1)
    return result


def depends(problem: Problem, boxes: Boxes, layers: list[Layer]) -> Flags:
    """Return the boxes in which the score may depend on the sensitive values.

    It does only along weights that are not zero, through neurons that are not constant in the box.
    """
    moves = (problem.combinations != problem.combinations[:1]).any(axis=0)
    reached = np.broadcast_to(moves, (len(boxes), len(moves)))
    for known, activation, layer in zip(layers, problem.activations, problem.layers, strict=True):
        reached = (reached & ~constant_pieces(activation, known.box)) @ (layer.weight.T != 0)
    return np.asarray(reached.any(axis=1))


def _first(problem: Problem, boxes: Boxes) -> IntervalBox:
    """Bound the neurons of the first layer."""
    low = np.tile(problem.constant, (len(boxes), 1))
    high = low.copy()
    for row in range(len(boxes)):
        for index, axis in enumerate(problem.axes):
            terms = axis.ends_of(boxes.lower[row, index], boxes.upper[row, index])
            low[row] += terms.min(axis=0)
            high[row] += terms.max(axis=0)
        terms = problem.combinations[boxes.first[row] : boxes.last[row] + 1]
        low[row] += terms.min(axis=0)
        high[row] += terms.max(axis=0)
    return IntervalBox(low - problem.errors[0], high + problem.errors[0])


def _clamped(box: IntervalBox, size: Vector) -> IntervalBox:
    return IntervalBox(np.clip(box.lower, -size, size), np.clip(box.upper, -size, size))


def _pull_back(
    problem: Problem, boxes: Boxes, layers: list[Layer], rows: Array, constant: Vector
) -> tuple[Array, Array, tuple[Array, Array], tuple[Array, Array], list[Array]]:
    """Bound rows · (the layer after `layers`) + constant, without errors of rounding.

    Return bounds from below and above, (boxes, rows), the rows of the first layer with their
    constants for both, and the weights of all layers' neurons.
    """
    low_rows = high_rows = rows
    shape = rows.shape[:2]
    low_sum, high_sum = np.broadcast_to(constant, shape), np.broadcast_to(constant, shape)
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    weights: list[Array] = []
    for index in reversed(range(len(layers))):
        layer, known = problem.layers[index], layers[index]
        low_sum, high_sum = low_sum + low_rows @ layer.bias, high_sum + high_rows @ layer.bias
        low_rows, high_rows = low_rows @ layer.weight, high_rows @ layer.weight
        weights.insert(0, np.stack([low_rows[:, 0], high_rows[:, 0]], axis=1))
        ends = known.relaxed.lower, known.relaxed.upper
        low = np.maximum(low, low_sum + _closed(low_rows, *ends))
        high = np.minimum(high, high_sum - _closed(-high_rows, *ends))
        below, above = known.lines.below, known.lines.above
        low_rows, more = _replaced(low_rows, below, above)
        low_sum = low_sum + more
        high_rows, more = _replaced(high_rows, above, below)
        high_sum = high_sum + more
    low_sum = low_sum + low_rows @ problem.constant
    high_sum = high_sum + high_rows @ problem.constant
    low = np.maximum(low, low_sum + _over_axes(problem, boxes, low_rows))
    high = np.minimum(high, high_sum - _over_axes(problem, boxes, -high_rows))
    return low, high, (low_rows, low_sum), (high_rows, high_sum), weights


def _closed(rows: Array, lower: Matrix, upper: Matrix) -> Array:
    """Return the minimum of rows · values over intervals."""
    positive, negative = np.maximum(rows, 0.0), np.minimum(rows, 0.0)
    return np.asarray(
        (positive @ lower[:, :, None])[:, :, 0] + (negative @ upper[:, :, None])[:, :, 0]
    )


def _replaced(
    rows: Array, positive: tuple[Matrix, Matrix], negative: tuple[Matrix, Matrix]
) -> tuple[Array, Array]:
    """Replace activations by lines: one where a weight is positive, another where it is not."""
    plus, minus = np.maximum(rows, 0.0), np.minimum(rows, 0.0)
    more = (plus @ positive[1][:, :, None] + minus @ negative[1][:, :, None])[:, :, 0]
    return plus * positive[0][:, None] + minus * negative[0][:, None], more


def _over_axes(problem: Problem, boxes: Boxes, rows: Array) -> Array:
    """Return the minimum of rows · (terms of all axes and of the sensitive values)."""
    total = np.zeros(rows.shape[:2])
    for index, axis in enumerate(problem.axes):
        total += minimum(axis, rows, boxes.lower[:, index], boxes.upper[:, index])
    for row in range(len(boxes)):
        terms = problem.combinations[boxes.first[row] : boxes.last[row] + 1]
        total[row] += (rows[row] @ terms.T).min(axis=1)
    return total
