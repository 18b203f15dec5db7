"""SCIP, by pyscipopt."""

from typing import Any

import numpy as np

from feta.engine.milp.backends.protocol import Changes, Pool, SolverResult, Status
from feta.program import Places, Program

# A limit is not a proof, and words that SCIP may add later are FAILED.
STATUSES = {
    "optimal": Status.OPTIMAL,
    "infeasible": Status.INFEASIBLE,
    "inforunbd": Status.INFEASIBLE,  # every column is bounded
    "userinterrupt": Status.STOPPED,
    "nodelimit": Status.STOPPED,
    "totalnodelimit": Status.STOPPED,
    "stallnodelimit": Status.STOPPED,
    "timelimit": Status.STOPPED,
    "memlimit": Status.STOPPED,
    "gaplimit": Status.STOPPED,
    "primallimit": Status.STOPPED,
    "duallimit": Status.STOPPED,
    "sollimit": Status.STOPPED,
    "bestsollimit": Status.STOPPED,
    "restartlimit": Status.STOPPED,
}

# SCIP's own infinity.
INFINITY = 1e20


class Scip:
    """SCIP by pyscipopt."""

    name = "SCIP"
    package = "pyscipopt"
    extra = "scip"
    limits = "none"
    pools = True

    def session(self) -> "ScipSession":
        """Start anew."""
        return ScipSession()


class ScipSession:
    """One `pyscipopt.Model`; from person to person only what changed is told."""

    def __init__(self) -> None:
        import pyscipopt  # noqa: PLC0415 - only where it is used

        self._scip: Any = pyscipopt
        self._model: Any = None
        self._program: Program | None = None
        self._cuts: list[Any] = []

    def solve(self, program: Program, *, seconds: float) -> SolverResult:
        """Solve a program; what was forbidden before is allowed again."""
        self._take(program)
        return self._run(seconds)

    def solve_again(self, forbidden: Places, *, seconds: float) -> SolverResult:
        """Solve the same program, where these binary columns may no longer all be 1 (Eq. NoGood)."""
        self._model.freeTransform()
        chosen = self._scip.quicksum(self._columns[int(one)] for one in forbidden)
        self._cuts.append(self._model.addCons(chosen <= len(forbidden) - 1))
        return self._run(seconds)

    def pool(self, program: Program, selectors: Places, *, most: int, seconds: float) -> Pool:
        """Enumerate in one tree: every point is taken down, then cut off."""
        model = self._build(program)
        for name in ("misc/allowweakdualreds", "misc/allowstrongdualreds"):
            model.setParam(name, False)  # they would keep one of several equally good points
        model.setParam("misc/usesymmetry", 0)
        collector = _collector(self._scip, [self._columns[one] for one in selectors], most)
        model.includeConshdlr(
            collector,
            "collector",
            "takes down every point",
            chckpriority=-(10**7),
            enfopriority=-(10**7),
            needscons=False,
            eagerfreq=-1,
        )
        self._program = None  # this model answers no other question
        outcome = self._run(seconds)
        points = []
        for chosen in collector.found:
            point = np.zeros(len(program.cost))
            point[selectors] = chosen
            points.append(point)
        return Pool(outcome.status, tuple(points))

    def _take(self, program: Program) -> None:
        if self._program is None or not program.has_pattern_of(self._program):
            self._build(program)
        else:
            self._model.freeTransform()
            for cut in self._cuts:
                self._model.delCons(cut)
            self._cuts = []
            self._change(self._program, program)
        self._program = program

    def _build(self, program: Program) -> Any:  # noqa: ANN401 - pyscipopt has no types
        model = self._model = self._scip.Model()
        model.hideOutput()
        model.setParam("misc/catchctrlc", False)  # Python's own Ctrl-C must come through
        self._cuts = []
        box, limits = program.columns, program.limits
        kinds = np.where(program.whole, "I", "C")
        self._columns = [
            model.addVar(lb=low, ub=high, obj=cost, vtype=kind)
            for low, high, cost, kind in zip(box.lower, box.upper, program.cost, kinds, strict=True)
        ]
        self._rows = []
        starts = program.starts
        for row in range(len(program.slack)):
            entries = range(starts[row], starts[row + 1])
            weighed = self._scip.quicksum(
                float(program.entries[one]) * self._columns[program.entry_columns[one]]
                for one in entries
            )
            low, high = _finite(limits.lower[row]), _finite(limits.upper[row])
            self._rows.append(model.addCons((low <= weighed) <= high))
        return model

    def _change(self, old: Program, new: Program) -> None:
        changes, model = Changes.between(old, new), self._model
        for index in changes.columns:
            model.chgVarLb(self._columns[index], new.columns.lower[index])
            model.chgVarUb(self._columns[index], new.columns.upper[index])
        for index in changes.rows:
            model.chgLhs(self._rows[index], _finite(new.limits.lower[index]))
            model.chgRhs(self._rows[index], _finite(new.limits.upper[index]))
        for entry in changes.entries:
            row, column = self._rows[new.entry_rows[entry]], self._columns[new.entry_columns[entry]]
            model.chgCoefLinear(row, column, new.entries[entry])
        if (old.cost != new.cost).any():
            weighed = zip(new.cost, self._columns, strict=True)
            model.setObjective(self._scip.quicksum(float(cost) * one for cost, one in weighed))

    def _run(self, seconds: float) -> SolverResult:
        self._model.setParam("limits/time", min(seconds, INFINITY))
        self._model.optimize()
        status = STATUSES.get(self._model.getStatus(), Status.FAILED)
        if not self._model.getNSols():
            return SolverResult(status)
        best = self._model.getBestSol()
        return SolverResult(
            status, np.array([self._model.getSolVal(best, one) for one in self._columns])
        )


def _collector(scip: Any, selectors: list[Any], most: int) -> Any:  # noqa: ANN401 - pyscipopt has no types
    """Make SCIP's handler of a constraint that nothing satisfies, but that remembers what came by."""

    class Collector(scip.Conshdlr):  # type: ignore[misc]  # pyscipopt has no types
        """Takes down each point, and cuts it off."""

        def __init__(self) -> None:
            self.found: dict[tuple[float, ...], None] = {}

        def conscheck(self, constraints, solution, *args, **kwargs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN003, ANN202, ARG002
            self._take_down(solution)
            return {"result": scip.SCIP_RESULT.INFEASIBLE}

        def consenfolp(self, constraints, n_useful, infeasible):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
            self._cut_off(self._take_down(None))
            return {"result": scip.SCIP_RESULT.CONSADDED}

        def consenfops(self, constraints, n_useful, infeasible, objinfeasible):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
            self._cut_off(self._take_down(None))
            return {"result": scip.SCIP_RESULT.CONSADDED}

        def conslock(self, constraint, locktype, n_up, n_down):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
            for one in selectors:
                self.model.addVarLocks(one, n_up + n_down, n_up + n_down)

        def _take_down(self, solution: Any) -> tuple[float, ...]:  # noqa: ANN401 - pyscipopt has no types
            chosen = tuple(round(self.model.getSolVal(solution, one)) for one in selectors)
            self.found[chosen] = None
            if len(self.found) >= most:
                self.model.interruptSolve()
            return chosen

        def _cut_off(self, chosen: tuple[float, ...]) -> None:
            on = [one for one, value in zip(selectors, chosen, strict=True) if value]
            self.model.addCons(scip.quicksum(on) <= len(on) - 1)

    return Collector()


def _finite(limit: float) -> float:
    return float(np.clip(limit, -INFINITY, INFINITY))
