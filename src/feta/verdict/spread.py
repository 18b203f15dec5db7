"""Spread: where the scores of a person's counterparts lie; what regression asks for."""

from dataclasses import dataclass

from feta.arrays import Flags, Vector
from feta.deprecation import renamed


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """One row a person: the lower median of the counterparts' scores, the lowest and the highest.

    All three are chosen exactly and rounded once; NaN where not `decided` within the budget.
    """

    median: Vector
    lowest: Vector
    highest: Vector
    decided: Flags

    settled = renamed("settled", "decided")

    @property
    def span(self) -> Vector:
        """How far apart the counterparts' scores are."""
        return self.highest - self.lowest
