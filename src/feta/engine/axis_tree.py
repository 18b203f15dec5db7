"""Axis tree: one sensitive attribute's values split in two again and again, for the kernel.

Each node bounds its values' first-layer terms as center ± generator ± rest. The generator is the
direction in which the values differ most, weighted by how much each neuron can matter downstream.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Counts, Matrix, Vector
from feta.network.network import Network

# Rounding of the few float64 operations below, relative to the sizes involved; 2^-53 each.
ROUNDING = 2.0**-46


@dataclass(frozen=True, slots=True, eq=False)
class AxisTree:
    """Arrays, one row a node; node 0 is the root."""

    order: NDArray[np.int32]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    center: Matrix
    generator: Matrix
    rest: Matrix
    weight: Vector


def importance(network: Network) -> Vector:
    """Bound how much each first-layer neuron can move the scores."""
    weight = np.ones(network.outputs)
    for activation, layer in zip(
        reversed(network.activations), reversed(network.layers), strict=True
    ):
        weight = (np.abs(layer.weight).T @ weight) * activation.steepest
    return weight


def build(terms: Matrix, weights: Vector) -> AxisTree:
    """Split an axis's values until each stands alone."""
    builder = _Builder(terms, weights)
    builder.split(np.arange(len(terms)))
    nodes = np.array(builder.nodes, dtype=np.int32)
    bounds = np.array(builder.bounds)  # (nodes, 3, neurons)
    begin, end, left, right = (np.ascontiguousarray(nodes[:, column]) for column in range(4))
    center, generator, rest = (np.ascontiguousarray(bounds[:, kind]) for kind in range(3))
    order, weight = np.array(builder.order, dtype=np.int32), np.array(builder.weights)
    return AxisTree(order, begin, end, left, right, center, generator, rest, weight)


class _Builder:
    def __init__(self, terms: Matrix, weights: Vector) -> None:
        self.terms, self.importance = terms, weights
        self.order: list[int] = []
        self.nodes: list[list[int]] = []  # begin, end, left, right
        self.bounds: list[tuple[Vector, Vector, Vector]] = []
        self.weights: list[float] = []

    def split(self, places: Counts) -> int:
        node = len(self.nodes)
        center, generator, rest, along = self._bound(self.terms[places])
        self.nodes.append([len(self.order), len(self.order) + len(places), -1, -1])
        self.bounds.append((center, generator, rest))
        self.weights.append(float(self.importance @ (np.abs(generator) + rest)))
        if len(places) == 1:
            self.order.append(int(places[0]))
            return node
        ordered = places[np.argsort(along, kind="stable")]
        half = (len(places) + 1) // 2
        self.nodes[node][2] = self.split(ordered[:half])
        self.nodes[node][3] = self.split(ordered[half:])
        return node

    def _bound(self, terms: Matrix) -> tuple[Vector, Vector, Vector, Vector]:
        """Fit center and generator; the rest covers what they miss, and all rounding."""
        middle = terms.mean(axis=0)
        away = terms - middle
        weighted = away * self.importance
        along = weighted @ np.linalg.eigh(weighted.T @ weighted)[1][:, -1]
        largest = np.abs(along).max()
        along = along / largest if largest > 0 else along
        generator = (along @ away) / max(float(along @ along), 1e-300)
        missed = away - along[:, None] * generator
        low, high = missed.min(axis=0), missed.max(axis=0)
        center = middle + (low + high) / 2
        size = np.abs(terms).max(axis=0) + np.abs(generator) + np.abs(center)
        rest = (high - low) / 2 + ROUNDING * size
        return center, generator, rest, along
