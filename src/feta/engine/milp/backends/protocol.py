"""Backend: what a solver is to FETA, and the few ways it can end."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import numpy as np

from feta.arrays import Counts, Vector
from feta.program import Places, Program


class Status(Enum):
    """How a solver ended; only a point found is worth anything, and that is replayed."""

    OPTIMAL = auto()
    INFEASIBLE = auto()
    STOPPED = auto()  # a limit: never a proof, with or without a point
    TOO_LARGE = auto()  # the licence allows less
    FAILED = auto()  # everything else, and every status a solver may add later


@dataclass(frozen=True, slots=True, eq=False)
class SolverResult:
    """How it ended, and the best point found if any."""

    status: Status
    point: Vector | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Points found, one a row, and how the search for more of them ended."""

    status: Status
    points: tuple[Vector, ...]


class Session(Protocol):
    """A solver's own model, kept from person to person as long as only numbers change."""

    def solve(self, program: Program, *, seconds: float) -> SolverResult:
        """Solve a program; what was forbidden before is allowed again."""
        ...

    def solve_again(self, forbidden: Places, *, seconds: float) -> SolverResult:
        """Solve the same program, where these binary columns may no longer all be 1 (Eq. NoGood)."""
        ...

    def pool(self, program: Program, selectors: Places, *, most: int, seconds: float) -> Pool:
        """Enumerate points that differ in the selectors; only where the backend `pools`."""
        ...


class Backend(Protocol):
    """A solver: how it is called and imported, and what it can do."""

    @property
    def name(self) -> str:
        """As its makers write it."""
        ...

    @property
    def package(self) -> str:
        """What is imported."""
        ...

    @property
    def extra(self) -> str | None:
        """What installs it; None comes with FETA."""
        ...

    @property
    def limits(self) -> str:
        """What its licence allows, in words."""
        ...

    @property
    def pools(self) -> bool:
        """Whether it enumerates several points in one search."""
        ...

    def session(self) -> Session:
        """Start anew."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Which columns, rows and entries of a program differ from another of the same pattern."""

    columns: Counts
    rows: Counts
    entries: Counts

    @classmethod
    def between(cls, old: Program, new: Program) -> "Changes":
        """Compare two programs of the same pattern."""
        boxes = ((old.columns, new.columns), (old.limits, new.limits))
        columns, rows = (
            np.flatnonzero((a.lower != b.lower) | (a.upper != b.upper)) for a, b in boxes
        )
        return cls(columns, rows, np.flatnonzero(old.entries != new.entries))
