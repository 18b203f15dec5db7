"""NetworkBuilder: the layers of a network as a reader meets them, one step at a time.

It is mutable, and lives no longer than the reading.
"""

from typing import Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.network.activation import Activation, identity
from feta.network.fold import BatchNorm, fold_batch_norm, fold_before
from feta.network.network import Affine, Columns, Network, Side


class NetworkBuilder:
    """The affine layers so far, and the activation that follows each of them."""

    def __init__(self) -> None:
        self.affine: list[Affine] = []
        self.activations: list[Activation | None] = []

    @property
    def width(self) -> int | None:
        """The number of values at this point; None before the first layer."""
        return len(self.affine[-1].bias) if self.affine else None

    def linear(self, weight: Matrix, bias: Vector) -> None:
        """Append W·a + b; a scaling right before it is folded in."""
        if self.activations and self.activations[-1] is None:
            if _is_scaling(self.affine[-1]):
                self.affine[-1] = fold_before(self.affine[-1], weight, bias)
                return
            self.activations[-1] = identity()
        self.affine.append(Affine(weight, bias))
        self.activations.append(None)

    def open_layer(self, width: int) -> Affine:
        """Give the last affine layer, if nothing follows it yet; else append one that copies."""
        if not self.affine or self.activations[-1] is not None:
            self.linear(np.eye(width), np.zeros(width))
        last = self.affine[-1]
        if len(last.bias) != width:
            raise NetworkError(f"there must be {len(last.bias)} values here, got {width}")
        return last

    def activate(self, activation: Activation, name: str) -> None:
        """Append an activation."""
        if self.width is None:
            raise NetworkError(f"{name} must follow an affine layer")
        self.open_layer(self.width)
        self.activations[-1] = activation

    def batch_norm(self, norm: BatchNorm) -> None:
        """Fold a batch norm into the layer before it, or make it one of its own."""
        last = self.open_layer(len(norm.mean))
        self.affine[-1] = Affine(*fold_batch_norm(last.weight, last.bias, norm))

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
            Columns(first.bias, first.weight, (), first.folded),
            tuple(between),
            tuple(layers),
            source=source,
            sigmoid=sigmoid,
            equality=equality,
        )


def _is_scaling(layer: Affine) -> bool:
    """Say whether a layer scales and shifts each value by itself."""
    weight = layer.weight
    return weight.shape[0] == weight.shape[1] and np.count_nonzero(weight) == np.count_nonzero(
        np.diag(weight)
    )
