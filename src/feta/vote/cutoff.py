"""The cut-off on a mean; a mean on the cut-off is favorable."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.errors import SchemaError
from feta.rule.comparator import UNDECIDED, Decisions
from feta.rule.protocol import is_finite_number
from feta.scorer.protocol import Side
from feta.vote.totals import Totals


@dataclass(frozen=True, slots=True)
class CutOff:
    """A mean score, or a mean probability, and the side of it that is favorable."""

    level: float
    favors: Side = "above"

    def __post_init__(self) -> None:
        if not is_finite_number(self.level):
            raise SchemaError(f"invalid level: got {self.level!r}; expected a finite number")
        object.__setattr__(self, "level", float(self.level) + 0.0)

    def decide(self, totals: Totals, scale: int) -> Decisions:
        """Decide sums of `scale` times the mean; UNDECIDED where the bounds do not decide."""
        cut = Fraction(self.level) * scale
        if self.favors == "above":
            edge = _at_least(cut)
            favorable, unfavorable = totals.lows >= edge, totals.highs < edge
        else:
            edge = -_at_least(-cut)
            favorable, unfavorable = totals.highs <= edge, totals.lows > edge
        return np.where(favorable, 1, np.where(unfavorable, 0, UNDECIDED)).astype(np.int8)

    def decide_exactly(self, total: Fraction, scale: int) -> int:
        """Decide one sum."""
        cut = Fraction(self.level) * scale
        return int(total >= cut if self.favors == "above" else total <= cut)


def _at_least(number: Fraction) -> float:
    """Return the lowest float64 that is not below a number."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else float(np.nextafter(nearest, np.inf))
