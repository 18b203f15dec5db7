"""Exact order statistics of scores that are known up to error bounds."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.counterparts import IndexedCounterparts, blocks
from feta.engine.protocol import Budget
from feta.errors import UnreliableAnswer
from feta.model import Model
from feta.rounding import FLOAT64
from feta.scorer.protocol import Enclosure, Points
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread


def spread_of(model: Model, people: Matrix, budget: Budget, weights: VoteWeights | None) -> Spread:
    """Compute each person's median, lowest and highest counterpart score, exactly."""
    budget_tracker = BudgetTracker(budget)
    statistics = np.full((3, len(people)), np.nan)
    counted = model.scorer.provenance == "counted"
    for row in range(len(people)):
        scores = OrderStatistics()
        for points, votes in blocks(model, people[row : row + 1], weights):
            if budget_tracker.spent(len(points)):
                break
            scores.add(points.assignment_ids, votes, points.scores(FLOAT64))
        else:
            if scores.empty:  # nobody has a vote
                continue
            with suppress(UnreliableAnswer):  # a counted model in doubt: undecided
                counterparts = IndexedCounterparts(model, people[row])
                statistics[:, row] = scores.spread(counterparts, rounded=counted)
    return Spread(statistics[0], statistics[1], statistics[2], ~np.isnan(statistics[0]))


class OrderStatistics:
    """Intervals that contain the scores of one person's counterparts, with their votes."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Counts, Counts, Vector, Vector]] = []

    @property
    def empty(self) -> bool:
        """Whether there are no counterparts."""
        return not self._blocks

    def add(self, assignment_ids: Counts, votes: Counts, scores: Enclosure) -> None:
        """Add a block of counterparts."""
        values, errors = scores.values[:, 0], scores.errors[:, 0]
        with np.errstate(invalid="ignore"):  # inf − inf where nothing is known
            lows = np.nan_to_num(values - errors, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            highs = np.nan_to_num(values + errors, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        # Both sums are rounded; one step outward keeps the score inside the interval.
        self._blocks.append(
            (assignment_ids, votes, np.nextafter(lows, -np.inf), np.nextafter(highs, np.inf))
        )

    def spread(self, points: Points, *, rounded: bool = False) -> tuple[float, float, float]:
        """Return the lower median, the lowest and the highest score, each rounded once.

        With `rounded`, intervals come from answers of a model that differ by rounding. Its first
        answers are then ranked: they are the same for all people of a key.
        """
        intervals = _Intervals(*(np.concatenate(part) for part in zip(*self._blocks, strict=True)))
        total = int(intervals.votes.sum())
        ranks = ((total + 1) // 2, 1, total)
        median, lowest, highest = (
            _score_at_rank(rank, points, intervals, rounded=rounded) for rank in ranks
        )
        return median, lowest, highest


@dataclass(frozen=True, slots=True, eq=False)
class _Intervals:
    assignment_ids: Counts
    votes: Counts
    lows: Vector
    highs: Vector


def _score_at_rank(rank: int, points: Points, intervals: _Intervals, *, rounded: bool) -> float:
    """Return the score at this rank from below, where every counterpart has its votes.

    NaN if the scorer has intervals only, unless they are `rounded` answers: which score has the
    rank, and its value, are not exact.
    At least `rank` votes lie at or below the rank-th high, and fewer than `rank` below the rank-th
    low. So the score lies between the two, and only counterparts that may lie there matter.
    """
    floor = _quantile(intervals.lows, intervals.votes, rank)
    ceiling = _quantile(intervals.highs, intervals.votes, rank)
    below = intervals.highs < floor
    near = ~below & (intervals.lows <= ceiling)
    scores = points.exact_scores(intervals.assignment_ids[near])
    finite = np.isfinite(intervals.lows[near]).all() and np.isfinite(intervals.highs[near]).all()
    if scores.radii is not None and not (rounded and finite):
        return float("nan")
    exact = scores.centers
    order = sorted(range(int(near.sum())), key=lambda index: exact.numerators[index, 0])
    votes_up_to = int(intervals.votes[below].sum()) + np.cumsum(intervals.votes[near][order])
    index = order[int(np.searchsorted(votes_up_to, rank))]
    return float(exact[index, :1].floats()[0])


def _quantile(values: Vector, votes: Counts, rank: int) -> float:
    order = np.argsort(values, kind="stable")
    return float(values[order[int(np.searchsorted(np.cumsum(votes[order]), rank))]])
