"""The objective of a search for counterexamples."""

from dataclasses import dataclass, field

import numpy as np

from feta.arrays import Matrix, Vector
from feta.dyadic import Dyadic
from feta.rounding import DIFFERENCE
from feta.scorer.network.error_bounds import Bounded


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """The largest of directions · scores + offsets, or the smallest of them with `least`.

    A counterpart gets a different decision above `level` and the same decision below it. On the
    level, the rule's tie-breaking decides.
    """

    directions: Matrix  # (directions, outputs), entries −1, 0 and 1
    offsets: Dyadic = field(default_factory=lambda: Dyadic.of(np.zeros(1)))
    least: bool = False
    level: float = 0.0

    def range(self, scores: Bounded) -> tuple[Vector, Vector, Vector]:
        """Return a lower bound, an upper bound and an estimate of the objective at each point."""
        sizes = np.abs(self.directions).T
        offsets = self.offsets.floats()
        middles = scores.values @ self.directions.T + offsets
        size = np.abs(scores.values) @ sizes + np.abs(offsets)
        with np.errstate(invalid="ignore"):  # inf − inf and 0 · inf where nothing is known
            radius = scores.errors @ sizes * (1 + DIFFERENCE) + DIFFERENCE * size
            lows = np.nan_to_num(middles - radius, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            highs = np.nan_to_num(middles + radius, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        if self.least:
            return lows.min(axis=1), highs.min(axis=1), middles.min(axis=1)
        return lows.max(axis=1), highs.max(axis=1), middles.max(axis=1)
