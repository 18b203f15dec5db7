"""Points: people or counterparts whose scores can be had with an error bound, or exactly.

The two kinds differ only in how the first layer is put together; every decision uses one of them.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from feta.arrays import Counts, Matrix
from feta.dyadic import Dyadic, stacked
from feta.rounding import FLOAT64, Arithmetic
from feta.scorer.network import error_bounds
from feta.scorer.network.error_bounds import Bounded
from feta.scorer.network.exact import ExactNetwork, ExactRestriction
from feta.scorer.network.network import Network
from feta.space.lattice import Lattice

# Axes longer than this are not tabulated but multiplied out, block by block.
TABULATED_AXIS = 2**16


class Points(Protocol):
    """Some points of a network's domain, counted from 0."""

    def __len__(self) -> int: ...

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Bounded:
        """Compute scores in float64, with a bound that also covers the given arithmetic."""
        ...

    def exact_scores(self, chosen: Counts) -> Dyadic:
        """Compute scores exactly, (points, outputs)."""
        ...


@dataclass(frozen=True, eq=False)
class Rows:
    """People as they are, one a row."""

    exact: ExactNetwork
    people: Matrix

    def __len__(self) -> int:
        return len(self.people)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Bounded:
        """Compute scores in float64, with a bound that also covers the given arithmetic."""
        network = self.exact.network
        people = self.people if chosen is None else self.people[chosen]
        values, sizes = network.first.terms(people, range(network.width))
        first = error_bounds.first_layer(network.first, values, sizes, arithmetic)
        return error_bounds.scores(network, first, arithmetic)

    def exact_scores(self, chosen: Counts) -> Dyadic:
        """Compute scores exactly, (points, outputs)."""
        return self.exact.scores(self.people[chosen])


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A network whose first layer is tabulated over the sensitive lattice, once a model."""

    exact: ExactNetwork
    lattice: Lattice
    exact_tables: dict[int, Dyadic] = field(default_factory=dict)

    @property
    def network(self) -> Network:
        """The network itself."""
        return self.exact.network

    @cached_property
    def shared(self) -> Counts:
        """The columns that counterparts share."""
        shared = np.ones(self.network.width, dtype=bool)
        shared[list(self.lattice.columns)] = False
        return np.flatnonzero(shared)

    @cached_property
    def tables(self) -> tuple[tuple[Matrix, Matrix] | None, ...]:
        """For each short axis, each value's terms and their sizes, (values, neurons)."""
        return tuple(
            self.network.first.terms(axis.every_code, axis.columns)
            if len(axis) <= TABULATED_AXIS
            else None
            for index, axis in enumerate(self.lattice.axes)
        )

    def _axis_terms(self, index: int, coordinates: Counts) -> tuple[Matrix, Matrix]:
        axis = self.lattice.axes[index]
        return self.network.first.terms(axis.codes(coordinates), axis.columns)

    def terms(self, assignment_ids: Counts) -> tuple[Matrix, Matrix]:
        """Add up what the assignments with these numbers contribute, and the terms' sizes."""
        width = self.network.first.outputs
        values, sizes = (
            np.zeros((len(assignment_ids), width)),
            np.zeros((len(assignment_ids), width)),
        )
        for index, coordinates in enumerate(self.lattice.coordinates(assignment_ids)):
            table = self.tables[index]
            if table is None:
                more, larger = self._axis_terms(index, coordinates)
            else:
                more, larger = table[0][coordinates], table[1][coordinates]
            values += more
            sizes += larger
        return values, sizes

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> "Counterparts":
        """Take the counterparts with these numbers of each of some people."""
        return Counterparts(self, people, assignment_ids)


@dataclass(frozen=True, eq=False)
class Counterparts:
    """Counterparts with these numbers of the first person, then of the second, and so on.

    The people's own sensitive columns are never read: they may hold anything.
    """

    tabulated: Tabulated
    people: Matrix
    assignment_ids: Counts

    def __len__(self) -> int:
        return len(self.people) * len(self.assignment_ids)

    def split(self, chosen: Counts) -> tuple[Counts, Counts]:
        """Tell of each point whose counterpart it is, and its number on the lattice."""
        owners, indices = np.divmod(chosen, len(self.assignment_ids))
        return owners, self.assignment_ids[indices]

    @cached_property
    def _constants(self) -> tuple[Matrix, Matrix]:
        shared = self.tabulated.shared
        return self.tabulated.network.first.terms(self.people[:, shared], shared.tolist())

    def _first(self, arithmetic: Arithmetic, chosen: Counts | None) -> Bounded:
        values, sizes = self._constants
        network = self.tabulated.network
        if chosen is None:
            more, larger = self.tabulated.terms(self.assignment_ids)
            values = (values[:, None, :] + more).reshape(-1, network.first.outputs)
            sizes = (sizes[:, None, :] + larger).reshape(-1, network.first.outputs)
        else:
            owners, assignment_ids = self.split(chosen)
            more, larger = self.tabulated.terms(assignment_ids)
            values, sizes = values[owners] + more, sizes[owners] + larger
        return error_bounds.first_layer(network.first, values, sizes, arithmetic)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Bounded:
        """Compute scores in float64, with a bound that also covers the given arithmetic."""
        first = self._first(arithmetic, chosen)
        return error_bounds.scores(self.tabulated.network, first, arithmetic)

    def trace(self, chosen: Counts) -> list[Bounded]:
        """Compute what goes into each activation in float64, with its own error bound, and scores."""
        first = self._first(FLOAT64, chosen)
        return list(error_bounds.forward(self.tabulated.network, first, FLOAT64))

    def exact_scores(self, chosen: Counts) -> Dyadic:
        """Compute scores exactly, (points, outputs)."""
        tabulated = self.tabulated
        owners, assignment_ids = self.split(chosen)
        parts: list[tuple[Counts, Dyadic]] = []
        for owner in np.unique(owners):
            rows = np.flatnonzero(owners == owner)
            trace = self.trace(chosen[rows])
            line = ExactRestriction(
                tabulated.exact, tabulated.lattice, self.people[owner], tabulated.exact_tables
            )
            parts.append((rows, line.scores(assignment_ids[rows], trace)))
        return stacked(parts, (len(chosen), tabulated.network.outputs))
