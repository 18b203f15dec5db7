"""Milp: the paper's mixed-integer program on a solver that never gets the last word.

What the solver finds is rounded into the space and replayed exactly. What it says does not exist is
proved by bounds (`cover.py`), or stays Unknown.
"""

from dataclasses import replace
from importlib.util import find_spec
from weakref import WeakKeyDictionary

import numpy as np

from feta.arrays import Matrix
from feta.bounds.first_layer import tabulable
from feta.engine.branch_and_bound import MAX_MOVES, MAX_PARTS, BranchAndBound
from feta.engine.milp.backends.protocol import Backend, SolverResult, Status
from feta.engine.milp.counting import Counting, count
from feta.engine.milp.solver import Bounds, Solver
from feta.engine.protocol import Budget, Until
from feta.engine.query_state import QueryState
from feta.engine.span import Span
from feta.errors import EngineError, MissingExtra
from feta.model import Model
from feta.query import Query, WorstAt
from feta.rounding import FLOAT64
from feta.scorer.network.evaluation import Rows
from feta.space.vote_weights import VoteWeights
from feta.verdict.counterexample import Counterexample
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown, Verdict

REASONS = {
    Status.OPTIMAL: Reason.NOT_REPRODUCED,
    Status.INFEASIBLE: Reason.SOLVER_INFEASIBLE,
    Status.STOPPED: Reason.OUT_OF_TIME,
    Status.TOO_LARGE: Reason.SOLVER_LIMIT,
    Status.FAILED: Reason.SOLVER_FAILED,
}


