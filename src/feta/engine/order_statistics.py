"""ScoreRanges: order statistics of scores that are known to within errors, chosen exactly."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.dyadic import Dyadic
from feta.engine.blocks import blocks
from feta.engine.protocol import Budget
from feta.engine.query_state import BudgetTracker, Numbered
from feta.model import Model
from feta.rounding import FLOAT64
from feta.scorer.network.error_bounds import Bounded
from feta.scorer.network.evaluation import Points
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread


def spread_of(model: Model, people: Matrix, budget: Budget, weights: VoteWeights | None) -> Spread:
    """Find each person's median, lowest and highest counterpart score, exactly."""
    budget_tracker = BudgetTracker(budget)
    found = np.full((3, len(people)), np.nan)
    for row in range(len(people)):
        ranges = OrderStatistics()
        for points, votes in blocks(model, people[row : row + 1], weights):
            if budget_tracker.spent(len(points)):
                break
            ranges.add(points.assignment_ids, votes, points.scores(FLOAT64))
        else:
            found[:, row] = ranges.spread(Numbered(model, people[row]))
    return Spread(found[0], found[1], found[2], ~np.isnan(found[0]))


class OrderStatistics:
    """The scores of one person's counterparts, as far as float64 tells, and the votes of each."""

    def __init__(self) -> None:
        self._parts: list[tuple[Counts, Counts, Vector, Vector]] = []

    def add(self, assignment_ids: Counts, votes: Counts, scores: Bounded) -> None:
        """Take a block of counterparts."""
        values, errors = scores.values[:, 0], scores.errors[:, 0]
        with np.errstate(invalid="ignore"):  # inf − inf where nothing is known
            lows = np.nan_to_num(values - errors, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            highs = np.nan_to_num(values + errors, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        # The two sums are rounded; a step outward keeps the score between them.
        self._parts.append(
            (assignment_ids, votes, np.nextafter(lows, -np.inf), np.nextafter(highs, np.inf))
        )

    def spread(self, points: Points) -> tuple[float, float, float]:
        """Give the lower median, the lowest and the highest score, each rounded once."""
        ranges = _Ranges(*(np.concatenate(part) for part in zip(*self._parts, strict=True)))
        total = int(ranges.votes.sum())
        ranks = ((total + 1) // 2, 1, total)
        median, lowest, highest = (_ranked(rank, points, ranges) for rank in ranks)
        return median, lowest, highest


@dataclass(frozen=True, slots=True, eq=False)
class _Ranges:
    assignment_ids: Counts
    votes: Counts
    lows: Vector
    highs: Vector


def _ranked(rank: int, points: Points, ranges: _Ranges) -> float:
    """Give the score at this rank from below, every counterpart counted with its votes.

    At least `rank` votes lie at or below the rank-th high, and fewer than `rank` below the rank-th
    low: the score lies between the two, and only counterparts that may lie there matter.
    """
    floor = _quantile(ranges.lows, ranges.votes, rank)
    ceiling = _quantile(ranges.highs, ranges.votes, rank)
    below = ranges.highs < floor
    near = ~below & (ranges.lows <= ceiling)
    exact = points.exact_scores(ranges.assignment_ids[near])
    order = sorted(range(int(near.sum())), key=lambda index: exact.numerators[index, 0])
    passed = int(ranges.votes[below].sum()) + np.cumsum(ranges.votes[near][order])
    chosen = order[int(np.searchsorted(passed, rank))]
    return float(Dyadic(exact.numerators[chosen, :1], exact.exponent).floats()[0])


def _quantile(values: Vector, votes: Counts, rank: int) -> float:
    order = np.argsort(values, kind="stable")
    return float(values[order[int(np.searchsorted(np.cumsum(votes[order]), rank))]])
