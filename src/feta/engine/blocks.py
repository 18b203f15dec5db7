"""Blocks: counterparts a block at a time, so that memory is bounded whatever the lattice's size."""

from collections.abc import Iterator

import numpy as np

from feta.arrays import Counts, Matrix
from feta.model import Model
from feta.scorer.network.evaluation import Counterparts
from feta.space.vote_weights import VoteWeights

# Numbers held per array of a block: some ten arrays of 2^16 float64 are about what a core caches.
BLOCK_NUMBERS = 2**16


def block_size(model: Model) -> int:
    """Tell how many counterparts of this model make a block."""
    widths = [model.network.first.outputs, *(len(layer.bias) for layer in model.network.layers)]
    return max(1, BLOCK_NUMBERS // max(widths))


def blocks(
    model: Model, people: Matrix, weights: VoteWeights | None
) -> Iterator[tuple[Counterparts, Counts]]:
    """Give counterparts a block at a time, and the votes that each number has."""
    if weights is not None:
        weights.check(model.space)
    size = model.space.lattice.size if weights is None else len(weights.assignment_ids)
    step = max(1, block_size(model) // len(people))
    for start in range(0, size, step):
        stop = min(start + step, size)
        if weights is None:
            assignment_ids, votes = np.arange(start, stop), np.ones(stop - start, dtype=np.int64)
        else:
            assignment_ids, votes = weights.assignment_ids[start:stop], weights.votes[start:stop]
        yield model.tabulated.counterparts(people, assignment_ids), votes
