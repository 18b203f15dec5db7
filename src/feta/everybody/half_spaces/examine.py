"""One box of people: how much of it is fair, how much is unfair, and where to cut it."""

from dataclasses import dataclass
from math import prod

import numpy as np

from feta.arrays import Array, Matrix, Vector
from feta.bounds.layers import BoundedActivation
from feta.everybody.half_spaces import bounds
from feta.everybody.half_spaces.bounds import Boxes, ScoreBounds
from feta.everybody.half_spaces.counting import Terms, share_between
from feta.everybody.half_spaces.problem import Problem
from feta.interval_box import IntervalBox
from feta.rounding import FLOAT64

# A box of at most this many people is enumerated.
FEW = 64

# The number of bins is 2 to the power of one of these; a leaf of the tree states which.
LEAST_BINS, MOST_BINS = 7, 14

# As many bins as this for a box that is undecided as a whole, and more if most of it is decided.
USUAL_BINS = 128

# A box is bounded with each combination if at most this part of the box before it is undecided.
JOINT_ABOVE = 0.5


@dataclass(frozen=True, slots=True)
class Method:
    """How a box is examined; a leaf of the tree states it."""

    each: bool  # bounds for each combination of sensitive values
    bins: int  # a power of two

    @classmethod
    def after(cls, undecided: float, *, apart: bool) -> "Method":
        """Return the method for a part of a box of which this share is undecided."""
        wanted = USUAL_BINS / max(undecided, 1e-3)
        bins = LEAST_BINS
        while bins < MOST_BINS and 2**bins < wanted:
            bins += 1
        return cls(apart or undecided < JOINT_ABOVE, bins)


@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """Lower bounds of the fair and unfair shares of a box, and what cuts probably gain."""

    fair: float
    unfair: float
    gains: Vector  # (axes,)
    # Whether combinations of sensitive values differ by more than the gap of the bounds.
    apart: bool = False


def people_in(problem: Problem, lower: Vector, upper: Vector) -> float:
    """Count the people of a box; infinite if a real number is free."""
    return prod(
        (np.inf if low < high else 1.0) if axis.real else high - low + 1
        for axis, low, high in zip(problem.axes, lower.tolist(), upper.tolist(), strict=True)
    )


def examine(problem: Problem, lower: Matrix, upper: Matrix, method: Method) -> list[Examined]:
    """Examine boxes."""
    boxes = Boxes.joint(problem, lower, upper)
    if method.each and len(problem.combinations) > 1:
        return _by_value(problem, boxes, 2**method.bins)
    known = bounds.bound(problem, boxes)
    free = ~bounds.depends(problem, boxes, known.layers)
    gains = _gains(problem, boxes, known)
    results = []
    for row in range(len(boxes)):
        if free[row] or known.low[row] > 0 or known.high[row] < 0:
            results.append(Examined(1.0, 0.0, gains[row]))
            continue
        fair = 0.0
        spreads, centers = [], []
        for form in (known.below, known.above):
            sensitive = problem.combinations @ form.weights[row]
            spreads.append(float(np.ptp(sensitive)))
            center = form.weights[row] @ _middle(problem, lower[row], upper[row])
            half = (sensitive.min() + sensitive.max()) / 2
            centers.append(float(center + form.constant[row] + half))
        for form, sign in ((known.below, 1.0), (known.above, -1.0)):
            weights, constant = sign * form.weights[row], sign * float(form.constant[row])
            least = float((problem.combinations @ weights).min())
            terms = _terms(problem, boxes, row, weights)
            fair += share_between(terms, constant + least, -np.inf, 2**method.bins)
        apart = sum(spreads) / 2 > centers[1] - centers[0]
        results.append(Examined(min(fair, 1.0), 0.0, gains[row], apart))
    return results


def _by_value(problem: Problem, boxes: Boxes, n_bins: int) -> list[Examined]:
    """Examine boxes with separate bounds for each combination of sensitive values."""
    n = len(problem.combinations)
    each = boxes.with_each(n)
    known = bounds.bound(problem, each)
    hull = [bounds.Layer(_hull(layer.box, n), layer.relaxed, layer.lines) for layer in known.layers]
    free = ~bounds.depends(problem, boxes, hull)
    gains = _gains(problem, each, known).reshape(len(boxes), n, -1).sum(axis=1)
    results = []
    for box in range(len(boxes)):
        rows = slice(box * n, (box + 1) * n)
        above, below = known.low[rows] > 0, known.high[rows] < 0
        if free[box] or above.all() or below.all():
            results.append(Examined(1.0, 0.0, gains[box]))
        elif above.any() and below.any():
            results.append(Examined(0.0, 1.0, gains[box]))
        else:
            fair, unfair, apart = _counted(problem, each, known, rows, n_bins)
            fair = min(fair, 1.0)
            results.append(Examined(fair, min(unfair, 1.0 - fair), gains[box], apart))
    return results


