"""MILP engine: the paper's mixed-integer program, with every claim of the solver verified.

A solver's point is rounded into the space and replayed exactly. If the solver claims that no point
exists, branch and bound must prove it; otherwise the verdict is Unknown.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from weakref import WeakKeyDictionary

import numpy as np

from feta.arrays import Answers, Matrix
from feta.engine.branch_and_bound import MAX_CELLS, MAX_MOVES, BranchAndBound
from feta.engine.milp.backends.protocol import Backend, SolverResult, Status
from feta.engine.milp.counting import Counting, count
from feta.engine.milp.solver import Solver
from feta.engine.protocol import Budget, Until
from feta.engine.query_state import QueryState
from feta.engine.span import Span
from feta.errors import EngineError, MissingExtra
from feta.model import Model
from feta.query import MeanOf, PersonQuery, Query, WorstAt
from feta.rounding import FLOAT64
from feta.rule.comparator import Decisions
from feta.scorer.program_encoder import ProgramBounds
from feta.space.vote_weights import VoteWeights
from feta.verdict.counterexample import Counterexample
from feta.verdict.means import Means
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown, Verdict
from feta.vote.mean_decision import MeanDecision

# The reason of Unknown where neither the solver nor the bounds decide.
REASONS = {
    Status.OPTIMAL: Reason.NOT_REPRODUCED,
    Status.INFEASIBLE: Reason.SOLVER_INFEASIBLE,
    Status.STOPPED: Reason.OUT_OF_TIME,
    Status.TOO_LARGE: Reason.SOLVER_LIMIT,
    Status.FAILED: Reason.SOLVER_FAILED,
}


class MilpEngine:
    """An engine on one solver: "milp" is HiGHS.

    `bounds` selects how programs are bounded (`solver.py`), `counting` how witnesses are found, and
    `max_cells` limits branch and bound.
    """

    def __init__(
        self,
        name: str,
        backend: Backend,
        *,
        bounds: ProgramBounds = "parts",
        counting: Counting | None = None,
        max_cells: int = MAX_CELLS,
    ) -> None:
        self.name, self.backend, self.bounds = name, backend, bounds
        self.max_cells = max_cells
        self.counting: Counting = counting or ("pool" if backend.pools else "cuts")
        self.about = (
            "verify and worst, also of real-valued and huge sensitive domains; tally on finite "
            f"ones: {backend.name} finds, bounds prove"
        )
        self._solvers: WeakKeyDictionary[Model, Solver] = WeakKeyDictionary()

    def available(self) -> bool:
        """Return whether the solver is installed, without importing it."""
        return find_spec(self.backend.package) is not None

    def accepts(self, query: Query) -> bool:
        """Accept every scorer that bounds cells and writes programs; means need every score.

        Bounds hold for all assignments, so each of them must give a counterpart.
        """
        model = query.model
        if not model.relation.complete:
            return False
        return model.restricted.bounds_cells and not isinstance(query, MeanOf)

    def solve_many(self, queries: Sequence[PersonQuery], budget: Budget) -> list[Verdict]:
        """Answer queries one by one."""
        return [self.solve(query, budget) for query in queries]

    def majority(self, model: Model, people: Matrix) -> Answers | None:
        """Return None: `tally` and `spread` decide."""
        del model, people
        return None

    def solve(self, query: PersonQuery, budget: Budget) -> Verdict:
        """Answer one query."""
        state = QueryState(query, budget, self.name)
        search = _MilpSearch(self.solver(query.model), state, self.max_cells)
        worst = isinstance(query, WorstAt)
        if state.span is not None:
            return search.span(state.span, worst=worst)
        return search.worst() if worst else search.any()

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
        """Count replayed witnesses; counterparts without a witness remain undecided."""
        if weights is not None:
            raise EngineError(
                f"the engine {self.name!r} counts every counterpart once: got vote weights; "
                "expected none; use the engine 'lattice' or 'exhaustive'"
            )
        return count(model, self.solver(model), people, budget, counting=self.counting, until=until)

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Raise: a median needs the score of every counterpart."""
        del model, people, budget, weights
        raise EngineError(
            f"the engine {self.name!r} cannot compute a median: it does not score every "
            "counterpart; use the engine 'lattice' or 'exhaustive', on a finite sensitive domain"
        )

    def means(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        mean: MeanDecision,
        weights: VoteWeights | None = None,
    ) -> Means:
        """Raise: a mean needs the score of every counterpart."""
        del model, people, budget, mean, weights
        raise EngineError(
            f"the engine {self.name!r} cannot compute a mean: it does not score every "
            "counterpart; use the engine 'lattice' or 'exhaustive', on a finite sensitive domain"
        )

    def solver(self, model: Model) -> Solver:
        """Return the prepared solver of a model."""
        if not self.available():
            assert self.backend.extra is not None  # FETA depends on the other solvers
            raise MissingExtra(self.backend.package, self.backend.extra)
        if model not in self._solvers:
            self._solvers[model] = Solver(model, self.backend, self.bounds)
        return self._solvers[model]


