"""Figures about two-sided decisions: accuracy, level, and gaps between groups."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix
from feta.metrics.estimate import Estimate, rate_difference
from feta.metrics.overlap import quartered
from feta.space.feature_space import FeatureSpace

# Smaller groups are not compared: one decision would move their rate by more than 5 points.
MIN_PEOPLE = 20


@dataclass(frozen=True, slots=True, eq=False)
class GroupPair:
    """Two groups of a sensitive attribute whose rates of favorable decisions are compared."""

    attribute: str
    names: tuple[str, str]
    first: Flags
    second: Flags

    @property
    def title(self) -> str:
        """The attribute and both groups."""
        return f"{self.attribute}: {self.names[0]} minus {self.names[1]}"


@dataclass(frozen=True, slots=True, eq=False)
class DecisionFigures:
    """How often decisions are right and favorable, and how far apart the groups are."""

    accuracy: Estimate
    favorable: Estimate
    gaps: tuple[Estimate, ...]  # one per pair of groups

    @classmethod
    def of(cls, decisions: Flags, labels: Flags, pairs: tuple[GroupPair, ...]) -> "DecisionFigures":
        """Measure the decisions for people."""
        return cls(
            Estimate.share(decisions == labels),
            Estimate.share(decisions),
            tuple(rate_difference(decisions, pair.first, pair.second) for pair in pairs),
        )


def widest_pairs(space: FeatureSpace, people: Matrix, decisions: Flags) -> tuple[GroupPair, ...]:
    """Return, per sensitive attribute, the groups with the highest and with the lowest rate.

    Other decisions about the same people are then compared on the same groups. Since the groups
    are chosen by these decisions, the gap of these decisions is larger than on new people.
    """
    pairs = []
    for bands in quartered(space, people):
        indices = bands.indices(people[:, space.columns_of(bands.attribute)])
        counts = np.bincount(indices, minlength=len(bands.names))
        rates = {
            group: float(decisions[indices == group].mean())
            for group in np.flatnonzero(counts >= MIN_PEOPLE).tolist()
        }
        if len(rates) > 1:
            first, second = max(rates, key=rates.__getitem__), min(rates, key=rates.__getitem__)
            if first == second:  # all rates are equal
                first, second = list(rates)[:2]
            names = bands.names[first], bands.names[second]
            pairs.append(
                GroupPair(bands.attribute.name, names, indices == first, indices == second)
            )
    return tuple(pairs)
