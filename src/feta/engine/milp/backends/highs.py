"""HiGHS, the default solver."""

from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.engine.milp.backends.protocol import Pool, SolverResult, Status
from feta.errors import EngineError
from feta.program import Places, Program

# A limit is not a proof: time, node, iteration and memory limits are STOPPED, with or without a
# point. Codes that HiGHS may add later fall to FAILED, which can only end in Unknown.
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

# The programs are small: one thread, and no effort for heuristics that large ones need.
OPTIONS = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 1e-9}


class Highs:
    """HiGHS by highspy."""

    name = "HiGHS"
    package = "highspy"
    extra = None
    limits = "none"
    pools = False

    def session(self) -> "HighsSession":
        """Start anew."""
        return HighsSession()


class HighsSession:
    """One `highspy.Highs`, given each program as arrays: that is as quick as changing the old one."""

    def __init__(self) -> None:
        import highspy  # noqa: PLC0415 - only where it is used

        solver: Any = highspy.Highs  # it has types in places only
        self._solver = solver()
        self._solver.setOptionValue("output_flag", False)
        for name, value in OPTIONS.items():
            self._solver.setOptionValue(name, value)

    def solve(self, program: Program, *, seconds: float) -> SolverResult:
        """Solve a program; what was forbidden before is allowed again."""
        self._pass(program, whole=True)
        return self._run(seconds)

    def solve_again(self, forbidden: Places, *, seconds: float) -> SolverResult:
        """Solve the same program, where these binary columns may no longer all be 1 (Eq. NoGood)."""
        n_columns = len(forbidden)
        self._solver.addRow(-np.inf, n_columns - 1.0, n_columns, forbidden, np.ones(n_columns))
        return self._run(seconds)

    def pool(self, program: Program, selectors: Places, *, most: int, seconds: float) -> Pool:  # noqa: ARG002 - as the others
        """Refuse: HiGHS has no pool."""
        raise EngineError("HiGHS keeps no pool of solutions; count by cuts, or with SCIP or Gurobi")

    def solve_lp(self, program: Program, cost: Vector, *, keep: bool) -> Vector:
        """Minimise another cost over the program with nothing whole; give the rows' duals."""
        if keep:
            self._solver.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        else:
            self._pass(program, whole=False, cost=cost)
        self._solver.run()
        return np.array(self._solver.getSolution().row_dual)

    def _pass(self, program: Program, *, whole: bool, cost: Vector | None = None) -> None:
        box, limits = program.columns, program.limits
        self._solver.passModel(
            len(program.cost),
            len(program.slack),
            len(program.entries),
            2,  # row by row
            1,  # minimise
            0.0,
            program.cost if cost is None else cost,
            box.lower,
            box.upper,
            limits.lower,
            limits.upper,
            program.starts[:-1],
            program.entry_columns,
            program.entries,
            program.whole.astype(np.int32) if whole else np.zeros(len(program.cost), np.int32),
        )

    def _run(self, seconds: float) -> SolverResult:
        self._solver.setOptionValue("time_limit", max(seconds, 0.0))
        self._solver.run()
        status = STATUSES.get(self._solver.getModelStatus().name, Status.FAILED)
        has_point = self._solver.getInfo().primal_solution_status == 2  # noqa: PLR2004 - feasible
        point = np.array(self._solver.getSolution().col_value) if has_point else None
        return SolverResult(status, point)
