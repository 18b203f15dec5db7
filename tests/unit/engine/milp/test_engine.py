import builtins
import importlib.util
from collections.abc import Callable

import numpy as np
import pytest

import feta
from feta.auditing.auditor import Auditor
from feta.checker.prove import prove
from feta.engine.milp import engine as engine_module
from feta.engine.milp.backends.gurobi import Gurobi
from feta.engine.milp.backends.highs import Highs
from feta.engine.milp.backends.protocol import Status
from feta.engine.milp.backends.scip import Scip
from feta.engine.milp.engine import REASONS, MilpEngine
from feta.engine.protocol import UNLIMITED, Budget
from feta.model import Model
from feta.verdict.certificate import BoundsProof, Certificate
from feta.verdict.verdict import Reason
from tests import oracle
from tests.examples import PERSON, SPACE, linear
from tests.fakes import LIARS, Liar

UNFAIR = linear(age=1.0, bias=-31.5)
FAIR = linear(age=1.0, bias=-17.5)
REAL = Model(
    SPACE.with_sensitive(["age", "income"]),
    feta.Network.from_layers([([[1.0, 0.0, 0.0, 0.5]], [-60.0])]),
    threshold=0.0,
)


def bumpy() -> Model:
    """Return a model where only age 54 differs; bounds over one cell do not decide it."""
    layers = [
        ([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0]], [-53.0, -54.0, -55.0]),
        ([[1.0, -2.0, 1.0]], [-0.5]),
    ]
    return Model(SPACE, feta.Network.from_layers(layers), threshold=0.0)


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: f"{liar.status.name} {liar.filling}")
def test_a_lying_backend_gives_no_wrong_verdict(liar: Liar) -> None:
    """Bounds both prove and find; the solver only makes the search faster."""
    engine = MilpEngine("liar", liar)
    for kind in (feta.FairAt, feta.WorstAt):
        assert isinstance(engine.solve(kind(FAIR, PERSON), UNLIMITED), feta.Fair)
        verdict = engine.solve(kind(bumpy(), PERSON), UNLIMITED)
        assert isinstance(verdict, feta.Unfair)
        assert SPACE.decode(verdict.counterexample.counterpart)["age"] == 54


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.INFEASIBLE, Reason.SOLVER_INFEASIBLE),
        (Status.FAILED, Reason.SOLVER_FAILED),
        (Status.TOO_LARGE, Reason.SOLVER_LIMIT),
        (Status.STOPPED, Reason.OUT_OF_TIME),
        (Status.OPTIMAL, Reason.NOT_REPRODUCED),
    ],
)
def test_a_solvers_claim_alone_gives_unknown_with_its_name(status: Status, reason: Reason) -> None:
    engine = MilpEngine("liar", Liar(status), bounds="linear", max_cells=1)
    for kind in (feta.FairAt, feta.WorstAt):
        verdict = engine.solve(kind(bumpy(), PERSON), UNLIMITED)
        assert isinstance(verdict, feta.Unknown)
        assert verdict.reason is reason
        assert verdict.solver == "Liar"
        assert verdict.effort.solver_calls >= 1


def test_every_status_has_a_reason() -> None:
    assert set(REASONS) == set(Status)


def test_a_point_that_replays_without_a_proof_is_not_called_optimal() -> None:
    """The solver returns age 18 (all zeros), which replays but is not proved to be the worst."""
    model = linear(age=-1.0, bias=25.5)
    engine = MilpEngine("liar", Liar(Status.OPTIMAL, 0.0), max_cells=1)
    verdict = engine.solve(feta.WorstAt(model, PERSON), UNLIMITED)
    assert isinstance(verdict, feta.Unfair)
    assert not verdict.optimal
    better = MilpEngine("liar", Liar(Status.OPTIMAL, 0.0)).solve(
        feta.WorstAt(model, PERSON), UNLIMITED
    )
    assert isinstance(better, feta.Unfair)
    assert better.optimal


