"""Counts of decisions by a kernel, completed in exact arithmetic."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Counts, Matrix
from feta.engine.budget_tracker import kernel_limits
from feta.engine.counterparts import assignments, same_assignments
from feta.engine.exact_blocks import alone, together
from feta.engine.protocol import Budget, Until
from feta.model import Model
from feta.rule.comparator import UNDECIDED
from feta.scorer.kernel import KernelCounts, LatticeKernel
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
        undecided = self._remaining(result, total, majority=majority)
        order = None if weights is None else np.argsort(weights.assignment_ids)
        for evaluate in (together, alone):
            for block in evaluate(self.model, people, undecided, deadline=deadline):
                decisions = self.model.rule.decide_exactly(block.scores)
                decided = decisions != UNDECIDED
                votes = np.ones(len(decisions), dtype=np.int64)
                if weights is not None:
                    ids = block.assignment_ids
                    indices = np.searchsorted(weights.assignment_ids, ids, sorter=order)
                    assert order is not None
                    votes = weights.votes[order[indices]]
                np.add.at(counts, (block.rows[decided], decisions[decided]), votes[decided])
        return complete_tally(counts, total, runtime_safe, ties_to=ties_to)

    def _remaining(
        self, result: KernelCounts, total: int, *, majority: bool
    ) -> Mapping[int, Counts]:
        """Return the counterparts to decide exactly, of whom no person is runtime-safe any more."""
        result.runtime_safe[list(result.undecided)] = False
        if not majority or not result.undecided:
            return result.undecided
        so_far = complete_tally(
            result.by_class, total, result.runtime_safe, ties_to=self.model.rule.ties_to
        )
        certain = so_far.decided.tolist()
        return {row: ids for row, ids in result.undecided.items() if not certain[row]}
