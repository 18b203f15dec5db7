"""Gurobi, by gurobipy; the licence that comes with the package takes small programs only."""

import time
from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.engine.milp.backends.protocol import Changes, Pool, SolverResult, Status
from feta.errors import EngineError
from feta.program import Places, Program

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

# Status: the user pressed Ctrl-C. Error: the program is larger than the licence.
INTERRUPTED = 11
TOO_LARGE = 10010

# A pool is made at most this many times as large as was asked for.
MAX_REPEATS = 16

# One thread: the programs are small. Gaps of zero: the farthest is asked for.
PARAMETERS = {"OutputFlag": 0, "Threads": 1, "MIPGap": 0.0, "MIPGapAbs": 1e-9}


class Gurobi:
    """Gurobi by gurobipy."""

    name = "Gurobi"
    package = "gurobipy"
    extra = "gurobi"
    limits = "2,000 variables and 2,000 rows, unless you have a licence of your own"
    pools = True

    def session(self) -> "GurobiSession":
        """Start anew."""
        return GurobiSession()


class GurobiSession:
    """One `gurobipy.Model`; from person to person only what changed is told."""

    def __init__(self) -> None:
        import gurobipy  # noqa: PLC0415 - only where it is used

        self._gurobi: Any = gurobipy
        try:
            self._env: Any = gurobipy.Env(params={"OutputFlag": 0})
        except gurobipy.GurobiError as error:
            message = f"Gurobi must have a valid licence, got {error}; use the engine 'milp' or 'milp:scip'"
            raise EngineError(message) from None
        self._model: Any = None
        self._program: Program | None = None
        self._cuts: list[Any] = []

    def solve(self, program: Program, *, seconds: float) -> SolverResult:
        """Solve a program; what was forbidden before is allowed again."""
        self._take(program)
        return self._run(seconds)

    def solve_again(self, forbidden: Places, *, seconds: float) -> SolverResult:
        """Solve the same program, where these binary columns may no longer all be 1 (Eq. NoGood)."""
        chosen = self._gurobi.quicksum(self._columns[int(one)] for one in forbidden)
        self._cuts.append(self._model.addConstr(chosen <= len(forbidden) - 1))
        return self._run(seconds)

    def pool(self, program: Program, selectors: Places, *, most: int, seconds: float) -> Pool:
        """Enumerate points that differ in some whole column (PoolSearchMode 2).

        Several may differ in others than the selectors: then more of them are asked for.
        """
        self._take(program)
        parameters, ends = self._model.Params, time.monotonic() + seconds
        parameters.PoolSearchMode, parameters.PoolSolutions = 2, most
        while True:
            outcome = self._run(ends - time.monotonic())
            points = self._points() if outcome.point is not None else []
            different = {np.rint(one[selectors]).tobytes(): one for one in points}
            if len(different) >= most or len(points) < parameters.PoolSolutions:
                break
            if parameters.PoolSolutions >= most * MAX_REPEATS:
                break
            parameters.PoolSolutions *= 2
        parameters.PoolSearchMode = 0
        return Pool(outcome.status, tuple(different.values()))

    def _points(self) -> list[Vector]:
        points = []
        for number in range(self._model.SolCount):
            self._model.Params.SolutionNumber = number
            points.append(np.array(self._model.getAttr("Xn", self._columns)))
        return points

    def _take(self, program: Program) -> None:
        if self._cuts:
            self._model.remove(self._cuts)
            self._cuts = []
        if self._program is None or not program.has_pattern_of(self._program):
            self._build(program)
        else:
            self._change(self._program, program)
        self._program = program

    def _build(self, program: Program) -> None:
        self._model = self._gurobi.Model(env=self._env)
        for name, value in PARAMETERS.items():
            self._model.setParam(name, value)
        box, limits = program.columns, program.limits
        kinds = np.where(program.whole, "I", "C").tolist()
        added = self._model.addVars(
            len(program.cost),
            lb=box.lower.tolist(),
            ub=box.upper.tolist(),
            obj=program.cost.tolist(),
            vtype=kinds,
        )
        self._columns = list(added.values())
        self._rows = []
        starts = program.starts
        for row in range(len(program.slack)):
            entries = slice(starts[row], starts[row + 1])
            columns = [self._columns[index] for index in program.entry_columns[entries]]
            weighed = self._gurobi.LinExpr(program.entries[entries].tolist(), columns)
            sense, side = _side(limits.lower[row], limits.upper[row])
            self._rows.append(self._model.addLConstr(weighed, sense, side))

    def _change(self, old: Program, new: Program) -> None:
        changes = Changes.between(old, new)
        model, limits, box = self._model, new.limits, new.columns
        columns = [self._columns[index] for index in changes.columns]
        model.setAttr("LB", columns, box.lower[changes.columns].tolist())
        model.setAttr("UB", columns, box.upper[changes.columns].tolist())
        model.setAttr("Obj", self._columns, new.cost.tolist())
        rows = [self._rows[index] for index in changes.rows]
        sides = [_side(limits.lower[row], limits.upper[row])[1] for row in changes.rows]
        model.setAttr("RHS", rows, sides)
        for entry in changes.entries:
            row, column = self._rows[new.entry_rows[entry]], self._columns[new.entry_columns[entry]]
            model.chgCoeff(row, column, new.entries[entry])

    def _run(self, seconds: float) -> SolverResult:
        self._model.Params.TimeLimit = min(max(seconds, 0.0), 1e100)  # Gurobi's infinity
        try:
            self._model.optimize()
        except self._gurobi.GurobiError as error:
            return SolverResult(Status.TOO_LARGE if error.errno == TOO_LARGE else Status.FAILED)
        if self._model.Status == INTERRUPTED:
            raise KeyboardInterrupt  # Gurobi swallowed it
        status = STATUSES.get(self._model.Status, Status.FAILED)
        if not self._model.SolCount:
            return SolverResult(status)
        return SolverResult(status, np.array(self._model.getAttr("X", self._columns)))


def _side(lower: float, upper: float) -> tuple[str, float]:
    """Say on which side a row is limited; no row has two limits that differ."""
    if lower == upper:
        return "=", float(lower)
    return (">", float(lower)) if np.isfinite(lower) else ("<", float(upper))
