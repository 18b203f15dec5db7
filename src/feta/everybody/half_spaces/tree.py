"""The tree of cuts of a proof: every box is cut in the middle of one axis, or is a leaf."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Vector
from feta.everybody.half_spaces.problem import BoxAxis, Problem

# What a leaf states: how it was examined. The method "each" is added to the number of bins.
EACH = 8
LISTED = 16


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Nodes by number, from the root 0."""

    axes: Counts  # the axis that is cut; −1 for a leaf
    codes: Counts  # of a leaf: bins − 7, EACH or LISTED
    children: Counts  # the first child; the second one follows it

    def depth_first(self) -> Iterator[int]:
        """Yield the nodes, each before its children, the lower half first."""
        waiting = [0]
        axes, children = self.axes.tolist(), self.children.tolist()
        while waiting:
            node = waiting.pop()
            yield node
            if axes[node] >= 0:
                waiting += [children[node] + 1, children[node]]


def middle(axis: BoxAxis, low: float, high: float) -> float | None:
    """Return where a range is cut; None if it cannot be cut."""
    at = low + (high - low) / 2
    if axis.real:
        return at if low < at < high else None
    return float(np.floor(at)) if low < high else None


def halves(
    problem: Problem, lower: Vector, upper: Vector, index: int
) -> list[tuple[Vector, Vector]]:
    """Return the two halves of a box, without values at their ends that nobody has.

    A half is empty if its first value is larger than its last.
    """
    axis = problem.axes[index]
    low, high = float(lower[index]), float(upper[index])
    at = middle(axis, low, high)
    assert at is not None  # the caller chose an axis that can be cut
    parts = []
    for start, end in ((low, at), (at if axis.real else at + 1, high)):
        first, last = lower.copy(), upper.copy()
        first[index], last[index] = axis.trimmed(start, end)
        parts.append((first, last))
    return parts


def boxes_of(problem: Problem, tree: Tree) -> Iterator[tuple[int, Vector, Vector]]:
    """Yield the nodes with their boxes, depth first."""
    boxes = {0: problem.box}
    axes, children = tree.axes.tolist(), tree.children.tolist()
    for node in tree.depth_first():
        lower, upper = boxes.pop(node)
        yield node, lower, upper
        if axes[node] >= 0:
            for side, half in enumerate(halves(problem, lower, upper, axes[node])):
                boxes[children[node] + side] = half


def cuts_of(problem: Problem, tree: Tree) -> Iterator[tuple[int, float | None]]:
    """Yield the axis and the place of each cut, depth first; −1 and None for leaves."""
    axes = tree.axes.tolist()
    for node, lower, upper in boxes_of(problem, tree):
        axis = axes[node]
        if axis < 0:
            yield -1, None
        else:
            yield axis, middle(problem.axes[axis], float(lower[axis]), float(upper[axis]))
