"""The protocol of bounds on an objective over cells of one person's counterparts."""

from typing import Protocol

from feta.arrays import Flags, Matrix, Vector
from feta.cells.cells import Cells
from feta.scorer.protocol import Objective


class CellBounds(Protocol):
    """Upper bounds on an objective, rounded outward, one per cell."""

    @property
    def cells(self) -> Cells:
        """The cells."""
        ...

    @property
    def objective(self) -> Objective:
        """What is bounded."""
        ...

    @property
    def highs(self) -> Vector:
        """The upper bounds."""
        ...

    @property
    def agrees(self) -> Flags:
        """The cells in which all counterparts provably get the same decision."""
        ...

    def beyond(self, level: float) -> "CellBounds":
        """Return the same bounds for another level of the objective."""
        ...

    def runtime_safe(self) -> Flags:
        """Return which of them provably get the same decision in the source's runtime, too."""
        ...

    def maximizers(self, person: Vector) -> Matrix:
        """Return a counterpart in each cell whose objective is probably large."""
        ...

    def deciding_counterparts(self, row: int, person: Vector) -> Matrix | None:
        """Return a few counterparts whose decisions prove that of their cell; None if unknown."""
        ...

    def axis_to_split(self, row: int) -> int | None:
        """Return the axis along which to split a cell; None if it cannot be split."""
        ...
