"""The protocol of encoders: scorers that write mixed-integer programs of themselves."""

from typing import Literal, Protocol

from feta.arrays import Vector
from feta.program import Indices, Program
from feta.scorer.cell_bounds import CellBounds

# How the neurons are bounded before a program is written. "interval" and "linear" bound all
# counterparts as one cell. "parts" bounds many cells linearly and omits those that the bounds
# decide. "lp" adds two linear programs per neuron.
ProgramBounds = Literal["interval", "linear", "parts", "lp"]


class LpSession(Protocol):
    """A solver of linear programs."""

    def solve_lp(self, program: Program, cost: Vector, *, keep: bool) -> Vector:
        """Minimize cost · x over a program without integers; return the duals of its rows."""
        ...


class EncodedProgram(Protocol):
    """A program for one person, and the columns that describe the counterpart."""

    @property
    def program(self) -> Program:
        """The program."""
        ...

    @property
    def selectors(self) -> Indices:
        """All selectors; only if every value of every attribute has one."""
        ...

    def indices(self, point: Vector | None) -> Vector | None:
        """Return the coordinate of a point on each axis; None for an invalid point."""
        ...

    def chosen(self, indices: Vector) -> Indices:
        """Return the selectors of these coordinates."""
        ...


class ProgramEncoder(Protocol):
    """A scorer that writes a program for one person."""

    def encode(
        self, bounds: CellBounds, person: Vector, *, maximize: bool, listed: bool
    ) -> EncodedProgram:
        """Write the program over the cells that the bounds leave undecided (Eq. ce).

        `maximize` selects the worst counterpart (Eq. vio_obj). `listed` gives every value a
        selector.
        """
        ...
