"""Interval bounds: each layer from the box before it; loose, but cheap."""

import numpy as np

from feta.arrays import Matrix
from feta.bounds.layers import BoundedActivation, BoundedAffine, BoundedLayers
from feta.interval_box import IntervalBox
from feta.rounding import DIFFERENCE, FLOAT64, FLOOR, upward


def forward(network: BoundedLayers, first: IntervalBox) -> list[IntervalBox]:
    """Bound the inputs of each activation, and last the scores."""
    boxes = [first]
    for activation, layer in network.steps:
        boxes.append(affine(layer, activate(activation, boxes[-1])))
    return boxes


def activate(activation: BoundedActivation, box: IntervalBox) -> IntervalBox:
    """Bound an activation: a piecewise-linear function has its extremes at ends and breaks."""
    points = candidates(activation, box)
    values = activation(points)
    error = rounding(activation, points)
    return IntervalBox((values - error).min(axis=0), (values + error).max(axis=0))


def candidates(activation: BoundedActivation, box: IntervalBox) -> Matrix:
    """Return the ends and the breaks between them, (points, boxes, neurons)."""
    breaks = [np.clip(at, box.lower, box.upper) for at in activation.breaks]
    return np.stack([box.lower, *breaks, box.upper])


def rounding(activation: BoundedActivation, points: Matrix) -> Matrix:
    """Bound the error of evaluating an activation at points; 0 if it does not round."""
    if not activation.rounds:
        return np.zeros_like(points)
    return DIFFERENCE * magnitude(activation, points) + FLOAT64.tiny


def magnitude(activation: BoundedActivation, points: Matrix) -> Matrix:
    """Bound the absolute terms that an activation adds at points."""
    steepest = activation.steepest + FLOOR  # FLOOR covers slopes that underflow
    return steepest * np.abs(points) + activation.lift


def affine(layer: BoundedAffine, box: IntervalBox) -> IntervalBox:
    """Bound W·a + b."""
    positive, negative = np.maximum(layer.weight, 0.0), np.minimum(layer.weight, 0.0)
    n_terms = 2 * layer.weight.shape[1]
    # FLOOR covers products that underflow: γ·FLOOR² is much larger than `tiny`.
    size = (box.size + FLOOR) @ (np.abs(layer.weight) + FLOOR).T + np.abs(layer.bias)
    error = FLOAT64.gamma(n_terms) * size * upward(n_terms)
    lower = box.lower @ positive.T + box.upper @ negative.T + layer.bias
    upper = box.upper @ positive.T + box.lower @ negative.T + layer.bias
    return IntervalBox(lower - error, upper + error)
