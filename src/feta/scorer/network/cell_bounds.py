"""Bounds on an objective over cells of one person's counterparts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.bounds import linear
from feta.bounds.first_layer import FirstLayer, Terms
from feta.bounds.linear import Layer
from feta.bounds.relaxation import constant_pieces, stable_pieces
from feta.cells.cells import Cells
from feta.interval_box import IntervalBox
from feta.scorer.network import error_bounds
from feta.scorer.protocol import Enclosure, Objective

if TYPE_CHECKING:
    from feta.scorer.network.network import Network

# A cell with at most this many counterparts, or corners, is decided by scoring them.
MAX_CORNERS = 16


@dataclass(frozen=True, slots=True, eq=False)
class NetworkCellBounds:
    """Bounds on an objective, one row per cell."""

    network: "Network"
    first: FirstLayer
    layers: list[Layer]
    objective: Objective
    highs: Vector  # upper bounds of the objective
    rows: Matrix  # the weights of the first layer in the linear bounds
    source_error: float  # that the source adds after its scores

    @classmethod
    def of(
        cls,
        network: "Network",
        terms: Terms,
        person: Vector,
        cells: Cells,
        objective: Objective,
        *,
        source_error: float,
    ) -> "NetworkCellBounds":
        """Bound an objective over cells."""
        first = terms.at(person, cells)
        layers = linear.forward(network, first)
        highs, rows = linear.highest(
            network,
            first,
            layers,
            objective.directions,
            objective.offsets.floats(),
            least=objective.least,
        )
        return cls(network, first, layers, objective, highs, rows, source_error)

    @property
    def cells(self) -> Cells:
        """The cells."""
        return self.first.cells

    def beyond(self, level: float) -> "NetworkCellBounds":
        """Return the same bounds for another level of the objective."""
        return replace(self, objective=replace(self.objective, level=level))

    def maximizers(self, person: Vector) -> Matrix:
        """Return the counterpart in each cell where the linear bound is largest."""
        return self.first.cells.people(self.first.argmax(self.rows), person)

    def enclose_undecided(self) -> tuple[Cells, list[IntervalBox]]:
        """Return one cell that encloses all undecided cells, and its boxes."""
        rows, cells = np.flatnonzero(~self.agrees), self.first.cells
        ends = (cells.lower[rows].min(axis=0), cells.upper[rows].max(axis=0))
        boxes = [
            IntervalBox(
                layer.box.lower[rows].min(axis=0)[None], layer.box.upper[rows].max(axis=0)[None]
            )
            for layer in self.layers
        ]
        return Cells(cells.axes, ends[0][None], ends[1][None]), boxes

    @property
    def agrees(self) -> Flags:
        """The cells in which all counterparts provably get the same decision."""
        return np.asarray(self.highs < self.objective.level)

    def runtime_safe(self) -> Flags:
        """Return which of them provably get the same decision in the source's runtime, too."""
        network, arithmetic = self.network, self.network.arithmetic
        zeros = np.zeros_like(self.first.size)
        errors = error_bounds.first_layer(network.first, zeros, self.first.size, arithmetic).errors
        for known, (activation, layer) in zip(self.layers, network.steps, strict=True):
            sizes = Enclosure(known.box.size, errors)
            errors = activation.enclose(sizes, arithmetic).errors
            errors = error_bounds.affine(
                layer, Enclosure(known.relaxed.size, errors), arithmetic
            ).errors
        # 0 · inf where nothing is known: NaN, which is not safe.
        with np.errstate(invalid="ignore"):
            radius = (errors + self.source_error) @ np.abs(self.objective.directions).T
        return np.asarray(self.highs + 2 * radius.max(axis=1) < self.objective.level)

    def deciding_counterparts(self, row: int, person: Vector) -> Matrix | None:
        """Return a few counterparts whose decisions prove that of their cell; None if unknown.

        These are all counterparts if they are few. If no neuron can change its piece, scores are
        affine in the real-valued attributes, and people with the same decision form a convex set,
        unless the objective is the smallest of its directions. Then the corners are enough.
        """
        cells = self.first.cells
        is_small = cells.counts()[row] <= MAX_CORNERS
        if is_small or (self._is_affine(row) and not self.objective.least):
            return cells.corners(row, person, MAX_CORNERS)
        return None

    def _is_affine(self, row: int) -> bool:
        return all(
            bool(stable_pieces(activation, known.box)[1][row].all())
            for activation, known in zip(self.network.activations, self.layers, strict=True)
        )

    def depends(self, axes: Sequence[int]) -> Flags:
        """Return the cells in which a score may depend on these axes.

        A score depends on an axis only along a path of weights that are not zero, through neurons
        that are not constant in the cell.
        """
        reached = np.zeros(self.first.size.shape, dtype=bool)
        for axis in axes:
            reached |= self.first.terms.moves(self.first.cells, axis)
        for known, (activation, layer) in zip(self.layers, self.network.steps, strict=True):
            reached = (reached & ~constant_pieces(activation, known.box)) @ (layer.weight.T != 0)
        return np.asarray(reached.any(axis=1))

    def gains(self) -> Matrix:
        """Estimate how much each axis widens the bound of each cell, (cells, axes)."""
        with np.errstate(over="ignore", invalid="ignore"):  # a heuristic choice
            widths = self.first.spread() @ np.abs(self.rows)[:, :, None]
            return np.asarray(np.nan_to_num(widths[:, :, 0]))

    def axis_to_split(self, row: int) -> int | None:
        """Return the axis along which to split a cell; None if it cannot be split."""
        with np.errstate(over="ignore", invalid="ignore"):  # a heuristic choice
            gains = np.nan_to_num(self.first.spread()[row] @ np.abs(self.rows[row]))
        gains = np.where(np.isnan(self.first.cells.middles(row)), -1.0, gains)
        return int(np.argmax(gains)) if gains.max() >= 0 else None