class MilpEngine:
    """An engine for each solver: "milp" is HiGHS.

    `bounds` says what programs are written from (`solver.py`), `counting` how witnesses are found, and
    `most_parts` how far bounds go on where a solver's word is not enough.
    """

    def __init__(
        self,
        name: str,
        backend: Backend,
        *,
        bounds: Bounds = "parts",
        counting: Counting | None = None,
        most_parts: int = MAX_PARTS,
    ) -> None:
        self.name, self.backend, self.bounds = name, backend, bounds
        self.most_parts = most_parts
        self.counting: Counting = counting or ("pool" if backend.pools else "cuts")
        self.about = f"verify, worst, tally, also of real-valued and huge sensitive domains: {backend.name} finds, bounds prove"
        self._solvers: WeakKeyDictionary[Model, Solver] = WeakKeyDictionary()

    def available(self) -> bool:
        """Say whether the solver is installed; it is not imported to find out."""
        return find_spec(self.backend.package) is not None

    def accepts(self, model: Model) -> bool:
        """Take every model whose tables are not too long."""
        return tabulable(model)

    def solve(self, query: Query, budget: Budget) -> Verdict:
        """Answer one question."""
        state = QueryState(query, budget, self.name)
        search = _MilpSearch(self.solver(query.model), state, self.most_parts)
        worst = isinstance(query, WorstAt)
        if state.span is not None:
            return search.span(state.span, worst=worst)
        return search.worst() if worst else search.any()

    def tally(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        until: Until,
        weights: VoteWeights | None = None,
    ) -> Tally:
        """Count by witnesses, each replayed: what no witness was found for stays undecided."""
        if weights is not None:
            message = f"{self.name!r} counts every counterpart once; vote weights need 'lattice' or 'exhaustive'"
            raise EngineError(message)
        return count(model, self.solver(model), people, budget, counting=self.counting, until=until)

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Refuse: a median needs the score of every counterpart."""
        del model, people, budget, weights
        message = f"{self.name!r} finds and counts counterparts, but a median needs all their scores; use 'lattice' or 'exhaustive', on a finite sensitive domain"
        raise EngineError(message)

    def solver(self, model: Model) -> Solver:
        """Give what is kept of a model from person to person."""
        if not self.available():
            assert self.backend.extra is not None  # the others come with FETA
            raise MissingExtra(self.backend.package, self.backend.extra)
        if model not in self._solvers:
            self._solvers[model] = Solver(model, self.backend, self.bounds)
        return self._solvers[model]


class _MilpSearch:
    """One question about one person."""

    def __init__(self, solver: Solver, state: QueryState, most_parts: int) -> None:
        self.solver, self.state = solver, state
        self.cover = BranchAndBound(state, solver.terms, most_parts)
        self.over = solver.over(state.model, state.query.person, state.objective)

    def any(self) -> Verdict:
        """Find a counterpart treated apart, or prove that there is none."""
        if self.over.agrees.all():
            return self._fair_at_once()
        outcome, found = self._ask(maximize=False)
        if found is None and outcome.status is Status.OPTIMAL:
            # On the threshold within the solver's tolerance; the farthest may be beyond it.
            outcome, found = self._ask(maximize=True)
        if found is None:
            return self._prove(outcome)
        return Unfair(found, effort=self.state.budget_tracker.effort())

    def worst(self) -> Verdict:
        """Find the counterpart farthest on the other side, and prove that none is farther."""
        if self.over.agrees.all():
            return self._fair_at_once()
        near = self._raise_level() if self.solver.by_parts else None
        outcome, found = self._ask(maximize=True)
        found = found or near
        if found is None:
            verdict = self._prove(outcome)
            if not isinstance(verdict, Unfair):
                return verdict
            found = verdict.counterexample
        best, optimal = self.cover.improve(found)
        return Unfair(best, optimal=optimal, effort=self.state.budget_tracker.effort())

    def span(self, span: Span, *, worst: bool) -> Verdict:
        """Find the lowest and the highest score, or prove that all lie in a band.

        Who is farthest from the middle of the scores known is an end of the span. So a few programs,
        each around what was found before, give both ends.
        """
        person = self.state.query.person
        span.widen(self._extremes(self.over.likeliest(person)))
        found = span.pair()
        while found is None:
            self.over = self.solver.over(span.model, person, self.state.objective)
            if self.over.agrees.all():
                return self._fair_at_once()
            moves = span.moves
            outcome, found = self._ask(maximize=True)
            if found is None and (span.moves == moves or span.moves > MAX_MOVES):
                verdict = self._prove(outcome)
                if not isinstance(verdict, Unfair):
                    return verdict
                found = verdict.counterexample
        best, optimal = self.cover.improve(found) if worst else (found, False)
        return Unfair(best, optimal=optimal, effort=self.state.budget_tracker.effort())

    def _extremes(self, people: Matrix) -> Matrix:
        """Choose the lowest and the highest of some people, as float64 has them."""
        scores = Rows(self.state.model.exact, people).scores(FLOAT64).values[:, 0]
        return people[[int(np.argmin(scores)), int(np.argmax(scores))]]

    def _raise_level(self) -> Counterexample | None:
        """Ask only for what is farther than the farthest of a few; that one is given, if apart."""
        goal, model = self.over.goal, self.state.model
        few = self.over.likeliest(self.state.query.person)
        lows = goal.range(Rows(model.exact, few).scores(FLOAT64))[0]
        index = int(np.argmax(lows))
        if not lows[index] > goal.level:
            return None
        self.over = replace(self.over, goal=replace(goal, level=float(lows[index])))
        return self.state.witness(few[index])

    def _fair_at_once(self) -> Fair:
        runtime_safe = bool(self.over.runtime_safe().all())
        return self.state.fair(runtime_safe=runtime_safe, proof=self.solver.partition.proof())

    def _ask(self, *, maximize: bool) -> tuple[SolverResult, Counterexample | None]:
        """Ask the solver, and replay what it finds."""
        budget_tracker = self.state.budget_tracker
        person = self.state.query.person
        encoded = self.solver.encode(self.over, person, maximize=maximize)
        budget_tracker.solver_calls += 1
        with self.solver.lock:
            session = self.solver.session("ask")
            outcome = session.solve(encoded.program, seconds=budget_tracker.left())
        indices = encoded.indices(outcome.point)
        if indices is None:
            return outcome, None
        found = self.over.first.cells.people(indices[None, :], person)[0]
        return outcome, self.state.witness(found)

    def _prove(self, outcome: SolverResult) -> Verdict:
        """Take the question to the bounds; a solver that found nothing proves nothing."""
        verdict = self.cover.resolve()
        if verdict is not None:
            return verdict
        budget_tracker = self.state.budget_tracker
        reason = budget_tracker.reason or REASONS[outcome.status]
        return Unknown(reason, effort=budget_tracker.effort(), solver=self.solver.backend.name)
