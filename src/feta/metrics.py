"""Metrics: shares of people, as the paper reports them."""

import numpy as np

from feta.arrays import Flags
from feta.verdict.tally import Tally


def ce_rate(counts: Tally) -> float:
    """Give the share of people who have a counterexample: whose counterparts are not unanimous."""
    return float(np.mean((counts.favorable > 0) & (counts.unfavorable > 0)))


def flip_rate(decisions: Flags, fair: Flags) -> float:
    """Give the share of people whose own decision differs from the fair one."""
    return float(np.mean(decisions != fair))


def accuracy(decisions: Flags, labels: Flags) -> float:
    """Give the share of people decided as their label says."""
    return float(np.mean(decisions == labels))
