"""The cut-off on a mean; a mean on the cut-off is favorable."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.errors import SchemaError
from feta.rule.comparator import UNDECIDED, Decisions
from feta.rule.protocol import is_finite_number
from feta.scorer.protocol import Side
from feta.vote.totals import ExactTotals, Totals


@dataclass(frozen=True, slots=True)
class CutOff:
    """A mean score, or a mean probability, and the side of it that is favorable."""

    level: float
    favors: Side = "above"

    def __post_init__(self) -> None:
        if not is_finite_number(self.level):
            raise SchemaError(f"invalid level: got {self.level!r}; expected a finite number")
        object.__setattr__(self, "level", float(self.level) + 0.0)

    def edge(self, scale: int) -> float:
        """Return the last favorable float64 sum."""
        cut = Fraction(self.level) * scale
        return _at_least(cut) if self.favors == "above" else -_at_least(-cut)

    def decide(self, totals: Totals, scale: int) -> Decisions:
        """Decide sums of `scale` times the mean; UNDECIDED where the bounds do not decide."""
        (lows, highs), edge = totals.first(), self.edge(scale)
        if self.favors == "above":
            favorable, unfavorable = lows >= edge, highs < edge
        else:
            favorable, unfavorable = highs <= edge, lows > edge
        return np.where(favorable, 1, np.where(unfavorable, 0, UNDECIDED)).astype(np.int8)

    def decide_exactly(self, totals: ExactTotals, scale: int) -> int:
        """Decide one sum."""
        cut = Fraction(self.level) * scale
        return int(totals[0] >= cut if self.favors == "above" else totals[0] <= cut)


def _at_least(number: Fraction) -> float:
    """Return the lowest float64 that is not below a number."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else float(np.nextafter(nearest, np.inf))
