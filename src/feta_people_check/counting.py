"""The share of a box in which a line is positive, rounded down: all terms but one on a grid."""

import numpy as np

from feta_people_check.reading import Array, Axis

SAFE = 2.0**-47
CELLS = 256


class Term:
    """What one axis adds to a line, from 0: a run of equal steps, lengths, or listed values."""

    def __init__(self, axis: Axis, weights: Array, low: float, high: float) -> None:
        self.values: Array = None
        self.shares: Array = None
        self.real = axis.ends is None
        if axis.rows is None:
            slope = float(weights @ axis.slope)
            ends = slope * (low + axis.start), slope * (high + axis.start)
            self.least, self.width = min(ends), abs(slope) * (high - low)
            self.count = high - low + 1
            if self.real:
                return
            each = np.diff(axis.ends[int(low) : int(high) + 2])
            if (each == each[0]).all():
                return
            values = slope * (np.arange(low, high + 1) + axis.start)
        else:
            each = np.diff(axis.ends[int(low) : int(high) + 2])
            values = axis.rows[int(low) : int(high) + 1] @ weights
        order = np.argsort(values)
        order = order[each[order] > 0]
        self.least, self.values = float(values[order[0]]), values[order] - values[order[0]]
        self.width = float(self.values[-1])
        self.shares = each[order] / float(each.sum())

    def taps(self, step: float) -> Array:
        """Return the share of each number of steps; every value is rounded down."""
        if self.values is not None:
            return np.bincount((self.values / step * (1 - SAFE)).astype(int), weights=self.shares)
        count = CELLS if self.real else int(self.count)
        gap = self.width / CELLS if self.real else self.width / (self.count - 1)
        n_steps = int(self.width / step) + 1
        first = np.ceil(np.arange(n_steps + 1) * step / gap * (1 + SAFE))
        first = np.minimum(first, count)
        first[-1] = count
        return np.diff(first) / count

    def up_to(self, limits: Array) -> Array:
        """Return the share of values up to each limit, rounded up."""
        limits = limits + SAFE * np.abs(limits)
        if self.values is not None:
            sums = np.concatenate([[0.0], np.cumsum(self.shares)])
            return sums[np.searchsorted(self.values, limits, side="right")]
        if self.real:
            return np.clip(np.where(limits < 0, 0.0, limits / self.width + SAFE), 0.0, 1.0)
        at = np.floor(limits * ((self.count - 1) / self.width))
        return np.clip(at + 1, 0, self.count) / self.count

    def below(self, limits: Array) -> Array:
        """Return the share of values below each limit, rounded down."""
        limits = limits - SAFE * np.abs(limits)
        if self.values is not None:
            sums = np.concatenate([[0.0], np.cumsum(self.shares)])
            return sums[np.searchsorted(self.values, limits, side="left")]
        if self.real:
            return np.clip(np.where(limits <= 0, 0.0, limits / self.width - SAFE), 0.0, 1.0)
        at = np.ceil(limits * ((self.count - 1) / self.width))
        return np.clip(at, 0, self.count) / self.count


def positive(terms: list[Term], constant: float, bins: int, *, until: float | None = None) -> float:
    """Return a share of people with 0 < line, and line + until < 0 if that is given."""
    size = abs(constant) + sum(abs(term.least) + term.width for term in terms)
    slack = SAFE * (len(terms) + 2) * size
    base = constant + sum(term.least for term in terms) - slack
    terms = sorted((term for term in terms if term.width > 0), key=lambda term: term.width)
    if base > 0 and until is None:
        return 1.0
    if base + sum(term.width for term in terms) <= 0:
        return 0.0
    if not terms:
        return float(base > 0 and until is not None and base + until + 4 * slack < 0)
    *rest, last = terms
    step = sum(term.width for term in rest) / (bins - 1)
    shares, moved, error = np.ones(1), 0.0, SAFE
    for term in rest:
        taps = term.taps(step)
        shares = np.convolve(shares, taps)
        moved += step + (term.width / CELLS if term.real else 0.0)
        error += (2 * len(taps) + 4 * len(taps)) * 2.0**-52
    limits = -base - step * np.arange(len(shares))
    out = last.up_to(limits)
    error += (len(shares) + 2 * (0 if last.shares is None else len(last.shares))) * 2.0**-51
    if until is not None:
        more = moved + 4 * slack
        ends = limits - until - more - SAFE * (more + abs(until) + np.abs(limits))
        return max(float(shares @ np.maximum(last.below(ends) - out, 0.0)) - error, 0.0)
    missed = float(shares @ out)
    return max(1.0 - missed * (1 + error) - error, float(shares @ (1.0 - out)) - error, 0.0)