def test_fair_has_a_proof_that_can_be_re_checked() -> None:
    for model, kind in ((FAIR, feta.FairAt), (FAIR, feta.WorstAt), (REAL, feta.FairAt)):
        person = PERSON if model is FAIR else np.array([18.0, 1.0, 0.0, 0.0])
        query = kind(model, person)
        verdict = feta.verify(query, engine="milp")
        if model is REAL:
            assert isinstance(verdict, feta.Unfair)
            continue
        assert isinstance(verdict, feta.Fair)
        assert isinstance(verdict.certificate.proof, BoundsProof)
        assert verdict.runtime == "safe"
        prove(verdict.certificate, query)


def test_fair_on_the_threshold_is_proved_and_called_sensitive() -> None:
    verdict = feta.verify(feta.FairAt(linear(age=1.0, bias=-18.0), PERSON), engine="milp")
    assert isinstance(verdict, feta.Fair)
    assert verdict.runtime == "sensitive"


def test_real_valued_attributes_are_verified_and_the_worst_is_proved() -> None:
    verdict = feta.worst(REAL, np.array([18.0, 1.0, 0.0, 0.0]))  # auto
    assert isinstance(verdict, feta.Unfair)
    assert verdict.optimal
    assert verdict.counterexample.counterpart.tolist() == [90.0, 1.0, 0.0, 100.0]
    assert verdict.counterexample.gap == 122.0


def test_a_real_witness_of_an_ulp_is_found_or_nothing_is_claimed() -> None:
    """Only the last number, age 90, gets a different decision."""
    space = feta.FeatureSpace((feta.Real("age", 18, 90, sensitive=True),))
    for value, kind in ((90.0, feta.Unfair), (np.nextafter(90.0, 91.0), feta.Fair)):
        model = Model(space, feta.Network.from_layers([([[1.0]], [0.0])]), threshold=value)
        assert type(feta.verify(feta.FairAt(model, np.array([30.0])))) is kind


def test_a_lattice_of_2_to_the_80_is_answered() -> None:
    space = feta.FeatureSpace(
        tuple(feta.Integer(f"n{n}", 0, 2**40 - 1, sensitive=True) for n in range(2))
    )
    layers = [([[1.0, -1.0], [1.0, 1.0]], [0.0, 0.0]), ([[1.0, 0.5]], [-(2.0**39)])]
    model = Model(space, feta.Network.from_layers(layers), threshold=0.0)
    person = np.zeros(2)
    verdict = feta.worst(model, person)
    assert isinstance(verdict, feta.Unfair)
    assert verdict.optimal
    assert verdict.counterexample.counterpart.tolist() == [2.0**40 - 1, 0.0]
    above = Model(space, model.network, threshold=2.0**41)
    assert isinstance(feta.verify(feta.FairAt(above, person)), feta.Fair)


def test_a_long_list_of_levels_is_answered() -> None:
    levels = feta.Levels.spaced("x", -1, 2, step=0.0005, sensitive=True)
    layers = [([[1.0], [1.0]], [0.0, -0.7]), ([[1.0, -3.0]], [-0.65])]
    model = Model(feta.FeatureSpace((levels,)), feta.Network.from_layers(layers), threshold=0.0)
    verdict = feta.worst(model, np.array([0.0]), engine="milp")
    assert isinstance(verdict, feta.Unfair)
    assert verdict.optimal
    assert verdict.counterexample.counterpart.tolist() == [0.7]


