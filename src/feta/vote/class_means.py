"""Several classes: the rule of the model, applied to the mean score or probability per class."""

from dataclasses import dataclass
from math import lcm

import numpy as np

from feta.dyadic import Dyadic
from feta.rule.comparator import UNDECIDED, Decisions
from feta.rule.protocol import Rule
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure
from feta.vote.totals import ExactTotals, Totals


@dataclass(frozen=True, slots=True, eq=False)
class ClassMeans:
    """A rule that compares classes with each other, so that sums decide as means do."""

    rule: Rule

    def decide(self, totals: Totals, scale: int) -> Decisions:
        """Decide sums per class; UNDECIDED where the bounds do not decide."""
        del scale
        finite = np.isfinite(totals.lows) & np.isfinite(totals.highs)
        known = np.asarray(finite.all(axis=1))
        middles = np.where(known[:, None], totals.middles, 0.0)
        with np.errstate(invalid="ignore"):  # inf − inf where nothing is known
            radii = np.maximum(totals.highs - middles, middles - totals.lows)
        errors = np.where(known[:, None], np.nextafter(radii, np.inf), np.inf)
        decisions = self.rule.decide(Enclosure(middles, errors))
        return np.where(known, decisions, UNDECIDED).astype(np.int8)

    def decide_exactly(self, totals: ExactTotals, scale: int) -> int:
        """Decide the sums of one person."""
        del scale
        common = lcm(*(total.denominator for total in totals))
        numerators = np.array([[int(total * common) for total in totals]], dtype=object)
        return int(self.rule.decide_exactly(ExactScores(Dyadic(numerators, 0)))[0])
