"""A mutable builder of networks, used while a model is read."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.scorer.network.activation import Activation, Maxout, Scaled, Step, identity
from feta.scorer.network.fold import BatchNorm, fold_after, fold_batch_norm, fold_before
from feta.scorer.network.input_blocks import Signals, first_layer
from feta.scorer.network.layers import Affine, Columns, LookupTable
from feta.scorer.network.network import Network
from feta.scorer.network.smooth.activation import Smooth
from feta.scorer.protocol import Side


class NetworkBuilder:
    """The affine layers so far, and the activation that follows each of them."""

    def __init__(self) -> None:
        self.affine: list[Affine] = []
        self.activations: list[Activation | Smooth | None] = []
        self.entry: Signals | None = None  # inputs of the first layer, if not the columns
        self.n_columns = 0  # of the input, if the entry is known
        self.tables: list[LookupTable] = []

    @property
    def width(self) -> int | None:
        """The number of values at this point; None before the first layer."""
        if not self.affine and self.entry is not None:
            return len(self.entry)
        return len(self.affine[-1].bias) if self.affine else None

    def enter(self, signals: Signals, n_columns: int) -> None:
        """Set the signals that the first layer reads."""
        if len(signals) != n_columns or any(
            signal.column != index or not signal.plain for index, signal in enumerate(signals)
        ):
            self.entry, self.n_columns = signals, n_columns

    def linear(self, weight: Matrix, bias: Vector) -> None:
        """Append W·a + b; a scaling directly before it is folded in."""
        if self.width is not None and np.ndim(weight) == 2 and weight.shape[1] != self.width:  # noqa: PLR2004
            raise NetworkError(
                f"wrong number of inputs of layer {len(self.affine) + 1}: got {weight.shape[1]}; "
                f"expected {self.width}"
            )
        if self.activations and self.activations[-1] is None:
            if _is_scaling(self.affine[-1]) and not (self.tables and len(self.affine) == 1):
                self.affine[-1] = fold_before(self.affine[-1], weight, bias)
                return
            self.activations[-1] = identity()
        if self.entry is not None and not self.affine:
            parts = first_layer(self.entry, weight, bias, self.n_columns)
            self.tables = parts.tables
            self.affine.append(parts.affine)
        else:
            self.affine.append(Affine(weight, bias))
        self.activations.append(None)

    def open_layer(self, width: int, name: str = "this layer") -> Affine:
        """Return the last affine layer; append an identity if an activation follows it."""
        if not self.affine or self.activations[-1] is not None:
            self.linear(np.eye(width), np.zeros(width))
        last = self.affine[-1]
        if len(last.bias) != width:
            raise NetworkError(
                f"wrong width of {name}: got {width} values; expected {len(last.bias)}"
            )
        return last

    def activate(self, step: Step, name: str) -> None:
        """Append an activation."""
        if self.width is None:
            raise NetworkError(
                f"invalid position of {name}: got no layer before it; expected an affine layer"
            )
        self.open_layer(self.width)
        match step:
            case Activation() | Smooth():
                if step.width not in (1, self.width):
                    raise NetworkError(
                        f"wrong width of {name}: got {step.width} neurons; expected 1 or "
                        f"{self.width}"
                    )
                self.activations[-1] = step
            case Scaled():
                self.scale_tables([float(step.factor)] * len(self.affine[-1].bias))
                self.affine[-1] = fold_after(self.affine[-1], step.factor, step.shift)
                self.activations[-1] = step.activation
            case Maxout():
                self._maxout(step.pool, name)

    def _maxout(self, pool: int, name: str) -> None:
        """Append the maximum of each group: max(a, b) = relu(a − b) + b, with exact weights ±1."""
        width = len(self.affine[-1].bias)
        if pool < 2 or width % pool:  # noqa: PLR2004 - a group has at least two
            raise NetworkError(
                f"invalid groups of {name}: got {width} values and groups of {pool}; expected "
                "groups of 2 or more that divide the values evenly"
            )
        while pool > 1:
            difference, is_relu, total = pairwise_maximum(len(self.affine[-1].bias) // pool, pool)
            self.activations[-1] = identity()
            self.affine += [Affine(matrix, np.zeros(len(matrix))) for matrix in (difference, total)]
            self.activations += [relu_or_identity(is_relu), None]
            pool = (pool + 1) // 2

    def batch_norm(self, norm: BatchNorm, name: str = "the batch norm") -> None:
        """Fold a batch norm into the layer before it, or append it as a layer."""
        last = self.open_layer(len(norm.mean), name)
        if self.tables and len(self.affine) == 1:
            self.scale_tables([float(norm.factor(index)) for index in range(len(last.bias))])
        self.affine[-1] = fold_batch_norm(last, norm)

    def fold(
        self, change: Callable[[Affine], Affine], width: int, factors: Vector | None = None
    ) -> None:
        """Change the layer before; `factors` are those that tables of the first layer need."""
        last = self.open_layer(width)
        if factors is not None:
            self.scale_tables(factors.tolist())
        self.affine[-1] = change(last)

    def scale(self, factor: Vector, shift: Vector, width: int) -> None:
        """Append an elementwise factor·z + shift, rounded into the layer before it."""
        last = self.open_layer(width)
        self.scale_tables(factor.tolist())
        sizes = np.abs(factor) * (np.abs(last.bias) + last.cancelled_magnitude) + np.abs(shift)
        weight = last.weight * factor[:, None]
        self.affine[-1] = Affine(weight, last.bias * factor + shift, 2 * sizes)

    def scale_tables(self, factors: Sequence[float]) -> None:
        """Scale the tables if the first layer is the one that is scaled."""
        if len(self.affine) == 1:
            self.tables = [
                replace(table, rows=table.rows * np.array(factors)) for table in self.tables
            ]

    def network(
        self,
        *,
        sigmoid: bool = False,
        source: Literal["float32", "float64"] = "float32",
        equality: Side | None = None,
    ) -> Network:
        """Return the network."""
        if self.width is None:
            raise NetworkError("a network needs at least one affine layer: got none")
        self.open_layer(self.width)
        first, *layers = self.affine
        between = [activation or identity() for activation in self.activations[:-1]]
        return Network(
            Columns(first.bias, first.weight, tuple(self.tables), first.cancelled_magnitude),
            tuple(between),
            tuple(layers),
            source=source,
            sigmoid=sigmoid,
            equality=equality,
        )


def pairwise_maximum(groups: int, pool: int) -> tuple[Matrix, list[bool], Matrix]:
    """Return one round of pairwise maxima within each group.

    These are the rows (a − b, b) of each pair, which of them a ReLU follows, and the sums that
    give one maximum per pair. A value without a partner is copied.
    """
    unit = np.eye(groups * pool)
    rows: list[Vector] = []
    is_relu: list[bool] = []
    sums: list[list[int]] = []
    for first in range(0, groups * pool, pool):
        for left in range(first, first + pool, 2):
            if left + 1 < first + pool:
                sums.append([len(rows), len(rows) + 1])
                rows += [unit[left] - unit[left + 1], unit[left + 1]]
                is_relu += [True, False]
            else:
                sums.append([len(rows)])
                rows.append(unit[left])
                is_relu.append(False)
    total = np.zeros((len(sums), len(rows)))
    for row, indices in enumerate(sums):
        total[row, indices] = 1.0
    return np.array(rows), is_relu, total


def relu_or_identity(is_relu: list[bool]) -> Activation:
    """Return an activation that is ReLU for some neurons and the identity for the others."""
    below = np.where(is_relu, 0.0, 1.0)
    zeros = np.zeros(len(is_relu))
    return Activation(
        "relu_or_identity", zeros[None, :], np.stack([below, zeros + 1]), np.stack([zeros, zeros])
    )


def _is_scaling(layer: Affine) -> bool:
    """Return whether a layer scales and shifts each value separately."""
    weight = layer.weight
    return weight.shape[0] == weight.shape[1] and np.count_nonzero(weight) == np.count_nonzero(
        np.diag(weight)
    )
