"""Re-check of one leaf of a proof by bounds.

A leaf that the checker's own bounds do not decide is split further. Engines bound with other
rounding and may choose other lines, so a leaf that just suffices for them may not suffice here.
"""

from collections.abc import Sequence
from fractions import Fraction

from feta.arrays import Vector
from feta.checker.box import Box
from feta.checker.criterion import Criterion
from feta.checker.evaluators import Bounds
from feta.checker.network_bounds import BoxBounds
from feta.scorer.protocol import Objective
from feta.verdict.certificate import Cut

# A box with at most so many counterparts, or corners, is decided by scoring them. This is faster
# than bounding it.
MAX_SCORED = 64

# Parts of one leaf that are decided before the proof is rejected.
MAX_BOXES = 2**11


def leaf_objection(
    leaf: Box, person: Vector, *, bounds: Bounds, objective: Objective, criterion: Criterion
) -> str:
    """Describe why a leaf is not proved; empty if all counterparts in it provably agree."""
    stack, n_boxes = [leaf], 0
    while stack:
        box, n_boxes = stack.pop(), n_boxes + 1
        if n_boxes > MAX_BOXES:
            return _undecided(leaf)
        known = None if _is_small(box) else bounds.over(box, objective)
        if known is not None and known.agrees:
            continue
        if _is_small(box) or (known is not None and _corners_decide(box, known, objective)):
            objections = filter(None, map(criterion.objection, box.corners(person)))
            objection = next(objections, "")
            if objection:
                return objection
            continue
        cut = _choose_cut(box, box.sides if known is None else known.influences)
        if cut is None:
            return _undecided(leaf)
        stack += box.halves(*cut)
    return ""


def _is_small(box: Box) -> bool:
    return box.is_finite and box.n_corners <= MAX_SCORED


def _corners_decide(box: Box, known: BoxBounds, objective: Objective) -> bool:
    """Return whether the decisions at the corners prove that of the box.

    If no neuron changes its piece, scores are affine in the real-valued attributes. People with the
    same decision then form a convex set, unless the objective is the smallest of its directions.
    Trees have the scores of the corners and no others, if no cut lies inside the box.
    """
    decide = known.is_constant or (known.is_affine and not objective.least)
    return decide and box.n_corners <= MAX_SCORED


def _choose_cut(box: Box, weights: Sequence[int | Fraction]) -> Cut | None:
    """Halve the axis with the largest weight; None if no axis can be cut."""
    middles = [box.middle(axis) for axis in range(len(box.axes))]
    cuts = [(axis, middle) for axis, middle in enumerate(middles) if middle is not None]
    return max(cuts, key=lambda cut: weights[cut[0]], default=None)


def _undecided(leaf: Box) -> str:
    return f"a cell that the bounds leave undecided, from {list(leaf.lower)} to {list(leaf.upper)}"
