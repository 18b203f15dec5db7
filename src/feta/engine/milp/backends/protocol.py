"""Interface of a solver, and the ways in which a search can end."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from feta.arrays import Vector
from feta.program import Indices, Program


class Status(Enum):
    """How a search ended; none is a proof. Points are replayed, and all else is ignored."""

    OPTIMAL = auto()
    INFEASIBLE = auto()
    STOPPED = auto()  # a limit was reached, with or without a point
    TOO_LARGE = auto()  # the license does not allow a program of this size
    FAILED = auto()  # everything else, including statuses that a solver may add later


@dataclass(frozen=True, slots=True, eq=False)
class SolverResult:
    """The status, and the best point if there is one."""

    status: Status
    point: Vector | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Several points, and how the search for more of them ended."""

    status: Status
    points: tuple[Vector, ...]


class Session(Protocol):
    """A model inside the solver, reused from person to person as long as only numbers change."""

    def solve(self, program: Program, *, seconds: float) -> SolverResult:
        """Solve a program; earlier cuts are removed."""
        ...

    def solve_again(self, forbidden: Indices, *, seconds: float) -> SolverResult:
        """Solve the same program after a cut: not all these binary columns are 1 (Eq. NoGood)."""
        ...

    def pool(self, program: Program, selectors: Indices, *, limit: int, seconds: float) -> Pool:
        """Enumerate points that differ in the selectors; only if the backend `pools`."""
        ...


class Backend(Protocol):
    """A solver and its capabilities."""

    @property
    def name(self) -> str:
        """The solver's name, as its authors write it."""
        ...

    @property
    def package(self) -> str:
        """The Python package to import."""
        ...

    @property
    def extra(self) -> str | None:
        """The extra that installs it; None if FETA itself depends on it."""
        ...

    @property
    def limits(self) -> str:
        """The limits of its license, in words."""
        ...

    @property
    def pools(self) -> bool:
        """Whether it enumerates several points in one search."""
        ...

    def session(self) -> Session:
        """Start a new session."""
        ...
