"""Every status of every solver is known: mapped, or listed as a failure."""

import pytest

from feta.engine.milp.backends import gurobi, highs, scip
from feta.engine.milp.backends.protocol import Status

PROOFS = (Status.OPTIMAL, Status.INFEASIBLE)


def test_every_status_of_highs_is_known() -> None:
    from highspy import HighsModelStatus  # noqa: PLC0415 - only where it is used

    failures = {"kNotset", "kLoadError", "kModelError", "kPresolveError", "kSolveError"}
    failures |= {"kPostsolveError", "kModelEmpty", "kUnbounded", "kUnknown"}
    known = {name for name in dir(HighsModelStatus) if name.startswith("k")}
    assert known - failures == set(highs.STATUSES)
    ends = {name for name, status in highs.STATUSES.items() if status in PROOFS}
    assert ends == {"kOptimal", "kInfeasible", "kUnboundedOrInfeasible"}


def test_every_status_of_gurobi_is_known() -> None:
    gurobipy = pytest.importorskip("gurobipy", reason="gurobipy is not installed")
    failures = {"LOADED", "UNBOUNDED", "NUMERIC", "SUBOPTIMAL", "INPROGRESS"}
    failures |= {"LOCALLY_OPTIMAL", "LOCALLY_INFEASIBLE"}
    status = gurobipy.GRB.Status
    known = {name: getattr(status, name) for name in dir(status) if name.isupper()}
    mapped = {name for name, code in known.items() if code in gurobi.STATUSES}
    assert known["INTERRUPTED"] == gurobi.INTERRUPTED
    assert set(known) - failures - {"INTERRUPTED"} == mapped
    ends = {name for name in mapped if gurobi.STATUSES[known[name]] in PROOFS}
    assert ends == {"OPTIMAL", "INFEASIBLE", "INF_OR_UNBD"}


def test_every_status_of_scip_is_known() -> None:
    pyscipopt = pytest.importorskip("pyscipopt", reason="pyscipopt is not installed")
    names = [name for name in dir(pyscipopt.scip.PY_SCIP_STATUS) if name.isupper()]
    failures = {"unknown", "unbounded"}
    assert {name.lower() for name in names} - failures == set(scip.STATUSES)
    ends = {name for name, status in scip.STATUSES.items() if status in PROOFS}
    assert ends == {"optimal", "infeasible", "inforunbd"}