@pytest.mark.parametrize(
    "rule", [feta.Argmax(("a", "b", "c")), feta.OneVsRest(("a", "b", "c"), "b")]
)
def test_several_classes_over_a_real_attribute(rule: feta.Argmax | feta.OneVsRest) -> None:
    space = feta.FeatureSpace((feta.Real("x", -4, 4, sensitive=True),))
    layers = [([[1.0], [0.0], [-1.0]], [0.0, 1.5, 0.25])]
    model = Model(space, feta.Network.from_layers(layers), rule)
    for x in (-4.0, 0.0, 3.0):
        verdict = feta.worst(model, np.array([x]))
        assert isinstance(verdict, feta.Unfair)
        assert verdict.optimal
        grid = [np.array([value]) for value in np.linspace(-4, 4, 321)]
        differs = [other for other in grid if oracle.differs(model, np.array([x]), other)]
        worst = max(oracle.gap(model, np.array([x]), other) for other in differs)
        assert verdict.counterexample.gap >= float(worst) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            lambda: feta.tally(REAL, PERSON[None, :], engine="milp"),
            "got 'income', which has uncountably many values; .* declare it integer, or give",
        ),
        (
            lambda: feta.FairPredictor(REAL).decide(PERSON[None, :]),
            "which has uncountably many values; .* declare it integer, or give a step",
        ),
        (
            lambda: feta.spread(FAIR, PERSON[None, :], engine="milp:scip"),
            "'milp:scip' cannot compute a median: it does not score every counterpart; use",
        ),
        (
            lambda: feta.FairPredictor(
                FAIR, "milp", weights=feta.VoteWeights(np.array([0]), np.array([1]), FAIR.space)
            ).decide(PERSON[None, :]),
            "'milp' counts every counterpart once: got vote weights; .*'lattice' or 'exhaustive'",
        ),
        (
            lambda: feta.tally(_long(5000), np.zeros((1, 1)), engine="milp"),
            "got 5000 of 'n'; expected at most 4096; narrow its domain",
        ),
    ],
)
def test_unsupported_requests_are_rejected(request_: Callable[[], object], message: str) -> None:
    with pytest.raises(feta.EngineError, match=message):
        request_()


def _long(n_values: int) -> Model:
    space = feta.FeatureSpace((feta.Integer("n", 0, n_values - 1, sensitive=True),))
    return Model(space, feta.Network.from_layers([([[1.0]], [-3.5])]), threshold=0.0)


def test_too_many_counterparts_to_count_are_rejected() -> None:
    space = feta.FeatureSpace(
        tuple(feta.Integer(f"n{n}", 0, 4095, sensitive=True) for n in range(6))
    )
    model = Model(space, feta.Network.from_layers([([[1.0] * 6], [-3.5])]), threshold=0.0)
    with pytest.raises(feta.EngineError, match=r"expected fewer than 2\^62; narrow"):
        feta.tally(model, np.zeros((1, 6)), engine="milp")


@pytest.mark.parametrize(("backend", "extra"), [(Scip(), "scip"), (Gurobi(), "gurobi")])
def test_a_missing_solver_names_its_extra(
    backend: Scip | Gurobi, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        engine_module,
        "find_spec",
        lambda name: None if name == backend.package else find_spec(name),
    )
    engine = MilpEngine("here", backend)
    assert not engine.available()
    message = rf"{backend.package} is not installed; pip install 'feta-fair\[{extra}\]'"
    with pytest.raises(feta.MissingExtra, match=message):
        engine.solve(feta.FairAt(FAIR, PERSON), UNLIMITED)


def test_no_solver_is_imported_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        assert name.split(".", maxsplit=1)[0] not in ("highspy", "pyscipopt", "gurobipy")
        return imported(name, *rest)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(builtins, "__import__", refuse)
    for engine in (
        MilpEngine("here", Highs()),
        MilpEngine("here", Scip()),
        MilpEngine("here", Gurobi()),
    ):
        if engine.available():
            assert isinstance(engine.solve(feta.FairAt(FAIR, PERSON), UNLIMITED), feta.Fair)


def test_a_program_beyond_gurobis_license_is_unknown_with_the_reason() -> None:
    pytest.importorskip("gurobipy", reason="gurobipy is not installed")
    rng = np.random.default_rng(0)
    space = feta.FeatureSpace(tuple(feta.Real(f"x{n}", -1, 1, sensitive=True) for n in range(4)))
    layers = [(rng.normal(size=(800, 4)), np.zeros(800)), (rng.normal(size=(1, 800)), np.zeros(1))]
    model = Model(space, feta.Network.from_layers(layers), threshold=60.0)
    engine = MilpEngine("here", Gurobi(), bounds="linear", max_cells=1)
    verdict = engine.solve(feta.FairAt(model, np.zeros(4)), UNLIMITED)
    if isinstance(verdict, feta.Unknown) and verdict.reason is not Reason.SOLVER_LIMIT:
        pytest.skip("this machine has a full Gurobi license")
    assert isinstance(verdict, feta.Unknown)
    assert verdict.solver == "Gurobi"
    assert "license allows" in verdict.reason


