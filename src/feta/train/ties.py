"""Equal: counterparts whose scores are the same for a reason that needs no arithmetic.

Where the neurons that a sensitive value moves are switched off, or nobody listens to them, the score
does not move. Whole lattices tie like that, and exact arithmetic is too dear for so many points.
"""

from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Flags, Matrix
from feta.scorer.network.evaluation import Counterparts
from feta.scorer.network.exact import live_neurons
from feta.space.lattice import Axis

if TYPE_CHECKING:
    from feta.scorer.network.activation import Pieces

# Points looked at together: their values and errors in all layers are a few megabytes.
CHUNK = 2**14


def distinct(points: Counterparts, assignment_ids: Counts) -> Counts:
    """Choose the first of each group of counterparts of one person whose scores are surely equal."""
    moving = _moving(points)
    lattice = points.tabulated.lattice
    keys = np.zeros(len(assignment_ids), dtype=np.int64)
    for axis, coordinates in zip(lattice.axes, lattice.coordinates(assignment_ids), strict=True):
        kinds = np.unique(_masked(points, axis, moving), axis=0, return_inverse=True)[1].ravel()
        keys = keys * len(axis) + kinds[coordinates]
    return np.sort(np.unique(keys, return_index=True)[1]).astype(np.int64)


def _moving(points: Counterparts) -> Flags:
    """Tell the first layer's neurons through which a score could move between these points."""
    network = points.tabulated.network
    if not network.layers:
        return np.ones(network.first.outputs, dtype=bool)
    common: list[Pieces] = []
    for start in range(0, len(points), CHUNK):
        trace = points.trace(np.arange(start, min(start + CHUNK, len(points))))
        for depth, (activation, bounded) in enumerate(
            zip(network.activations, trace, strict=False)
        ):
            pieces = activation.pieces(bounded.values, bounded.errors)
            if depth == len(common):
                common.append(pieces[:1])
            alike = (pieces == common[depth]).all(axis=0)
            common[depth] = np.where(alike, common[depth], np.int8(-1))  # −1: open, or not the same
    live = live_neurons(network, common)[0][0]
    first = common[0][0]
    slopes = np.broadcast_to(
        network.activations[0].slopes, (network.activations[0].n_pieces, len(first))
    )
    flat = (first >= 0) & (slopes[np.maximum(first, 0), np.arange(len(first))] == 0)
    return np.asarray(live & ~flat)


def _masked(points: Counterparts, axis: Axis, moving: Flags) -> Matrix:
    """Give an axis's codes in those columns that move a neuron that matters, one row a value."""
    first = points.tabulated.network.first
    heard = (first.slopes[moving] != 0).any(axis=0)
    for table in first.tables:
        rows = table.rows[:, moving]
        heard[table.column] = bool((rows != rows[:1]).any())
    return axis.codes(np.arange(len(axis))) * heard[list(axis.columns)]
