"""What bounds need to know of a network: plain arrays of its layers."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from feta.arrays import Matrix, Vector


class BoundedActivation(Protocol):
    """A continuous piecewise-linear function of each neuron: slope · z + intercept on a piece."""

    @property
    def breaks(self) -> Matrix:
        """Where pieces end, (pieces − 1, neurons or 1)."""
        ...

    @property
    def slopes(self) -> Matrix:
        """The slope of each piece, (pieces, neurons or 1)."""
        ...

    @property
    def intercepts(self) -> Matrix:
        """The intercept of each piece, (pieces, neurons or 1)."""
        ...

    @property
    def steepest(self) -> Vector:
        """The largest absolute slope of each neuron."""
        ...

    @property
    def lift(self) -> Vector:
        """The largest absolute intercept of each neuron."""
        ...

    @property
    def rounds(self) -> bool:
        """Whether floating-point evaluation rounds."""
        ...

    def __call__(self, values: Matrix) -> Matrix:
        """Compute the function in float64."""
        ...


class BoundedAffine(Protocol):
    """An affine layer W·a + b."""

    @property
    def weight(self) -> Matrix:
        """W, (out, in)."""
        ...

    @property
    def bias(self) -> Vector:
        """The bias b."""
        ...


class BoundedColumns(Protocol):
    """A first layer: a bias and one term per column."""

    @property
    def bias(self) -> Vector:
        """The bias."""
        ...

    @property
    def slopes(self) -> Matrix:
        """The slopes, (neurons, columns); zero where a column has a table."""
        ...

    @property
    def tabled(self) -> tuple[int, ...]:
        """The columns with a table."""
        ...

    @property
    def width(self) -> int:
        """The number of columns."""
        ...

    def terms(self, codes: Matrix, columns: Sequence[int]) -> tuple[Matrix, Matrix]:
        """Sum the terms of some columns, and their absolute values, for each row."""
        ...


class BoundedLayers(Protocol):
    """The layers of a network after the first one."""

    @property
    def activations(self) -> Sequence[BoundedActivation]:
        """The activation before each layer."""
        ...

    @property
    def layers(self) -> Sequence[BoundedAffine]:
        """The affine layers."""
        ...

    @property
    def steps(self) -> Iterator[tuple[BoundedActivation, BoundedAffine]]:
        """Each layer with the activation before it."""
        ...


class BoundedNetwork(BoundedLayers, Protocol):
    """All layers of a network, the first one included."""

    @property
    def first(self) -> BoundedColumns:
        """The first layer."""
        ...
