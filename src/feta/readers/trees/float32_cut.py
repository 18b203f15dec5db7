"""Thresholds of libraries that round their input to float32, as cuts of float64 numbers."""

import numpy as np

from feta.arrays import Array, Vector

# Half of this and the largest float32 is the first number that rounds to infinity.
BEYOND_FLOAT32 = 2.0**128


def float32_cuts(thresholds: Array) -> Vector:
    """Return the largest float64 x with float32(x) < t, for each threshold t.

    Numbers round to nearest, ties to even. So all x below the middle of t and its predecessor go
    left, and the middle itself only if it rounds to the predecessor. Beyond the largest float32,
    numbers round to infinity. If no number goes left, the cut is −∞.
    """
    limits = np.asarray(thresholds, dtype=np.float32)
    with np.errstate(over="ignore"):
        below = np.nextafter(limits, np.float32(-np.inf))
        low = np.maximum(below.astype(np.float64), -BEYOND_FLOAT32)
        high = np.minimum(limits.astype(np.float64), BEYOND_FLOAT32)
        middle = (low + high) / 2  # exact: neighbors differ in the last bit of 24
        left = middle.astype(np.float32) < limits
    cuts = np.where(left, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isneginf(limits), -np.inf, cuts)
