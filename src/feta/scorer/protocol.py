"""The protocol of scorers: exact real functions of an encoded person."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.dyadic import Dyadic
from feta.rounding import DIFFERENCE, Arithmetic

# The side of a threshold.
Side = Literal["above", "below"]

# "sampled": part of the preprocessing is unknown code that was tested on samples only.
Provenance = Literal["proved", "sampled"]


@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """Numbers with error bounds; nothing is known where an error bound is not finite."""

    values: Matrix  # (points, outputs)
    errors: Matrix

    def __getitem__(self, chosen: Counts) -> "Enclosure":
        return Enclosure(self.values[chosen], self.errors[chosen])


class Points(Protocol):
    """Points of a scorer's domain, indexed from 0."""

    def __len__(self) -> int: ...

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        ...

    def exact_scores(self, chosen: Counts) -> Dyadic:
        """Compute exact scores, (points, outputs)."""
        ...


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

    def range(self, scores: Enclosure) -> tuple[Vector, Vector, Vector]:
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
