"""Exact scores of a piecewise-linear network, from its stored numbers alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Counts, Matrix
from feta.checker.integers import exact
from feta.dyadic import Dyadic
from feta.errors import CertificateError
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import StoredScorer

# The name of these stored numbers, and how many arrays a table and a layer have.
PIECEWISE_LINEAR = "piecewise-linear network"
TABLE_ARRAYS = 3
LAYER_ARRAYS = 5


@dataclass(frozen=True, slots=True, eq=False)
class StoredLayer:
    """A piecewise-linear function of each neuron, then weight · values + bias.

    Piece i of a neuron goes from break i − 1 (inclusive) to break i.
    """

    breaks: Dyadic  # (pieces − 1, neurons), ascending
    slopes: Dyadic  # (pieces, neurons)
    intercepts: Dyadic
    weight: Dyadic  # (outputs, neurons)
    bias: Dyadic

    @classmethod
    def of(cls, arrays: dict[str, Array]) -> "StoredLayer":
        """Convert the arrays of a layer."""
        neurons = arrays["weight"].shape[1]
        pieces = {
            name: exact(np.broadcast_to(arrays[name], (len(arrays[name]), neurons)))
            for name in ("breaks", "slopes", "intercepts")
        }
        return cls(weight=exact(arrays["weight"]), bias=exact(arrays["bias"]), **pieces)

    def __post_init__(self) -> None:
        ascending = (self.breaks[1:] - self.breaks[:-1]).numerators > 0
        jumps = self._pieces_at_breaks(0) - self._pieces_at_breaks(1)
        if not ascending.all() or jumps.numerators.any():
            raise CertificateError(
                "invalid activation in what is re-checked: got breaks that do not ascend, or "
                "pieces that do not meet at a break; expected a continuous function"
            )

    def _pieces_at_breaks(self, first: int) -> Dyadic:
        """Evaluate the pieces below all breaks (first = 0), or above them, at these breaks."""
        chosen = slice(first, first + len(self.breaks.numerators))
        return self.slopes[chosen] * self.breaks + self.intercepts[chosen]

    def activate(self, values: Dyadic) -> Dyadic:
        """Apply the function of each neuron, (points, neurons)."""
        pieces = np.zeros(values.numerators.shape, dtype=np.int64)
        for index in range(len(self.breaks.numerators)):
            pieces += values.compare(self.breaks[index]) >= 0
        chosen = (pieces, np.arange(len(self.slopes.numerators.T)))
        return values * self.slopes[chosen] + self.intercepts[chosen]


@dataclass(frozen=True, slots=True, eq=False)
class StoredTable:
    """The first-layer terms of a column: one row per value."""

    column: int
    places: dict[float, int]
    rows: Dyadic

    @classmethod
    def of(cls, arrays: dict[str, Array]) -> "StoredTable":
        """Convert the arrays of a table."""
        places = {number: index for index, number in enumerate(arrays["numbers"].tolist())}
        return cls(int(arrays["column"]), places, exact(arrays["rows"]))

    def look_up(self, numbers: Matrix) -> Dyadic:
        """Return the row of each number."""
        unknown = [number for number in numbers.tolist() if number not in self.places]
        if unknown:
            raise CertificateError(
                f"unknown value in column {self.column}: got {unknown[0]!r}; expected a value of "
                "the stored table"
            )
        return self.rows[[self.places[number] for number in numbers.tolist()]]


@dataclass(frozen=True, slots=True, eq=False)
class StoredNetwork:
    """A first layer of slopes and tables, then layers."""

    bias: Dyadic
    slopes: Dyadic  # (neurons, columns)
    tables: tuple[StoredTable, ...]
    layers: tuple[StoredLayer, ...]

    @classmethod
    def of(cls, stored: StoredScorer) -> "StoredNetwork":
        """Convert the arrays that `Network.stored` describes."""
        tables = tuple(StoredTable.of(part) for part in parts_of(stored, "table", first=0))
        layers = tuple(StoredLayer.of(part) for part in parts_of(stored, "layer", first=1))
        expected = 2 + TABLE_ARRAYS * len(tables) + LAYER_ARRAYS * len(layers)
        if len(stored.arrays) != expected:
            raise CertificateError(
                f"unknown arrays in what is re-checked: got {sorted(stored.arrays)}; expected "
                f"{len(tables)} table(s) and {len(layers)} layer(s), numbered without gaps"
            )
        return cls(exact(stored.arrays["bias"]), exact(stored.arrays["slopes"]), tables, layers)

    @property
    def tabled(self) -> frozenset[int]:
        """The columns with a table."""
        return frozenset(table.column for table in self.tables)

    def terms(self, codes: Matrix, columns: Sequence[int] | Counts) -> Dyadic:
        """Return the sum of the first-layer terms of some columns, (points, neurons)."""
        chosen = list(columns)
        values = exact(codes) @ self.slopes[:, chosen].mT
        for table in self.tables:
            if table.column in chosen:
                values = values + table.look_up(codes[:, chosen.index(table.column)])
        return values

    def scores(self, people: Matrix) -> ExactScores:
        """Compute the scores of one or more people, (people, outputs)."""
        # Most columns are the same for all counterparts; their terms are added once.
        varies = (people != people[0]).any(axis=0)
        shared, others = np.flatnonzero(~varies), np.flatnonzero(varies)
        values = self.terms(people[:1, shared], shared) + self.bias
        values = self.terms(people[:, others], others) + values
        for layer in self.layers:
            values = layer.activate(values) @ layer.weight.mT + layer.bias
        return ExactScores(values)


def parts_of(stored: StoredScorer, name: str, *, first: int) -> list[dict[str, Array]]:
    """Return the arrays of all tables or layers, without their prefixes."""
    parts: list[dict[str, Array]] = []
    index = first
    while True:
        prefix = f"{name}{index}."
        part = {
            key.removeprefix(prefix): array
            for key, array in stored.arrays.items()
            if key.startswith(prefix)
        }
        if not part:
            return parts
        parts.append(part)
        index += 1
