"""Counting: the share of a box in which a form is positive, rounded down.

People are independent draws of each axis, so the form is a sum of independent terms. All terms but
the widest are rounded down to multiples of one step, and their distribution is computed by
convolution; the widest is counted exactly for each multiple. Rounding down can only make the form
smaller, so the share is a lower bound (docs/explanation/rounding.md, lemma 26).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Vector
from feta.everybody.half_spaces.problem import BoxAxis

# Parts of the range of real numbers, where it is not the widest term.
REAL_PARTS = 256

# The relative error of a difference, a product, or a quotient of two or three float64 numbers.
ROUNDED = 2.0**-48


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms of a form along one axis, each minus the smallest: ascending, with their shares."""

    least: float
    values: Vector  # ascending, from 0; of real numbers, 0 and the width
    shares: Vector
    real: bool = False

    @property
    def width(self) -> float:
        """The largest value."""
        return float(self.values[-1])

    @classmethod
    def of(cls, axis: BoxAxis, row: Vector, low: float, high: float) -> "Terms":
        """Return the terms of a row of weights of the first layer over a range."""
        terms = axis.terms(low, high) @ row
        least = float(terms.min())
        if axis.real:
            return cls(least, np.array([0.0, float(terms.max()) - least]), np.ones(1), real=True)
        weights = axis.weights(low, high)
        order = np.argsort(terms)[np.flatnonzero(weights[np.argsort(terms)])]
        least = float(terms[order[0]])
        shares = weights[order] / float(weights.sum())
        return cls(least, terms[order] - least, shares)

    def shifts(self, step: float) -> tuple[Vector, Vector]:
        """Return how many steps each value has at least, and their shares."""
        values, shares = self.values, self.shares
        if self.real:
            values = self.width * np.arange(REAL_PARTS) / REAL_PARTS
            shares = np.full(REAL_PARTS, 1 / REAL_PARTS)
        return np.floor(values / step * (1 - ROUNDED)), shares

    def above(self, limits: Vector) -> Vector:
        """Return the share of values above each limit, rounded down but for sums of shares."""
        if self.real:
            if not self.width:
                return np.asarray((limits < 0).astype(np.float64))
            part = 1.0 - (limits + ROUNDED * np.abs(limits)) / self.width - ROUNDED
            return np.clip(np.where(limits < 0, 1.0, part), 0.0, 1.0)
        ends = np.concatenate([np.cumsum(self.shares[::-1])[::-1], [0.0]])
        raised = limits + ROUNDED * np.abs(limits)
        return np.asarray(ends[np.searchsorted(self.values, raised, side="right")])

    def from_(self, limits: Vector) -> Vector:
        """Return the share of values at or above each limit, rounded up but for sums of shares."""
        if self.real:
            if not self.width:
                return np.asarray((limits <= 0).astype(np.float64))
            part = 1.0 - (limits - ROUNDED * np.abs(limits)) / self.width + ROUNDED
            return np.clip(np.where(limits <= 0, 1.0, part), 0.0, 1.0)
        ends = np.concatenate([np.cumsum(self.shares[::-1])[::-1], [0.0]])
        lowered = limits - ROUNDED * np.abs(limits)
        return np.asarray(ends[np.searchsorted(self.values, lowered, side="left")])


def share_between(terms: Sequence[Terms], constant: float, until: float, n_bins: int) -> float:
    """Return a lower bound of the share of people with 0 < form and form + until < 0.

    The form is the constant plus one term per axis. With `until` = −∞, the form only has to be
    positive. The share is rounded down.
    """
    size = abs(constant) + sum(abs(t.least) + t.width for t in terms)
    slack = ROUNDED * (len(terms) + 2) * size
    base = constant + sum(t.least for t in terms) - slack
    widths = [t.width for t in terms]
    if base > 0 and until == -np.inf:
        return 1.0
    if base + sum(widths) <= 0:
        return 0.0
    if not any(widths):
        return float(base > 0 and base + until + 2 * slack < 0)
    order = np.argsort(widths)
    *rest, last = (terms[i] for i in order if widths[i] > 0)
    step = sum(t.width for t in rest) / (n_bins - 1)
    shares, n_rounded = np.ones(1), len(last.shares) + n_bins
    for term in rest:
        shifts, each = term.shifts(step)
        taps = np.bincount(shifts.astype(np.int64), weights=each)
        shares = np.convolve(shares, taps)
        n_rounded += 2 * len(each) + len(taps)
    limits = -base - step * np.arange(len(shares))
    inside = last.above(limits)
    if until > -np.inf:
        # Rounding down moved each term by less than a step, or a step and a part of the range.
        moved = step * len(rest) + sum(t.width for t in rest if t.real) / REAL_PARTS
        ends = limits - until - moved - 4 * slack - ROUNDED * (moved + abs(until))
        inside = np.maximum(inside - last.from_(ends), 0.0)
    error = n_rounded * 2.0**-52 + ROUNDED
    if until > -np.inf:  # differences of sums have an absolute error
        return max(float(shares @ inside) - error, 0.0)
    missed = float(shares @ (1.0 - inside))
    return max(float(shares @ inside) * (1 - error), 1.0 - missed - error, 0.0)
