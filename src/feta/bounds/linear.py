"""Linear: bounds pulled back layer by layer to the first one (CROWN), for every activation.

A row of weights over one layer is replaced by a row over the layer before, each neuron by the line
that bounds it on the side that counts. What float64 rounds on the way is bounded and subtracted.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Matrix, Vector
from feta.bounds import interval
from feta.bounds.first_layer import FirstLayer
from feta.bounds.relaxation import Lines, relax
from feta.box import Box
from feta.network.network import Affine, Network
from feta.rounding import DIFFERENCE, FLOAT64, FLOOR, upward
from feta.rule import Objective


@dataclass(frozen=True, slots=True, eq=False)
class Pulled:
    """Least values of rows · scores over each part, and the rows over the first layer they hang on."""

    least: Matrix  # (parts, rows)
    rows: Matrix  # (parts, rows, first-layer neurons)


def forward(network: Network, first: FirstLayer, *, scores: bool = True) -> list[Box]:
    """Bound what goes into each activation, layer by layer, and last the scores if wanted."""
    boxes: list[Box] = [first.box()]
    lines: list[Lines] = []
    steps = list(network.steps)
    for activation, _ in steps if scores else steps[:-1]:
        lines.append(relax(activation, boxes[-1]))
        boxes.append(next_layer(network, first, boxes, lines))
    return boxes


def next_layer(
    network: Network, first: FirstLayer, boxes: list[Box], lines: list[Lines] | None = None
) -> Box:
    """Bound the layer after those that have a box."""
    depth = len(boxes)
    activation, layer = network.activations[depth - 1], network.layers[depth - 1]
    if lines is None:
        lines = [relax(one, box) for one, box in zip(network.activations, boxes, strict=False)]
    loose = interval.affine(layer, interval.activate(activation, boxes[-1]))
    eye = np.eye(len(layer.bias))
    least = pull_back(network, first, boxes, lines, np.vstack([eye, -eye])).least
    lower, upper = np.split(least, 2, axis=1)
    return loose & Box(lower, -upper)


def highest(
    network: Network, first: FirstLayer, boxes: list[Box], goal: Objective
) -> tuple[Vector, Matrix]:
    """Bound an objective from above over each part, and say what each first-layer neuron adds."""
    pulled = least_scores(network, first, boxes, -goal.directions)
    offsets = goal.offsets.floats()  # rounded once, and so is the sum
    each = offsets - pulled.least + DIFFERENCE * (np.abs(offsets) + np.abs(pulled.least))
    each = np.where(np.isnan(each), np.inf, each)
    place = np.argmin(each, axis=1) if goal.least else np.argmax(each, axis=1)
    rows = np.arange(len(each))
    return each[rows, place], -pulled.rows[rows, place]


def least_scores(
    network: Network, first: FirstLayer, boxes: list[Box], directions: Matrix
) -> Pulled:
    """Bound directions · scores from below, given what goes into each activation."""
    lines = [relax(one, box) for one, box in zip(network.activations, boxes, strict=False)]
    return pull_back(network, first, boxes, lines, directions)


def pull_back(
    network: Network, first: FirstLayer, boxes: list[Box], lines: list[Lines], rows: Matrix
) -> Pulled:
    """Bound rows · (the layer after the last lines) from below over each part."""
    rows = np.broadcast_to(rows, (len(first.parts), *rows.shape))
    constant, error = np.zeros(rows.shape[:2]), np.zeros(rows.shape[:2])
    with np.errstate(over="ignore", invalid="ignore"):
        for place in reversed(range(len(lines))):
            bent = interval.activate(network.activations[place], boxes[place])
            reach = _reach(lines[place], boxes[place], bent)
            rows, more, off = _through(network.layers[place], lines[place], reach, rows)
            constant, error = constant + more, (error + off) * upward(4)
        # Summing up rounds once more, and the first layer's values are themselves off.
        n_terms = rows.shape[2] + len(first.terms.each) + len(lines) + 2
        gamma = FLOAT64.gamma(n_terms)
        error = error + _times(np.abs(rows) + FLOOR, first.error + gamma * first.size)
        error = error + gamma * np.abs(constant) + n_terms * FLOAT64.tiny
        least = first.least(rows) + constant - error * upward(n_terms)
    # Numbers beyond float64 on the way bound nothing.
    return Pulled(np.where(np.isnan(least), -np.inf, least), rows)


def _through(
    layer: Affine, lines: Lines, reach: Matrix, rows: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """Pull rows over W·a + b back to what goes into a; also a constant, and what was rounded."""
    bent = rows @ layer.weight
    over, under = np.maximum(bent, 0.0), np.minimum(bent, 0.0)
    (low, low_at), (high, high_at) = lines.below, lines.above
    constant = rows @ layer.bias + _times(over, low_at) + _times(under, high_at)
    # A row that is off by γ·|rows|·|W| is off by that times what it is multiplied with.
    n_terms = sum(layer.weight.shape) + 4
    reach = reach @ (np.abs(layer.weight) + FLOOR).T + (np.abs(layer.bias) + FLOOR)
    size = _times(np.abs(rows) + FLOOR, reach)
    error = (FLOAT64.gamma(n_terms) * size + n_terms * FLOAT64.tiny) * upward(n_terms)
    return over * low[:, None, :] + under * high[:, None, :], constant, error


def _reach(lines: Lines, box: Box, bent: Box) -> Matrix:
    """Bound all that a weight over an activation is multiplied with on its way back."""
    slope, intercept = (
        np.maximum(np.abs(below), np.abs(above))
        for below, above in zip(lines.below, lines.above, strict=True)
    )
    return bent.size + slope * box.size + intercept + FLOOR


def _times(rows: Matrix, each: Matrix) -> Matrix:
    """Multiply each part's rows with its vector."""
    return np.asarray((rows @ each[:, :, None])[:, :, 0])
