"""Means over every counterpart: bounds in float64, and exact sums where these do not decide."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Counts, Matrix
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.counterparts import assignments, block_size, blocks, same_assignments
from feta.engine.protocol import Budget, check_countable
from feta.errors import SchemaError, UnreliableAnswer
from feta.model import Model
from feta.rule.comparator import UNDECIDED, Decisions
from feta.space.vote_weights import VoteWeights
from feta.verdict.means import MeanOutcome, Means
from feta.vote.mean_decision import LARGEST_SUM, MeanDecision
from feta.vote.totals import ExactTotals, MeanVote, SumRule, Totals


@dataclass(frozen=True, slots=True, eq=False)
class MeanSums:
    """Sums over the counterparts of people; `scale` times the mean of each."""

    model: Model
    vote: MeanVote
    weights: VoteWeights | None

    def scale(self, people: Matrix) -> int:
        """Return the number by which a sum is divided: the votes of these people's counterparts."""
        total = assignments(self.model, people, self.weights).total
        if total * self.vote.unit >= LARGEST_SUM:
            raise SchemaError(
                f"too many votes for a mean: got {total} votes per person; expected fewer than "
                f"{LARGEST_SUM // self.vote.unit}; give vote weights"
            )
        return total * self.vote.unit

    def bounded(self, people: Matrix, tracker: BudgetTracker) -> Totals:
        """Return bounds on the sums of people with the same assignments."""
        shape = (len(people), self.model.scorer.outputs)
        totals = Totals(np.zeros(shape), np.zeros(shape))
        for points, votes in blocks(self.model, people, self.weights):
            if tracker.spent(len(points)):
                return Totals(np.full(shape, -np.inf), np.full(shape, np.inf))
            totals = totals.plus(self.vote.totals(points, votes))
        return totals

    def exact(self, person: Matrix, tracker: BudgetTracker) -> ExactTotals | None:
        """Return the sums of one person; None if they cannot be computed, or not in time."""
        totals: ExactTotals | None = None
        for points, votes in blocks(self.model, person, self.weights):
            if tracker.late():
                return None
            part = self.vote.exact_totals(points, votes)
            if part is None:
                return None
            before = totals or (Fraction(0),) * len(part)
            totals = tuple(left + right for left, right in zip(before, part, strict=True))
        return totals

    def groups(self, people: Matrix) -> list[Counts]:
        """Divide people, by row, into groups with the same assignments that fit into one block."""
        groups: list[Counts] = []
        for rows in same_assignments(self.model, people):
            if not len(rows):
                continue
            n_assignments = assignments(self.model, people[rows[:1]], self.weights).size
            size = max(1, block_size(self.model) // max(1, n_assignments))
            groups += np.split(rows, range(size, len(rows), size))
        return groups


def means_of(
    model: Model,
    people: Matrix,
    budget: Budget,
    *,
    mean: MeanDecision,
    weights: VoteWeights | None,
) -> Means:
    """Decide each person by the mean of the counterparts, exactly."""
    check_countable(model)
    work = _Work(MeanSums(model, mean.vote, weights), people, BudgetTracker(budget))
    for group in work.sums.groups(people):
        scale = work.sums.scale(people[group])
        if not scale:  # nobody has a vote
            continue
        try:
            if mean.rule is None:
                work.average(group, scale)
            else:
                work.decide(group, scale, mean.rule)
        except UnreliableAnswer:  # a counted model in doubt
            work.decisions[group] = UNDECIDED
    return work.result(mean.rule)


class _Work:
    """The means and decisions found so far."""

    def __init__(self, sums: MeanSums, people: Matrix, tracker: BudgetTracker) -> None:
        self.sums, self.people, self.tracker = sums, people, tracker
        self.means = np.full((len(people), sums.model.scorer.outputs), np.nan)
        self.decisions: Decisions = np.full(len(people), UNDECIDED, dtype=np.int8)

    def decide(self, group: Counts, scale: int, rule: SumRule) -> None:
        """Decide people by bounds on their sums, and exactly where these do not decide."""
        totals = self.sums.bounded(self.people[group], self.tracker)
        self.decisions[group] = rule.decide(totals, scale)
        self.means[group] = totals.middles / scale
        for row in group[self.decisions[group] == UNDECIDED].tolist():
            exact = self.sums.exact(self.people[row : row + 1], self.tracker)
            if exact is not None:
                self.decisions[row] = rule.decide_exactly(exact, scale)

    def average(self, group: Counts, scale: int) -> None:
        """Round the exact mean of each person once."""
        for row in group.tolist():
            if self.tracker.spent(assignments_of(self.sums, self.people[row : row + 1])):
                return
            exact = self.sums.exact(self.people[row : row + 1], self.tracker)
            if exact is not None:
                self.means[row], self.decisions[row] = float(exact[0] / scale), 1

    def result(self, rule: SumRule | None) -> Means:
        """Return the means; NaN where the decision is unknown."""
        means = np.where((self.decisions == UNDECIDED)[:, None], np.nan, self.means)
        outcome: MeanOutcome = "mean" if rule is None else "favorable"
        if rule is not None and not self.sums.model.rule.two_sided:
            outcome = "class"
        return Means(means[:, 0] if means.shape[1] == 1 else means, self.decisions, outcome)


def assignments_of(sums: MeanSums, person: Matrix) -> int:
    """Return the number of counterparts of one person that have votes."""
    return assignments(sums.model, person, sums.weights).size
