"""Contract of all backends; add a new backend to BACKENDS."""

import importlib.util

import numpy as np
import pytest

import feta
from feta.arrays import Vector
from feta.engine.milp.backends.gurobi import Gurobi
from feta.engine.milp.backends.highs import Highs
from feta.engine.milp.backends.protocol import Backend, Session, Status
from feta.engine.milp.backends.scip import Scip
from feta.engine.milp.engine import MilpEngine
from feta.engine.protocol import UNLIMITED, Budget
from feta.interval_box import IntervalBox
from feta.program import Program, ProgramBuilder
from tests import oracle
from tests.examples import PERSON, SPACE
from tests.strategies import random_case

BACKENDS: tuple[Backend, ...] = (Highs(), Scip(), Gurobi())
LONG = 600.0


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    chosen: Backend = request.param
    if importlib.util.find_spec(chosen.package) is None:
        pytest.skip(f"{chosen.package} is not installed")
    return chosen


@pytest.fixture
def session(backend: Backend) -> Session:
    return backend.session()


def knapsack(room: float, *, values: tuple[float, ...] = (4.0, 5.0, 3.0)) -> Program:
    """Return a knapsack problem: three items with weights 2, 3 and 1."""
    builder = ProgramBuilder()
    chosen = builder.columns(IntervalBox(np.zeros(3), np.ones(3)), integral=True)
    builder.rows([(chosen, np.array([[2.0, 3.0, 1.0]]))], upper=room, n_rows=1)
    return builder.program(-np.array(values))


def equality(side: float, low: float = 0.0) -> Program:
    """Return the program that maximizes an integer whose sum with a real number is given."""
    builder = ProgramBuilder()
    integer = builder.columns(IntervalBox(np.array([low]), np.array([5.0])), integral=True)
    rest = builder.columns(IntervalBox(np.array([0.0]), np.array([0.75])))
    builder.rows([(integer, 1.0), (rest, np.array([1.0]))], lower=side, upper=side, n_rows=1)
    return builder.program(np.array([-1.0, 0.0]))


def point(session: Session, program: Program) -> Vector:
    result = session.solve(program, seconds=LONG)
    assert result.status is Status.OPTIMAL
    assert result.point is not None
    return result.point


def test_the_optimum_is_found(session: Session) -> None:
    np.testing.assert_allclose(point(session, knapsack(4.0)), [0, 1, 1], atol=1e-6)


