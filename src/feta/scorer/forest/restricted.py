"""A tree ensemble on people's counterparts, if every assignment gives one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.cells.cells import Cells
from feta.relation.protocol import Relation
from feta.rounding import Arithmetic
from feta.scorer.cell_bounds import CellBounds
from feta.scorer.exact_scores import ExactScores
from feta.scorer.forest.axis_groups import SensitiveNodes
from feta.scorer.forest.evaluation import ForestRows
from feta.scorer.forest.kernel import MAX_AXES, MAX_CELLS, MAX_COUNTERPARTS, ForestKernel, is_built
from feta.scorer.forest.units import Units
from feta.scorer.kernel import KernelRule, LineKernel
from feta.scorer.program_encoder import LpSession, ProgramBounds, ProgramEncoder
from feta.scorer.protocol import Enclosure, Objective
from feta.scorer.restricted_rows import RestrictedRows
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import Lattice

if TYPE_CHECKING:
    from feta.scorer.forest.forest import Forest


@dataclass(frozen=True, eq=False)
class RestrictedForest:
    """An ensemble whose sensitive nodes are tabulated over the axes, once per model."""

    forest: "Forest"
    relation: Relation

    @cached_property
    def lattice(self) -> Lattice:
        """All assignments."""
        return Lattice(self.relation.axes)

    @cached_property
    def units(self) -> Units:
        """The scores as integers."""
        return Units(self.forest)

    @cached_property
    def sensitive(self) -> SensitiveNodes | None:
        """The nodes that read sensitive attributes; None if the kernel cannot represent them."""
        return SensitiveNodes.of(self.forest.trees, self.relation.axes, self.forest.width)

    @cached_property
    def _rows(self) -> RestrictedRows:
        return RestrictedRows(self.forest, self.relation)

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> "ForestCounterparts":
        """Return the counterparts of each person with these assignments."""
        return ForestCounterparts(self, people, assignment_ids)

    @property
    def bounds_cells(self) -> bool:
        """False: an ensemble is only evaluated."""
        return False

    def over(
        self, person: Vector, cells: Cells, objective: Objective, *, source_error: float
    ) -> CellBounds:
        """Raise: an ensemble is only evaluated."""
        return self._rows.over(person, cells, objective, source_error=source_error)

    def influence(self, cells: Cells) -> Matrix:
        """Raise: an ensemble is only evaluated."""
        return self._rows.influence(cells)

    def encoder(
        self, space: FeatureSpace, bounds: ProgramBounds, lp_session: Callable[[], LpSession]
    ) -> ProgramEncoder:
        """Raise: an ensemble is only evaluated."""
        return self._rows.encoder(space, bounds, lp_session)

    def fits_kernel(self, space: FeatureSpace) -> bool:
        """Return whether the kernel's table and integers are large enough."""
        del space
        return self._fits

    @cached_property
    def _fits(self) -> bool:
        axes = self.relation.axes
        if not is_built() or len(axes) > MAX_AXES or self.lattice.size >= MAX_COUNTERPARTS:
            return False
        sensitive = self.sensitive
        if sensitive is None:
            return False
        cells = prod(len(groups.sizes) for groups in sensitive.groups) * self.forest.outputs
        return cells <= MAX_CELLS and self.units.bits > 0

    def kernel(
        self, space: FeatureSpace, rule: KernelRule, *, source_error: float, simd: bool
    ) -> ForestKernel:
        """Return the ensemble and a rule in the compiled kernel."""
        del simd
        return ForestKernel(self, space, rule, source_error=source_error)

    def fits_line(self, space: FeatureSpace) -> bool:
        """Return False: real-valued attributes are not searched."""
        del space
        return False

    def line(self, *, source_error: float, simd: bool) -> LineKernel:
        """Raise: real-valued attributes are not searched."""
        return self._rows.line(source_error=source_error, simd=simd)


@dataclass(frozen=True, eq=False)
class ForestCounterparts:
    """Counterparts with these assignments of the first person, then of the second, and so on."""

    restricted: RestrictedForest
    people: Matrix
    assignment_ids: Counts

    def __len__(self) -> int:
        return len(self.people) * len(self.assignment_ids)

    @cached_property
    def _points(self) -> ForestRows:
        rows = np.repeat(self.people, len(self.assignment_ids), axis=0)
        ids = np.tile(self.assignment_ids, len(self.people))
        return ForestRows(self.restricted.forest, self.restricted.lattice.moved(rows, ids))

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        return self._points.scores(arithmetic, chosen)

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Compute exact scores, (points, outputs)."""
        return self._points.exact_scores(chosen)
