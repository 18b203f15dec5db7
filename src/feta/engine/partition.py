"""Partition: counterparts cut in parts, and how, so that the checker can cut them again."""

import numpy as np

from feta.arrays import Counts, Vector
from feta.bounds.first_layer import Terms
from feta.cells.cells import Cells
from feta.scorer.network.network import Network
from feta.verdict.certificate import BoundsProof


class Partition:
    """A tree of cuts that grows; its leaves cover everybody."""

    def __init__(self) -> None:
        self._cuts: list[tuple[int, float] | None] = [None]
        self._children: dict[int, int] = {}  # the first of two neighbors

    def __len__(self) -> int:
        return len(self._cuts)

    def cut(self, node: int, dimension: int, at: float) -> Counts:
        """Take down that a node's part was cut; give the two new nodes."""
        self._cuts[node] = dimension, at
        self._children[node] = len(self)
        self._cuts += [None, None]
        return np.arange(len(self) - 2, len(self))

    def proof(self) -> BoundsProof:
        """Tell the cuts depth first."""
        told, left = [], [0]
        while left:
            node = left.pop()
            told.append(self._cuts[node])
            if node in self._children:
                left += [self._children[node] + 1, self._children[node]]
        return BoundsProof(tuple(told))


def partition(network: Network, terms: Terms, n_parts: int) -> tuple[Cells, Partition]:
    """Cut all counterparts where the first layer's values differ most, the same for everybody.

    Bounds over small parts are much tighter, and many parts are bounded in about the time of one.
    """
    weight, tree = _importance(network), Partition()
    cells, nodes = Cells.whole(terms.dimensions), np.zeros(1, dtype=np.int64)
    while len(cells) < n_parts:
        spreads = np.stack(
            [term.spread(cells, index) @ weight for index, term in enumerate(terms.each)], axis=1
        )
        middles = np.stack([cells.middles(row) for row in range(len(cells))])
        spreads = np.where(np.isnan(middles), -1.0, spreads)
        row, dimension = np.unravel_index(np.argmax(spreads), spreads.shape)
        if spreads[row, dimension] < 0:
            break
        at = float(middles[row, dimension])
        children = tree.cut(int(nodes[row]), int(dimension), at)
        rest = np.delete(np.arange(len(cells)), row)
        cells = cells[rest].followed_by(cells.cut(int(row), int(dimension), at))
        nodes = np.concatenate([nodes[rest], children])
    return cells, tree


def _importance(network: Network) -> Vector:
    """Bound how much each first-layer neuron can move the scores."""
    weight = np.ones(network.outputs)
    for activation, layer in reversed(list(network.steps)):
        weight = (np.abs(layer.weight).T @ weight) * activation.steepest
    return weight
