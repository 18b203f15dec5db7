"""Linear relaxations: two lines that enclose an activation over an interval.

A line of any slope is above a piecewise-linear function if it is above it at the ends and at the
breaks between them. So slopes may be chosen freely, and only intercepts must be rounded outward.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Flags, Matrix
from feta.bounds.interval import candidates, magnitude
from feta.bounds.layers import BoundedActivation
from feta.interval_box import IntervalBox
from feta.rounding import DIFFERENCE, FLOAT64


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """One line slope · z + intercept below and one above each neuron."""

    below: tuple[Matrix, Matrix]  # slopes and intercepts, (boxes, neurons)
    above: tuple[Matrix, Matrix]


def relax(activation: BoundedActivation, box: IntervalBox) -> Lines:
    """Choose the lines that are closest to each activation in the middle of its interval."""
    points = candidates(activation, box)
    values = activation(points)
    slopes = _slopes(activation, box, values[-1] - values[0])
    offsets = values - slopes[:, None] * points  # (slopes, points, boxes, neurons)
    sizes = magnitude(activation, points) + np.abs(slopes)[:, None] * np.abs(points)
    error = DIFFERENCE * sizes + FLOAT64.tiny
    middle = box.lower + (box.upper - box.lower) / 2
    low, high = (offsets - error).min(axis=1), (offsets + error).max(axis=1)
    below = np.argmax(slopes * middle + low, axis=0)
    above = np.argmin(slopes * middle + high, axis=0)
    lines = Lines(
        (_take(slopes, below), _take(low, below)), (_take(slopes, above), _take(high, above))
    )
    return _exact_where_stable(activation, box, lines)


def _slopes(activation: BoundedActivation, box: IntervalBox, rise: Matrix) -> Matrix:
    """Return the slopes of the pieces and of the chord, (slopes, boxes, neurons)."""
    width = box.upper - box.lower
    smallest, largest = activation.slopes.min(axis=0), activation.slopes.max(axis=0)
    with np.errstate(over="ignore"):
        chord = np.divide(rise, width, out=np.zeros_like(width), where=width > 0)
    pieces = [np.broadcast_to(slope, width.shape) for slope in activation.slopes]
    return np.stack([*pieces, np.clip(chord, smallest, largest)])


def _exact_where_stable(activation: BoundedActivation, box: IntervalBox, lines: Lines) -> Lines:
    """Replace both lines by the piece, without rounding, where a neuron has only one."""
    pieces, stable = stable_pieces(activation, box)
    piece = tuple(
        _take(np.broadcast_to(values[:, None, :], (len(values), *pieces.shape)), pieces)
        for values in (activation.slopes, activation.intercepts)
    )
    below, above = (
        tuple(np.where(stable, new, old) for new, old in zip(piece, line, strict=True))
        for line in (lines.below, lines.above)
    )
    return Lines((below[0], below[1]), (above[0], above[1]))


def stable_pieces(activation: BoundedActivation, box: IntervalBox) -> tuple[Counts, Flags]:
    """Return the first piece of each interval, and whether it is the only one."""
    first = np.zeros(box.lower.shape, dtype=np.int64)
    last = np.zeros(box.lower.shape, dtype=np.int64)
    for at in activation.breaks:
        first += box.lower >= at
        last += box.upper > at
    return first, np.asarray(first >= last)


def constant_pieces(activation: BoundedActivation, box: IntervalBox) -> Flags:
    """Return the neurons whose values cannot change over their intervals.

    A piece that an interval only touches is a single value, because activations are continuous.
    """
    moves = np.zeros(box.lower.shape, dtype=bool)
    below = np.full(box.lower.shape[1], -np.inf)
    for index, slopes in enumerate(activation.slopes):
        last = index == len(activation.breaks)
        above = np.full(box.lower.shape[1], np.inf) if last else activation.breaks[index]
        moves |= (slopes != 0) & (box.upper > below) & (box.lower < above)
        below = above
    return ~moves


def _take(options: Matrix, chosen: Counts) -> Matrix:
    return np.take_along_axis(options, chosen[None], axis=0)[0]