def test_a_spent_budget_is_not_an_exception() -> None:
    for budget in (Budget(seconds=0), Budget(evaluations=0)):
        verdict = MilpEngine("here", Highs(), bounds="linear").solve(
            feta.FairAt(bumpy(), PERSON), budget
        )
        assert isinstance(verdict, feta.Unknown | feta.Unfair)
    counts = MilpEngine("here", Highs()).tally(
        bumpy(), PERSON[None, :], Budget(seconds=0), until="all"
    )
    truth = np.array(oracle.tally(bumpy(), PERSON))
    assert (counts.by_class[0] <= truth).all()


def test_a_majority_that_was_not_witnessed_is_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    liar = MilpEngine("liar", Liar(Status.INFEASIBLE))
    for module in ("engine.aggregate", "predict.fair_predictor"):
        monkeypatch.setattr(f"feta.{module}.choose", lambda *_: liar)
    with pytest.raises(feta.Undecided, match="too few counterparts to make the majority certain"):
        feta.FairPredictor(UNFAIR).decide(PERSON[None, :])


def test_the_reason_of_an_undecided_person_names_the_solver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    liar = MilpEngine("liar", Liar(Status.INFEASIBLE), bounds="linear", max_cells=1)
    monkeypatch.setattr("feta.api.choose", lambda *_: liar)
    monkeypatch.setattr("feta.api.is_ours", lambda _: True)
    (finding,) = Auditor(bumpy()).audit(PERSON[None, :])
    assert finding.status == "undecided"
    assert finding.reason.startswith("Liar: the solver claims that no counterexample exists")


def test_a_lying_backend_never_counts_too_many() -> None:
    truth = np.array(oracle.tally(bumpy(), PERSON))
    for liar in LIARS:
        for counting in ("cuts", "pool"):
            engine = MilpEngine("liar", liar, counting="pool" if counting == "pool" else "cuts")
            for until in ("all", "majority"):
                counts = engine.tally(
                    bumpy(),
                    PERSON[None, :],
                    UNLIMITED,
                    until="all" if until == "all" else "majority",
                )
                assert (counts.by_class[0] <= truth).all()
                assert counts.undecided[0] == 146 - counts.by_class.sum()


def test_tallies_do_not_read_the_sensitive_columns() -> None:
    hidden = np.array(PERSON)
    hidden[:3] = np.nan
    counts = feta.tally(UNFAIR, hidden[None, :], engine="milp")
    assert counts.by_class[0].tolist() == oracle.tally(UNFAIR, PERSON)


@pytest.mark.parametrize(
    "number",
    [
        feta.Integer("age", 18, 90, sensitive=True, missing=True),
        feta.Levels("age", (18.0, 30.0, 45.5), sensitive=True, missing=True),
    ],
)
def test_a_number_that_may_be_missing_is_a_counterpart_too(number: feta.Integer) -> None:
    space = feta.FeatureSpace((number, feta.Real("income", 0, 9)))
    network = feta.Network.from_layers([([[0.0, 10.0, 1.0]], [-5.0])])
    model = feta.Model(space, network, threshold=0.0)
    person = space.encode({"age": 30, "income": 1.0})[0]
    verdict = feta.worst(model, person, engine="milp")
    assert isinstance(verdict, feta.Unfair)
    assert space.decode(verdict.counterexample.counterpart)["age"] is None
    counted = feta.tally(model, person[None, :], engine="milp")
    assert counted.by_class.tolist() == [[space.lattice.size - 1, 1]]
    query = feta.FairAt(model, person)
    with pytest.raises(feta.CertificateError):
        prove(Certificate(query.digest, "forger", BoundsProof((None,))), query)
