"""Evaluation of people and counterparts, with an error bound or exactly.

Every decision uses one of these two kinds of points. They differ only in the first layer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.bounds.first_layer import Terms, tabulable
from feta.cells.cells import Cells
from feta.dyadic import Dyadic, join_rows
from feta.relation.protocol import Relation
from feta.rounding import FLOAT64, Arithmetic
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule
from feta.scorer.native import is_built
from feta.scorer.network import error_bounds
from feta.scorer.network.cell_bounds import NetworkCellBounds
from feta.scorer.network.exact import ExactNetwork, ExactRestriction
from feta.scorer.network.line_kernel import NetworkLine, fits_line_kernel
from feta.scorer.network.native_kernel import (
    LONGEST_AXIS,
    MAX_COUNTERPARTS,
    NetworkKernel,
    fits,
)
from feta.scorer.program_encoder import LpSession, ProgramBounds
from feta.scorer.protocol import Enclosure, Objective
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import Lattice

if TYPE_CHECKING:
    from feta.scorer.network.milp.encoder import NetworkEncoder
    from feta.scorer.network.network import Network

# Up to here, points are evaluated one by one in the kernel. Python groups more of them by
# activation pattern, which costs less per point and more per pattern.
FEW_POINTS = 256

# Up to here, the calls of numpy take longer than its sums save.
FEW_ROWS = 16

# Longer axes are not tabulated; their terms are computed for each block of assignments.
TABULATED_AXIS = 2**16


@dataclass(frozen=True, eq=False)
class Rows:
    """People, one per row."""

    exact: ExactNetwork
    people: Matrix

    def __len__(self) -> int:
        return len(self.people)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        network = self.exact.network
        people = self.people if chosen is None else self.people[chosen]
        if len(people) <= FEW_ROWS:
            few = self.exact.native_bounds.scores(people, arithmetic)
            if few is not None:
                return few
        values, sizes = network.first.terms(people, range(network.width))
        first = error_bounds.first_layer(network.first, values, sizes, arithmetic)
        return error_bounds.scores(network, first, arithmetic)

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Compute exact scores, (points, outputs)."""
        return self.exact.network.exact_scores(self.people[chosen])


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A network whose first layer is tabulated over the sensitive lattice, once per model."""

    exact: ExactNetwork
    relation: Relation
    exact_tables: dict[int, Dyadic] = field(default_factory=dict)

    @cached_property
    def lattice(self) -> Lattice:
        """All assignments; only finite axes have any."""
        return Lattice(self.relation.axes)

    @property
    def network(self) -> "Network":
        """The network."""
        return self.exact.network

    @cached_property
    def shared(self) -> Counts:
        """The columns that counterparts share."""
        shared = np.ones(self.network.width, dtype=bool)
        shared[[column for axis in self.relation.axes for column in axis.columns]] = False
        return np.flatnonzero(shared)

    def shared_terms(self, people: Matrix) -> tuple[Matrix, Matrix]:
        """Sum the first-layer terms of the shared columns, and their absolute values."""
        return self.network.first.terms(people[:, self.shared], self.shared.tolist())

    def axis_terms(self, index: int, coordinates: Counts) -> tuple[Matrix, Matrix]:
        """Return the terms of an axis at these coordinates, and their absolute values."""
        axis = self.relation.axes[index]
        return self.network.first.terms(axis.codes(coordinates), axis.columns)

    @cached_property
    def tables(self) -> tuple[tuple[Matrix, Matrix] | None, ...]:
        """The terms of each value and their sizes, (values, neurons), for each short axis."""
        return tuple(
            None
            if axis.real or len(axis) > TABULATED_AXIS
            else self.axis_terms(index, np.arange(len(axis)))
            for index, axis in enumerate(self.relation.axes)
        )

    def terms(self, assignment_ids: Counts) -> tuple[Matrix, Matrix]:
        """Return the sum of the assignments' terms, and the sum of their absolute values."""
        width = self.network.first.outputs
        values = np.zeros((len(assignment_ids), width))
        sizes = np.zeros((len(assignment_ids), width))
        for index, coordinates in enumerate(self.lattice.coordinates(assignment_ids)):
            table = self.tables[index]
            if table is None:
                axis_values, axis_sizes = self.axis_terms(index, coordinates)
            else:
                axis_values, axis_sizes = table[0][coordinates], table[1][coordinates]
            values += axis_values
            sizes += axis_sizes
        return values, sizes

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> "Counterparts":
        """Return the counterparts of each person with these assignments."""
        return Counterparts(self, people, assignment_ids)

    @cached_property
    def bounds_cells(self) -> bool:
        """Whether no activation is smooth, and axes that need a table are short enough."""
        return self.network.piecewise_linear and tabulable(self.network.first, self.relation.axes)

    @cached_property
    def _terms(self) -> Terms:
        return Terms.of(self.network.first, self.relation.axes)

    def over(
        self, person: Vector, cells: Cells, objective: Objective, *, source_error: float
    ) -> NetworkCellBounds:
        """Bound an objective over cells of a person's counterparts, rounded outward."""
        return NetworkCellBounds.of(
            self.network, self._terms, person, cells, objective, source_error=source_error
        )

    def influence(self, cells: Cells) -> Matrix:
        """Estimate how much each axis changes the scores in each cell, (cells, axes)."""
        weights = np.ones(self.network.outputs)
        for activation, layer in reversed(list(self.network.steps)):
            weights = (np.abs(layer.weight).T @ weights) * activation.steepest
        spreads = [
            term.spread(cells, index) @ weights for index, term in enumerate(self._terms.each)
        ]
        return np.stack(spreads, axis=1)

    def encoder(
        self, space: FeatureSpace, bounds: ProgramBounds, lp_session: Callable[[], LpSession]
    ) -> "NetworkEncoder":
        """Return the network as mixed-integer programs."""
        from feta.scorer.network.milp.encoder import NetworkEncoder  # noqa: PLC0415 - a cycle

        return NetworkEncoder(self.network, self._terms, space.magnitudes, bounds, lp_session)

    def fits_kernel(self, space: FeatureSpace) -> bool:
        """Return whether the kernel accepts the lengths of the axes and the sizes of values."""
        if not is_built() or not self.relation.finite:
            return False
        if self.lattice.size >= MAX_COUNTERPARTS:
            return False
        short = max(map(len, self.lattice.axes)) <= LONGEST_AXIS
        return short and fits(self.network, space.magnitudes)

    def kernel(
        self, space: FeatureSpace, rule: KernelRule, *, source_error: float, simd: bool
    ) -> NetworkKernel:
        """Return the network and a rule in the compiled kernel."""
        return NetworkKernel(self, space, rule, source_error=source_error, simd=simd)

    def fits_line(self, space: FeatureSpace) -> bool:
        """Return whether the kernel can follow the score along one real-valued axis."""
        fitting = is_built() and self.bounds_cells
        return fitting and fits_line_kernel(self.network, self.relation, space)

    def line(self, *, source_error: float, simd: bool) -> NetworkLine:
        """Return the network in the compiled kernel, with one real-valued axis."""
        return NetworkLine(self, source_error=source_error, simd=simd)


