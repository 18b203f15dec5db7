"""The listed assignment that is nearest to another one."""

from math import lcm

import numpy as np

from feta.arrays import Counts
from feta.space.attribute import Categorical
from feta.space.feature_space import FeatureSpace

# Distances computed at a time.
MAX_DISTANCES = 2**22

# The unit of distances, so that sums over axes of up to 2^20 values are int64.
MAX_COMMON = 2**30


def nearest_assignments(space: FeatureSpace, assignment_ids: Counts, listed: Counts) -> Counts:
    """Return for each assignment the index of the nearest one of a list.

    Most equal categories come first, then the nearest numbers, each relative to the number of its
    values, and among equals the lowest assignment id.
    """
    order = np.argsort(listed, kind="stable")
    step = max(1, MAX_DISTANCES // max(1, len(listed)))
    parts = [
        order[_nearest(space, assignment_ids[start : start + step], listed[order])]
        for start in range(0, len(assignment_ids), step)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _nearest(space: FeatureSpace, assignment_ids: Counts, listed: Counts) -> Counts:
    """Return the index of the nearest one; the first of equals."""
    lattice = space.lattice
    n_different = np.zeros((len(assignment_ids), len(listed)), dtype=np.int64)
    distance = np.zeros_like(n_different)
    common = lcm(*(len(axis) for axis in lattice.axes))
    # Equal distances must be equal numbers: integers, unless they would overflow.
    unit = common if common < MAX_COMMON else MAX_COMMON
    pairs = zip(lattice.coordinates(assignment_ids), lattice.coordinates(listed), strict=True)
    for axis, (own, others) in zip(lattice.axes, pairs, strict=True):
        steps = np.abs(own[:, None] - others[None, :])
        if isinstance(axis.attribute, Categorical):
            n_different += steps > 0
        else:
            distance += steps * unit // len(axis)
    # A distance of numbers is less than one unit per axis, so it never outweighs a category.
    return np.argmin(n_different * (unit * (len(lattice.axes) + 1)) + distance, axis=1)
