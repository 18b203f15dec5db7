"""Spread of the scores of people's counterparts, for regression."""

from dataclasses import dataclass

from feta.arrays import Flags, Vector
from feta.deprecation import renamed


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Lower median, lowest and highest score of the counterparts, one row per person.

    All three are selected exactly and rounded once. They are NaN where `decided` is False: there
    the budget ran out.
    """

    median: Vector
    lowest: Vector
    highest: Vector
    decided: Flags

    settled = renamed("settled", "decided")

    @property
    def span(self) -> Vector:
        """Difference between the highest and the lowest score."""
        return self.highest - self.lowest
