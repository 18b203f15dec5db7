"""Counts of decisions by a kernel, completed in exact arithmetic."""

import time
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.engine.budget_tracker import kernel_limits
from feta.engine.counterparts import assignments, same_assignments
from feta.engine.protocol import Budget, Until
from feta.model import EXACT_CHUNK, Model
from feta.rule.comparator import UNDECIDED
from feta.scorer.kernel import LatticeKernel
from feta.space.vote_weights import VoteWeights
from feta.verdict.tally import Tally, complete_tally

# Undecided counterparts that one call of the kernel may return: at most 1 GB, at eight bytes each
# and twice that while a list of them grows.
MAX_UNDECIDED_PER_CALL = 2**26

# The kernel gives up on a person with more undecided counterparts (`max_undecided` in search.hpp).
MAX_UNDECIDED_PER_PERSON = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class LatticeTally:
    """Counting with the kernel of one model."""

    kernel: LatticeKernel
    model: Model
    threads: int

    def count(
        self, people: Matrix, budget: Budget, *, until: Until, weights: VoteWeights | None
    ) -> Tally:
        """Count the counterparts' decisions; unless the relation is complete, of listed ones."""
        if self.model.relation.complete:
            return self._count_alike(people, budget, until=until, weights=weights)
        n_classes, deadline = self.model.rule.n_classes, budget.deadline()
        counts = np.zeros((len(people), n_classes), dtype=np.int64)
        undecided, runtime_safe = np.zeros(len(people), np.int64), np.zeros(len(people), bool)
        for rows in same_assignments(self.model, people):
            listed = assignments(self.model, people[rows], weights)
            if not listed.size:  # nobody has a vote
                continue
            if budget.seconds is not None:
                budget = replace(budget, seconds=max(0.0, deadline - time.monotonic()))
            votes = VoteWeights(*listed.block(0, listed.size), self.model.space)
            part = self._count_alike(people[rows], budget, until=until, weights=votes)
            counts[rows], undecided[rows] = part.by_class, part.undecided
            runtime_safe[rows] = part.runtime_safe
        return Tally(counts, undecided, runtime_safe, self.model.rule.ties_to)

    def _count_alike(
        self, people: Matrix, budget: Budget, *, until: Until, weights: VoteWeights | None
    ) -> Tally:
        """Count decisions of people with the same votes, as many at a time as memory allows."""
        size = self.model.relation.size if weights is None else len(weights.assignment_ids)
        per_person = max(1, min(size, MAX_UNDECIDED_PER_PERSON))
        deadline, group_size = budget.deadline(), max(1, MAX_UNDECIDED_PER_CALL // per_person)
        tallies = []
        for start in range(0, max(1, len(people)), group_size):
            group = people[start : start + group_size]
            if budget.seconds is not None:
                budget = replace(budget, seconds=max(0.0, deadline - time.monotonic()))
            tallies.append(self._count_group(group, budget, until=until, weights=weights))
        return Tally.joined(tallies)

    def _count_group(
        self, people: Matrix, budget: Budget, *, until: Until, weights: VoteWeights | None
    ) -> Tally:
        """Count with the kernel, then decide exactly what it leaves undecided."""
        deadline, ties_to = budget.deadline(), self.model.rule.ties_to
        majority = until == "majority"
        result = self.kernel.tally(
            people,
            majority=majority,
            weights=weights,
            limits=kernel_limits(budget, deadline),
            threads=self.threads,
        )
        total = self.model.relation.size if weights is None else weights.total
        counts, runtime_safe = result.by_class, result.runtime_safe
        for row, assignment_ids in result.undecided.items():
            runtime_safe[row] = False
            if majority:
                one = slice(row, row + 1)
                so_far = complete_tally(counts[one], total, runtime_safe[one], ties_to=ties_to)
                if so_far.decided[0]:
                    continue
            self._count_exactly(people[row], assignment_ids, counts[row], weights, deadline)
        return complete_tally(counts, total, runtime_safe, ties_to=ties_to)

    def _count_exactly(
        self,
        person: Vector,
        assignment_ids: Counts,
        counts: Counts,
        weights: VoteWeights | None,
        deadline: float,
    ) -> None:
        """Add the decisions of undecided counterparts to `counts`, until the deadline."""
        order = None if weights is None else np.argsort(weights.assignment_ids)
        for start in range(0, len(assignment_ids), EXACT_CHUNK):
            if time.monotonic() > deadline:
                return
            chunk = assignment_ids[start : start + EXACT_CHUNK]
            points = self.model.restricted.counterparts(person[None, :], chunk)
            exact = points.exact_scores(np.arange(len(chunk)))
            decisions = self.model.rule.decide_exactly(exact)
            votes = np.ones(len(chunk), dtype=np.int64)
            if weights is not None:
                assert order is not None
                indices = np.searchsorted(weights.assignment_ids, chunk, sorter=order)
                votes = weights.votes[order[indices]]
            decided = decisions != UNDECIDED
            np.add.at(counts, decisions[decided], votes[decided])
