"""Comparators: points sorted into classes from bounded or exact scores."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure

Decisions = NDArray[np.int8]
UNDECIDED = -1


class Comparator(Protocol):
    """A sorter of points into classes."""

    def decide(self, scores: Enclosure) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors remain undecided."""
        ...

    def decide_exactly(self, scores: ExactScores) -> Decisions:
        """Decide exact scores; intervals whose points differ in decision remain undecided."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DecisionComparator:
    """1 where a rule's decision differs from a reference decision, 0 where it is the same.

    If the reference itself is undecided, so is everything else.
    """

    rule: Comparator
    reference: int

    def decide(self, scores: Enclosure) -> Decisions:
        """Compare where the error bound allows it; NaN and infinite errors remain undecided."""
        return self._compare(self.rule.decide(scores))

    def decide_exactly(self, scores: ExactScores) -> Decisions:
        """Compare exact scores; intervals whose points differ in decision remain undecided."""
        return self._compare(self.rule.decide_exactly(scores))

    def _compare(self, decisions: Decisions) -> Decisions:
        unknown = (decisions == UNDECIDED) | (self.reference == UNDECIDED)
        return np.where(unknown, UNDECIDED, decisions != self.reference).astype(np.int8)
