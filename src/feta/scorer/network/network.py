"""Network: a first layer of slopes and tables, then affine layers with activations between.

The numbers stored here are the model (S0): its scores are the exact real function of them. Calling a
network gives float64 scores, good to look at; decisions go through `Model.settle`, which is exact.
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
from feta.errors import DomainError, NetworkError, one_of
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

Side = Literal["above", "below"]
Provenance = Literal["proved", "sampled"]


@dataclass(frozen=True, slots=True, eq=False)
class LookupTable:
    """A finite column's contribution to the first layer: one stored row a value."""

    column: int
    numbers: Vector  # the values the column can take, ascending
    rows: Matrix  # (len(numbers), outputs)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", frozen(self.numbers))
        object.__setattr__(self, "rows", frozen(self.rows))
        _check_finite(self.rows, f"the table of column {self.column}")
        _check_finite(self.numbers, f"the values of column {self.column}")
        shapes = (self.numbers.ndim, self.rows.ndim) == (1, 2)
        ascending = (
            shapes and len(self.numbers) == len(self.rows) and (np.diff(self.numbers) > 0).all()
        )
        if not ascending:
            raise NetworkError(
                f"the table of column {self.column} must have one row a value, ascending"
            )

    def indices(self, values: Vector) -> Counts:
        """Find the row of each value."""
        indices = np.minimum(np.searchsorted(self.numbers, values), len(self.numbers) - 1)
        missing = self.numbers[indices] != values
        if missing.any():
            got = float(values[np.argmax(missing)])
            raise DomainError(f"column {self.column} must hold a value of its table, got {got!r}")
        return indices.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The first layer: a bias, and for each column a slope or a table.

    `cancelled_magnitude` holds the size of what scaling cancelled in the bias: the source still adds those terms
    one by one, so the bound on its rounding error counts them. The value does not.
    """

    bias: Vector
    slopes: Matrix  # (outputs, columns); zero where a table stands
    tables: tuple[LookupTable, ...] = ()
    cancelled_magnitude: Vector = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        for name in ("bias", "slopes", "cancelled_magnitude"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        _check_affine("the first layer", self.slopes, self.bias)
        _check_cancelled_magnitude("the first layer", self.cancelled_magnitude, self.bias)
        for table in self.tables:
            inside = 0 <= table.column < self.width
            if (
                not inside
                or table.rows.shape[1] != self.outputs
                or self.slopes[:, table.column].any()
            ):
                message = (
                    f"column {table.column} must have a slope or a table of {self.outputs} outputs"
                )
                raise NetworkError(message)

    @property
    def outputs(self) -> int:
        """The number of neurons."""
        return len(self.bias)

    @property
    def width(self) -> int:
        """The number of columns it reads."""
        return int(self.slopes.shape[1])

    def __call__(self, people: Matrix) -> Matrix:
        """Compute what goes into the first activation, in float64."""
        values = people @ self.slopes.T + self.bias
        for table in self.tables:
            values = values + table.rows[table.indices(people[:, table.column])]
        return np.asarray(values)

    def terms(self, codes: Matrix, columns: Sequence[int]) -> tuple[Matrix, Matrix]:
        """Add up what some columns contribute; also the sum of the terms' absolute sizes."""
        chosen = list(columns)
        slopes = self.slopes[:, chosen]
        values = codes @ slopes.T
        # FLOOR: so that terms lost to underflow still have a size.
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
        _check_cancelled_magnitude("a layer", self.cancelled_magnitude, self.bias)


@dataclass(frozen=True, slots=True)
class Measured:
    """Where preprocessing was evaluated to make a first layer, and which slopes hold beyond.

    `spans` lists the columns that go only through steps known to be affine everywhere, each with the
    two numbers between which its slope was measured. `largest` bounds every number that the steps
    make between these. Without spans no column may leave its limits.
    """

    spans: tuple[tuple[int, float, float], ...] = ()  # column, low, high
    largest: float = 0.0

    def __post_init__(self) -> None:
        for _, low, high in self.spans:
            if not (np.isfinite([low, high]).all() and low < high):
                raise NetworkError(f"a span must be two numbers in order, got {low!r} and {high!r}")
        if not 0 <= self.largest < np.inf:
            raise NetworkError(f"the largest feature must be finite, got {self.largest!r}")

    def without(self, columns: Collection[int]) -> "Measured":
        """Leave columns out: they may not leave their limits."""
        return replace(self, spans=tuple(one for one in self.spans if one[0] not in columns))


