"""Lattice engine: the answers of `exhaustive` from a compiled kernel in src/native/.

Where proved bounds allow it, the kernel counts whole regions of the lattice at once. It returns the
few counterparts that float64 cannot decide; those are decided in exact arithmetic here.
"""

import os
from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from feta.arrays import Answers, Matrix
from feta.engine.counterparts import same_assignments
from feta.engine.enumeration import solve_by_enumeration
from feta.engine.kernel_votes import KernelVotes
from feta.engine.lattice_batch import solve_batch
from feta.engine.lattice_search import LatticeSearch
from feta.engine.lattice_span import SpanSearch
from feta.engine.lattice_tally import LatticeTally
from feta.engine.means import means_of
from feta.engine.order_statistics import spread_of
from feta.engine.protocol import UNLIMITED, Budget, Until, check_countable
from feta.engine.query_state import QueryState
from feta.engine.real_axis import RealAxisSearch
from feta.engine.sections import SectionModels
from feta.errors import EngineError
from feta.model import Model
from feta.query import PersonQuery, Query, WorstAt
from feta.rule.comparator import UNDECIDED, Decisions
from feta.scorer.kernel import LatticeKernel
from feta.scorer.native import SLOWER, is_built
from feta.space.vote_weights import VoteWeights
from feta.verdict.means import Means
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Verdict
from feta.vote.mean_decision import MeanDecision


class LatticeEngine:
    """Bounds and counts over the sensitive lattice, in native code."""

    name: ClassVar[str] = "lattice"
    about: ClassVar[str] = (
        "the same as exhaustive, compiled: proved bounds, exact where they fail"
        if is_built()
        else f"not built: exhaustive is used instead, {SLOWER}"
    )

    def __init__(self, *, threads: int | None = None, simd: bool = True) -> None:
        self.threads = threads or min(8, os.cpu_count() or 1)
        self.simd = simd
        self._kernels: WeakKeyDictionary[Model, LatticeKernel] = WeakKeyDictionary()
        self._real_axes: WeakKeyDictionary[Model, RealAxisSearch] = WeakKeyDictionary()
        self._section_models = SectionModels()
        self._kernel_votes = KernelVotes()

    @staticmethod
    def available() -> bool:
        """Return whether the kernel was built."""
        return is_built()

    def accepts(self, query: Query) -> bool:
        """Accept what the scorer's kernel accepts.

        One sensitive attribute may be real-valued if there is one score. Several may be if the
        scorer distinguishes only intervals of them. Other models with several real-valued
        attributes need the engine `milp`.
        """
        model = query.model
        if not model.relation.finite:
            sectioned = self._section_models.of(model)
            if sectioned is not None:
                model = sectioned
            else:
                return model in self._real_axes or model.restricted.fits_line(model.space)
        return model in self._kernels or model.restricted.fits_kernel(model.space)

    def solve(self, query: PersonQuery, budget: Budget) -> Verdict:
        """Answer one query."""
        if self._is_sectioned(query.model):
            return self._section_models.solve(query, budget, engine=self.name, solve=self.solve)
        if not query.model.relation.finite:
            return self._real_axis(query.model).solve(QueryState(query, budget, self.name))
        if not query.model.relation.complete:  # the kernel's searches bound all assignments
            return solve_by_enumeration(query, budget, self.name)
        kernel = self._kernel(query.model)  # building it is not charged to the query
        state = QueryState(query, budget, self.name)
        search = LatticeSearch(kernel, state)
        worst = isinstance(query, WorstAt)
        if state.span is not None:
            return SpanSearch(search, state.span).solve(worst=worst)
        return search.worst() if worst else search.any()

    def solve_many(self, queries: Sequence[PersonQuery], budget: Budget) -> list[Verdict]:
        """Answer queries; those about one model's decisions are counted and searched together."""
        return self.solve_counted(queries, budget)[0]

    def solve_counted(
        self, queries: Sequence[PersonQuery], budget: Budget
    ) -> tuple[list[Verdict], Tally | None]:
        """Answer queries; return also the counts of all counterparts, if they were counted."""
        if not queries or budget != UNLIMITED or not _about_one_model(queries):
            return [self.solve(query, budget) for query in queries], None
        kernel = self._kernel(queries[0].model)
        return solve_batch(kernel, queries, engine=self.name, threads=self.threads)

    def tally(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        until: Until,
        weights: VoteWeights | None = None,
    ) -> Tally:
        """Count the counterparts' decisions on several threads."""
        check_countable(model)
        if weights is not None:
            weights.check(model.space)
        counting = LatticeTally(self._kernel(model), model, self.threads)
        return counting.count(people, budget, until=until, weights=weights)

    def majority(self, model: Model, people: Matrix) -> Answers | None:
        """Decide by majority in native code, which also checks the rows.

        Return None where the kernel cannot: a row outside the space, a tie that needs exact
        arithmetic, a shared column with a table, or assignments that give no counterpart.
        """
        kernel = self._kernels.get(model)
        if kernel is None:
            check_countable(model)
            kernel = self._kernel(model)
        if not model.relation.complete:
            return None
        return kernel.majority(people, threads=self.threads)

    def mean_decisions(
        self, model: Model, people: Matrix, mean: MeanDecision, *, weights: VoteWeights | None
    ) -> Decisions | None:
        """Decide by a mean in native code, which also checks the rows.

        UNDECIDED is a mean that needs exact arithmetic. Return None where the kernel cannot: for
        several classes, a regression, a row outside the space, or a shared column with a table.
        """
        check_countable(model)
        kernel = self._kernel(model)
        if not model.relation.complete and not model.space.quick_check.passes(people):
            return None
        answers = np.full(len(people), UNDECIDED, dtype=np.int8)
        for rows in same_assignments(model, people):
            part = people if len(rows) == len(people) else people[rows]
            vote = self._kernel_votes.of(model, mean, weights, part)
            if vote is None:
                return None
            decisions = kernel.mean_decisions(part, vote, threads=self.threads)
            if decisions is None:
                return None
            answers[rows] = decisions
        return answers

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Compute each person's median, lowest and highest counterpart score.

        A median needs every score, so this enumerates as `exhaustive` does.
        """
        check_countable(model)
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
        """Decide each person by the mean of the counterparts' scores or grades, exactly.

        The means are returned as well, so this enumerates as `exhaustive` does.
        """
        return means_of(model, people, budget, mean=mean, weights=weights)

    def _kernel(self, model: Model) -> LatticeKernel:
        kernel = self._kernels.get(model)
        if kernel is None:
            if not model.restricted.fits_kernel(model.space):
                raise EngineError(
                    f"the engine {self.name!r} does not accept this model: got axes or numbers "
                    "beyond the limits of the kernel; expected a model that `accepts` accepts"
                )
            kernel = self._kernels[model] = model.restricted.kernel(
                model.space,
                model.rule.kernel_rule,
                source_error=model.runtime_error,
                simd=self.simd,
            )
        return kernel

    def _is_sectioned(self, model: Model) -> bool:
        return not model.relation.finite and self._section_models.of(model) is not None

    def _real_axis(self, model: Model) -> RealAxisSearch:
        search = self._real_axes.get(model)
        if search is None:
            search = self._real_axes[model] = RealAxisSearch(model, simd=self.simd)
        return search


def _about_one_model(queries: Sequence[PersonQuery]) -> bool:
    """Return whether all queries are about the decisions of one model with finite attributes."""
    model = queries[0].model
    same = all(query.model is model for query in queries)
    return same and model.relation.finite and model.rule.tolerance is None
