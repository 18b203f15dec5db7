"""HiGHS, the default solver."""

from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.engine.milp.backends.protocol import Pool, SolverResult, Status
from feta.errors import EngineError
from feta.program import Indices, Program

# A limit is not a proof: time, node, iteration and memory limits are STOPPED, with or without a
# point. Names that are not listed are FAILED, which can only lead to Unknown.
STATUSES = {
    "kOptimal": Status.OPTIMAL,
    "kInfeasible": Status.INFEASIBLE,
    "kUnboundedOrInfeasible": Status.INFEASIBLE,  # every column is bounded
    "kObjectiveBound": Status.STOPPED,
    "kObjectiveTarget": Status.STOPPED,
    "kTimeLimit": Status.STOPPED,
    "kIterationLimit": Status.STOPPED,
    "kSolutionLimit": Status.STOPPED,
    "kInterrupt": Status.STOPPED,
    "kHighsInterrupt": Status.STOPPED,
    "kMemoryLimit": Status.STOPPED,
}

# The programs are small, so one thread is enough. Gaps of zero: the worst one is required.
OPTIONS = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 1e-9}


class Highs:
    """HiGHS by highspy."""

    name = "HiGHS"
    package = "highspy"
    extra = None
    limits = "none"
    pools = False

    def session(self) -> "HighsSession":
        """Start a new session."""
        return HighsSession()


class HighsSession:
    """One `highspy.Highs`; it gets each program as arrays, which is as fast as an update."""

    def __init__(self) -> None:
        import highspy  # noqa: PLC0415 - only where it is used

        solver: Any = highspy.Highs  # it is typed only in part
        self._solver = solver()
        for name, value in OPTIONS.items():
            self._solver.setOptionValue(name, value)

    def solve(self, program: Program, *, seconds: float) -> SolverResult:
        """Solve a program; earlier cuts are removed."""
        self._load(program, integer=True)
        return self._run(seconds)

    def solve_again(self, forbidden: Indices, *, seconds: float) -> SolverResult:
        """Solve the same program after a cut: not all these binary columns are 1 (Eq. NoGood)."""
        n_columns = len(forbidden)
        self._solver.addRow(-np.inf, n_columns - 1.0, n_columns, forbidden, np.ones(n_columns))
        return self._run(seconds)

    def pool(self, program: Program, selectors: Indices, *, limit: int, seconds: float) -> Pool:  # noqa: ARG002 - the protocol's
        """Raise: HiGHS has no solution pool."""
        raise EngineError(
            "HiGHS has no pool of solutions: got counting='pool'; expected 'cuts'; "
            "count by cuts, or use the engine 'milp:scip' or 'milp:gurobi'"
        )

    def solve_lp(self, program: Program, cost: Vector, *, keep: bool) -> Vector:
        """Minimize another cost over the relaxed program; return the rows' duals.

        `keep`: the solver already has this program, so only the cost changes.
        """
        if keep:
            self._solver.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        else:
            self._load(program, integer=False, cost=cost)
        self._solver.run()
        return np.array(self._solver.getSolution().row_dual)

    def _load(self, program: Program, *, integer: bool, cost: Vector | None = None) -> None:
        box, limits = program.columns, program.limits
        self._solver.passModel(
            len(program.cost),
            len(program.slack),
            len(program.entries),
            2,  # row by row
            1,  # minimize
            0.0,
            program.cost if cost is None else cost,
            box.lower,
            box.upper,
            limits.lower,
            limits.upper,
            program.starts[:-1],
            program.entry_columns,
            program.entries,
            program.integral.astype(np.int32) if integer else np.zeros(len(program.cost), np.int32),
        )

    def _run(self, seconds: float) -> SolverResult:
        self._solver.setOptionValue("time_limit", max(seconds, 0.0))
        self._solver.run()
        status = STATUSES.get(self._solver.getModelStatus().name, Status.FAILED)
        has_point = self._solver.getInfo().primal_solution_status == 2  # noqa: PLR2004 - feasible
        point = np.array(self._solver.getSolution().col_value) if has_point else None
        return SolverResult(status, point)
