"""Native kernel of one model with a finite lattice."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from feta.arrays import Counts, Matrix
from feta.engine.budget_tracker import kernel_limits
from feta.engine.protocol import Budget, Until
from feta.model import EXACT_CHUNK, Model
from feta.rule import Argmax, OneVsRest, Threshold, Tolerance
from feta.scorer.network.evaluation import Tabulated
from feta.scorer.network.native_kernel import kernel_of
from feta.scorer.network.network import network_of
from feta.space.vote_weights import VoteWeights
from feta.verdict.tally import Tally, complete_tally

# Lattices up to this size are enumerated once bounding has cost a large part of that. Larger ones
# are decided by bounds alone, or remain undecided.
ENUMERABLE = 10**7

# Undecided counterparts that one call of the kernel may return: at most 1 GB, at eight bytes each
# and twice that while a list of them grows.
MAX_UNDECIDED_PER_CALL = 2**26

# The kernel gives up on a person with more undecided counterparts (`max_undecided` in search.hpp).
MAX_UNDECIDED_PER_PERSON = 2**24

# Bounding a node costs about as much as scoring this many counterparts.
NODE_COST = 5

# The kernel's codes of the rules.
RULES: dict[type[object], int] = {Threshold: 0, Argmax: 1, OneVsRest: 2, Tolerance: 3}


class LatticeKernel:
    """A model passed to the native kernel once, and counting with it."""

    def __init__(self, model: Model, *, simd: bool) -> None:
        self.space, self.rule = model.space, model.rule
        network, restricted = network_of(model.scorer), model.restricted
        assert isinstance(restricted, Tabulated)  # a network's
        self.first, self.shared = network.first, restricted.shared.tolist()
        self.tabulated = restricted
        # The engine accepts short axes only, so all of them are tabulated.
        tables = [table for table in restricted.tables if table is not None]
        self.native: Any = kernel_of(network, tables, source_error=model.runtime_error)
        self.native.set_rule(*_encode_rule(model))
        self.reads_rows = self._set_shared_columns(model)
        self.of_two = not isinstance(self.rule, Argmax)
        self.ties_to_last = not isinstance(self.rule, Tolerance) and self.rule.ties_to == "last"
        self.native.finish(simd)
        size = self.space.lattice.size
        self.nodes = max(16, size // (4 * NODE_COST)) if size <= ENUMERABLE else 0

    def _set_shared_columns(self, model: Model) -> bool:
        """Let the kernel read people's rows, if the first layer has slopes for all shared columns.

        Return whether it can.
        """
        check = model.space.quick_check
        if isinstance(self.rule, Tolerance) or not check.usable:
            return False
        if any(table.column in self.shared for table in self.first.tables):
            return False
        assert check.columns.tolist() == self.shared
        group = np.full(len(check.columns), -1, dtype=np.int32)
        indices, groups = np.nonzero(check.members)
        group[indices] = groups
        self.native.set_shared(
            model.space.width,
            check.columns.astype(np.int32),
            np.ascontiguousarray(self.first.slopes[:, self.shared].T),
            check.lows,
            check.highs,
            check.integral.astype(np.uint8),
            group,
        )
        return True

    def constants(self, people: Matrix) -> tuple[Matrix, Matrix]:
        """Sum the first-layer terms of people's shared columns; return also the terms' sizes."""
        values, sizes = self.first.terms(people[:, self.shared], self.shared)
        return np.ascontiguousarray(values), np.ascontiguousarray(sizes)

    def tally(
        self,
        people: Matrix,
        budget: Budget,
        *,
        until: Until,
        weights: VoteWeights | None,
        threads: int,
    ) -> Tally:
        """Count the counterparts' decisions, for as many people at a time as memory allows."""
        size = self.space.lattice.size if weights is None else len(weights.assignment_ids)
        per_person = max(1, min(size, MAX_UNDECIDED_PER_PERSON))
        deadline, group_size = budget.deadline(), max(1, MAX_UNDECIDED_PER_CALL // per_person)
        tallies = []
        for start in range(0, max(1, len(people)), group_size):
            group = people[start : start + group_size]
            if budget.seconds is not None:
                budget = replace(budget, seconds=max(0.0, deadline - time.monotonic()))
            tallies.append(
                self._tally_group(group, budget, until=until, weights=weights, threads=threads)
            )
        return Tally.joined(tallies)

    def _tally_group(
        self,
        people: Matrix,
        budget: Budget,
        *,
        until: Until,
        weights: VoteWeights | None,
        threads: int,
    ) -> Tally:
        """Count with the kernel, then decide exactly what it leaves undecided."""
        rule = self.rule
        assert not isinstance(rule, Tolerance)  # the public functions reject it
        deadline = budget.deadline()
        limits = kernel_limits(budget, deadline)
        constants = self.constants(people)
        majority = until == "majority"
        if weights is None:
            total = self.space.lattice.size
            result = self.native.tally(*constants, majority, *limits, self.nodes, threads)
        else:
            total = weights.total
            listed = (weights.assignment_ids.astype(np.uint64), weights.votes.astype(np.uint64))
            result = self.native.tally_listed(*constants, *listed, majority, *limits, threads)
        counts = result["counts"].astype(np.int64)
        runtime_safe = result["safe"].astype(bool)
        for row, assignment_ids in result["open"].items():
            runtime_safe[row] = False
            if majority:
                one = slice(row, row + 1)
                so_far = complete_tally(counts[one], total, runtime_safe[one], ties_to=rule.ties_to)
                if so_far.decided[0]:
                    continue
            self._count_exactly(
                people[row], assignment_ids.view(np.int64), counts[row], weights, deadline
            )
        return complete_tally(counts, total, runtime_safe, ties_to=rule.ties_to)

    def _count_exactly(
        self,
        person: Matrix,
        assignment_ids: Counts,
        counts: Counts,
        weights: VoteWeights | None,
        deadline: float,
    ) -> None:
        """Add the decisions of undecided counterparts to `counts`, until the deadline."""
        assert not isinstance(self.rule, Tolerance)
        order = None if weights is None else np.argsort(weights.assignment_ids)
        for start in range(0, len(assignment_ids), EXACT_CHUNK):
            if time.monotonic() > deadline:
                return
            chunk = assignment_ids[start : start + EXACT_CHUNK]
            points = self.tabulated.counterparts(person[None, :], chunk)
            decisions = self.rule.decide_exactly(points.exact_scores(np.arange(len(chunk))))
            votes: Counts | int = 1
            if weights is not None:
                assert order is not None
                indices = np.searchsorted(weights.assignment_ids, chunk, sorter=order)
                votes = weights.votes[order[indices]]
            np.add.at(counts, decisions, votes)


def _encode_rule(model: Model) -> tuple[int, float, bool, int, int, int]:
    """Return the rule as the kernel takes it.

    Its code, the threshold, whether it favors above, the chosen class, outputs, classes.
    """
    rule = model.rule
    value, above, chosen = 0.0, True, 0
    if isinstance(rule, Threshold):
        value, above = rule.value, rule.favors == "above"
    elif isinstance(rule, OneVsRest):
        chosen = rule.index
    return RULES[type(rule)], value, above, chosen, rule.outputs, max(2, rule.n_classes)
