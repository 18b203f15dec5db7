"""Program: a mixed-integer linear program in plain arrays, and the builder that writes it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Flags, Matrix, Vector
from feta.interval_box import IntervalBox

Places = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Minimise cost · x with x in its box, some of it whole, and A·x in the rows' limits.

    A is told by entries, row after row. `slack` says how far the network itself may miss a row's
    limits, since a coefficient was rounded; solvers need not know, proofs from duals do.
    """

    cost: Vector
    columns: IntervalBox
    whole: Flags
    entry_rows: Places  # ascending
    entry_columns: Places
    entries: Vector
    limits: IntervalBox  # of the rows
    slack: Vector

    @property
    def starts(self) -> Places:
        """Where each row's entries begin; last, how many there are."""
        return np.searchsorted(self.entry_rows, np.arange(len(self.slack) + 1)).astype(np.int32)

    def has_pattern_of(self, other: "Program") -> bool:
        """Say whether only numbers differ, so that a solver's model can be kept."""
        shapes = self.cost.shape == other.cost.shape and self.slack.shape == other.slack.shape
        return (
            shapes
            and np.array_equal(self.whole, other.whole)
            and np.array_equal(self.entry_rows, other.entry_rows)
            and np.array_equal(self.entry_columns, other.entry_columns)
        )


class ProgramBuilder:
    """Columns and rows as they come; it lives no longer than the writing of one program."""

    def __init__(self) -> None:
        self._lower: list[Vector] = []
        self._upper: list[Vector] = []
        self._whole: list[Flags] = []
        self._entries: list[tuple[Places, Places, Vector]] = []
        self._limits: list[tuple[Vector, Vector, Vector]] = []
        self.n_columns = 0
        self.n_rows = 0

    def columns(self, box: IntervalBox, *, whole: bool = False) -> Places:
        """Add columns, one a range."""
        start, self.n_columns = self.n_columns, self.n_columns + len(box.lower)
        self._lower.append(box.lower)
        self._upper.append(box.upper)
        self._whole.append(np.full(len(box.lower), whole))
        return np.arange(start, self.n_columns, dtype=np.int32)

    def rows(
        self,
        terms: list[tuple[Places, Matrix | Vector | float]],
        *,
        lower: Vector | float = -np.inf,
        upper: Vector | float = np.inf,
        slack: Vector | float = 0.0,
        n_rows: int,
    ) -> None:
        """Add rows; a matrix weighs all columns in each row, a vector or number one column a row.

        Zeros of a matrix are left out, those of a vector are not: vectors change from person to
        person, and the pattern must not.
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
        low, high, off = (
            np.broadcast_to(np.asarray(one, float), n_rows) for one in (lower, upper, slack)
        )
        self._limits.append((low, high, off))

    def program(self, cost: Vector | None = None) -> Program:
        """Put it all together."""
        rows, indices, entries = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        order = np.argsort(rows, kind="stable")
        low, high, slack = (np.concatenate(part) for part in zip(*self._limits, strict=True))
        box = IntervalBox(np.concatenate(self._lower), np.concatenate(self._upper))
        return Program(
            np.zeros(self.n_columns) if cost is None else cost,
            box,
            np.concatenate(self._whole),
            rows[order],
            indices[order],
            entries[order],
            IntervalBox(low, high),
            slack,
        )
