"""The search for a proof: boxes with the most undecided people are cut first.

`Search` is the contract; `ReferenceSearch` is the readable version, `NativeSearch` the fast one.
"""

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from feta.arrays import Matrix, Vector
from feta.everybody.half_spaces.examine import (
    FEW,
    LEAST_BINS,
    Examined,
    Method,
    examine,
    people_in,
)
from feta.everybody.half_spaces.problem import Problem, share_of
from feta.everybody.half_spaces.tree import EACH, LISTED, Tree, halves, middle

# Boxes that are cut at once.
BATCH = 16

# Decides the people of a small box one by one: the fair and the unfair share, which sum to less
# than 1 if somebody remains undecided.
Decide = Callable[[Vector, Vector], tuple[Fraction, Fraction]]


class Search(Protocol):
    """A proof about one box of people that grows."""

    @property
    def fair(self) -> Fraction:
        """The share that is proved to be treated fairly, rounded down."""
        ...

    @property
    def unfair(self) -> Fraction:
        """The share that is proved to be treated unfairly, rounded down."""
        ...

    @property
    def done(self) -> bool:
        """Whether no box can be cut any more."""
        ...

    @property
    def n_boxes(self) -> int:
        """The number of boxes that were examined."""
        ...

    def step(self, seconds: float) -> None:
        """Work for some time."""
        ...

    def tree(self) -> Tree:
        """Return the tree of cuts."""
        ...

    def draw(self, rng: np.random.Generator, n_boxes: int) -> tuple[Matrix, Matrix]:
        """Draw boxes by their undecided shares; none if nothing is undecided."""
        ...

    def witness(self) -> tuple[Vector, Vector] | None:
        """Return a box of people who are treated unfairly, if one was found."""
        ...


@dataclass(order=True, slots=True)
class _Waiting:
    """A box that is not decided as a whole."""

    order: float  # minus the undecided share
    node: int
    lower: Vector = field(compare=False)
    upper: Vector = field(compare=False)
    share: Fraction = field(compare=False)
    found: Examined = field(compare=False)


class ReferenceSearch:
    """The search in readable NumPy."""

    def __init__(self, problem: Problem, decide: Decide, *, few: int = FEW) -> None:
        self.problem, self.decide, self.few = problem, decide, few
        self.n_boxes = 0
        self._decided = [Fraction(0), Fraction(0)]  # leaves that stay: fair, unfair
        self._found: tuple[Vector, Vector] | None = None
        self._waiting: list[_Waiting] = []
        self._sums = [Fraction(0), Fraction(0)]  # of the boxes that wait
        self._axes, self._codes, self._children = [-1], [0], [-1]
        lower, upper = problem.box
        self._examine([(0, lower, upper, Fraction(1))], Method.after(1.0, apart=False))

    @property
    def fair(self) -> Fraction:
        """The share that is proved to be treated fairly."""
        return self._decided[0] + self._sums[0]

    @property
    def unfair(self) -> Fraction:
        """The share that is proved to be treated unfairly."""
        return self._decided[1] + self._sums[1]

    @property
    def done(self) -> bool:
        """Whether no box can be cut any more."""
        return not self._waiting

    def step(self, seconds: float) -> None:
        """Work for some time, and at least on one batch of boxes."""
        deadline = time.monotonic() + seconds
        while self._waiting:
            self._cut()
            if time.monotonic() >= deadline:
                return

    def tree(self) -> Tree:
        """Return the tree of cuts."""
        return Tree(*(np.array(part) for part in (self._axes, self._codes, self._children)))

    def draw(self, rng: np.random.Generator, n_boxes: int) -> tuple[Matrix, Matrix]:
        """Draw boxes by their undecided shares."""
        shares = np.array([-box.order for box in self._waiting])
        width = len(self.problem.axes)
        if not shares.sum() > 0:
            return np.zeros((0, width)), np.zeros((0, width))
        chosen = rng.choice(len(shares), n_boxes, p=shares / shares.sum())
        boxes = [self._waiting[index] for index in chosen]
        return np.stack([box.lower for box in boxes]), np.stack([box.upper for box in boxes])

    def witness(self) -> tuple[Vector, Vector] | None:
        """Return a box of people who are treated unfairly, if one was found."""
        return self._found

    def _cut(self) -> None:
        taken = [heapq.heappop(self._waiting) for _ in range(min(BATCH, len(self._waiting)))]
        by_method: dict[Method, list[tuple[int, Vector, Vector, Fraction]]] = {}
        for box in taken:
            self._sums[0] -= box.share * Fraction(box.found.fair)
            self._sums[1] -= box.share * Fraction(box.found.unfair)
            axis = self._axis(box)
            self._axes[box.node], self._children[box.node] = axis, len(self._axes)
            method = Method.after(-box.order / float(box.share), apart=box.found.apart)
            for lower, upper in halves(self.problem, box.lower, box.upper, axis):
                node = len(self._axes)
                self._axes.append(-1)
                self._codes.append(0)
                self._children.append(-1)
                if lower[axis] <= upper[axis]:
                    share = share_of(self.problem.axes, lower, upper)
                    by_method.setdefault(method, []).append((node, lower, upper, share))
        for method, boxes in by_method.items():
            self._examine(boxes, method)

    def _axis(self, box: _Waiting) -> int:
        gains = [
            gain if middle(axis, low, high) is not None else -1.0
            for gain, axis, low, high in zip(
                box.found.gains, self.problem.axes, box.lower, box.upper, strict=True
            )
        ]
        return int(np.argmax(gains))

    def _examine(self, boxes: list[tuple[int, Vector, Vector, Fraction]], method: Method) -> None:
        lower, upper = np.stack([box[1] for box in boxes]), np.stack([box[2] for box in boxes])
        self.n_boxes += len(boxes)
        for (node, low, high, share), found in zip(
            boxes, examine(self.problem, lower, upper, method), strict=True
        ):
            self._codes[node] = method.bins - LEAST_BINS + EACH * method.each
            if found.unfair == 1 and self._found is None:
                self._found = low, high
            undecided = 1 - Fraction(found.fair) - Fraction(found.unfair)
            can_be_cut = any(
                middle(*each) is not None for each in zip(self.problem.axes, low, high, strict=True)
            )
            if undecided <= 0:
                self._decided[0] += share * Fraction(found.fair)
                self._decided[1] += share * Fraction(found.unfair)
            elif people_in(self.problem, low, high) <= self.few:
                self._codes[node] = LISTED
                fair, unfair = self.decide(low, high)
                self._decided[0] += share * fair
                self._decided[1] += share * unfair
            elif can_be_cut:
                self._sums[0] += share * Fraction(found.fair)
                self._sums[1] += share * Fraction(found.unfair)
                order = -float(share * undecided)
                heapq.heappush(self._waiting, _Waiting(order, node, low, high, share, found))
            else:
                self._decided[0] += share * Fraction(found.fair)
                self._decided[1] += share * Fraction(found.unfair)