@dataclass(frozen=True, eq=False)
class Counterparts:
    """Counterparts with these assignments of the first person, then of the second, and so on.

    The sensitive columns of `people` are never read and may contain anything.
    """

    tabulated: Tabulated
    people: Matrix
    assignment_ids: Counts

    def __len__(self) -> int:
        return len(self.people) * len(self.assignment_ids)

    def split(self, chosen: Counts) -> tuple[Counts, Counts]:
        """Return the index of the person and the assignment of each point."""
        people, indices = np.divmod(chosen, len(self.assignment_ids))
        return people, self.assignment_ids[indices]

    @cached_property
    def _shared_terms(self) -> tuple[Matrix, Matrix]:
        return self.tabulated.shared_terms(self.people)

    def _first_layer(self, arithmetic: Arithmetic, chosen: Counts | None) -> Enclosure:
        values, sizes = self._shared_terms
        network = self.tabulated.network
        if chosen is None:
            more_values, more_sizes = self.tabulated.terms(self.assignment_ids)
            values = (values[:, None, :] + more_values).reshape(-1, network.first.outputs)
            sizes = (sizes[:, None, :] + more_sizes).reshape(-1, network.first.outputs)
        else:
            people, assignment_ids = self.split(chosen)
            more_values, more_sizes = self.tabulated.terms(assignment_ids)
            values, sizes = values[people] + more_values, sizes[people] + more_sizes
        return error_bounds.first_layer(network.first, values, sizes, arithmetic)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        first = self._first_layer(arithmetic, chosen)
        return error_bounds.scores(self.tabulated.network, first, arithmetic)

    def trace(self, chosen: Counts) -> list[Enclosure]:
        """Compute the inputs of each activation and the scores in float64, with error bounds."""
        first = self._first_layer(FLOAT64, chosen)
        return list(error_bounds.forward(self.tabulated.network, first, FLOAT64))

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Compute exact scores, (points, outputs)."""
        tabulated = self.tabulated
        people, assignment_ids = self.split(chosen)
        if not tabulated.network.piecewise_linear:
            moved = tabulated.lattice.moved(self.people[people], assignment_ids)
            return tabulated.network.exact_scores(moved)
        if len(chosen) <= FEW_POINTS:
            moved = tabulated.lattice.moved(self.people[people], assignment_ids)
            scores = tabulated.exact.native.scores(moved)
            if scores is not None:
                return ExactScores(scores)
        parts: list[tuple[Counts, Dyadic]] = []
        for person in np.unique(people):
            rows = np.flatnonzero(people == person)
            trace = self.trace(chosen[rows])
            restriction = ExactRestriction(
                tabulated.exact, tabulated.lattice, self.people[person], tabulated.exact_tables
            )
            parts.append((rows, restriction.scores(assignment_ids[rows], trace)))
        return ExactScores(join_rows(parts, (len(chosen), tabulated.network.outputs)))
