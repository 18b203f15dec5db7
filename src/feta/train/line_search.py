"""Trace: the highest point of a score along line segments, from the places where it bends.

Along a line a piecewise-linear network is piecewise linear; its highest point is an end or a bend.
Bends are found layer by layer: between those of the layers before, what goes into a neuron is straight.
"""

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.scorer.network.network import Network


def highest(network: Network, start: Matrix, steps: Matrix, upward: Flags) -> tuple[Vector, Vector]:
    """Find where on each segment, from 0 to 1, the score is highest (or lowest), and that score.

    `start` holds what goes into the first activation at 0, a row a segment; `steps` are added up to 1.
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
    order = np.lexsort((ends, -signed, both))  # of equals the first along the segment
    first = order[np.unique(both[order], return_index=True)[1]]
    return ends[first], scores[first]


def _values(network: Network, first: Matrix, depth: int) -> Matrix:
    """Compute what goes into an activation; the scores, at the last depth."""
    values = first
    for activation, layer in zip(network.activations[:depth], network.layers, strict=False):
        values = activation(values) @ layer.weight.T + layer.bias
    return values


def _crossings(left: Matrix, right: Matrix, breaks: Matrix) -> Matrix:
    """Tell where between 0 and 1 each straight value crosses a break; NaN where it does not."""
    found = []
    for at in breaks:
        crosses = ((left < at) & (right > at)) | ((left > at) & (right < at))
        share = np.divide(at - left, right - left, out=np.full_like(left, np.nan), where=crosses)
        found.append(share)
    return np.hstack(found) if found else np.full((len(left), 1), np.nan)


def _split(
    owners: Counts, low: Vector, high: Vector, shares: Matrix
) -> tuple[Counts, Vector, Vector]:
    """Cut segments at these shares of their length."""
    most = int((~np.isnan(shares)).sum(axis=1).max(initial=0))
    cuts = np.sort(shares, axis=1)[:, :most]  # NaN comes last
    points = low[:, None] + np.clip(cuts, 0.0, 1.0) * (high - low)[:, None]
    points = np.sort(np.column_stack([low, points, high]), axis=1)
    kept = ~np.isnan(points[:, 1:])
    pieces = np.broadcast_to(owners[:, None], kept.shape)
    return pieces[kept], points[:, :-1][kept], points[:, 1:][kept]
