"""Data of one model for one solver, reused from person to person."""

from threading import Lock
from typing import Literal

import numpy as np

from feta.arrays import Vector
from feta.bounds import interval, linear
from feta.bounds.cell_bounds import CellBounds
from feta.bounds.first_layer import FirstLayer, Terms
from feta.bounds.linear import Layer
from feta.cells.cells import Cells
from feta.engine.milp.backends.protocol import Backend, Session
from feta.engine.milp.encoding import Encoded, encode
from feta.engine.milp.equilibrate import equilibrate
from feta.engine.milp.tighten import tighten
from feta.interval_box import IntervalBox
from feta.model import Model
from feta.scorer.network.network import Network, network_of
from feta.scorer.protocol import Objective
from feta.verdict.certificate import CutTree

# How the neurons are bounded before a program is written. "interval" and "linear" bound all
# counterparts as one cell. "parts" bounds many cells linearly and omits those that the bounds
# decide. "lp" adds two linear programs per neuron.
Bounds = Literal["interval", "linear", "parts", "lp"]

# Cells bounded at once: twice as many improve the bounds only a little.
N_CELLS = 64


class Solver:
    """A model prepared for one backend; it holds no reference to the model, which may be freed."""

    def __init__(self, model: Model, backend: Backend, bounds: Bounds) -> None:
        self.network, self.backend, self.bounds = network_of(model.scorer), backend, bounds
        self.terms = Terms.of(model)
        self.scaled = equilibrate(model)
        self.by_cells = bounds in ("parts", "lp")
        n_cells = N_CELLS if self.by_cells else 1
        self._cells, self.tree = _partition(network_of(model.scorer), self.terms, n_cells)
        self._sessions: dict[str, Session] = {}
        self.lock = Lock()  # a session holds the program of one person at a time

    def session(self, kind: str) -> Session:
        """Return the session for one kind of search."""
        if kind not in self._sessions:
            self._sessions[kind] = self.backend.session()
        return self._sessions[kind]

    def bound(self, model: Model, person: Vector, objective: Objective) -> CellBounds:
        """Bound an objective over all counterparts of a person, cell by cell."""
        return CellBounds.of(model, self.terms, person, self._cells, objective)

    def encode(
        self, bounds: CellBounds, person: Vector, *, maximize: bool, listed: bool = False
    ) -> Encoded:
        """Write the program for one person over the cells that the bounds leave undecided."""
        cell, hidden = bounds.enclose_undecided()
        first = self.terms.at(person, cell)
        boxes = self._boxes(first, hidden)
        return encode(self.scaled, first, boxes, bounds.objective, maximize=maximize, listed=listed)

    def _boxes(self, first: FirstLayer, hidden: list[IntervalBox]) -> list[IntervalBox]:
        """Bound all layers; `hidden` has the linear bounds of all but the last."""
        if not self.network.layers:
            return [first.box()]
        if self.bounds == "interval":
            return interval.forward(self.network, first.box())
        if self.bounds == "lp":
            return tighten(self.network, self.scaled, first, hidden)
        layers = [Layer.of(*pair) for pair in zip(self.network.activations, hidden, strict=True)]
        return [*hidden, linear.next_box(self.network, first, layers)]


def _partition(network: Network, terms: Terms, n_cells: int) -> tuple[Cells, CutTree]:
    """Split all counterparts into cells where the first layer varies most.

    The cells are the same for all people. Bounds over small cells are much tighter, and bounding
    many cells costs little more than bounding one.
    """
    weights, tree = _importance(network), CutTree()
    cells, nodes = Cells.whole(terms.axes), np.zeros(1, dtype=np.int64)
    while len(cells) < n_cells:
        spreads = np.stack(
            [term.spread(cells, index) @ weights for index, term in enumerate(terms.each)], axis=1
        )
        middles = np.stack([cells.middles(row) for row in range(len(cells))])
        spreads = np.where(np.isnan(middles), -1.0, spreads)
        row, axis = np.unravel_index(np.argmax(spreads), spreads.shape)
        if spreads[row, axis] < 0:
            break
        at = float(middles[row, axis])
        children = tree.cut(int(nodes[row]), int(axis), at)
        rest = np.delete(np.arange(len(cells)), row)
        cells = cells[rest].followed_by(cells.cut(int(row), int(axis), at))
        nodes = np.concatenate([nodes[rest], children])
    return cells, tree


def _importance(network: Network) -> Vector:
    """Bound how much each first-layer neuron can change the scores."""
    weights = np.ones(network.outputs)
    for activation, layer in reversed(list(network.steps)):
        weights = (np.abs(layer.weight).T @ weights) * activation.steepest
    return weights
