"""Relaxation: two lines that keep an activation between them over a range.

Whatever its slope, a line lies above a piecewise-linear function as soon as it does so at the ends and
at the breaks between them. So slopes are chosen freely, and only the intercepts must be rounded outward.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Flags, Matrix
from feta.bounds.interval import candidates, radius
from feta.interval_box import IntervalBox
from feta.rounding import DIFFERENCE, FLOAT64
from feta.scorer.network.activation import Activation


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """slope · z + intercept, one below and one above, for each neuron."""

    below: tuple[Matrix, Matrix]  # slopes and intercepts, (boxes, neurons)
    above: tuple[Matrix, Matrix]


def relax(activation: Activation, box: IntervalBox) -> Lines:
    """Choose for each neuron the lines nearest to the activation in the middle of its range."""
    points = candidates(activation, box)
    values = activation(points)
    slopes = _slopes(activation, box, values[-1] - values[0])
    over = values - slopes[:, None] * points  # (slopes, points, boxes, neurons)
    sizes = radius(activation, points) + np.abs(slopes)[:, None] * np.abs(points)
    error = DIFFERENCE * sizes + FLOAT64.tiny
    middle = box.lower + (box.upper - box.lower) / 2
    low, high = (over - error).min(axis=1), (over + error).max(axis=1)
    below, above = (
        np.argmax(slopes * middle + low, axis=0),
        np.argmin(slopes * middle + high, axis=0),
    )
    lines = Lines(
        (_take(slopes, below), _take(low, below)), (_take(slopes, above), _take(high, above))
    )
    return _exact_where_stable(activation, box, lines)


def _slopes(activation: Activation, box: IntervalBox, rise: Matrix) -> Matrix:
    """Offer the slopes of the pieces and of the chord, (slopes, boxes, neurons)."""
    width = box.upper - box.lower
    least, largest = activation.slopes.min(axis=0), activation.slopes.max(axis=0)
    with np.errstate(over="ignore"):
        chord = np.divide(rise, width, out=np.zeros_like(width), where=width > 0)
    pieces = [np.broadcast_to(slope, width.shape) for slope in activation.slopes]
    return np.stack([*pieces, np.clip(chord, least, largest)])


def _exact_where_stable(activation: Activation, box: IntervalBox, lines: Lines) -> Lines:
    """Put the piece itself where a neuron stays on one, without any rounding."""
    pieces, stable = stable_pieces(activation, box)
    piece = tuple(
        _take(np.broadcast_to(one[:, None, :], (len(one), *pieces.shape)), pieces)
        for one in (activation.slopes, activation.intercepts)
    )
    below, above = (
        tuple(np.where(stable, new, old) for new, old in zip(piece, line, strict=True))
        for line in (lines.below, lines.above)
    )
    return Lines((below[0], below[1]), (above[0], above[1]))


def stable_pieces(activation: Activation, box: IntervalBox) -> tuple[Counts, Flags]:
    """Tell on which piece each range begins, and whether it stays there."""
    first = np.zeros(box.lower.shape, dtype=np.int64)
    last = np.zeros(box.lower.shape, dtype=np.int64)
    for at in activation.breaks:
        first += box.lower >= at
        last += box.upper > at
    return first, np.asarray(first >= last)


def _take(options: Matrix, chosen: Counts) -> Matrix:
    return np.take_along_axis(options, chosen[None], axis=0)[0]
