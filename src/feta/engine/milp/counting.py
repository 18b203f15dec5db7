"""Counts of decisions by witnesses, each replayed.

Two methods of the paper find the witnesses: one cut per counterpart (Eq. NoGood), or a solution
pool if the solver has one. The end of a search proves nothing: counterparts without a witness
remain undecided, unless bounds rule out all decisions but one.
"""

import math
from typing import Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.bounds.first_layer import MAX_ROWS
from feta.cells.cells import Cells
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.counterparts import MAX_COUNTERPARTS
from feta.engine.milp.backends.protocol import Status
from feta.engine.milp.solver import Solver
from feta.engine.protocol import Budget, Until, uncountable
from feta.errors import EngineError
from feta.model import Model
from feta.scorer.program_encoder import EncodedProgram
from feta.scorer.protocol import Points
from feta.verdict.tally import Tally, complete_tally

Counting = Literal["cuts", "pool"]

# Counterparts sampled to guess the most frequent decision, which is counted first.
GUESSES = 16

# Witnesses per person: a hundred thousand solver calls take a quarter of an hour.
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
    rule = model.rule
    _check_countable(model, solver)
    budget_tracker = BudgetTracker(budget)
    counts = np.zeros((len(people), rule.n_classes), dtype=np.int64)
    runtime_safe = np.zeros(len(people), dtype=bool)
    for row, person in enumerate(people):
        counter = _Counter(model, solver, person, budget_tracker, counting=counting, until=until)
        with solver.lock:
            counter.run()
        counts[row], runtime_safe[row] = counter.counts, counter.runtime_safe
    return complete_tally(counts, model.relation.size, runtime_safe, ties_to=rule.ties_to)


def _check_countable(model: Model, solver: Solver) -> None:
    for axis in solver.axes:
        name = axis.attribute.name
        if axis.real:
            raise uncountable(name)
        n_values = int(axis.ends[1]) + 1
        if n_values > MAX_ROWS:
            raise EngineError(
                f"too many values to count: got {n_values} of {name!r}; "
                f"expected at most {MAX_ROWS}; narrow its domain"
            )
    size = model.relation.size
    if size >= MAX_COUNTERPARTS:
        raise EngineError(
            f"too many counterparts to count: got {size}; expected fewer than 2^62; "
            "narrow the sensitive domains"
        )


class _Counter:
    """Count of one person's counterparts in progress."""

    def __init__(
        self,
        model: Model,
        solver: Solver,
        person: Vector,
        budget_tracker: BudgetTracker,
        *,
        counting: Counting,
        until: Until,
    ) -> None:
        self.model, self.solver, self.budget_tracker = model, solver, budget_tracker
        self.counting, self.until = counting, until
        self.rule, self.person = model.rule, np.where(model.space.sensitive_columns, 0.0, person)
        self.cells = Cells.whole(solver.axes)
        self.sizes = [int(axis.ends[1]) + 1 for axis in solver.axes]
        self.n_counterparts = math.prod(self.sizes)
        self.seen: set[int] = set()  # assignment IDs of all witnesses
        self.counts = np.zeros(model.rule.n_classes, dtype=np.int64)
        self.runtime_safe = True

    def run(self) -> None:
        """Count one decision after the other, the most frequent first."""
        bounds = [
            self.solver.bound(self.model, self.person, self.rule.reaching(decision))
            for decision in range(len(self.counts))
        ]
        possible = [decision for decision, over in enumerate(bounds) if not over.agrees.all()]
        if len(possible) == 1:  # bounds rule out all others, so no witness is needed
            others = [over for over in bounds if over.agrees.all()]
            self.counts[possible[0]] = self.n_counterparts
            self.runtime_safe = all(bool(over.runtime_safe().all()) for over in others)
            return
        programs = [
            self.solver.encode(bounds[decision], self.person, maximize=False, listed=True)
            for decision in sorted(possible, key=self._frequency, reverse=True)
        ]
        if self.counting == "cuts":
            for encoded in programs:
                if not self._is_done():
                    self._count_by_cuts(encoded)
            return
        # Half of all is often enough; a pool that is too small may miss some, and is enlarged.
        size = self.n_counterparts
        for limit in (size // 2 + 1, size) if self.until == "majority" else (size,):
            for encoded in programs:
                if not self._is_done():
                    self._count_by_pool(encoded, min(limit, MAX_WITNESSES))

    def _frequency(self, decision: int) -> int:
        """Estimate how frequent a decision is, from a few counterparts."""
        rng = np.random.default_rng(0)
        indices = np.stack([rng.integers(0, size, GUESSES) for size in self.sizes], axis=1)
        batch = self.model.resolve(self._rows(indices.astype(np.float64)), self.rule)
        return int((batch.decisions == decision).sum())

    def _count_by_cuts(self, encoded: EncodedProgram) -> None:
        """Find one counterpart at a time, each with a cut for every earlier one (Eq. NoGood)."""
        session = self.solver.session("count")
        result = session.solve(encoded.program, seconds=self.budget_tracker.seconds_left())
        # Per search: a counterpart on the threshold is a point of two programs.
        visited: set[int] = set()
        while result.status is Status.OPTIMAL:
            indices = encoded.indices(result.point)
            if indices is None or self._assignment_id(indices) in visited:
                return
            visited.add(self._assignment_id(indices))
            self._add_witnesses(indices[None, :])
            if self._is_done():
                return
            forbidden = encoded.chosen(indices)
            result = session.solve_again(forbidden, seconds=self.budget_tracker.seconds_left())

    def _count_by_pool(self, encoded: EncodedProgram, limit: int) -> None:
        """Let the solver enumerate counterparts."""
        session = self.solver.session("count")
        seconds = self.budget_tracker.seconds_left()
        pool = session.pool(encoded.program, encoded.selectors, limit=limit, seconds=seconds)
        points = [encoded.indices(point) for point in pool.points]
        indices = [row for row in points if row is not None]
        if indices:
            self._add_witnesses(np.stack(indices))

    def _add_witnesses(self, indices: Matrix) -> None:
        """Replay counterparts, and count the new ones."""
        assignment_ids = [self._assignment_id(row) for row in indices]
        new = {key: row for row, key in enumerate(assignment_ids) if key not in self.seen}
        batch = self.model.resolve(
            self._rows(indices[list(new.values())]),
            self.rule,
            deadline=self.budget_tracker.deadline,
        )
        decided = batch.decisions >= 0
        self.counts += np.bincount(batch.decisions[decided], minlength=len(self.counts))
        self.runtime_safe = self.runtime_safe and bool(batch.runtime_safe.all())
        self.seen.update(new)

    def _assignment_id(self, indices: Vector) -> int:
        assignment_id = 0
        for size, index in zip(self.sizes, indices, strict=True):
            assignment_id = assignment_id * size + int(index)
        return assignment_id

    def _rows(self, indices: Matrix) -> Points:
        return self.model.points(self.cells.people(indices, self.person))

    def _is_done(self) -> bool:
        if self.budget_tracker.late() or len(self.seen) >= MAX_WITNESSES:
            return True
        so_far = complete_tally(
            self.counts[None, :],
            self.model.relation.size,
            np.ones(1, dtype=bool),
            ties_to=self.rule.ties_to,
        )
        return bool(so_far.undecided[0] == 0 or (self.until == "majority" and so_far.decided[0]))
