"""Linear bounds (CROWN): rows of weights propagated backward to the first layer.

A row of weights over one layer is replaced by a row over the layer before it, and each neuron by
the line that bounds it in the direction of its weight. The rounding errors of float64 are bounded
and subtracted.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Matrix, Vector
from feta.bounds import interval
from feta.bounds.first_layer import FirstLayer
from feta.bounds.layers import BoundedActivation, BoundedAffine, BoundedLayers
from feta.bounds.relaxation import Lines, relax
from feta.interval_box import IntervalBox
from feta.rounding import DIFFERENCE, FLOAT64, FLOOR, upward


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Bounds on the inputs and the values of an activation."""

    box: IntervalBox
    relaxed: IntervalBox
    lines: Lines
    # Bounds all numbers by which a weight of the activation is multiplied.
    radius: Matrix

    @classmethod
    def of(cls, activation: BoundedActivation, box: IntervalBox) -> "Layer":
        """Relax an activation over the box before it."""
        lines, relaxed = relax(activation, box), interval.activate(activation, box)
        slope, intercept = (
            np.maximum(np.abs(below), np.abs(above))
            for below, above in zip(lines.below, lines.above, strict=True)
        )
        return cls(box, relaxed, lines, relaxed.size + slope * box.size + intercept + FLOOR)


def forward(network: BoundedLayers, first: FirstLayer) -> list[Layer]:
    """Bound the inputs of each activation."""
    layers: list[Layer] = []
    for activation in network.activations:
        box = next_box(network, first, layers) if layers else first.box()
        layers.append(Layer.of(activation, box))
    return layers


def next_box(network: BoundedLayers, first: FirstLayer, layers: list[Layer]) -> IntervalBox:
    """Bound the layer after `layers`."""
    layer = network.layers[len(layers) - 1]
    eye = np.eye(len(layer.bias))
    lowest = pull_back(network, first, layers, np.vstack([eye, -eye]))[0]
    lower, upper = np.split(lowest, 2, axis=1)
    return interval.affine(layer, layers[-1].relaxed) & IntervalBox(lower, -upper)


def highest(
    network: BoundedLayers,
    first: FirstLayer,
    layers: list[Layer],
    directions: Matrix,
    offsets: Vector,
    *,
    least: bool,
) -> tuple[Vector, Matrix]:
    """Return an upper bound of an objective over each cell, and its first-layer weights.

    The objective is the largest of directions · scores + offsets, or the smallest with `least`.
    The offsets are numbers rounded once.
    """
    lowest, weights = pull_back(network, first, layers, -directions)
    highs = offsets - lowest + DIFFERENCE * (np.abs(offsets) + np.abs(lowest))
    index = np.argmin(highs, axis=1) if least else np.argmax(highs, axis=1)
    rows = np.arange(len(highs))
    return highs[rows, index], -weights[rows, index]


def pull_back(
    network: BoundedLayers, first: FirstLayer, layers: list[Layer], rows: Matrix
) -> tuple[Matrix, Matrix]:
    """Return a lower bound of rows · (the layer after `layers`) over each cell.

    Also return the rows propagated to the first layer, (cells, rows, neurons).
    """
    rows = np.broadcast_to(rows, (len(first.cells), *rows.shape))
    constant, error = np.zeros(rows.shape[:2]), np.zeros(rows.shape[:2])
    with np.errstate(over="ignore", invalid="ignore"):
        for layer, affine in reversed(list(zip(layers, network.layers, strict=False))):
            rows, more, rounding = _propagate(affine, layer, rows)
            constant, error = constant + more, (error + rounding) * upward(4)
        # The sum rounds once more, and the values of the first layer have errors.
        n_terms = rows.shape[2] + len(first.terms.each) + len(layers) + 2
        gamma = FLOAT64.gamma(n_terms)
        error = error + _times(np.abs(rows) + FLOOR, first.error + gamma * first.size)
        error = error + gamma * np.abs(constant) + n_terms * FLOAT64.tiny
        lowest = first.minimum(rows) + constant - error * upward(n_terms)
    # After an overflow nothing is known.
    return np.where(np.isnan(lowest), -np.inf, lowest), rows


def _propagate(affine: BoundedAffine, layer: Layer, rows: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Propagate rows over W·a + b to the inputs of a; also return a constant and an error bound."""
    weights = rows @ affine.weight
    positive, negative = np.maximum(weights, 0.0), np.minimum(weights, 0.0)
    (low_slope, low_intercept), (high_slope, high_intercept) = layer.lines.below, layer.lines.above
    constant = (
        rows @ affine.bias + _times(positive, low_intercept) + _times(negative, high_intercept)
    )
    # A row has the error γ·|rows|·|W|, times the number by which it is multiplied. FLOOR covers
    # products that underflow: γ·FLOOR² is much larger than `tiny`.
    n_terms = sum(affine.weight.shape) + 4
    radius = layer.radius @ (np.abs(affine.weight) + FLOOR).T + (np.abs(affine.bias) + FLOOR)
    size = _times(np.abs(rows) + FLOOR, radius)
    error = FLOAT64.gamma(n_terms) * size * upward(n_terms)
    return (
        positive * low_slope[:, None, :] + negative * high_slope[:, None, :],
        constant,
        error,
    )


def _times(rows: Matrix, vectors: Matrix) -> Matrix:
    """Multiply the rows of each cell by its vector."""
    return np.asarray((rows @ vectors[:, :, None])[:, :, 0])
