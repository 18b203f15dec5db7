"""Gurobi, by gurobipy; the license that comes with the package allows small programs only."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.engine.milp.backends.incremental import IncrementalSession, column_kinds
from feta.engine.milp.backends.protocol import Pool, SolverResult, Status
from feta.errors import EngineError
from feta.program import Indices, Program

# Gurobi's status codes. A limit is not a proof, and codes that are not listed are FAILED.
STATUSES = {
    2: Status.OPTIMAL,
    3: Status.INFEASIBLE,
    4: Status.INFEASIBLE,  # or unbounded, but every column is bounded
    6: Status.STOPPED,  # cutoff
    7: Status.STOPPED,  # iterations
    8: Status.STOPPED,  # nodes
    9: Status.STOPPED,  # time
    10: Status.STOPPED,  # solutions
    15: Status.STOPPED,  # objective
    16: Status.STOPPED,  # work
    17: Status.STOPPED,  # memory
}

# The status after Ctrl-C, and the error of a program that is too large for the license.
INTERRUPTED = 11
TOO_LARGE = 10010

# A pool is enlarged up to this many times the requested size.
MAX_REPEATS = 16

# The programs are small, so one thread is enough. Gaps of zero: the worst one is required.
PARAMETERS = {"OutputFlag": 0, "Threads": 1, "MIPGap": 0.0, "MIPGapAbs": 1e-9}


class Gurobi:
    """Gurobi by gurobipy."""

    name = "Gurobi"
    package = "gurobipy"
    extra = "gurobi"
    limits = "2,000 variables and 2,000 rows, unless you have a license of your own"
    pools = True

    def session(self) -> "GurobiSession":
        """Start a new session."""
        return GurobiSession()


class GurobiSession(IncrementalSession):
    """One `gurobipy.Model`, updated from person to person."""

    def __init__(self) -> None:
        import gurobipy  # noqa: PLC0415 - only where it is used

        super().__init__()
        self._gurobi: Any = gurobipy
        try:
            self._env: Any = gurobipy.Env(params={"OutputFlag": 0})
        except gurobipy.GurobiError as error:
            raise EngineError(
                f"Gurobi did not start: got {error}; expected a valid license; "
                "use the engine 'milp' or 'milp:scip'"
            ) from None

    def pool(self, program: Program, selectors: Indices, *, limit: int, seconds: float) -> Pool:
        """Enumerate points that differ in some integer column (PoolSearchMode 2).

        Several may differ only in columns that are not selectors: then the pool is enlarged.
        """
        self._load(program)
        parameters, deadline = self._model.Params, time.monotonic() + seconds
        parameters.PoolSearchMode, parameters.PoolSolutions = 2, limit
        while True:
            result = self._run(deadline - time.monotonic())
            points = self._points() if result.point is not None else []
            distinct = {np.rint(point[selectors]).tobytes(): point for point in points}
            if len(distinct) >= limit or len(points) < parameters.PoolSolutions:
                break
            if parameters.PoolSolutions >= limit * MAX_REPEATS:
                break
            parameters.PoolSolutions *= 2
        parameters.PoolSearchMode = 0
        return Pool(result.status, tuple(distinct.values()))

    def _points(self) -> list[Vector]:
        points = []
        for index in range(self._model.SolCount):
            self._model.Params.SolutionNumber = index
            points.append(np.array(self._model.getAttr("Xn", self._columns)))
        return points

    def _new_model(self) -> Any:  # noqa: ANN401 - untyped package
        model = self._gurobi.Model(env=self._env)
        for name, value in PARAMETERS.items():
            model.setParam(name, value)
        return model

    def _add_columns(self, program: Program) -> list[Any]:
        columns = self._model.addVars(
            len(program.cost),
            lb=program.columns.lower.tolist(),
            ub=program.columns.upper.tolist(),
            obj=program.cost.tolist(),
            vtype=column_kinds(program),
        )
        return list(columns.values())

    def _add_row(
        self, entries: Vector, columns: Sequence[Any], *, lower: float, upper: float
    ) -> Any:  # noqa: ANN401 - untyped package
        sense, side = _side(lower, upper)
        row = self._gurobi.LinExpr(entries.tolist(), columns)
        return self._model.addLConstr(row, sense, side)

    def _reopen(self) -> None:
        """Do nothing: Gurobi's models are always editable."""

    def _remove_cuts(self) -> None:
        if self._cuts:
            self._model.remove(self._cuts)

    def _set_bounds(self, columns: Sequence[Any], lower: Vector, upper: Vector) -> None:
        self._model.setAttr("LB", columns, lower.tolist())
        self._model.setAttr("UB", columns, upper.tolist())

    def _set_limits(self, rows: Sequence[Any], lower: Vector, upper: Vector) -> None:
        sides = [_side(*limits)[1] for limits in zip(lower, upper, strict=True)]
        self._model.setAttr("RHS", rows, sides)

    def _set_entry(self, row: Any, column: Any, entry: float) -> None:  # noqa: ANN401 - untyped package
        self._model.chgCoeff(row, column, entry)

    def _set_cost(self, old: Vector, new: Vector) -> None:
        del old
        self._model.setAttr("Obj", self._columns, new.tolist())

    def _run(self, seconds: float) -> SolverResult:
        self._model.Params.TimeLimit = min(max(seconds, 0.0), 1e100)  # Gurobi's infinity
        try:
            self._model.optimize()
        except self._gurobi.GurobiError as error:
            return SolverResult(Status.TOO_LARGE if error.errno == TOO_LARGE else Status.FAILED)
        if self._model.Status == INTERRUPTED:
            raise KeyboardInterrupt  # Gurobi has caught the signal
        status = STATUSES.get(self._model.Status, Status.FAILED)
        if not self._model.SolCount:
            return SolverResult(status)
        return SolverResult(status, np.array(self._model.getAttr("X", self._columns)))


def _side(lower: float, upper: float) -> tuple[str, float]:
    """Return the sense of a row and its right-hand side; no row has two different limits."""
    if lower == upper:
        return "=", float(lower)
    return (">", float(lower)) if np.isfinite(lower) else ("<", float(upper))
