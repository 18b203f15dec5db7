"""Access to counterparts without holding all of them in memory: in blocks, or by ID."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.dyadic import Dyadic
from feta.model import Model
from feta.rounding import Arithmetic
from feta.scorer.protocol import CounterpartPoints, Enclosure
from feta.space.vote_weights import VoteWeights

# Counts and assignment IDs are int64; the sum of two of them must fit as well.
MAX_COUNTERPARTS = 2**62

# Numbers per array of a block: about ten arrays of 2^16 float64 fit in the cache of a core.
BLOCK_NUMBERS = 2**16


def block_size(model: Model) -> int:
    """Return the number of counterparts in a block for this model."""
    return max(1, BLOCK_NUMBERS // model.scorer.cost)


def blocks(
    model: Model, people: Matrix, weights: VoteWeights | None
) -> Iterator[tuple[CounterpartPoints, Counts]]:
    """Return blocks of counterparts, each with the votes of its assignments."""
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
        yield model.restricted.counterparts(people, assignment_ids), votes


@dataclass(frozen=True, eq=False)
class IndexedCounterparts:
    """All counterparts of one person by assignment ID; each is created on request."""

    model: Model
    person: Vector

    def __len__(self) -> int:
        return self.model.space.lattice.size

    def _points(self, chosen: Counts) -> CounterpartPoints:
        return self.model.restricted.counterparts(self.person[None, :], chosen)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute scores in float64, with an error bound that also covers the given arithmetic."""
        assert chosen is not None  # all of them at once may not fit in memory
        return self._points(chosen).scores(arithmetic)

    def exact_scores(self, chosen: Counts) -> Dyadic:
        """Compute exact scores, (points, outputs)."""
        return self._points(chosen).exact_scores(np.arange(len(chosen)))
