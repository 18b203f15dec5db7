"""The compiled search, with the contract of `search.py`."""

from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from feta.arrays import Matrix, Vector
from feta.everybody.half_spaces.examine import (
    FEW,
    JOINT_ABOVE,
    LEAST_BINS,
    MOST_BINS,
    USUAL_BINS,
    Method,
)
from feta.everybody.half_spaces.problem import BoxAxis, Problem, share_of
from feta.everybody.half_spaces.search import Decide
from feta.everybody.half_spaces.tree import EACH, LISTED, Tree, boxes_of

try:
    # Compiled code is untyped; this module is its only user.
    native: Any = import_module("feta._branch")
except ImportError:  # an install without compiled code
    native = None

LINE, REAL, TABLE = range(3)

# Nodes of a finished tree whose shares are added again in fractions.
MOST_EXACT = 2**13

# The compiled search adds shares in multiples of this.
UNIT = Fraction(1, 2**120)


class NativeSearch:
    """The search in compiled code."""

    def __init__(
        self, problem: Problem, decide: Decide, *, few: int = FEW, simd: bool = True
    ) -> None:
        self.problem, self.decide = problem, decide
        search = native.Branch(
            problem.constant, np.ascontiguousarray(problem.combinations), problem.threshold
        )
        for axis in problem.axes:
            search.add_axis(*_stored(axis))
        for activation, layer in zip(problem.activations, problem.layers, strict=True):
            arrays = (activation.breaks, activation.slopes, activation.intercepts)
            search.add_layer(
                *(np.ascontiguousarray(array) for array in arrays),
                _is_relu(*arrays),
                np.ascontiguousarray(layer.weight),
                np.ascontiguousarray(layer.bias),
            )
        for sizes, errors in zip(problem.sizes, problem.errors, strict=True):
            search.add_error(sizes, errors)
        search.start(float(few), LEAST_BINS, MOST_BINS, float(USUAL_BINS), JOINT_ABOVE, simd)
        self._search = search
        self._exact: tuple[Fraction, Fraction] | None = None
        self._decide_hard()

    @property
    def fair(self) -> Fraction:
        """The share that is proved to be treated fairly, rounded down."""
        if self._exact is not None:
            return self._exact[0]
        return max(1 - UNIT * _whole(self._search.not_fair()), Fraction(0))

    @property
    def unfair(self) -> Fraction:
        """The share that is proved to be treated unfairly, rounded down."""
        if self._exact is not None:
            return self._exact[1]
        return UNIT * _whole(self._search.unfair())

    @property
    def done(self) -> bool:
        """Whether no box can be cut any more."""
        return bool(self._search.done())

    @property
    def n_boxes(self) -> int:
        """The number of boxes that were examined."""
        return int(self._search.boxes())

    def step(self, seconds: float) -> None:
        """Work for some time."""
        self._search.step(seconds)
        self._decide_hard()

    def tree(self) -> Tree:
        """Return the tree of cuts."""
        axes, codes, children = np.asarray(self._search.tree()).T
        return Tree(axes, codes, children)

    def draw(self, rng: np.random.Generator, n_boxes: int) -> tuple[Matrix, Matrix]:
        """Draw boxes by their undecided shares."""
        lower, upper = self._search.draw(rng.random(n_boxes))
        return np.asarray(lower), np.asarray(upper)

    def witness(self) -> tuple[Vector, Vector] | None:
        """Return a box of people who are treated unfairly, if one was found."""
        lower, upper = self._search.witness()
        return (lower[0], upper[0]) if len(lower) else None

    def examine(self, lower: Vector, upper: Vector, method: Method) -> tuple[float, float]:
        """Return lower bounds of the fair and unfair shares of one box."""
        fair, unfair = self._search.examine(lower, upper, method.each, 2**method.bins)
        return fair, unfair

    def _decide_hard(self) -> None:
        """Decide small boxes exactly in which a score is next to the threshold."""
        nodes, (lower, upper) = self._search.hard()
        for node, low, high in zip(nodes, lower, upper, strict=True):
            fair, unfair = self.decide(low, high)
            self._search.settle(node, _down(fair), _down(unfair))
        if self.done and self._exact is None and len(self._search.tree()) <= MOST_EXACT:
            self._exact = self._sums()

    def _sums(self) -> tuple[Fraction, Fraction]:
        """Add the shares of all leaves in fractions: nothing is rounded."""
        sums = [Fraction(0), Fraction(0)]
        tree = self.tree()
        for node, lower, upper in boxes_of(self.problem, tree):
            if tree.axes[node] >= 0 or (lower > upper).any():
                continue
            code = int(tree.codes[node])
            if code == LISTED:
                shares = self.decide(lower, upper)
            else:
                method = Method(bool(code & EACH), code % EACH + LEAST_BINS)
                fair, unfair = self.examine(lower, upper, method)
                shares = Fraction(fair), Fraction(unfair)
            share = share_of(self.problem.axes, lower, upper)
            sums = [total + share * part for total, part in zip(sums, shares, strict=True)]
        return sums[0], sums[1]


def _stored(axis: BoxAxis) -> tuple[int, Matrix, float, float, float, np.ndarray[Any, Any]]:
    """Return an axis as compiled code takes it."""
    ends = np.zeros(0, dtype=np.int64) if axis.ends is None else axis.ends
    if axis.table is not None:
        return TABLE, np.ascontiguousarray(axis.table), 0.0, axis.low, axis.high, ends
    assert axis.slope is not None
    kind = REAL if axis.real else LINE
    return kind, axis.slope[None, :].copy(), axis.start, axis.low, axis.high, ends


def _is_relu(breaks: Matrix, slopes: Matrix, intercepts: Matrix) -> bool:
    return (
        len(breaks) == 1
        and not (breaks.any() or slopes[0].any() or intercepts.any())
        and bool((slopes[1] == 1).all())
    )


def _whole(words: tuple[int, int]) -> int:
    return (words[0] << 64) + words[1]


def _down(share: Fraction) -> float:
    """Return the next float64 that is not above a share."""
    number = float(share)
    return float(np.nextafter(number, 0.0)) if Fraction(number) > share else number
