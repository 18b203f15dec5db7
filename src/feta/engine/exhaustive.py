"""Engine that scores every counterpart: the simple reference for the other engines.

Counterparts are scored in blocks, so memory does not depend on the size of the lattice.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from feta.arrays import Answers, Matrix
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.counterparts import (
    MAX_COUNTERPARTS,
    assignments,
    block_size,
    blocks,
    same_assignments,
)
from feta.engine.enumeration import solve_by_enumeration
from feta.engine.means import means_of
from feta.engine.order_statistics import spread_of
from feta.engine.protocol import Budget, Until, check_countable
from feta.engine.sections import SectionModels, finite_size
from feta.model import Model
from feta.query import PersonQuery, Query
from feta.rule.comparator import Decisions
from feta.space.vote_weights import VoteWeights
from feta.verdict.means import Means
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally, complete_tally
from feta.verdict.verdict import Verdict
from feta.vote.mean_decision import MeanDecision


class ExhaustiveEngine:
    """Scores in float64 with an error bound, and exactly where the bound does not decide."""

    name: ClassVar[str] = "exhaustive"
    about: ClassVar[str] = (
        "verify, worst, tally on finite sensitive domains: every counterpart, exactly"
    )

    def __init__(self) -> None:
        self._section_models = SectionModels()

    def accepts(self, query: Query) -> bool:
        """Accept every finite lattice whose assignment IDs fit in int64.

        A real-valued attribute is finite if the scorer distinguishes only intervals of it.
        """
        size = finite_size(query.model)
        return size is not None and size < MAX_COUNTERPARTS

    def solve(self, query: PersonQuery, budget: Budget) -> Verdict:
        """Answer one query; a score in doubt of a counted model leaves it undecided."""
        if not query.model.relation.finite:
            return self._section_models.solve(query, budget, engine=self.name, solve=self.solve)
        return solve_by_enumeration(query, budget, self.name)

    def solve_many(self, queries: Sequence[PersonQuery], budget: Budget) -> list[Verdict]:
        """Answer queries one by one."""
        return [self.solve(query, budget) for query in queries]

    def majority(self, model: Model, people: Matrix) -> Answers | None:
        """Return None: `tally` and `spread` decide."""
        del model, people
        return None

    def mean_decisions(
        self, model: Model, people: Matrix, mean: MeanDecision, *, weights: VoteWeights | None
    ) -> Decisions | None:
        """Return None: `means` decides."""
        del model, people, mean, weights
        return None

    def tally(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        until: Until,
        weights: VoteWeights | None = None,
    ) -> Tally:
        """Count the counterparts' decisions, several people at a time if the lattice is small."""
        check_countable(model)
        budget_tracker, ties_to = BudgetTracker(budget), model.rule.ties_to
        counts = np.zeros((len(people), model.rule.n_classes), dtype=np.int64)
        totals, runtime_safe = np.zeros(len(people), dtype=np.int64), np.ones(len(people), bool)
        for rows in same_assignments(model, people):
            if not len(rows):
                continue
            votes_of = assignments(model, people[rows], weights)
            totals[rows] = votes_of.total
            size = max(1, block_size(model) // max(1, votes_of.size))
            for group in np.split(rows, range(size, len(rows), size)):
                for points, votes in blocks(model, people[group], weights):
                    if budget_tracker.spent(len(points)):
                        break
                    batch = model.resolve(points, model.rule, deadline=budget_tracker.deadline)
                    shape = (len(group), -1)
                    decisions = batch.decisions.reshape(shape)
                    runtime_safe[group] &= batch.runtime_safe.reshape(shape).all(axis=1)
                    for decision in range(model.rule.n_classes):
                        counts[group, decision] += (decisions == decision) @ votes
                    if until == "majority":
                        so_far = complete_tally(
                            counts[group], totals[group], runtime_safe[group], ties_to=ties_to
                        )
                        if so_far.decided.all():
                            break
        return complete_tally(counts, totals, runtime_safe, ties_to=ties_to)

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Compute each person's median, lowest and highest counterpart score, exactly."""
        return spread_of(model, people, budget, weights)

    def means(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        mean: MeanDecision,
        weights: VoteWeights | None = None,
    ) -> Means:
        """Decide each person by the mean of the counterparts' scores or grades, exactly."""
        return means_of(model, people, budget, mean=mean, weights=weights)
