"""Gaps between groups where every way to decide approves the same number of people.

The gap of decisions depends on how many people they approve. At an equal level, it depends on their
ranking alone.
"""

import numpy as np

from feta.arrays import Flags, Vector
from feta.metrics.estimate import Estimate, rate_difference

# The cut-off is estimated from the people next to it: this many on each side, and at least
# MIN_NEAR. Their number grows with the people, but their share decreases.
MIN_NEAR = 10
EXPONENT = 2 / 3


def approvals(scores: Vector, n_favorable: int) -> Vector:
    """Approve the people with the highest scores; people at the cut share what remains."""
    if n_favorable == 0:
        return np.zeros(len(scores))
    cut = np.sort(scores)[-n_favorable]
    above, at_cut = scores > cut, scores == cut
    return np.asarray(above + at_cut * (n_favorable - above.sum()) / at_cut.sum())


def equal_approval_gap(scores: Vector, approved: Flags, *, first: Flags, second: Flags) -> Estimate:
    """Return the approval rate of one group minus another's, at the level of other decisions.

    As many people as in `approved` are favorable, those with the highest scores. The interval
    covers that the level and the cut-off are estimated from the same people.
    """
    n_favorable = int(approved.sum())
    at_level = approvals(scores, n_favorable)
    gap = rate_difference(at_level, first, second)
    near = _near_cut(scores, n_favorable)
    # One more approval goes to a person near the cut-off, and changes the gap by this much.
    shift = near[first].sum() / first.sum() - near[second].sum() / second.sum()
    shift *= len(scores) / near.sum()
    return Estimate(gap.value, gap.influence - shift * (at_level - approved))


def _near_cut(scores: Vector, n_favorable: int) -> Flags:
    """Return who is next to the cut-off: those on it, or if these are few, a window around it."""
    ordered = np.sort(scores)[::-1]
    cut = ordered[max(n_favorable - 1, 0)]
    reach = max(MIN_NEAR, round(len(scores) ** EXPONENT / 2))
    at_cut = scores == cut
    if at_cut.sum() >= 2 * reach:
        return np.asarray(at_cut)
    highest = ordered[max(n_favorable - reach, 0)]
    lowest = ordered[min(n_favorable + reach, len(scores)) - 1]
    return np.asarray((scores >= lowest) & (scores <= highest))
