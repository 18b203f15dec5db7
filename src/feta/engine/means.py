"""Means over every counterpart: bounds in float64, and exact sums where these do not decide."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Matrix
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.counterparts import assignments, block_size, blocks
from feta.engine.protocol import Budget, check_countable
from feta.errors import SchemaError, UnreliableAnswer
from feta.model import Model
from feta.rule.comparator import UNDECIDED
from feta.space.vote_weights import VoteWeights
from feta.verdict.means import Means
from feta.vote.cutoff import CutOff
from feta.vote.totals import MeanVote, Totals

# Sums of grades are integers in float64.
MAX_TOTAL = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class MeanSums:
    """Sums over the counterparts of people; `scales` times the mean of each."""

    model: Model
    vote: MeanVote
    weights: VoteWeights | None

    def scale(self, people: Matrix) -> int:
        """Return the number by which a sum is divided: the votes of these people's counterparts."""
        total = assignments(self.model, people, self.weights).total
        if total * self.vote.unit >= MAX_TOTAL:
            raise SchemaError(
                f"too many votes for a mean: got {total} votes per person; expected fewer than "
                f"{MAX_TOTAL // self.vote.unit}; give vote weights"
            )
        return total * self.vote.unit

    def bounded(self, people: Matrix, tracker: BudgetTracker) -> Totals:
        """Return bounds on the sums of people with the same assignments."""
        totals = Totals(np.zeros(len(people)), np.zeros(len(people)))
        for points, votes in blocks(self.model, people, self.weights):
            if tracker.spent(len(points)):
                unknown = np.full(len(people), np.inf)
                return Totals(-unknown, unknown)
            totals = totals.plus(self.vote.totals(points, votes))
        return totals

    def exact(self, person: Matrix, tracker: BudgetTracker) -> Fraction | None:
        """Return the sum of one person; None if it cannot be computed, or not in time."""
        total = Fraction(0)
        for points, votes in blocks(self.model, person, self.weights):
            if tracker.late():
                return None
            part = self.vote.exact_total(points, votes)
            if part is None:
                return None
            total += part
        return total

    def groups(self, n_people: int, people: Matrix) -> list[slice]:
        """Divide people into groups that have the same assignments and fit into one block."""
        size = 1
        if self.model.relation.complete and n_people:
            n_assignments = assignments(self.model, people[:1], self.weights).size
            size = max(1, block_size(self.model) // max(1, n_assignments))
        return [slice(start, min(start + size, n_people)) for start in range(0, n_people, size)]


def means_of(
    model: Model,
    people: Matrix,
    budget: Budget,
    *,
    vote: MeanVote,
    cutoff: CutOff,
    weights: VoteWeights | None,
) -> Means:
    """Decide each person by the mean of the counterparts, exactly."""
    check_countable(model)
    sums, tracker = MeanSums(model, vote, weights), BudgetTracker(budget)
    means = np.full(len(people), np.nan)
    decisions = np.full(len(people), UNDECIDED, dtype=np.int8)
    for group in sums.groups(len(people), people):
        scale = sums.scale(people[group])
        if not scale:  # nobody has a vote
            continue
        try:
            totals = sums.bounded(people[group], tracker)
            decisions[group] = cutoff.decide(totals, scale)
            means[group] = totals.middles / scale
            for row in (np.flatnonzero(decisions[group] == UNDECIDED) + group.start).tolist():
                exact = sums.exact(people[row : row + 1], tracker)
                if exact is not None:
                    decisions[row] = cutoff.decide_exactly(exact, scale)
        except UnreliableAnswer:  # a counted model in doubt
            decisions[group] = UNDECIDED
    return Means(np.where(decisions == UNDECIDED, np.nan, means), decisions)
