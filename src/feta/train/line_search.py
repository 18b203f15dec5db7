"""Maximum of a score along line segments.

Along a line, a piecewise-linear network is piecewise linear, so its maximum is at an end or at a
break. Breaks are found layer by layer: between the breaks of earlier layers, the input of a neuron
is linear.
"""

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.scorer.network.network import Network


def highest(network: Network, start: Matrix, steps: Matrix, upward: Flags) -> tuple[Vector, Vector]:
    """Find the position on each segment, from 0 to 1, of the highest (or lowest) score.

    Return positions and scores. `start` contains the inputs of the first activation at position
    0, one row per segment; `start + steps` are those at position 1.
    """
    owners = np.arange(len(start))
    low, high = np.zeros(len(start)), np.ones(len(start))
    for depth in range(len(network.layers)):
        left, right = (
            _values(network, start[owners] + at[:, None] * steps[owners], depth)
            for at in (low, high)
        )
        breaks = network.activations[depth].breaks
        owners, low, high = _split(owners, low, high, _crossings(left, right, breaks))
    ends = np.concatenate([low, high])
    both = np.concatenate([owners, owners])
    scores = _values(network, start[both] + ends[:, None] * steps[both], len(network.layers))[:, 0]
    signed = np.where(upward[both], scores, -scores)
    order = np.lexsort((ends, -signed, both))  # the first of equals along the segment
    first = order[np.unique(both[order], return_index=True)[1]]
    return ends[first], scores[first]


def _values(network: Network, first: Matrix, depth: int) -> Matrix:
    """Compute the inputs of an activation; at the last depth, the scores."""
    values = first
    for activation, layer in zip(network.activations[:depth], network.layers, strict=False):
        values = activation(values) @ layer.weight.T + layer.bias
    return values


def _crossings(left: Matrix, right: Matrix, breaks: Matrix) -> Matrix:
    """Compute where between 0 and 1 each linear value crosses a break; NaN if it does not."""
    crossings = []
    for at in breaks:
        crosses = ((left < at) & (right > at)) | ((left > at) & (right < at))
        share = np.divide(at - left, right - left, out=np.full_like(left, np.nan), where=crosses)
        crossings.append(share)
    return np.hstack(crossings) if crossings else np.full((len(left), 1), np.nan)


def _split(
    owners: Counts, low: Vector, high: Vector, shares: Matrix
) -> tuple[Counts, Vector, Vector]:
    """Split segments at these shares of their length."""
    n_cuts = int((~np.isnan(shares)).sum(axis=1).max(initial=0))
    cuts = np.sort(shares, axis=1)[:, :n_cuts]  # NaN comes last
    points = low[:, None] + np.clip(cuts, 0.0, 1.0) * (high - low)[:, None]
    points = np.sort(np.column_stack([low, points, high]), axis=1)
    valid = ~np.isnan(points[:, 1:])
    pieces = np.broadcast_to(owners[:, None], valid.shape)
    return pieces[valid], points[:, :-1][valid], points[:, 1:][valid]
