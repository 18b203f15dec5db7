"""Mixed-integer linear programs in plain arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Flags, Matrix, Vector
from feta.interval_box import IntervalBox

# Indices of rows, columns or entries.
Indices = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Minimize cost · x with x in `columns`, A·x in `limits`, and x integer where `integral`.

    A is given by its entries, row by row. `slack` bounds the distance by which the network itself
    may violate a row, because coefficients are rounded. Solvers do not need it, but proofs from
    dual solutions do.
    """

    cost: Vector
    columns: IntervalBox
    integral: Flags
    entry_rows: Indices  # ascending
    entry_columns: Indices
    entries: Vector
    limits: IntervalBox  # of the rows
    slack: Vector

    @property
    def starts(self) -> Indices:
        """The index of each row's first entry, then the number of entries."""
        return np.searchsorted(self.entry_rows, np.arange(len(self.slack) + 1)).astype(np.int32)

    def has_pattern_of(self, other: "Program") -> bool:
        """Return whether only numbers differ, so that a solver can update its model."""
        shapes = self.cost.shape == other.cost.shape and self.slack.shape == other.slack.shape
        return (
            shapes
            and np.array_equal(self.integral, other.integral)
            and np.array_equal(self.entry_rows, other.entry_rows)
            and np.array_equal(self.entry_columns, other.entry_columns)
        )


class ProgramBuilder:
    """Columns and rows collected for one program."""

    def __init__(self) -> None:
        self._lower: list[Vector] = []
        self._upper: list[Vector] = []
        self._integral: list[Flags] = []
        self._entries: list[tuple[Indices, Indices, Vector]] = []
        self._limits: list[tuple[Vector, Vector, Vector]] = []
        self.n_columns = 0
        self.n_rows = 0

    def columns(self, box: IntervalBox, *, integral: bool = False) -> Indices:
        """Add one column per interval; `integral` makes them integer. Return their indices."""
        start, self.n_columns = self.n_columns, self.n_columns + len(box.lower)
        self._lower.append(box.lower)
        self._upper.append(box.upper)
        self._integral.append(np.full(len(box.lower), integral))
        return np.arange(start, self.n_columns, dtype=np.int32)

    def rows(
        self,
        terms: list[tuple[Indices, Matrix | Vector | float]],
        *,
        lower: Vector | float = -np.inf,
        upper: Vector | float = np.inf,
        slack: Vector | float = 0.0,
        n_rows: int,
    ) -> None:
        """Add rows. A matrix weights all columns in each row, a vector or number one per row.

        Zeros of a matrix are omitted, those of a vector are not: vectors change from person to
        person, and the sparsity pattern must not.
        """
        start, self.n_rows = self.n_rows, self.n_rows + n_rows
        for columns, weights in terms:
            if isinstance(weights, np.ndarray) and weights.ndim == 2:  # noqa: PLR2004 - a matrix
                rows, indices = np.nonzero(weights)
                entry = (rows + start, columns[indices], weights[rows, indices])
            else:
                each = np.arange(start, start + n_rows)
                entry = (each, columns, np.broadcast_to(np.asarray(weights, float), n_rows))
            self._entries.append((entry[0].astype(np.int32), entry[1], entry[2]))
        low, high, slacks = (
            np.broadcast_to(np.asarray(values, float), n_rows) for values in (lower, upper, slack)
        )
        self._limits.append((low, high, slacks))

    def program(self, cost: Vector | None = None) -> Program:
        """Return the program, with cost 0 by default."""
        rows, indices, entries = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        order = np.argsort(rows, kind="stable")
        low, high, slack = (np.concatenate(part) for part in zip(*self._limits, strict=True))
        box = IntervalBox(np.concatenate(self._lower), np.concatenate(self._upper))
        return Program(
            np.zeros(self.n_columns) if cost is None else cost,
            box,
            np.concatenate(self._integral),
            rows[order],
            indices[order],
            entries[order],
            IntervalBox(low, high),
            slack,
        )
