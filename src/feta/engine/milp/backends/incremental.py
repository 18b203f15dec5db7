"""Sessions that keep the solver's model and update only the numbers that changed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Counts, Vector
from feta.engine.milp.backends.protocol import SolverResult
from feta.interval_box import IntervalBox
from feta.program import Indices, Program


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """The columns, rows and entries in which two programs of the same pattern differ."""

    columns: Counts
    rows: Counts
    entries: Counts

    @classmethod
    def between(cls, old: Program, new: Program) -> "Changes":
        """Compare two programs of the same pattern."""
        columns = _differing(old.columns, new.columns)
        rows = _differing(old.limits, new.limits)
        return cls(columns, rows, np.flatnonzero(old.entries != new.entries))


def column_kinds(program: Program) -> list[str]:
    """Return "I" for integer columns and "C" for continuous ones, as Gurobi and SCIP expect."""
    return ["I" if integral else "C" for integral in program.integral]


def _differing(old: IntervalBox, new: IntervalBox) -> Counts:
    return np.flatnonzero((old.lower != new.lower) | (old.upper != new.upper))


class IncrementalSession(ABC):
    """A solver's model of the latest program, its columns, rows and cuts.

    These objects belong to the solver's package, which has no types.
    """

    def __init__(self) -> None:
        self._model: Any = None
        self._program: Program | None = None
        self._columns: list[Any] = []
        self._rows: list[Any] = []
        self._cuts: list[Any] = []

    def solve(self, program: Program, *, seconds: float) -> SolverResult:
        """Solve a program; earlier cuts are removed."""
        self._load(program)
        return self._run(seconds)

    def solve_again(self, forbidden: Indices, *, seconds: float) -> SolverResult:
        """Solve the same program after a cut: not all these binary columns are 1 (Eq. NoGood)."""
        self._reopen()
        columns = [self._columns[int(column)] for column in forbidden]
        n_columns = len(columns)
        cut = self._add_row(np.ones(n_columns), columns, lower=-np.inf, upper=n_columns - 1.0)
        self._cuts.append(cut)
        return self._run(seconds)

    def _load(self, program: Program) -> None:
        """Make the solver's model that of a program, from the previous one if possible."""
        if self._program is None or not program.has_pattern_of(self._program):
            self._build(program)
        else:
            self._reopen()
            self._remove_cuts()
            self._cuts = []
            self._update(self._program, program)
        self._program = program

    def _build(self, program: Program) -> None:
        self._cuts = []
        self._model = self._new_model()
        self._columns = self._add_columns(program)
        self._rows = []
        starts, limits = program.starts, program.limits
        for row in range(len(program.slack)):
            entries = slice(starts[row], starts[row + 1])
            columns = [self._columns[index] for index in program.entry_columns[entries]]
            low, high = limits.lower[row], limits.upper[row]
            added = self._add_row(program.entries[entries], columns, lower=low, upper=high)
            self._rows.append(added)

    def _update(self, old: Program, new: Program) -> None:
        changes = Changes.between(old, new)
        columns = [self._columns[index] for index in changes.columns]
        self._set_bounds(
            columns, new.columns.lower[changes.columns], new.columns.upper[changes.columns]
        )
        rows = [self._rows[index] for index in changes.rows]
        self._set_limits(rows, new.limits.lower[changes.rows], new.limits.upper[changes.rows])
        for entry in changes.entries:
            row, column = self._rows[new.entry_rows[entry]], self._columns[new.entry_columns[entry]]
            self._set_entry(row, column, new.entries[entry])
        self._set_cost(old.cost, new.cost)

    @abstractmethod
    def _new_model(self) -> Any:  # noqa: ANN401 - untyped package
        """Return an empty model."""

    @abstractmethod
    def _add_columns(self, program: Program) -> list[Any]:
        """Add all columns with their bounds, costs and kinds."""

    @abstractmethod
    def _add_row(
        self, entries: Vector, columns: Sequence[Any], *, lower: float, upper: float
    ) -> Any:  # noqa: ANN401 - untyped package
        """Add a row with its limits."""

    @abstractmethod
    def _reopen(self) -> None:
        """Make a solved model editable."""

    @abstractmethod
    def _remove_cuts(self) -> None:
        """Remove the cuts from the model."""

    @abstractmethod
    def _set_bounds(self, columns: Sequence[Any], lower: Vector, upper: Vector) -> None:
        """Change the bounds of columns."""

    @abstractmethod
    def _set_limits(self, rows: Sequence[Any], lower: Vector, upper: Vector) -> None:
        """Change the limits of rows."""

    @abstractmethod
    def _set_entry(self, row: Any, column: Any, entry: float) -> None:  # noqa: ANN401 - untyped package
        """Change one entry of the matrix."""

    @abstractmethod
    def _set_cost(self, old: Vector, new: Vector) -> None:
        """Change the cost of all columns."""

    @abstractmethod
    def _run(self, seconds: float) -> SolverResult:
        """Run the solver on the model."""
