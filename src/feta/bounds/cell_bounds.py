"""OverParts: how far apart anybody in a part can be treated; what settles a part, and what does not."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.bounds import linear
from feta.bounds.first_layer import FirstLayer, Terms
from feta.bounds.linear import Layer
from feta.bounds.relaxation import stable_pieces
from feta.cells.cells import Cells
from feta.interval_box import IntervalBox
from feta.model import Model
from feta.rule import Objective
from feta.scorer.network import error_bounds
from feta.scorer.network.error_bounds import Bounded

# A part with at most this many people, or corners, is settled by scoring them.
MAX_CORNERS = 16


@dataclass(frozen=True, slots=True, eq=False)
class CellBounds:
    """Bounds over parts of one person's counterparts, one row a part."""

    model: Model
    first: FirstLayer
    layers: list[Layer]
    goal: Objective
    highs: Vector  # no counterpart's objective is larger
    rows: Matrix  # the linear bound's own weights of the first layer's neurons

    @classmethod
    def of(
        cls, model: Model, terms: Terms, person: Vector, cells: Cells, goal: Objective
    ) -> "CellBounds":
        """Bound an objective over parts."""
        first = terms.at(person, cells)
        layers = linear.forward(model.network, first)
        highs, rows = linear.highest(model.network, first, layers, goal)
        return cls(model, first, layers, goal, highs, rows)

    def likeliest(self, person: Vector) -> Matrix:
        """Give of each part the counterpart that the linear bound takes for the farthest."""
        return self.first.cells.people(self.first.most(self.rows), person)

    def open(self) -> tuple[Cells, list[IntervalBox]]:
        """Give one part around all that may hold somebody treated apart, and its boxes."""
        rows, cells = np.flatnonzero(~self.agrees), self.first.cells
        ends = (cells.lower[rows].min(axis=0), cells.upper[rows].max(axis=0))
        boxes = [
            IntervalBox(
                one.box.lower[rows].min(axis=0)[None], one.box.upper[rows].max(axis=0)[None]
            )
            for one in self.layers
        ]
        return Cells(cells.dimensions, ends[0][None], ends[1][None]), boxes

    @property
    def agrees(self) -> Flags:
        """Which parts hold nobody who is treated apart."""
        return np.asarray(self.highs < self.goal.level)

    def runtime_safe(self) -> Flags:
        """Which of them the source's own runtime is sure to treat alike, too (S6)."""
        network, arithmetic = self.model.network, self.model.network.arithmetic
        zeros = np.zeros_like(self.first.size)
        errors = error_bounds.first_layer(network.first, zeros, self.first.size, arithmetic).errors
        for known, (activation, layer) in zip(self.layers, network.steps, strict=True):
            sizes = Bounded(known.box.size, errors)
            errors = error_bounds.activate(activation, sizes, arithmetic).errors
            errors = error_bounds.affine(
                layer, Bounded(known.relaxed.size, errors), arithmetic
            ).errors
        with np.errstate(
            invalid="ignore"
        ):  # 0 · inf where nothing is known: NaN, which is not safe
            radius = (errors + self.model.runtime_error) @ np.abs(self.goal.directions).T
        return np.asarray(self.highs + 2 * radius.max(axis=1) < self.goal.level)

    def deciding(self, row: int, person: Vector) -> Matrix | None:
        """Give a few people who settle a part, if there are such.

        All of them where they are few. Where no neuron can change its piece, scores are affine in the
        real-valued attributes, and people treated alike form a convex set (unless every margin has to
        grow): then the corners decide for all.
        """
        cells = self.first.cells
        few = cells.counts()[row] <= MAX_CORNERS
        if few or (self._affine(row) and not self.goal.least):
            return cells.corners(row, person, MAX_CORNERS)
        return None

    def _affine(self, row: int) -> bool:
        return all(
            bool(stable_pieces(activation, known.box)[1][row].all())
            for activation, known in zip(self.model.network.activations, self.layers, strict=True)
        )

    def longest(self, row: int) -> int | None:
        """Say along which dimension a part is best cut in two; None where it cannot be."""
        with np.errstate(over="ignore", invalid="ignore"):  # it is only a choice
            gains = np.nan_to_num(self.first.spread()[row] @ np.abs(self.rows[row]))
        gains = np.where(np.isnan(self.first.cells.middles(row)), -1.0, gains)
        return int(np.argmax(gains)) if gains.max() >= 0 else None