def test_a_session_updates_every_number_that_changes(session: Session) -> None:
    np.testing.assert_allclose(point(session, knapsack(4.0)), [0, 1, 1], atol=1e-6)
    np.testing.assert_allclose(point(session, knapsack(3.0)), [1, 0, 1], atol=1e-6)
    other_values = knapsack(3.0, values=(1.0, 9.0, 1.0))
    np.testing.assert_allclose(point(session, other_values), [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(point(session, equality(3.5)), [3, 0.5], atol=1e-6)
    np.testing.assert_allclose(point(session, equality(2.25)), [2, 0.25], atol=1e-6)
    np.testing.assert_allclose(point(session, equality(1.25, 1.0)), [1, 0.25], atol=1e-6)
    entries = equality(4.0)
    entries.entries[1] = 4.0
    np.testing.assert_allclose(point(session, entries), [4, 0], atol=1e-6)
    np.testing.assert_allclose(point(session, knapsack(6.0)), [1, 1, 1], atol=1e-6)


def test_an_infeasible_program_has_no_point(session: Session) -> None:
    result = session.solve(equality(3.9), seconds=LONG)
    assert result.status is Status.INFEASIBLE
    assert result.point is None
    np.testing.assert_allclose(point(session, equality(3.5)), [3, 0.5], atol=1e-6)


def test_cuts_enumerate_each_choice_once(session: Session) -> None:
    program = knapsack(3.0, values=(0.0, 0.0, 0.0))
    program.columns.lower[2] = 0.0
    result, seen = session.solve(program, seconds=LONG), set()
    for _ in range(9):
        if result.status is not Status.OPTIMAL or result.point is None:
            break
        chosen = tuple(np.rint(result.point).astype(int).tolist())
        assert chosen not in seen
        seen.add(chosen)
        on = np.flatnonzero(np.array(chosen)).astype(np.int32)
        if not len(on):
            break
        result = session.solve_again(on, seconds=LONG)
    fits = {(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1)}
    assert seen <= fits
    assert (0, 0, 0) in seen or result.status is Status.INFEASIBLE
    np.testing.assert_allclose(point(session, knapsack(4.0)), [0, 1, 1], atol=1e-6)


def selectors(n_values: int) -> Program:
    """Return a choice of one value, and a binary column that excludes the first value."""
    builder = ProgramBuilder()
    chosen = builder.columns(IntervalBox(np.zeros(n_values), np.ones(n_values)), integral=True)
    builder.rows([(chosen, np.ones((1, n_values)))], lower=1.0, upper=1.0, n_rows=1)
    other = builder.columns(IntervalBox(np.zeros(2), np.ones(2)), integral=True)
    builder.rows([(other, np.ones((1, 2)))], lower=1.0, upper=1.0, n_rows=1)
    builder.rows([(chosen[:1], 1.0), (other[:1], 1.0)], upper=1.0, n_rows=1)
    return builder.program()


def test_a_pool_contains_every_choice(backend: Backend, session: Session) -> None:
    if not backend.pools:
        with pytest.raises(feta.EngineError, match="pool"):
            session.pool(selectors(3), np.arange(5, dtype=np.int32), limit=100, seconds=LONG)
        return
    for n_values in (3, 4):
        program = selectors(n_values)
        columns = np.arange(n_values + 2, dtype=np.int32)
        pool = session.pool(program, columns, limit=100, seconds=LONG)
        seen = {tuple(np.rint(choice).astype(int).tolist()) for choice in pool.points}
        assert len(seen) == 2 * n_values - 1
        assert all(sum(choice[:n_values]) == sum(choice[n_values:]) == 1 for choice in seen)
        few = session.pool(program, columns, limit=2, seconds=LONG)
        assert 2 <= len(few.points) < 2 * n_values - 1
    np.testing.assert_allclose(point(session, knapsack(4.0)), [0, 1, 1], atol=1e-6)


def test_a_time_limit_of_zero_is_never_a_proof(session: Session) -> None:
    """Presolving may solve even this program; the status must not be INFEASIBLE."""
    result = session.solve(knapsack(4.0), seconds=0.0)
    assert result.status in (Status.OPTIMAL, Status.STOPPED)


@pytest.mark.parametrize("seed", range(8))
def test_the_engine_agrees_with_the_oracle(backend: Backend, seed: int) -> None:
    case = random_case(np.random.default_rng([77, seed]), "free", plain=seed % 2 == 0)
    engine, model = MilpEngine("here", backend), case.model
    for person in case.people:
        verdict = engine.solve(feta.WorstAt(model, person), UNLIMITED)
        if isinstance(verdict, feta.Unfair):
            truth = oracle.worst_gap(model, person)
            assert truth is not None
            assert verdict.optimal
            assert verdict.counterexample.gap == pytest.approx(float(truth), rel=1e-6)
        else:
            assert isinstance(verdict, feta.Fair)
            assert oracle.is_fair(model, person)


@pytest.mark.parametrize("counting", ["cuts", "pool"])
def test_both_methods_of_counting_match_enumeration(backend: Backend, counting: str) -> None:
    network = feta.Network.from_layers(
        [([[0.1, 1.0, -1.0, 0.0], [-0.1, 0.0, 1.0, 0.0]], [-4.0, 5.0]), ([[1.0, 1.0]], [-1.4])]
    )
    model = feta.Model(SPACE, network, threshold=0.0)
    engine = MilpEngine("here", backend, counting="pool" if counting == "pool" else "cuts")
    truth = feta.tally(model, PERSON[None, :], engine="exhaustive")
    assert 0 < truth.favorable[0] < 146
    if counting == "pool" and not backend.pools:
        with pytest.raises(feta.EngineError, match="count by cuts"):
            engine.tally(model, PERSON[None, :], UNLIMITED, until="all")
        return
    counts = engine.tally(model, PERSON[None, :], UNLIMITED, until="all")
    np.testing.assert_array_equal(counts.by_class, truth.by_class)
    majority = engine.tally(model, PERSON[None, :], UNLIMITED, until="majority")
    assert majority.decided[0]
    assert majority.winner[0] == truth.winner[0]
    assert (majority.by_class <= truth.by_class).all()
    assert majority.undecided[0] > 0
    none = engine.tally(model, PERSON[None, :], Budget(seconds=0), until="all")
    assert (none.by_class <= truth.by_class).all()


def test_the_optimum_over_two_real_attributes_is_exact_to_nine_digits(backend: Backend) -> None:
    """The largest score is where two ReLUs meet: at age 40.7, wherever the solver stops."""
    space = feta.FeatureSpace(
        (feta.Real("age", 18, 90, sensitive=True), feta.Real("hours", 0, 1, sensitive=True))
    )
    rise = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    layers = [(rise, [0.0, -40.7, 0.0]), ([[1.0, -2.0, 0.5]], [-40.0])]
    model = feta.Model(space, feta.Network.from_layers(layers), threshold=0.0)
    person = space.encode({"age": 20, "hours": 0})[0]
    verdict = MilpEngine("here", backend).solve(feta.WorstAt(model, person), UNLIMITED)
    assert isinstance(verdict, feta.Unfair)
    assert verdict.optimal
    np.testing.assert_allclose(verdict.counterexample.counterpart, [40.7, 1.0], rtol=1e-8)
