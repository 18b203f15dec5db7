"""Ties: counterparts whose scores are provably equal without exact arithmetic.

If the neurons that a sensitive value changes are inactive, or have no effect on the score, the
score does not change. Full lattices tie in this way, and exact arithmetic is too expensive for so
many points.
"""

from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Flags, Matrix
from feta.scorer.network.evaluation import Counterparts
from feta.scorer.network.exact import live_neurons
from feta.space.axis import Axis

if TYPE_CHECKING:
    from feta.scorer.network.activation import Pieces

# Points per chunk: their values and errors in all layers take a few megabytes.
CHUNK = 2**14


def distinct(points: Counterparts, assignment_ids: Counts) -> Counts:
    """Return the first of each group of counterparts whose scores are provably equal."""
    effective = _effective_neurons(points)
    lattice = points.tabulated.lattice
    keys = np.zeros(len(assignment_ids), dtype=np.int64)
    for axis, coordinates in zip(lattice.axes, lattice.coordinates(assignment_ids), strict=True):
        kinds = np.unique(_effective_codes(points, axis, effective), axis=0, return_inverse=True)[
            1
        ].ravel()
        keys = keys * len(axis) + kinds[coordinates]
    return np.sort(np.unique(keys, return_index=True)[1]).astype(np.int64)


def _effective_neurons(points: Counterparts) -> Flags:
    """Return the first-layer neurons that can change the score between these points."""
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
            equal = (pieces == common[depth]).all(axis=0)
            # −1: undecided, or not the same piece everywhere
            common[depth] = np.where(equal, common[depth], np.int8(-1))
    live = live_neurons(network, common)[0][0]
    first = common[0][0]
    slopes = np.broadcast_to(
        network.activations[0].slopes, (network.activations[0].n_pieces, len(first))
    )
    flat = (first >= 0) & (slopes[np.maximum(first, 0), np.arange(len(first))] == 0)
    return np.asarray(live & ~flat)


def _effective_codes(points: Counterparts, axis: Axis, neurons: Flags) -> Matrix:
    """Return an axis's codes, one row per value, with 0 in columns without effect."""
    first = points.tabulated.network.first
    matters = (first.slopes[neurons] != 0).any(axis=0)
    for table in first.tables:
        rows = table.rows[:, neurons]
        matters[table.column] = bool((rows != rows[:1]).any())
    return axis.codes(np.arange(len(axis))) * matters[list(axis.columns)]
