"""Lines below and above a score over boxes of people, many boxes at once.

Lower bounds only: an upper bound is a lower bound of the negated row. Every result is lowered by
`margin`, which bounds all errors of rounding (docs/explanation/rounding.md, lemma 25).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from feta_people_check.reading import UNIT, Array, Axis, Claim

FLOOR = 2.0**-100


@dataclass
class Steps:
    """A piecewise-linear step over intervals: lines and values, (boxes, neurons)."""

    lines: tuple[Array, ...]  # slope and intercept below, slope and intercept above
    least: Array
    most: Array
    low: Array
    high: Array


class Bounds:
    """A model over boxes; `margins` bound the rounding errors of each layer."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.axes, self.layers = claim, claim.axes, claim.layers
        # Different sums may be rounded to the same number: the exact ones are compared.
        each_neuron = zip(*claim.exact_combinations, strict=True)
        self.moves = np.array([len(set(sums)) > 1 for sums in each_neuron])
        size = np.abs(claim.constant) + claim.combined_size + sum(axis.size for axis in self.axes)
        n_terms = len(self.axes) + 128 + sum(len(c) for c in [claim.combinations])
        n_terms += sum(len(axis.rows) for axis in self.axes if axis.rows is not None)
        self.sizes = [size * (1 + 2.0**-30) + FLOOR]
        self.margins = [16 * n_terms * UNIT * self.sizes[0]]
        for _, slopes, starts, weight, bias in self.layers:
            steep, lift = np.abs(slopes).max(axis=0), np.abs(starts).max(axis=0)
            largest = 3 * (steep + FLOOR) * self.sizes[-1] + 2 * lift + FLOOR
            n_terms += sum(weight.shape) + 32
            size = (np.abs(weight) + FLOOR) @ largest + np.abs(bias) + abs(claim.threshold)
            self.sizes.append(size * (1 + 2.0**-30))
            self.margins.append(16 * n_terms * UNIT * self.sizes[-1])
        if not self.layers:
            self.margins[-1] = self.margins[-1] + 16 * n_terms * UNIT * abs(claim.threshold)

    def over(
        self, low: Array, high: Array, rows: Array
    ) -> tuple[list[Steps], list[tuple[Array, Array]]]:
        """Bound boxes together with some combinations of sensitive values.

        Return the steps, and two lines each as (first-layer weights, constant): below the score
        minus the threshold, and below its negation. The smallest combination is included.
        """
        steps = list[Steps]()
        for index, (breaks, slopes, starts, _, _) in enumerate(self.layers):
            if index:
                weight, bias = self.layers[index - 1][3:]
                shape = (len(low), *weight.shape)
                lowest = self._lowest(low, high, rows, steps, np.broadcast_to(weight, shape), bias)
                other = self._lowest(low, high, rows, steps, np.broadcast_to(-weight, shape), -bias)
                ends = lowest[0], -other[0]
            else:
                ends = self._first(low, high, rows)
            size, margin = self.sizes[index], self.margins[index]
            ends = np.clip(ends[0] - margin, -size, size), np.clip(ends[1] + margin, -size, size)
            steps.append(_enclose(breaks, slopes, starts, *ends))
        one, shift = np.ones((1, 1)), np.array([-self.claim.threshold])
        if self.layers:
            one, shift = self.layers[-1][3], self.layers[-1][4] - self.claim.threshold
        lines = list[tuple[Array, Array]]()
        self.lowest = list[Any]()
        for sign in (1.0, -1.0):
            shape = (len(low), *one.shape)
            row = np.broadcast_to(sign * one, shape)
            value, weights, total = self._lowest(low, high, rows, steps, row, sign * shift)
            self.lowest.append(value[:, 0] - self.margins[-1])
            lines.append((weights[:, 0], total[:, 0] - self.margins[-1]))
        return steps, lines

    def _first(self, low: Array, high: Array, rows: Array) -> tuple[Array, Array]:
        least = np.tile(self.claim.constant + rows.min(axis=0), (len(low), 1))
        most = np.tile(self.claim.constant + rows.max(axis=0), (len(low), 1))
        for a, axis in enumerate(self.axes):
            if axis.rows is None:
                ends = [(end[:, a] + axis.start)[:, None] * axis.slope for end in (low, high)]
                least, most = least + np.minimum(*ends), most + np.maximum(*ends)
            else:
                inside = _inside(axis, low[:, a], high[:, a])[:, :, None]
                least = least + np.where(inside, axis.rows, np.inf).min(axis=1)
                most = most + np.where(inside, axis.rows, -np.inf).max(axis=1)
        return least, most

    def _lowest(  # noqa: PLR0917 - boxes, then rows
        self, low: Array, high: Array, rows: Array, steps: list[Steps], weights: Array, shift: Array
    ) -> tuple[Array, Array, Array]:
        """Return lower bounds of weights · (the last of the steps) + shift, and their lines."""
        total = np.broadcast_to(shift, weights.shape[:2])
        best = np.full(weights.shape[:2], -np.inf)
        for index in reversed(range(len(steps))):
            step = steps[index]
            up, down = np.maximum(weights, 0.0), np.minimum(weights, 0.0)
            closed = up @ step.least[:, :, None] + down @ step.most[:, :, None]
            best = np.maximum(best, total + closed[:, :, 0])
            slope, start, other, end = step.lines
            total = total + (up @ start[:, :, None] + down @ end[:, :, None])[:, :, 0]
            weights = up * slope[:, None] + down * other[:, None]
            total = total + weights @ (self.layers[index - 1][4] if index else self.claim.constant)
            if index:
                weights = weights @ self.layers[index - 1][3]
        if not steps:  # the rows are those of the first layer already
            total = total + weights @ self.claim.constant
        closed = total + (weights @ rows.T).min(axis=2)
        for a, axis in enumerate(self.axes):
            closed = closed + least_over(axis, weights, low[:, a], high[:, a])
        return np.maximum(best, closed), weights, total

    def may_depend(self, low: Array, high: Array) -> Array:
        """Return the boxes in which sensitive values reach the score.

        The intervals of the steps' inputs are given. Weights that are zero and steps that are
        constant stop the path.
        """
        shape = len(low[0]) if low else 1, len(self.moves)
        reached = np.broadcast_to(self.moves, shape)
        for (breaks, slopes, _, weight, _), start, end in zip(self.layers, low, high, strict=True):
            edges = np.vstack([np.full((1, slopes.shape[1]), -np.inf), breaks])
            after = np.vstack([breaks, np.full((1, slopes.shape[1]), np.inf)])
            active = np.zeros(start.shape, dtype=bool)
            for slope, edge, stop in zip(slopes, edges, after, strict=True):
                active |= (slope != 0) & (end > edge) & (start < stop)
            reached = (reached & active) @ (weight.T != 0)
        return reached.any(axis=1)


