"""NetworkBuilder: the layers of a network as a reader meets them, one step at a time.

It is mutable, and lives no longer than the reading.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.scorer.network.activation import Activation, Maxout, Scaled, Step, identity
from feta.scorer.network.fold import BatchNorm, fold_after, fold_batch_norm, fold_before
from feta.scorer.network.input_blocks import Signals, first_layer
from feta.scorer.network.network import Affine, Columns, LookupTable, Network, Side


class NetworkBuilder:
    """The affine layers so far, and the activation that follows each of them."""

    def __init__(self) -> None:
        self.affine: list[Affine] = []
        self.activations: list[Activation | None] = []
        self.entry: Signals | None = None  # what the first layer takes, if not the input as it is
        self.n_columns = 0  # of the input, where the entry is known
        self.tables: list[LookupTable] = []

    @property
    def width(self) -> int | None:
        """The number of values at this point; None before the first layer."""
        if not self.affine and self.entry is not None:
            return len(self.entry)
        return len(self.affine[-1].bias) if self.affine else None

    def enter(self, signals: Signals, n_columns: int) -> None:
        """Let the first layer take blocks of the input put together."""
        if len(signals) != n_columns or any(
            one.column != index or not one.plain for index, one in enumerate(signals)
        ):
            self.entry, self.n_columns = signals, n_columns

    def linear(self, weight: Matrix, bias: Vector) -> None:
        """Append W·a + b; a scaling right before it is folded in."""
        if self.width is not None and np.ndim(weight) == 2 and weight.shape[1] != self.width:  # noqa: PLR2004
            message = (
                f"layer {len(self.affine) + 1} must take {self.width} inputs, got {weight.shape[1]}"
            )
            raise NetworkError(message)
        if self.activations and self.activations[-1] is None:
            if _is_scaling(self.affine[-1]) and not (self.tables and len(self.affine) == 1):
                self.affine[-1] = fold_before(self.affine[-1], weight, bias)
                return
            self.activations[-1] = identity()
        if self.entry is not None and not self.affine:
            made = first_layer(self.entry, weight, bias, self.n_columns)
            self.tables = made.tables
            self.affine.append(made.affine)
        else:
            self.affine.append(Affine(weight, bias))
        self.activations.append(None)

    def open_layer(self, width: int, name: str = "this layer") -> Affine:
        """Give the last affine layer, if nothing follows it yet; else append one that copies."""
        if not self.affine or self.activations[-1] is not None:
            self.linear(np.eye(width), np.zeros(width))
        last = self.affine[-1]
        if len(last.bias) != width:
            raise NetworkError(f"{name} must take {len(last.bias)} values, got {width}")
        return last

    def activate(self, step: Step, name: str) -> None:
        """Append an activation."""
        if self.width is None:
            raise NetworkError(f"{name} must follow an affine layer")
        self.open_layer(self.width)
        match step:
            case Activation():
                if step.width not in (1, self.width):
                    message = f"{name} must fit {self.width} neurons, got {step.width}"
                    raise NetworkError(message)
                self.activations[-1] = step
            case Scaled():
                self.scale_tables([float(step.factor)] * len(self.affine[-1].bias))
                self.affine[-1] = fold_after(self.affine[-1], step.factor, step.shift)
                self.activations[-1] = step.activation
            case Maxout():
                self._maxout(step.pool, name)

    def _maxout(self, pool: int, name: str) -> None:
        """Take the largest of each group: max(a, b) = relu(a − b) + b, with exact ±1 weights."""
        width = len(self.affine[-1].bias)
        if pool < 2 or width % pool:  # noqa: PLR2004 - a group has at least two
            raise NetworkError(f"{name} must have groups of {pool} values, got {width} values")
        while pool > 1:
            difference, bends, total = _knock_out(len(self.affine[-1].bias) // pool, pool)
            self.activations[-1] = identity()
            self.affine += [Affine(matrix, np.zeros(len(matrix))) for matrix in (difference, total)]
            self.activations += [_some_relu(bends), None]
            pool = (pool + 1) // 2

    def batch_norm(self, norm: BatchNorm, name: str = "the batch norm") -> None:
        """Fold a batch norm into the layer before it, or make it one of its own."""
        last = self.open_layer(len(norm.mean), name)
        if self.tables and len(self.affine) == 1:
            self.scale_tables([float(norm.factor(index)) for index in range(len(last.bias))])
        self.affine[-1] = fold_batch_norm(last, norm)

    def scale(self, factor: Vector, shift: Vector, width: int) -> None:
        """Append factor·z + shift, value by value, rounded into the layer before it."""
        last = self.open_layer(width)
        self.scale_tables(factor.tolist())
        sizes = np.abs(factor) * (np.abs(last.bias) + last.cancelled_magnitude) + np.abs(shift)
        weight = last.weight * factor[:, None]
        self.affine[-1] = Affine(weight, last.bias * factor + shift, 2 * sizes)

    def scale_tables(self, factors: Sequence[float]) -> None:
        """Scale the tables with the first layer, where that is the one that is scaled."""
        if len(self.affine) == 1:
            self.tables = [replace(one, rows=one.rows * np.array(factors)) for one in self.tables]

    def network(
        self,
        *,
        sigmoid: bool = False,
        source: Literal["float32", "float64"] = "float32",
        equality: Side | None = None,
    ) -> Network:
        """Put the layers together."""
        if self.width is None:
            raise NetworkError("the network must have at least one affine layer, got none")
        self.open_layer(self.width)
        first, *layers = self.affine
        between = [one or identity() for one in self.activations[:-1]]
        return Network(
            Columns(first.bias, first.weight, tuple(self.tables), first.cancelled_magnitude),
            tuple(between),
            tuple(layers),
            source=source,
            sigmoid=sigmoid,
            equality=equality,
        )


def _knock_out(groups: int, pool: int) -> tuple[Matrix, list[bool], Matrix]:
    """Pair the neighbors within each group: (a − b, b), which of these bend, and the sums a pair.

    One without a partner goes through.
    """
    unit = np.eye(groups * pool)
    rows: list[Vector] = []
    bends: list[bool] = []
    sums: list[list[int]] = []
    for first in range(0, groups * pool, pool):
        for left in range(first, first + pool, 2):
            if left + 1 < first + pool:
                sums.append([len(rows), len(rows) + 1])
                rows += [unit[left] - unit[left + 1], unit[left + 1]]
                bends += [True, False]
            else:
                sums.append([len(rows)])
                rows.append(unit[left])
                bends.append(False)
    total = np.zeros((len(sums), len(rows)))
    for row, indices in enumerate(sums):
        total[row, indices] = 1.0
    return np.array(rows), bends, total


def _some_relu(bends: list[bool]) -> Activation:
    """Make an activation that is ReLU for some neurons and the identity for the others."""
    below = np.where(bends, 0.0, 1.0)
    zeros = np.zeros(len(bends))
    return Activation(
        "relu_or_identity", zeros[None, :], np.stack([below, zeros + 1]), np.stack([zeros, zeros])
    )


def _is_scaling(layer: Affine) -> bool:
    """Say whether a layer scales and shifts each value by itself."""
    weight = layer.weight
    return weight.shape[0] == weight.shape[1] and np.count_nonzero(weight) == np.count_nonzero(
        np.diag(weight)
    )
