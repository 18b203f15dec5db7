"""The engine `branch`: boxes of people, bounded until all of them are treated the same.

Every column is an axis, the sensitive ones included, so a box contains people and all their
counterparts. If bounds, rounded outward, prove one decision for the box, or if the score does not
depend on the sensitive columns there, everybody in it is treated fairly. If two assignments of the
sensitive columns have different proved decisions, everybody in it is treated unfairly. Small boxes
are enumerated with exact decisions. Other boxes are cut; those with the largest share come first.
"""

import heapq
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from feta.arrays import Array, Counts, Flags, Matrix, Vector
from feta.cells.cells import Cells
from feta.everybody.decide import treated
from feta.everybody.population import Independent
from feta.everybody.shares import Stratum, strata
from feta.model import Model
from feta.rounding import FLOAT64
from feta.rule.comparator import UNDECIDED
from feta.scorer.cell_bounds import CellBounds
from feta.scorer.protocol import Restricted, gains, may_depend
from feta.verdict.certificate import Cut, CutTree

# Boxes that are cut at once, and people of a box that is enumerated.
BATCH = 64
FEW = 64

# Assignments of the sensitive columns that are compared to prove a box unfair.
MOST_ASSIGNMENTS = 64


@dataclass(order=True, slots=True)
class _Waiting:
    """A box that is not decided; the largest share first."""

    order: float
    number: int
    stratum: int = field(compare=False)
    lower: Vector = field(compare=False)
    upper: Vector = field(compare=False)
    share: Fraction = field(compare=False)
    node: int = field(compare=False)  # of the tree of cuts
    gains: Vector = field(compare=False)  # estimates of what a cut along each axis gains