def _inside(axis: Axis, low: Array, high: Array) -> Array:
    values = np.arange(len(axis.rows))
    return (values >= low[:, None]) & (values <= high[:, None])


def least_over(axis: Axis, weights: Array, low: Array, high: Array) -> Array:
    """Return the minimum of weights · (terms of an axis) over each box, (boxes, rows)."""
    if axis.rows is None:
        slope = weights @ axis.slope
        ends = slope * (low + axis.start)[:, None], slope * (high + axis.start)[:, None]
        return np.minimum(*ends)
    inside = _inside(axis, low, high)[:, None, :]
    return np.where(inside, weights @ axis.rows.T, np.inf).min(axis=2)


def _enclose(breaks: Array, slopes: Array, starts: Array, low: Array, high: Array) -> Steps:
    """Return the lines that are nearest to a step in the middle of its intervals."""
    points = np.stack([low, *(np.clip(at, low, high) for at in breaks), high])
    piece = sum((points >= at).astype(int) for at in breaks) if len(breaks) else 0 * points
    piece = piece.astype(int)
    column = np.broadcast_to(np.arange(low.shape[1]) % slopes.shape[1], points.shape)
    values = slopes[piece, column] * points + starts[piece, column]
    steep = np.abs(slopes).max(axis=0)
    error = 2.0**-50 * (steep * np.abs(points) + np.abs(starts).max(axis=0)) + 2.0**-1021
    first = sum(((low >= at).astype(int) for at in breaks), np.zeros(low.shape, dtype=int))
    last = sum(((high > at).astype(int) for at in breaks), np.zeros(low.shape, dtype=int))
    width = np.where(high > low, high - low, 1.0)
    chord = np.clip((values[-1] - values[0]) / width, slopes.min(axis=0), slopes.max(axis=0))
    middle = low + (high - low) / 2
    best = [np.full(low.shape, fill) for fill in (0.0, -np.inf, 0.0, np.inf)]
    for index in range(len(slopes) + 1):
        chosen = chord if index == len(slopes) else np.broadcast_to(slopes[index], low.shape)
        offsets = values - chosen * points
        more = error + 2.0**-50 * np.abs(chosen * points)
        under, above = (offsets - more).min(axis=0), (offsets + more).max(axis=0)
        # Pieces that the interval does not meet are no better than those that it meets.
        used = (index == len(slopes)) | ((index >= first) & (index <= last))
        lower = used & (chosen * middle + under > best[0] * middle + best[1])
        upper = used & (chosen * middle + above < best[2] * middle + best[3])
        best = [
            np.where(flag, new, old)
            for flag, new, old in zip(
                (lower, lower, upper, upper), (chosen, under, chosen, above), best, strict=True
            )
        ]
    one = first >= last
    exact = slopes[first, column[0]], starts[first, column[0]]
    lines = tuple(np.where(one, exact[i % 2], best[i]) for i in range(4))
    return Steps(lines, (values - error).min(axis=0), (values + error).max(axis=0), low, high)
