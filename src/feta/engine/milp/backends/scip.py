"""SCIP, by pyscipopt."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.engine.milp.backends.incremental import IncrementalSession, column_kinds
from feta.engine.milp.backends.protocol import Pool, SolverResult, Status
from feta.program import Indices, Program

# SCIP's status names. A limit is not a proof, and names that are not listed are FAILED.
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

# SCIP's infinity.
INFINITY = 1e20


class Scip:
    """SCIP by pyscipopt."""

    name = "SCIP"
    package = "pyscipopt"
    extra = "scip"
    limits = "none"
    pools = True

    def session(self) -> "ScipSession":
        """Start a new session."""
        return ScipSession()


class ScipSession(IncrementalSession):
    """One `pyscipopt.Model`, updated from person to person."""

    def __init__(self) -> None:
        import pyscipopt  # noqa: PLC0415 - only where it is used

        super().__init__()
        self._scip: Any = pyscipopt

    def pool(self, program: Program, selectors: Indices, *, limit: int, seconds: float) -> Pool:
        """Enumerate in one search tree: every point is recorded, then cut off."""
        self._build(program)
        model = self._model
        for name in ("misc/allowweakdualreds", "misc/allowstrongdualreds"):
            model.setParam(name, False)  # they would keep one of several equally good points
        model.setParam("misc/usesymmetry", 0)
        collector = _collector(self._scip, [self._columns[index] for index in selectors], limit)
        model.includeConshdlr(
            collector,
            "collector",
            "records every point",
            chckpriority=-(10**7),
            enfopriority=-(10**7),
            needscons=False,
            eagerfreq=-1,
        )
        self._program = None  # this model cannot be used for another query
        result = self._run(seconds)
        points = []
        for values in collector.found:
            point = np.zeros(len(program.cost))
            point[selectors] = values
            points.append(point)
        return Pool(result.status, tuple(points))

    def _new_model(self) -> Any:  # noqa: ANN401 - untyped package
        model = self._scip.Model()
        model.hideOutput()
        model.setParam("misc/catchctrlc", False)  # Python must receive Ctrl-C
        return model

    def _add_columns(self, program: Program) -> list[Any]:
        box, kinds = program.columns, column_kinds(program)
        return [
            self._model.addVar(lb=low, ub=high, obj=cost, vtype=kind)
            for low, high, cost, kind in zip(box.lower, box.upper, program.cost, kinds, strict=True)
        ]

    def _add_row(
        self, entries: Vector, columns: Sequence[Any], *, lower: float, upper: float
    ) -> Any:  # noqa: ANN401 - untyped package
        row = self._weighted_sum(entries, columns)
        return self._model.addCons((_finite(lower) <= row) <= _finite(upper))

    def _reopen(self) -> None:
        self._model.freeTransform()

    def _remove_cuts(self) -> None:
        for cut in self._cuts:
            self._model.delCons(cut)

    def _set_bounds(self, columns: Sequence[Any], lower: Vector, upper: Vector) -> None:
        for column, low, high in zip(columns, lower, upper, strict=True):
            self._model.chgVarLb(column, low)
            self._model.chgVarUb(column, high)

    def _set_limits(self, rows: Sequence[Any], lower: Vector, upper: Vector) -> None:
        for row, low, high in zip(rows, lower, upper, strict=True):
            self._model.chgLhs(row, _finite(low))
            self._model.chgRhs(row, _finite(high))

    def _set_entry(self, row: Any, column: Any, entry: float) -> None:  # noqa: ANN401 - untyped package
        self._model.chgCoefLinear(row, column, entry)

    def _set_cost(self, old: Vector, new: Vector) -> None:
        if (old != new).any():
            self._model.setObjective(self._weighted_sum(new, self._columns))

    def _weighted_sum(self, weights: Vector, columns: Sequence[Any]) -> Any:  # noqa: ANN401 - untyped package
        pairs = zip(weights, columns, strict=True)
        return self._scip.quicksum(float(weight) * column for weight, column in pairs)

    def _run(self, seconds: float) -> SolverResult:
        self._model.setParam("limits/time", min(seconds, INFINITY))
        self._model.optimize()
        status = STATUSES.get(self._model.getStatus(), Status.FAILED)
        if not self._model.getNSols():
            return SolverResult(status)
        best = self._model.getBestSol()
        values = [self._model.getSolVal(best, column) for column in self._columns]
        return SolverResult(status, np.array(values))


def _collector(scip: Any, selectors: list[Any], limit: int) -> Any:  # noqa: ANN401 - untyped package
    """Return a constraint handler that no point satisfies, and that records every point."""

    class Collector(scip.Conshdlr):  # type: ignore[misc]  # pyscipopt has no types
        """Records each point and cuts it off."""

        def __init__(self) -> None:
            self.found: dict[tuple[float, ...], None] = {}

        def conscheck(self, constraints, solution, *args, **kwargs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN003, ANN202, ARG002
            self._record(solution)
            return {"result": scip.SCIP_RESULT.INFEASIBLE}

        def consenfolp(self, constraints, n_useful, infeasible):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
            self._cut_off(self._record(None))
            return {"result": scip.SCIP_RESULT.CONSADDED}

        def consenfops(self, constraints, n_useful, infeasible, objinfeasible):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
            self._cut_off(self._record(None))
            return {"result": scip.SCIP_RESULT.CONSADDED}

        def conslock(self, constraint, locktype, n_up, n_down):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
            for column in selectors:
                self.model.addVarLocks(column, n_up + n_down, n_up + n_down)

        def _record(self, solution: Any) -> tuple[float, ...]:  # noqa: ANN401 - untyped package
            values = tuple(round(self.model.getSolVal(solution, column)) for column in selectors)
            self.found[values] = None
            if len(self.found) >= limit:
                self.model.interruptSolve()
            return values

        def _cut_off(self, values: tuple[float, ...]) -> None:
            ones = [column for column, value in zip(selectors, values, strict=True) if value]
            self.model.addCons(scip.quicksum(ones) <= len(ones) - 1)

    return Collector()


def _finite(limit: float) -> float:
    return float(np.clip(limit, -INFINITY, INFINITY))
