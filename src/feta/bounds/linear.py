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
from feta.interval_box import IntervalBox
from feta.rounding import DIFFERENCE, FLOAT64, FLOOR, upward
from feta.rule import Objective
from feta.scorer.network.activation import Activation
from feta.scorer.network.network import Affine, Network


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """What is known of a layer before an activation, and of the activation's values."""

    box: IntervalBox
    relaxed: IntervalBox
    lines: Lines
    radius: (
        Matrix  # bounds all that a weight over the activation is multiplied with on its way back
    )

    @classmethod
    def of(cls, activation: Activation, box: IntervalBox) -> "Layer":
        """Relax an activation over the box before it."""
        lines, relaxed = relax(activation, box), interval.activate(activation, box)
        slope, intercept = (
            np.maximum(np.abs(below), np.abs(above))
            for below, above in zip(lines.below, lines.above, strict=True)
        )
        return cls(box, relaxed, lines, relaxed.size + slope * box.size + intercept + FLOOR)


def forward(network: Network, first: FirstLayer) -> list[Layer]:
    """Bound what goes into each activation, layer by layer."""
    layers: list[Layer] = []
    for activation in network.activations:
        box = next_box(network, first, layers) if layers else first.box()
        layers.append(Layer.of(activation, box))
    return layers


def next_box(network: Network, first: FirstLayer, layers: list[Layer]) -> IntervalBox:
    """Bound the layer after those that are known."""
    layer = network.layers[len(layers) - 1]
    eye = np.eye(len(layer.bias))
    least = pull_back(network, first, layers, np.vstack([eye, -eye]))[0]
    lower, upper = np.split(least, 2, axis=1)
    return interval.affine(layer, layers[-1].relaxed) & IntervalBox(lower, -upper)


def highest(
    network: Network, first: FirstLayer, layers: list[Layer], goal: Objective
) -> tuple[Vector, Matrix]:
    """Bound an objective from above over each part, and say what each first-layer neuron adds."""
    least, weights = pull_back(network, first, layers, -goal.directions)
    offsets = goal.offsets.floats()  # rounded once, and so is the sum
    each = offsets - least + DIFFERENCE * (np.abs(offsets) + np.abs(least))
    index = np.argmin(each, axis=1) if goal.least else np.argmax(each, axis=1)
    rows = np.arange(len(each))
    return each[rows, index], -weights[rows, index]


def pull_back(
    network: Network, first: FirstLayer, layers: list[Layer], rows: Matrix
) -> tuple[Matrix, Matrix]:
    """Bound rows · (the layer after those known) from below over each part; also the rows' ends.

    The second answer are the rows as they arrive at the first layer, (parts, rows, neurons).
    """
    rows = np.broadcast_to(rows, (len(first.cells), *rows.shape))
    constant, error = np.zeros(rows.shape[:2]), np.zeros(rows.shape[:2])
    with np.errstate(over="ignore", invalid="ignore"):
        for layer, affine in reversed(list(zip(layers, network.layers, strict=False))):
            rows, more, off = _through(affine, layer, rows)
            constant, error = constant + more, (error + off) * upward(4)
        # Summing up rounds once more, and the first layer's values are themselves off.
        n_terms = rows.shape[2] + len(first.terms.each) + len(layers) + 2
        gamma = FLOAT64.gamma(n_terms)
        error = error + _times(np.abs(rows) + FLOOR, first.error + gamma * first.size)
        error = error + gamma * np.abs(constant) + n_terms * FLOAT64.tiny
        least = first.least(rows) + constant - error * upward(n_terms)
    # Numbers beyond float64 on the way bound nothing.
    return np.where(np.isnan(least), -np.inf, least), rows


def _through(affine: Affine, layer: Layer, rows: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Pull rows over W·a + b back to what goes into a; also a constant, and what was rounded."""
    relaxed = rows @ affine.weight
    over, under = np.maximum(relaxed, 0.0), np.minimum(relaxed, 0.0)
    (low, low_at), (high, high_at) = layer.lines.below, layer.lines.above
    constant = rows @ affine.bias + _times(over, low_at) + _times(under, high_at)
    # A row that is off by γ·|rows|·|W| is off by that times what it is multiplied with.
    n_terms = sum(affine.weight.shape) + 4
    radius = layer.radius @ (np.abs(affine.weight) + FLOOR).T + (np.abs(affine.bias) + FLOOR)
    size = _times(np.abs(rows) + FLOOR, radius)
    error = (FLOAT64.gamma(n_terms) * size + n_terms * FLOAT64.tiny) * upward(n_terms)
    return over * low[:, None, :] + under * high[:, None, :], constant, error


def _times(rows: Matrix, each: Matrix) -> Matrix:
    """Multiply each part's rows with its vector."""
    return np.asarray((rows @ each[:, :, None])[:, :, 0])