class _MilpSearch:
    """Search for one query about one person."""

    def __init__(self, solver: Solver, state: QueryState, max_cells: int) -> None:
        self.solver, self.state = solver, state
        self.branch_and_bound = BranchAndBound(state, max_cells)
        self.bounds = solver.bound(state.model, state.query.person, state.objective)

    def any(self) -> Verdict:
        """Find a counterpart with a different decision, or prove that there is none."""
        if self.bounds.agrees.all():
            return self._fair_by_bounds()
        result, pair = self._run_solver(maximize=False)
        if pair is None and result.status is Status.OPTIMAL:
            # The point is on the threshold up to the solver's tolerance; the worst may be beyond.
            result, pair = self._run_solver(maximize=True)
        if pair is None:
            return self._prove(result)
        return Unfair(pair, effort=self.state.budget_tracker.effort())

    def worst(self) -> Verdict:
        """Find the counterexample with the largest gap, and prove that it is optimal."""
        if self.bounds.agrees.all():
            return self._fair_by_bounds()
        sampled = self._raise_level() if self.solver.by_cells else None
        result, pair = self._run_solver(maximize=True)
        pair = pair or sampled
        if pair is None:
            verdict = self._prove(result)
            if not isinstance(verdict, Unfair):
                return verdict
            pair = verdict.counterexample
        best, optimal = self.branch_and_bound.improve(pair)
        return Unfair(best, optimal=optimal, effort=self.state.budget_tracker.effort())

    def span(self, span: Span, *, worst: bool) -> Verdict:
        """Find the lowest and the highest score, or prove that all lie in a band.

        The score farthest from the middle of the known scores is an end of the span. So a few
        programs, each around the scores known so far, give both ends.
        """
        person = self.state.query.person
        span.widen(self._extremes(self.bounds.maximizers(person)))
        pair = span.pair()
        while pair is None:
            self.bounds = self.solver.bound(span.model, person, self.state.objective)
            if self.bounds.agrees.all():
                return self._fair_by_bounds()
            moves = span.moves
            result, pair = self._run_solver(maximize=True)
            if pair is None and (span.moves == moves or span.moves > MAX_MOVES):
                verdict = self._prove(result)
                if not isinstance(verdict, Unfair):
                    return verdict
                pair = verdict.counterexample
        best, optimal = self.branch_and_bound.improve(pair) if worst else (pair, False)
        return Unfair(best, optimal=optimal, effort=self.state.budget_tracker.effort())

    def _extremes(self, people: Matrix) -> Matrix:
        """Select the lowest and the highest of some people by their float64 scores."""
        scores = self.state.model.points(people).scores(FLOAT64).values[:, 0]
        return people[[int(np.argmin(scores)), int(np.argmax(scores))]]

    def _raise_level(self) -> Counterexample | None:
        """Raise the level of the objective to the worst of a few counterparts.

        So the solver must find a worse one. Return that counterpart if its decision differs.
        """
        objective, model = self.bounds.objective, self.state.model
        sample = self.bounds.maximizers(self.state.query.person)
        lows = objective.range(model.points(sample).scores(FLOAT64))[0]
        index = int(np.argmax(lows))
        if not lows[index] > objective.level:
            return None
        self.bounds = self.bounds.beyond(float(lows[index]))
        return self.state.witness(sample[index])

    def _fair_by_bounds(self) -> Fair:
        runtime_safe = bool(self.bounds.runtime_safe().all())
        return self.state.fair(runtime_safe=runtime_safe, proof=self.solver.tree.proof())

    def _run_solver(self, *, maximize: bool) -> tuple[SolverResult, Counterexample | None]:
        """Run the solver, and replay its point."""
        budget_tracker = self.state.budget_tracker
        person = self.state.query.person
        encoded = self.solver.encode(self.bounds, person, maximize=maximize)
        budget_tracker.solver_calls += 1
        with self.solver.lock:
            session = self.solver.session("search")
            result = session.solve(encoded.program, seconds=budget_tracker.seconds_left())
        indices = encoded.indices(result.point)
        if indices is None:
            return result, None
        counterpart = self.bounds.cells.people(indices[None, :], person)[0]
        return result, self.state.witness(counterpart)

    def _prove(self, result: SolverResult) -> Verdict:
        """Decide by branch and bound; a solver that finds no point proves nothing."""
        verdict = self.branch_and_bound.resolve()
        if verdict is not None:
            return verdict
        budget_tracker = self.state.budget_tracker
        reason = budget_tracker.reason or REASONS[result.status]
        return Unknown(reason, effort=budget_tracker.effort(), solver=self.solver.backend.name)
