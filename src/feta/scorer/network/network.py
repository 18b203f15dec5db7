"""Networks: a first layer of slopes and tables, then affine layers with activations between them.

The stored numbers define the model: its scores are the exact real function of them. Calling a
network computes float64 scores, for display only. Decisions use `Model.resolve`, which is exact.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Counts, Matrix, Vector, frozen
from feta.deprecation import renamed
from feta.errors import DomainError, NetworkError, unknown_choice
from feta.rounding import FLOOR, SOURCES, Arithmetic
from feta.scorer.network.activation import (
    NAMED,
    SMOOTH,
    Activation,
    Maxout,
    Scaled,
    Step,
    identity,
    refuse_smooth,
)
from feta.scorer.protocol import Provenance, Side
from feta.space.attribute import Attribute, Categorical, Derived
from feta.space.feature_space import FeatureSpace


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
        _check_affine("the first layer", self.slopes, self.bias)
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
        _check_affine("a layer", self.weight, self.bias)
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

    def without(self, columns: Collection[int]) -> "Measured":
        """Remove the spans of columns, which must not leave their limits then."""
        return replace(self, spans=tuple(span for span in self.spans if span[0] not in columns))


@dataclass(frozen=True, eq=False)
class Network:
    """A piecewise-linear network: first(x), then for each layer: its activation, then W·a + b."""

    first: Columns
    activations: tuple[Activation, ...]  # activations[i] comes before layers[i]
    layers: tuple[Affine, ...]
    equality: Side | None = None  # the side of ties in the source, if known
    source: Literal["float32", "float64"] = "float32"  # the format of the user's runtime
    sigmoid: bool = False  # whether the runtime compares σ(score) instead of the score
    provenance: Provenance = "proved"  # "sampled": preprocessing was sampled, not proved
    # None: the slopes are the source's formula and hold for all numbers. Not in the fingerprint.
    measured: Measured | None = None

    reading = renamed("reading", "provenance")

    def __post_init__(self) -> None:
        if len(self.activations) != len(self.layers):
            raise NetworkError(
                f"wrong number of activations: got {len(self.activations)}; expected "
                f"{len(self.layers)}, one before each layer but the first"
            )
        for name, choices in (
            ("equality", ("above", "below", None)),
            ("provenance", ("proved", "sampled")),
            ("source", tuple(SOURCES)),
        ):
            if getattr(self, name) not in choices:
                raise NetworkError(
                    f"invalid {name}: {unknown_choice(getattr(self, name), choices)}"
                )
        width = self.first.outputs
        for index, (activation, layer) in enumerate(self.steps, start=2):
            if layer.weight.shape[1] != width:
                raise NetworkError(
                    f"wrong number of inputs of layer {index}: got {layer.weight.shape[1]}; "
                    f"expected {width}"
                )
            if activation.width not in (1, width):
                raise NetworkError(
                    f"wrong width of the activation {activation.name!r} before layer {index}: got "
                    f"{activation.width} neurons; expected 1 or {width}"
                )
            width = len(layer.bias)

    @classmethod
    def from_layers(
        cls,
        layers: Sequence[tuple[ArrayLike, ArrayLike]],
        *,
        activation: str | Step | Sequence[str | Step] = "relu",
        source: Literal["float32", "float64"] = "float32",
        equality: Side | None = None,
        sigmoid: bool = False,
    ) -> "Network":
        """Return a network of (W, b) pairs, where W is (out, in) as torch stores it.

        One activation is used between all layers; or pass a list, one shorter than the layers.
        "maxout" takes the larger of each two neighbors, so half of the values remain.
        """
        from feta.scorer.network.builder import NetworkBuilder  # noqa: PLC0415 - it imports this module

        if not layers:
            raise NetworkError("a network needs at least one layer: got none")
        if isinstance(activation, str | Activation | Scaled | Maxout):
            between: list[str | Step] = [activation] * (len(layers) - 1)
        else:
            between = list(activation)
        if len(between) != len(layers) - 1:
            raise NetworkError(
                f"wrong number of activations: got {len(between)}; expected {len(layers) - 1} for "
                f"{len(layers)} layers"
            )
        builder = NetworkBuilder()
        for index, (weight, bias) in enumerate(layers, start=1):
            if index > 1:
                step = _step(between[index - 2])
                builder.activate(step, f"the activation before layer {index}")
            builder.linear(*_layer_arrays(index, weight, bias))
        return builder.network(source=source, equality=equality, sigmoid=sigmoid)

    @property
    def steps(self) -> Iterator[tuple[Activation, Affine]]:
        """Each layer after the first, with the activation before it."""
        return zip(self.activations, self.layers, strict=True)

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.first.width

    @property
    def outputs(self) -> int:
        """The number of scores."""
        return len(self.layers[-1].bias) if self.layers else self.first.outputs

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the user's runtime, whose rounding may change decisions."""
        return SOURCES[self.source]

    def __call__(self, people: Matrix) -> Matrix:
        """Compute scores in float64, (people, outputs), for display only."""
        values = self.first(people)
        for activation, layer in self.steps:
            values = activation(values) @ layer.weight.T + layer.bias
        return values

    def then(self, activation: Activation, layer: Affine) -> "Network":
        """Append a layer."""
        return replace(
            self,
            activations=(*self.activations, activation),
            layers=(*self.layers, layer),
        )

    def difference(self) -> "Network":
        """Return the network whose score is the second output minus the first.

        Products with ±1 are exact.
        """
        return self.then(identity(), Affine(np.array([[-1.0, 1.0]]), np.zeros(1)))

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of all numbers that affect decisions, and of the facts about the source."""
        arrays = [self.first.bias, self.first.slopes, self.first.cancelled_magnitude]
        for table in self.first.tables:
            arrays += [np.array([table.column], dtype=np.float64), table.numbers, table.rows]
        for activation, layer in self.steps:
            arrays += [activation.breaks, activation.slopes, activation.intercepts]
            arrays += [layer.weight, layer.bias, layer.cancelled_magnitude]
        shapes = [array.shape for array in arrays]
        facts: list[object] = [self.equality, self.source, self.sigmoid, shapes]
        facts += ["sampled"] if self.provenance == "sampled" else []
        digest = hashlib.sha256(json.dumps(facts).encode())
        for array in arrays:
            digest.update(array.astype("<f8").tobytes())
        return digest.hexdigest()

    def reads(self, attribute: Attribute, space: FeatureSpace) -> bool:
        """Return whether a score can depend on the columns of an attribute.

        Columns of other attributes, such as bands derived from it, are not included.
        """
        columns = space.columns_of(attribute)
        slopes = self.first.slopes[:, columns]
        # Exactly one of a category's columns is 1, so equal slopes are a constant.
        one_hot = isinstance(attribute, Categorical | Derived)
        if (np.ptp(slopes, axis=1) if one_hot else slopes).any():
            return True
        return any(
            columns.start <= table.column < columns.stop and bool(np.ptp(table.rows, axis=0).any())
            for table in self.first.tables
        )


def _step(step: str | Step) -> Step:
    if not isinstance(step, str):
        return step
    if step in SMOOTH:
        raise refuse_smooth(step, f"the activation {step!r}")
    if step not in NAMED:
        raise NetworkError(f"unknown activation: {unknown_choice(step, NAMED)}")
    return NAMED[step]()


def _layer_arrays(index: int, weight: ArrayLike, bias: ArrayLike) -> tuple[Matrix, Vector]:
    try:
        matrix, vector = np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64)
    except (TypeError, ValueError):
        raise NetworkError(
            f"invalid arrays of layer {index}: expected rows of numbers of equal length"
        ) from None
    _check_affine(f"layer {index}", matrix, vector)
    return matrix, vector


def _check_magnitude(where: str, magnitude: Vector, bias: Vector) -> None:
    """Reject negative magnitudes: error bounds would be too small, and proofs invalid."""
    if magnitude.shape not in ((1,), bias.shape) or not (magnitude >= 0).all():
        raise NetworkError(
            f"invalid cancelled magnitude of {where}: got the shape {magnitude.shape} and the "
            f"minimum {float(magnitude.min(initial=0.0))!r}; expected 0 or more, one number or one "
            "per neuron"
        )


def _check_affine(where: str, weight: Matrix, bias: Vector) -> None:
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
