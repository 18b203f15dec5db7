"""Data of one model for one solver, reused from person to person."""

from threading import Lock

import numpy as np

from feta.arrays import Vector
from feta.cells.cells import Cells
from feta.engine.milp.backends.highs import HighsSession
from feta.engine.milp.backends.protocol import Backend, Session
from feta.model import Model
from feta.scorer.cell_bounds import CellBounds
from feta.scorer.program_encoder import EncodedProgram, ProgramBounds
from feta.scorer.protocol import Objective, Restricted
from feta.verdict.certificate import CutTree

# Cells bounded at once: twice as many improve the bounds only a little.
N_CELLS = 64


class Solver:
    """A model prepared for one backend; it holds no reference to the model, which may be freed."""

    def __init__(self, model: Model, backend: Backend, bounds: ProgramBounds) -> None:
        self.backend, self.bounds = backend, bounds
        self.axes = model.relation.axes
        self.encoder = model.restricted.encoder(model.space, bounds, HighsSession)
        self.by_cells = bounds in ("parts", "lp")
        n_cells = N_CELLS if self.by_cells else 1
        self._cells, self.tree = _partition(model.restricted, Cells.whole(self.axes), n_cells)
        self._sessions: dict[str, Session] = {}
        self.lock = Lock()  # a session holds the program of one person at a time

    def session(self, kind: str) -> Session:
        """Return the session for one kind of search."""
        if kind not in self._sessions:
            self._sessions[kind] = self.backend.session()
        return self._sessions[kind]

    def bound(self, model: Model, person: Vector, objective: Objective) -> CellBounds:
        """Bound an objective over all counterparts of a person, cell by cell."""
        return model.restricted.over(
            person, self._cells, objective, source_error=model.runtime_error
        )

    def encode(
        self, bounds: CellBounds, person: Vector, *, maximize: bool, listed: bool = False
    ) -> EncodedProgram:
        """Write the program for one person over the cells that the bounds leave undecided."""
        return self.encoder.encode(bounds, person, maximize=maximize, listed=listed)


def _partition(restricted: Restricted, cells: Cells, n_cells: int) -> tuple[Cells, CutTree]:
    """Split all counterparts into cells where the scores vary most.

    The cells are the same for all people. Bounds over small cells are much tighter, and bounding
    many cells costs little more than bounding one.
    """
    tree, nodes = CutTree(), np.zeros(1, dtype=np.int64)
    while len(cells) < n_cells:
        spreads = restricted.influence(cells)
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
