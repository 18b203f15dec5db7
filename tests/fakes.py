"""Fake solver backends that return wrong results."""

import numpy as np

from feta.arrays import Vector
from feta.engine.milp.backends.protocol import Pool, SolverResult, Status
from feta.program import Indices, Program


class Liar:
    """A backend that always returns the same status and a point filled with one number."""

    name = "Liar"
    package = "numpy"
    extra = None
    limits = "the truth"
    pools = True

    def __init__(
        self, status: Status, filling: float | None = None, *, short: bool = False
    ) -> None:
        self.status, self.filling, self.short = status, filling, short

    def session(self) -> "LiarSession":
        return LiarSession(self)


class LiarSession:
    """A session of a `Liar`."""

    def __init__(self, liar: Liar) -> None:
        self.liar = liar
        self.n_columns = 0

    def solve(self, program: Program, *, seconds: float) -> SolverResult:
        del seconds
        self.n_columns = len(program.cost)
        return SolverResult(self.liar.status, self._point())

    def solve_again(self, forbidden: Indices, *, seconds: float) -> SolverResult:
        del forbidden, seconds
        return SolverResult(self.liar.status, self._point())

    def pool(self, program: Program, selectors: Indices, *, limit: int, seconds: float) -> Pool:
        del selectors, limit
        point = self.solve(program, seconds=seconds).point
        return Pool(self.liar.status, () if point is None else (point, point))

    def _point(self) -> Vector | None:
        if self.liar.filling is None:
            return None
        return np.full(self.n_columns - self.liar.short, self.liar.filling)


LIARS = (
    Liar(Status.INFEASIBLE),
    Liar(Status.OPTIMAL),
    Liar(Status.FAILED),
    Liar(Status.STOPPED),
    Liar(Status.TOO_LARGE),
    Liar(Status.OPTIMAL, 0.0),
    Liar(Status.OPTIMAL, 1e300),
    Liar(Status.OPTIMAL, float("nan")),
    Liar(Status.OPTIMAL, float("-inf")),
    Liar(Status.OPTIMAL, 1.0, short=True),
)