class Boxes:
    """A proof about a population that grows step by step."""

    name: ClassVar[str] = "branch"

    def __init__(self, model: Model, parts: list[Stratum], *, few: int = FEW) -> None:
        self.model, self.parts, self.few = model, parts, few
        self.restricted: list[Restricted] = [model.scorer.restrict(part.relation) for part in parts]
        self.fair = self.unfair = Fraction(0)
        self.stuck = Fraction(0)  # the share of boxes that cannot be cut or decided
        self.n_boxes = self._n_waiting = 0
        self.witness: Vector | None = None  # somebody who is treated unfairly
        self._queue: list[_Waiting] = []
        self._trees = [CutTree() for _ in parts]
        self._gains = np.zeros((0, 0))
        self._started = False

    @classmethod
    def of(cls, model: Model, population: Independent, *, few: int = FEW) -> "Boxes | str":
        """Return the proof for a population, or why there is none."""
        parts = strata(population)
        if isinstance(parts, str):
            return parts
        boxes = cls(model, parts, few=few)
        if not all(one.bounds_cells for one in boxes.restricted):
            return "this kind of model, or a column with a long table, has no bounds over boxes"
        return boxes

    @property
    def done(self) -> bool:
        """Whether no box can be decided any more."""
        return self._started and not self._queue

    def step(self) -> None:
        """Cut the boxes with the largest shares, and bound their halves."""
        if not self._started:
            self._started = True
            for index, part in enumerate(self.parts):
                whole = part.lower[None, :], part.upper[None, :]
                self._examine(index, *whole, np.zeros(1, dtype=np.int64))
            return
        taken = [heapq.heappop(self._queue) for _ in range(min(BATCH, len(self._queue)))]
        for index in sorted({box.stratum for box in taken}):
            mine = [box for box in taken if box.stratum == index]
            lower, upper = np.stack([b.lower for b in mine]), np.stack([b.upper for b in mine])
            self._examine(index, *self._halves(index, mine, lower, upper))

    def cuts(self) -> tuple[Cut | None, ...]:
        """Return the cuts of all boxes, depth first, one tree per box at the start."""
        return tuple(cut for tree in self._trees for cut in tree.proof().cuts)

    def draw(self, rng: np.random.Generator, n_people: int) -> Matrix:
        """Draw people from undecided boxes, to look for counterexamples there."""
        shares = np.array([float(box.share) for box in self._queue])
        if not shares.size or not shares.sum() > 0:
            return np.zeros((0, self.model.space.width))
        rows = []
        for which in rng.choice(len(shares), n_people, p=shares / shares.sum()):
            box = self._queue[which]
            part = self.parts[box.stratum]
            coordinates = [
                part.draw(rng, axis, box.lower[axis], box.upper[axis])
                for axis in range(len(part.axes))
            ]
            rows.append(part.at(np.array(coordinates)[None, :])[0])
        return np.stack(rows)

    def _halves(
        self, index: int, boxes: list[_Waiting], lower: Matrix, upper: Matrix
    ) -> tuple[Matrix, Matrix, Counts]:
        """Cut each box where a shared axis changes the scores most."""
        part = self.parts[index]
        cells = Cells(part.axes, lower, upper)
        shared = np.zeros(len(part.axes), dtype=bool)
        shared[list(part.shared)] = True
        lows, highs, nodes = [], [], []
        for row, box in enumerate(boxes):
            middles = cells.middles(row)
            possible = shared & ~np.isnan(middles)
            if not possible.any():
                self.stuck += box.share
                continue
            axis = int(np.argmax(np.where(possible, box.gains, -1.0)))
            halves = cells.cut(row, axis, float(middles[axis]))
            lows.append(halves.lower)
            highs.append(halves.upper)
            nodes.append(self._trees[index].cut(box.node, axis, float(middles[axis])))
        if not lows:
            return lower[:0], upper[:0], np.zeros(0, dtype=np.int64)
        return np.concatenate(lows), np.concatenate(highs), np.concatenate(nodes)

    def _examine(self, index: int, lower: Matrix, upper: Matrix, nodes: Counts) -> None:
        """Decide boxes, or put them in the queue."""
        part = self.parts[index]
        shares = [part.share_of(low, high) for low, high in zip(lower, upper, strict=True)]
        kept = np.flatnonzero([share > 0 for share in shares])
        if not kept.size:
            return
        self.n_boxes += kept.size
        cells = Cells(part.axes, lower[kept], upper[kept])
        shares = [shares[row] for row in kept]
        fair = self._fair(index, cells)
        unfair = np.zeros(len(cells), dtype=bool)
        rest = np.flatnonzero(~fair)
        if rest.size:
            unfair[rest] = self._unfair(index, cells[rest])
        for row, share in enumerate(shares):
            if fair[row]:
                self.fair += share
            elif unfair[row]:
                self.unfair += share
                if self.witness is None:
                    self.witness = part.member(cells.lower[row], cells.upper[row])
            elif not self._enumerate(part, cells.lower[row], cells.upper[row]):
                self._n_waiting += 1
                box = _Waiting(
                    -float(share),
                    self._n_waiting,
                    index,
                    cells.lower[row],
                    cells.upper[row],
                    share,
                    int(nodes[kept[row]]),
                    self._gains[row],
                )
                heapq.heappush(self._queue, box)

    def _fair(self, index: int, cells: Cells) -> Flags:
        """Return the boxes in which everybody and their counterparts get one decision.

        Also note what a cut along each axis of a box probably gains.
        """
        part = self.parts[index]
        centers = part.at(_middles(cells))
        decisions = self._decisions(centers)
        fair = np.zeros(len(cells), dtype=bool)
        self._gains = np.zeros(cells.lower.shape)
        axes = [axis for axis in range(len(part.axes)) if axis not in part.shared]
        for decision in np.unique(decisions):
            rows = np.flatnonzero(decisions == decision)
            bounds = self._bounds(index, cells[rows], int(decision))
            found = gains(bounds)
            if found is None:
                found = self.restricted[index].influence(bounds.cells)
            self._gains[rows] = found
            fair[rows] = bounds.agrees | ~may_depend(bounds, axes)
        return fair

    def _unfair(self, index: int, cells: Cells) -> Flags:
        """Return the boxes in which two assignments have different proved decisions."""
        part = self.parts[index]
        sensitive = [axis for axis in range(len(part.axes)) if axis not in part.shared]
        assignments = self._assignments(index, sensitive)
        result = np.zeros(len(cells), dtype=bool)
        middles = _middles(cells)
        coordinates = np.repeat(middles, len(assignments), axis=0)
        coordinates[:, sensitive] = np.tile(assignments, (len(cells), 1))
        twins = part.at(coordinates)
        decisions = self._decisions(twins).reshape(len(cells), -1)
        scores = self.model.scorer(twins)[:, 0].reshape(len(cells), -1)
        candidates = np.flatnonzero((decisions != decisions[:, :1]).any(axis=1))
        if not candidates.size:
            return result
        lows, highs = np.argmin(scores, axis=1), np.argmax(scores, axis=1)
        first, second = lows[candidates], highs[candidates]
        own, other = decisions[candidates, first], decisions[candidates, second]
        proved = own != other
        for which, wanted in ((first, own), (second, other)):
            lower, upper = cells.lower[candidates].copy(), cells.upper[candidates].copy()
            lower[:, sensitive] = upper[:, sensitive] = assignments[which]
            narrow = Cells(part.axes, lower, upper)
            for decision in np.unique(wanted[proved]):
                rows = np.flatnonzero(proved & (wanted == decision))
                proved[rows] = self._bounds(index, narrow[rows], int(decision)).agrees
        result[candidates[proved]] = True
        return result

    def _assignments(self, index: int, sensitive: list[int]) -> Matrix:
        """List coordinates of the sensitive axes: all of them, or some if there are more.

        Any two with different decisions prove that people are treated unfairly.
        """
        axes = [self.parts[index].axes[axis] for axis in sensitive]
        few = not any(axis.real for axis in axes)
        if few and np.prod([float(len(axis)) for axis in axes]) <= MOST_ASSIGNMENTS:
            grids = np.meshgrid(*(np.arange(len(axis)) for axis in axes), indexing="ij")
            return np.stack([grid.ravel() for grid in grids], axis=1).astype(np.float64)
        rng = np.random.default_rng(0)
        low, high = (np.array([axis.ends[end] for axis in axes]) for end in (0, 1))
        share = rng.random((MOST_ASSIGNMENTS, len(axes)))
        corners = rng.integers(0, 2, (MOST_ASSIGNMENTS // 2, len(axes))).astype(np.float64)
        share[: len(corners)], share[0], share[1] = corners, 0.0, 1.0
        chosen = low * (1 - share) + high * share
        real = np.array([axis.real for axis in axes])
        return np.where(real, np.clip(chosen, low, high), np.floor(chosen))

    def _enumerate(self, part: Stratum, lower: Vector, upper: Vector) -> bool:
        """Decide the people of a small box one by one; return False if it is too large."""
        listed = part.people(lower, upper, self.few)
        if listed is None:
            return False
        people, shares = listed
        result = treated(self.model, people)
        for unfair, undecided, share, person in zip(
            result.unfair, result.undecided, shares, people, strict=True
        ):
            if undecided:
                self.stuck += share
            elif unfair:
                self.unfair += share
                self.witness = person if self.witness is None else self.witness
            else:
                self.fair += share
        return True

    def _bounds(self, index: int, cells: Cells, decision: int) -> CellBounds:
        return self.restricted[index].over(
            self.parts[index].person,
            cells,
            self.model.rule.opposing(decision),
            source_error=self.model.runtime_error,
        )

    def _decisions(self, people: Matrix) -> Counts:
        """Guess decisions in float64; where they tie, the first one."""
        decisions: Array = self.model.rule.decide(self.model.points(people).scores(FLOAT64))
        return np.where(decisions == UNDECIDED, 0, decisions).astype(np.int64)


def _middles(cells: Cells) -> Matrix:
    """Return a point in the middle of each box."""
    middle = cells.lower + (cells.upper - cells.lower) / 2
    real = np.array([axis.real for axis in cells.axes])
    return np.where(real, middle, np.floor(middle))
