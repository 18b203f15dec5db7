"""Tracking of what a query has cost."""

import time
from dataclasses import dataclass

from feta.engine.protocol import Budget
from feta.scorer.kernel import Limits
from feta.verdict.verdict import Effort, Reason


@dataclass(slots=True)
class BudgetTracker:
    """Mutable counter of the cost of one query; it starts when it is created."""

    budget: Budget
    started: float = 0.0
    deadline: float = 0.0
    evaluations: int = 0
    solver_calls: int = 0
    reason: Reason | None = None  # why the budget is spent

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.deadline = self.budget.deadline()

    def spent(self, n_points: int) -> bool:
        """Return whether scoring this many more points exceeds the budget; if not, count them."""
        limit = self.budget.evaluations
        if time.monotonic() > self.deadline:
            self.reason = Reason.OUT_OF_TIME
        elif limit is not None and self.evaluations + n_points > limit:
            self.reason = Reason.OUT_OF_NODES
        else:
            self.evaluations += n_points
        return self.reason is not None

    def late(self) -> bool:
        """Return whether the time is up."""
        if time.monotonic() > self.deadline:
            self.reason = Reason.OUT_OF_TIME
        return self.reason is not None

    def seconds_left(self) -> float:
        """Return the seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def effort(self) -> Effort:
        """Return the cost so far."""
        seconds = time.monotonic() - self.started
        return Effort(seconds, self.evaluations, solver_calls=self.solver_calls)


def kernel_limits(budget: Budget, deadline: float) -> Limits:
    """Return the limits of a kernel: seconds until the deadline, and evaluations per person.

    A kernel always bounds the root of the lattice, so one evaluation is the smallest limit.
    """
    seconds = -1.0 if budget.seconds is None else max(0.0, deadline - time.monotonic())
    return Limits(seconds, 0 if budget.evaluations is None else max(1, int(budget.evaluations)))
