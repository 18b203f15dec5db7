"""Counting: how many counterparts are decided each way, by witnesses that were replayed one by one.

Both ways of the paper: a cut for each counterpart found (Eq. NoGood), or a solution pool where the
solver has one. A search that ends proves nothing: what was not witnessed stays undecided, unless
bounds leave a single decision.
"""

import math
from typing import Literal

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.bounds.first_layer import MAX_ROWS
from feta.cells.cells import Cells
from feta.engine.milp.backends.protocol import Status
from feta.engine.milp.encoding import Encoded
from feta.engine.milp.solver import Solver
from feta.engine.protocol import Budget, Until
from feta.engine.query_state import BudgetTracker
from feta.errors import EngineError
from feta.model import Model
from feta.rule import Tolerance
from feta.scorer.network.evaluation import Rows
from feta.verdict.tally import Tally

Counting = Literal["cuts", "pool"]

# Counterparts looked at to guess which decision most have; that one is counted first.
GUESSES = 16

# Witnesses kept of one person: a hundred thousand solver calls take a quarter of an hour.
MAX_WITNESSES = 10**5


def count(
    model: Model,
    solver: Solver,
    people: Matrix,
    budget: Budget,
    *,
    counting: Counting,
    until: Until,
) -> Tally:
    """Count each person's counterparts by witnesses."""
    assert not isinstance(model.rule, Tolerance)  # the front door refuses it
    _check_countable(model, solver)
    budget_tracker = BudgetTracker(budget)
    counts = np.zeros((len(people), model.rule.n_classes), dtype=np.int64)
    runtime_safe = np.zeros(len(people), dtype=bool)
    for row, person in enumerate(people):
        one = _Count(model, solver, counting, person, budget_tracker)
        with solver.lock:
            one.run(until)
        counts[row], runtime_safe[row] = one.counts, one.runtime_safe
    return _tally(model, counts, runtime_safe)


def _check_countable(model: Model, solver: Solver) -> None:
    for one in solver.terms.dimensions:
        name = one.attribute.name
        if one.real:
            message = f"{name!r} has uncountably many values: declare it integer, or give a step"
            raise EngineError(message)
        if one.ends[1] >= MAX_ROWS:
            message = f"counting takes at most {MAX_ROWS} values of {name!r}, got {int(one.ends[1]) + 1}; narrow its domain"
            raise EngineError(message)
    if model.space.lattice.size >= 2**62:
        raise EngineError(
            "counting takes fewer than 2^62 counterparts; narrow the sensitive domains"
        )


def _tally(model: Model, counts: Counts, runtime_safe: Flags) -> Tally:
    assert not isinstance(model.rule, Tolerance)
    undecided = model.space.lattice.size - counts.sum(axis=1)
    return Tally(counts, undecided, runtime_safe & (undecided == 0), model.rule.ties_to)


class _Count:
    """One person's counterparts under way."""

    def __init__(
        self,
        model: Model,
        solver: Solver,
        counting: Counting,
        person: Vector,
        budget_tracker: BudgetTracker,
    ) -> None:
        assert not isinstance(model.rule, Tolerance)
        self.model, self.solver, self.counting, self.budget_tracker = (
            model,
            solver,
            counting,
            budget_tracker,
        )
        self.rule, self.person = model.rule, np.where(model.space.sensitive_columns, 0.0, person)
        self.cells = Cells.whole(solver.terms.dimensions)
        self.sizes = [int(one.ends[1]) + 1 for one in solver.terms.dimensions]
        self.seen: set[int] = set()
        self.counts = np.zeros(model.rule.n_classes, dtype=np.int64)
        self.runtime_safe = True

    def run(self, until: Until) -> None:
        """Count decision after decision, the likeliest first."""
        overs = [
            self.solver.over(self.model, self.person, self.rule.reaching(decision))
            for decision in range(len(self.counts))
        ]
        possible = [decision for decision, over in enumerate(overs) if not over.agrees.all()]
        if len(possible) == 1:  # bounds rule out all others, so nobody needs to be found
            others = [over for over in overs if over.agrees.all()]
            self.counts[possible[0]] = math.prod(self.sizes)
            self.runtime_safe = all(bool(over.runtime_safe().all()) for over in others)
            return
        programs = [
            self.solver.encode(overs[decision], self.person, maximize=False, listed=True)
            for decision in sorted(possible, key=self._guess, reverse=True)
        ]
        if self.counting == "cuts":
            for encoded in programs:
                if not self._enough(until):
                    self._by_cuts(encoded, until)
            return
        # Half of all is often enough; a pool that is too small may miss some, and is made larger.
        size = math.prod(self.sizes)
        for most in (size // 2 + 1, size) if until == "majority" else (size,):
            for encoded in programs:
                if not self._enough(until):
                    self._by_pool(encoded, min(most, MAX_WITNESSES))

    def _guess(self, decision: int) -> int:
        rng = np.random.default_rng(0)
        at = np.stack([rng.integers(0, size, GUESSES) for size in self.sizes], axis=1)
        found = self.model.resolve(self._rows(at.astype(np.float64)), self.rule).decisions
        return int((found == decision).sum())

    def _by_cuts(self, encoded: Encoded, until: Until) -> None:
        """Forbid each counterpart found, and ask again (Eq. NoGood, one row a counterpart)."""
        session = self.solver.session("count")
        outcome = session.solve(encoded.program, seconds=self.budget_tracker.left())
        met: set[int] = set()  # in this search; a counterpart on the threshold is met in two
        while outcome.status is Status.OPTIMAL:
            indices = encoded.indices(outcome.point)
            if indices is None or self._number(indices) in met:
                return
            met.add(self._number(indices))
            self._witness(indices[None, :])
            if self._enough(until):
                return
            chosen = [one.columns[int(at)] for one, at in zip(encoded.inputs, indices, strict=True)]
            forbidden = np.array(chosen, dtype=np.int32)
            outcome = session.solve_again(forbidden, seconds=self.budget_tracker.left())

    def _by_pool(self, encoded: Encoded, most: int) -> None:
        """Let the solver enumerate."""
        session = self.solver.session("count")
        pool = session.pool(
            encoded.program, encoded.selectors, most=most, seconds=self.budget_tracker.left()
        )
        indices = [encoded.indices(point) for point in pool.points]
        found = [one for one in indices if one is not None]
        if found:
            self._witness(np.stack(found))

    def _witness(self, indices: Matrix) -> None:
        """Replay counterparts, and count those that are new."""
        numbers = [self._number(one) for one in indices]
        new = {number: row for row, number in enumerate(numbers) if number not in self.seen}
        batch = self.model.resolve(
            self._rows(indices[list(new.values())]),
            self.rule,
            deadline=self.budget_tracker.deadline,
        )
        decided = batch.decisions >= 0
        self.counts += np.bincount(batch.decisions[decided], minlength=len(self.counts))
        self.runtime_safe = self.runtime_safe and bool(batch.runtime_safe.all())
        self.seen.update(new)

    def _number(self, indices: Vector) -> int:
        number = 0
        for size, index in zip(self.sizes, indices, strict=True):
            number = number * size + int(index)
        return number

    def _rows(self, indices: Matrix) -> Rows:
        return Rows(self.model.exact, self.cells.people(indices, self.person))

    def _enough(self, until: Until) -> bool:
        if self.budget_tracker.late() or len(self.seen) >= MAX_WITNESSES:
            return True
        so_far = _tally(self.model, self.counts[None, :], np.ones(1, dtype=bool))
        return bool(so_far.undecided[0] == 0 or (until == "majority" and so_far.decided[0]))