@dataclass(frozen=True, eq=False)
class Network:
    """A piecewise-linear network: first(x), then for each layer: its activation, then W·a + b."""

    first: Columns
    activations: tuple[Activation, ...]  # activations[i] stands before layers[i]
    layers: tuple[Affine, ...]
    equality: Side | None = None  # where the source puts a score equal to the threshold, if known
    source: Literal["float32", "float64"] = "float32"  # what the user's own runtime computes with
    sigmoid: bool = False  # whether that runtime compares σ(score), not the score
    provenance: Provenance = "proved"  # "sampled": preprocessing of unknown code was only tried out
    # None: every slope is the source's own formula and holds for all numbers; no part of the model.
    measured: Measured | None = None

    reading = renamed("reading", "provenance")

    def __post_init__(self) -> None:
        if len(self.activations) != len(self.layers):
            raise NetworkError("a network needs one activation before each layer but the first")
        if self.equality not in (None, "above", "below"):
            raise NetworkError(
                f"equality must be {one_of(self.equality, ('above', 'below'))}, or None"
            )
        if self.provenance not in ("proved", "sampled"):
            raise NetworkError(
                f"provenance must be {one_of(self.provenance, ('proved', 'sampled'))}"
            )
        if self.source not in SOURCES:
            raise NetworkError(f"source must be {one_of(self.source, SOURCES)}")
        width = self.first.outputs
        for index, (activation, layer) in enumerate(self.steps, start=2):
            if layer.weight.shape[1] != width:
                message = f"layer {index} must take {width} inputs, got {layer.weight.shape[1]}"
                raise NetworkError(message)
            if activation.width not in (1, width):
                message = f"activation {activation.name!r} before layer {index} must fit {width} neurons, got {activation.width}"
                raise NetworkError(message)
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
        """Make a network from (W, b) pairs, W being (out, in) as torch stores it.

        One activation stands between all layers, or give a list, one shorter than the layers.
        "maxout" takes the largest of each two neighbors, so that half the values go on.
        """
        from feta.scorer.network.builder import NetworkBuilder  # noqa: PLC0415 - it makes networks

        if not layers:
            raise NetworkError("a network must have at least one layer, got none")
        if isinstance(activation, str | Activation | Scaled | Maxout):
            between: list[str | Step] = [activation] * (len(layers) - 1)
        else:
            between = list(activation)
        if len(between) != len(layers) - 1:
            message = f"{len(layers)} layers need {len(layers) - 1} activations, got {len(between)}"
            raise NetworkError(message)
        builder = NetworkBuilder()
        for index, (weight, bias) in enumerate(layers, start=1):
            if index > 1:
                one = between[index - 2]
                builder.activate(_named(one), f"the activation before layer {index}")
            builder.linear(*_pair(index, weight, bias))
        return builder.network(source=source, equality=equality, sigmoid=sigmoid)

    @property
    def steps(self) -> Iterator[tuple[Activation, Affine]]:
        """Each layer after the first, with the activation before it."""
        return zip(self.activations, self.layers, strict=True)

    @property
    def width(self) -> int:
        """The number of columns it reads."""
        return self.first.width

    @property
    def outputs(self) -> int:
        """The number of scores it gives."""
        return len(self.layers[-1].bias) if self.layers else self.first.outputs

    @property
    def arithmetic(self) -> Arithmetic:
        """What the user's own runtime computes with: it decides which answers its rounding could tip."""
        return SOURCES[self.source]

    def __call__(self, people: Matrix) -> Matrix:
        """Compute scores in float64, (people, outputs): to look at, not to decide with."""
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
        """Turn two outputs into one score, the second less the first; ±1 products are exact."""
        return self.then(identity(), Affine(np.array([[-1.0, 1.0]]), np.zeros(1)))

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of every number that decides, and of what is known about the source."""
        arrays = [self.first.bias, self.first.slopes, self.first.cancelled_magnitude]
        for table in self.first.tables:
            arrays += [np.array([table.column], dtype=np.float64), table.numbers, table.rows]
        for activation, layer in self.steps:
            arrays += [activation.breaks, activation.slopes, activation.intercepts]
            arrays += [layer.weight, layer.bias, layer.cancelled_magnitude]
        shapes = [array.shape for array in arrays]
        about: list[object] = [self.equality, self.source, self.sigmoid, shapes]
        about += ["sampled"] if self.provenance == "sampled" else []
        digest = hashlib.sha256(json.dumps(about).encode())
        for array in arrays:
            digest.update(array.astype("<f8").tobytes())
        return digest.hexdigest()


def _named(step: str | Step) -> Step:
    if not isinstance(step, str):
        return step
    if step in SMOOTH:
        raise refuse_smooth(step, f"the activation {step!r}")
    if step not in NAMED:
        raise NetworkError(f"an activation must be {one_of(step, NAMED)}")
    return NAMED[step]()


def _pair(index: int, weight: ArrayLike, bias: ArrayLike) -> tuple[Matrix, Vector]:
    try:
        matrix, vector = np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64)
    except (TypeError, ValueError):
        raise NetworkError(f"layer {index} must have rows of numbers of equal length") from None
    _check_affine(f"layer {index}", matrix, vector)
    return matrix, vector


def _check_cancelled_magnitude(what: str, cancelled_magnitude: Vector, bias: Vector) -> None:
    """Sizes that were not sizes would make error bounds too small, and proofs of them worth nothing."""
    if cancelled_magnitude.shape not in ((1,), bias.shape) or not (cancelled_magnitude >= 0).all():
        raise NetworkError(f"{what}'s folded sizes must be 0 or more, one or one a neuron")


def _check_affine(where: str, weight: Matrix, bias: Vector) -> None:
    if weight.ndim != 2 or bias.shape != weight.shape[:1] or 0 in weight.shape:  # noqa: PLR2004 - a matrix
        message = f"{where} must have a weight matrix (out, in) and a bias of length out, got the shapes {weight.shape} and {bias.shape}"
        raise NetworkError(message)
    _check_finite(weight, f"the weights of {where}")
    _check_finite(bias, f"the bias of {where}")


def _check_finite(array: np.ndarray[tuple[int, ...], np.dtype[np.float64]], where: str) -> None:
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        position = tuple(int(axis) for axis in bad[0])
        raise NetworkError(f"{where} must be finite, got {float(array[position])!r} at {position}")