def _counted(
    problem: Problem, each: Boxes, known: ScoreBounds, rows: slice, n_bins: int
) -> tuple[float, float, bool]:
    """Count where all combinations are on one side, and where two are on different sides.

    The lowest form in the middle of the box, lowered by the most that another one is below it, is
    below all of them.
    """
    fair = 0.0
    middle = _middle(problem, each.lower[rows.start], each.upper[rows.start])
    for form, sign in ((known.below, 1.0), (known.above, -1.0)):
        weights = sign * form.weights[rows]
        offsets = sign * form.constant[rows] + (weights * problem.combinations).sum(axis=1)
        lowest = int(np.argmin(weights @ middle + offsets))
        gaps = _largest(problem, each, rows, weights[lowest] - weights)
        drop = max(0.0, float((gaps + offsets[lowest] - offsets).max()))
        constant = float(offsets[lowest]) - drop - _rounding(problem)
        terms = _terms(problem, each, rows.start, weights[lowest])
        fair += share_between(terms, constant, -np.inf, n_bins)
    low, high = known.below, known.above
    both = [
        form.constant[rows] + (form.weights[rows] * problem.combinations).sum(axis=1)
        for form in (low, high)
    ]
    best = int(np.argmax(low.weights[rows] @ middle + both[0]))
    worst = int(np.argmin(high.weights[rows] @ middle + both[1]))
    difference = high.weights[rows][worst] - low.weights[rows][best]
    gap = float(_largest(problem, each, rows, difference[None])[0])
    until = gap + float(both[1][worst] - both[0][best]) + _rounding(problem)
    if until >= 0:
        return fair, 0.0, False
    terms = _terms(problem, each, rows.start, low.weights[rows][best])
    return fair, share_between(terms, float(both[0][best]), until, n_bins), True


def _rounding(problem: Problem) -> float:
    """Bound the rounding errors of differences of forms."""
    return float(problem.errors[-1].max())


def _largest(problem: Problem, boxes: Boxes, rows: slice, weights: Matrix) -> Vector:
    """Return the maximum of rows of weights · (terms of all axes) over a box."""
    total = np.zeros(len(weights))
    for index, axis in enumerate(problem.axes):
        ends = axis.ends_of(boxes.lower[rows.start, index], boxes.upper[rows.start, index])
        total += (weights @ ends.T).max(axis=1)
    return total


def _terms(problem: Problem, boxes: Boxes, row: int, weights: Vector) -> list[Terms]:
    return [
        Terms.of(axis, weights, boxes.lower[row, index], boxes.upper[row, index])
        for index, axis in enumerate(problem.axes)
    ]


def _middle(problem: Problem, lower: Vector, upper: Vector) -> Vector:
    """Return the sum of the terms in the middle of a box, without the sensitive ones."""
    total = np.zeros(len(problem.constant))
    for index, axis in enumerate(problem.axes):
        total += axis.ends_of(lower[index], upper[index]).mean(axis=0)
    return total


def _hull(box: IntervalBox, n: int) -> IntervalBox:
    shape = (-1, n, box.lower.shape[1])
    return IntervalBox(box.lower.reshape(shape).min(axis=1), box.upper.reshape(shape).max(axis=1))


def _gains(problem: Problem, boxes: Boxes, known: ScoreBounds) -> Matrix:
    """Estimate how much a cut along each axis narrows the gaps of relaxations; a heuristic.

    A gap counts as much as the weight of its neuron in both forms. A cut in the middle moves one
    end of a neuron's interval by half of what the axis contributes to it.
    """
    gains = np.zeros((len(boxes), len(problem.axes)))
    spreads = np.zeros((len(boxes), len(problem.axes), len(problem.constant)))
    for row in range(len(boxes)):
        for index, axis in enumerate(problem.axes):
            ends = axis.ends_of(boxes.lower[row, index], boxes.upper[row, index])
            spreads[row, index] = ends.max(axis=0) - ends.min(axis=0)
    through = np.broadcast_to(
        np.eye(len(problem.constant)), (len(boxes), *[len(problem.constant)] * 2)
    )
    for index, (layer, activation) in enumerate(
        zip(known.layers, problem.activations, strict=True)
    ):
        if index:
            slopes = layer_slopes(known.layers[index - 1])
            through = np.abs(problem.layers[index - 1].weight) @ (slopes[:, :, None] * through)
        moves = 0.5 * np.einsum("bnj,baj->ban", through, spreads)
        low, high = layer.box.lower[:, None], layer.box.upper[:, None]
        after = _gap(activation, np.minimum(low + moves, high), high)
        after = (after + _gap(activation, low, np.maximum(high - moves, low))) / 2
        importance = np.abs(known.weights[index]).sum(axis=1)
        gains += np.einsum("bn,ban->ba", importance, _gap(activation, low, high) - after)
    form = np.abs(known.below.weights) + np.abs(known.above.weights)
    widest = np.einsum("baj,bj->ba", spreads, form)
    return np.asarray(gains + FLOAT64.unit * widest)  # the widest axis if no gap can shrink


def layer_slopes(layer: bounds.Layer) -> Matrix:
    """Return the slope of the upper line of each neuron, without its sign."""
    return np.abs(layer.lines.above[0])


def _gap(activation: BoundedActivation, low: Array, high: Array) -> Array:
    """Return the height of a relaxation: at each break, the chord's distance times the bend."""
    total = np.zeros(np.broadcast_shapes(low.shape, high.shape))
    width = np.maximum(high - low, FLOAT64.tiny)
    for at, before, after in zip(
        activation.breaks, activation.slopes, activation.slopes[1:], strict=False
    ):
        inside = np.maximum(at - low, 0.0) * np.maximum(high - at, 0.0)
        total += np.abs(after - before) * inside / width
    return total
