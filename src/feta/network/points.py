"""Points: people or counterparts whose scores can be had with an error bound, or exactly.

The two kinds differ only in how the first layer is put together; every decision uses one of them.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from feta.arrays import Counts, Matrix
from feta.network import bounded
from feta.network.bounded import Bounded
from feta.network.dyadic import Dyadic, stacked
from feta.network.exact import ExactNetwork, Line
from feta.network.network import Network
from feta.rounding import FLOAT64, Arithmetic
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
        first = bounded.first_layer(network.first, values, sizes, arithmetic)
        return bounded.scores(network, first, arithmetic)

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
            for place, axis in enumerate(self.lattice.axes)
        )

    def _axis_terms(self, place: int, digits: Counts) -> tuple[Matrix, Matrix]:
        axis = self.lattice.axes[place]
        return self.network.first.terms(axis.codes(digits), axis.columns)

    def terms(self, numbers: Counts) -> tuple[Matrix, Matrix]:
        """Add up what the assignments with these numbers contribute, and the terms' sizes."""
        width = self.network.first.outputs
        values, sizes = np.zeros((len(numbers), width)), np.zeros((len(numbers), width))
        for place, digits in enumerate(self.lattice.digits(numbers)):
            table = self.tables[place]
            if table is None:
                more, larger = self._axis_terms(place, digits)
            else:
                more, larger = table[0][digits], table[1][digits]
            values += more
            sizes += larger
        return values, sizes

    def counterparts(self, people: Matrix, numbers: Counts) -> "Counterparts":
        """Take the counterparts with these numbers of each of some people."""
        return Counterparts(self, people, numbers)


@dataclass(frozen=True, eq=False)
class Counterparts:
    """Counterparts with these numbers of the first person, then of the second, and so on.

    The people's own sensitive columns are never read: they may hold anything.
    """

    tabulated: Tabulated
    people: Matrix
    numbers: Counts

    def __len__(self) -> int:
        return len(self.people) * len(self.numbers)

    def split(self, chosen: Counts) -> tuple[Counts, Counts]:
        """Tell of each point whose counterpart it is, and its number on the lattice."""
        owners, places = np.divmod(chosen, len(self.numbers))
        return owners, self.numbers[places]

    @cached_property
    def _constants(self) -> tuple[Matrix, Matrix]:
        shared = self.tabulated.shared
        return self.tabulated.network.first.terms(self.people[:, shared], shared.tolist())

    def _first(self, arithmetic: Arithmetic, chosen: Counts | None) -> Bounded:
        values, sizes = self._constants
        network = self.tabulated.network
        if chosen is None:
            more, larger = self.tabulated.terms(self.numbers)
            values = (values[:, None, :] + more).reshape(-1, network.first.outputs)
            sizes = (sizes[:, None, :] + larger).reshape(-1, network.first.outputs)
        else:
            owners, numbers = self.split(chosen)
            more, larger = self.tabulated.terms(numbers)
            values, sizes = values[owners] + more, sizes[owners] + larger
        return bounded.first_layer(network.first, values, sizes, arithmetic)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Bounded:
        """Compute scores in float64, with a bound that also covers the given arithmetic."""
        first = self._first(arithmetic, chosen)
        return bounded.scores(self.tabulated.network, first, arithmetic)

    def trace(self, chosen: Counts) -> list[Bounded]:
        """Compute what goes into each activation in float64, with its own error bound, and scores."""
        first = self._first(FLOAT64, chosen)
        return list(bounded.forward(self.tabulated.network, first, FLOAT64))

    def exact_scores(self, chosen: Counts) -> Dyadic:
        """Compute scores exactly, (points, outputs)."""
        tabulated = self.tabulated
        owners, numbers = self.split(chosen)
        parts: list[tuple[Counts, Dyadic]] = []
        for owner in np.unique(owners):
            rows = np.flatnonzero(owners == owner)
            trace = self.trace(chosen[rows])
            line = Line(
                tabulated.exact, tabulated.lattice, self.people[owner], tabulated.exact_tables
            )
            parts.append((rows, line.scores(numbers[rows], trace)))
        return stacked(parts, (len(chosen), tabulated.network.outputs))
