"""Layers of a network: a first layer of slopes and tables, and affine layers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from feta.arrays import Counts, Matrix, Vector, frozen
from feta.errors import DomainError, NetworkError
from feta.rounding import FLOOR


@dataclass(frozen=True, slots=True, eq=False)
class LookupTable:
    """The first-layer terms of a finite column: one stored row per value."""

    column: int
    numbers: Vector  # the values the column can take, ascending
    rows: Matrix  # (len(numbers), outputs)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", frozen(self.numbers))
        object.__setattr__(self, "rows", frozen(self.rows))
        _check_finite(self.rows, f"table of column {self.column}")
        _check_finite(self.numbers, f"values of column {self.column}")
        shapes = (self.numbers.ndim, self.rows.ndim) == (1, 2)
        ascending = (
            shapes and len(self.numbers) == len(self.rows) and (np.diff(self.numbers) > 0).all()
        )
        if not ascending:
            raise NetworkError(
                f"invalid table of column {self.column}: got values {self.numbers.shape} and rows "
                f"{self.rows.shape}; expected ascending values and one row per value"
            )

    def indices(self, values: Vector) -> Counts:
        """Return the row of each value."""
        indices = np.minimum(np.searchsorted(self.numbers, values), len(self.numbers) - 1)
        missing = self.numbers[indices] != values
        if missing.any():
            got = float(values[np.argmax(missing)])
            raise DomainError(
                f"unknown value in column {self.column}: got {got!r}; expected a value of its table"
            )
        return indices.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The first layer: a bias, and one slope or table per column.

    `cancelled_magnitude` bounds the terms that scaling cancelled in the bias. The source still
    adds them one by one, so the bound on its rounding error includes them. The value does not.
    """

    bias: Vector
    slopes: Matrix  # (outputs, columns); zero where the column has a table
    tables: tuple[LookupTable, ...] = ()
    cancelled_magnitude: Vector = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        for name in ("bias", "slopes", "cancelled_magnitude"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        check_affine("the first layer", self.slopes, self.bias)
        _check_magnitude("the first layer", self.cancelled_magnitude, self.bias)
        for table in self.tables:
            inside = 0 <= table.column < self.width
            if (
                not inside
                or table.rows.shape[1] != self.outputs
                or self.slopes[:, table.column].any()
            ):
                raise NetworkError(
                    f"invalid table of column {table.column}: got {table.rows.shape[1]} outputs; "
                    f"expected a column below {self.width} that has a slope or a table of "
                    f"{self.outputs} outputs"
                )

    @property
    def tabled(self) -> tuple[int, ...]:
        """The columns with a table."""
        return tuple(table.column for table in self.tables)

    @property
    def outputs(self) -> int:
        """The number of neurons."""
        return len(self.bias)

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.slopes.shape[1])

    def __call__(self, people: Matrix) -> Matrix:
        """Compute the inputs of the first activation in float64."""
        values = people @ self.slopes.T + self.bias
        for table in self.tables:
            values = values + table.rows[table.indices(people[:, table.column])]
        return np.asarray(values)

    def terms(self, codes: Matrix, columns: Sequence[int]) -> tuple[Matrix, Matrix]:
        """Return the sum of the terms of some columns, and the sum of their absolute values."""
        chosen = list(columns)
        slopes = self.slopes[:, chosen]
        values = codes @ slopes.T
        # FLOOR covers terms that underflow.
        sizes = (np.abs(codes) + FLOOR) @ (np.abs(slopes) + FLOOR).T
        for table in self.tables:
            if table.column in chosen:
                rows = table.rows[table.indices(codes[:, chosen.index(table.column)])]
                values = values + rows
                sizes = sizes + np.abs(rows)
        return values, sizes


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """W·a + b; `cancelled_magnitude` as in `Columns`."""

    weight: Matrix  # (outputs, inputs), as torch stores it
    bias: Vector
    cancelled_magnitude: Vector = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        for name in ("weight", "bias", "cancelled_magnitude"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        check_affine("a layer", self.weight, self.bias)
        _check_magnitude("a layer", self.cancelled_magnitude, self.bias)


@dataclass(frozen=True, slots=True)
class Measured:
    """Where preprocessing was evaluated to compute a first layer, and which slopes hold beyond.

    `spans` lists the columns whose steps are known to be affine everywhere, with the two numbers
    between which the slope was measured. `largest` bounds all numbers that the steps compute
    between them. Columns without a span must not leave their limits.
    """

    spans: tuple[tuple[int, float, float], ...] = ()  # column, low, high
    largest: float = 0.0

    def __post_init__(self) -> None:
        for column, low, high in self.spans:
            if not (np.isfinite([low, high]).all() and low < high):
                raise NetworkError(
                    f"invalid span of column {column}: got {low!r} and {high!r}; expected two "
                    "finite numbers in ascending order"
                )
        if not 0 <= self.largest < np.inf:
            raise NetworkError(
                f"invalid largest feature: got {self.largest!r}; expected a finite number, 0 or "
                "more"
            )

    def span(self, column: int) -> tuple[float, float] | None:
        """Return the span over which a column's slope was measured; None if there is none."""
        return next(((low, high) for index, low, high in self.spans if index == column), None)

    def without(self, columns: Collection[int]) -> "Measured":
        """Remove the spans of columns, which must not leave their limits then."""
        return replace(self, spans=tuple(span for span in self.spans if span[0] not in columns))


def _check_magnitude(where: str, magnitude: Vector, bias: Vector) -> None:
    """Reject negative magnitudes: error bounds would be too small, and proofs invalid."""
    if magnitude.shape not in ((1,), bias.shape) or not (magnitude >= 0).all():
        raise NetworkError(
            f"invalid cancelled magnitude of {where}: got the shape {magnitude.shape} and the "
            f"minimum {float(magnitude.min(initial=0.0))!r}; expected 0 or more, one number or one "
            "per neuron"
        )


def check_affine(where: str, weight: Matrix, bias: Vector) -> None:
    """Raise unless these are a finite matrix and a finite bias of matching shapes."""
    shapes = weight.ndim == 2 and bias.shape == weight.shape[:1]  # noqa: PLR2004 - a matrix
    if not shapes or 0 in weight.shape:
        raise NetworkError(
            f"invalid shapes of {where}: got {weight.shape} and {bias.shape}; expected a weight "
            "matrix (out, in) and a bias of length out"
        )
    _check_finite(weight, f"weights of {where}")
    _check_finite(bias, f"bias of {where}")


def _check_finite(array: np.ndarray[tuple[int, ...], np.dtype[np.float64]], where: str) -> None:
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        position = tuple(int(axis) for axis in bad[0])
        raise NetworkError(
            f"invalid {where}: got {float(array[position])!r} at {position}; expected finite "
            "numbers"
        )
