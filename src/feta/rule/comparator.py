"""Comparators: points sorted into classes from bounded or exact scores."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from feta.dyadic import Dyadic
from feta.scorer.protocol import Enclosure

Decisions = NDArray[np.int8]
UNDECIDED = -1


class Comparator(Protocol):
    """A sorter of points into classes."""

    def decide(self, scores: Enclosure) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors remain undecided."""
        ...

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Decide exact scores; nothing remains undecided."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DecisionComparator:
    """1 where a rule's decision differs from a reference decision, 0 where it is the same."""

    rule: Comparator
    reference: int

    def decide(self, scores: Enclosure) -> Decisions:
        """Compare where the error bound allows it; NaN and infinite errors remain undecided."""
        decisions = self.rule.decide(scores)
        return np.where(decisions == UNDECIDED, UNDECIDED, decisions != self.reference).astype(
            np.int8
        )

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Compare exact scores; nothing remains undecided."""
        return (self.rule.decide_exactly(scores) != self.reference).astype(np.int8)


def is_finite_number(value: object) -> bool:
    """Return whether a value is a number that float64 can hold."""
    if not isinstance(value, int | float | np.number):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:
        return False
