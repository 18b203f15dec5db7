from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import feta
from feta.arrays import Vector
from feta.bounds.first_layer import Terms
from feta.cells.cells import Cells
from feta.engine.milp.backends.highs import Highs, HighsSession
from feta.engine.milp.backends.protocol import Status
from feta.engine.milp.solver import Solver
from feta.engine.protocol import UNLIMITED
from feta.engine.query_state import QueryState
from feta.scorer.network.milp.encoder import NetworkEncoder
from feta.scorer.network.milp.encoding import Encoded, Inputs
from tests import oracle
from tests.examples import PERSON, SPACE
from tests.strategies import Case, cases


def scaled_output(solver: Solver) -> float:
    assert isinstance(solver.encoder, NetworkEncoder)
    return solver.encoder.scaled.output


def fixed(encoded: Encoded, indices: Vector) -> Encoded:
    """Restrict a program to one counterpart."""
    box = encoded.program.columns
    lower, upper = np.array(box.lower), np.array(box.upper)
    for inputs, index in zip(encoded.inputs, indices, strict=True):
        if inputs.selects:
            lower[inputs.columns] = upper[inputs.columns] = 0.0
            lower[inputs.columns[int(index)]] = upper[inputs.columns[int(index)]] = 1.0
        else:
            number = inputs.axis.codes(np.array([index]))[0, 0] / inputs.unit
            lower[inputs.columns] = upper[inputs.columns] = number
    return replace(
        encoded, program=replace(encoded.program, columns=replace(box, lower=lower, upper=upper))
    )


@given(case=cases(plain=False))
@settings(max_examples=25, deadline=None)
def test_a_program_contains_every_counterexample_and_its_objective(case: Case) -> None:
    model, person = case.model, case.people[0]
    state = QueryState(feta.FairAt(model, person), UNLIMITED, "test")
    solver = Solver(model, Highs(), "linear")
    bounds = solver.bound(model, person, state.objective)
    if bounds.agrees.all():
        return
    objective, factor = state.objective, scaled_output(solver)
    for listed in (False, True):
        encoded = solver.encode(bounds, person, maximize=True, listed=listed)
        assert isinstance(encoded, Encoded)
        column = int(np.flatnonzero(encoded.program.cost)[0])
        for other in oracle.counterparts(model, person)[:6]:
            if not oracle.differs(model, person, other):
                continue
            axes = model.space.lattice.axes
            indices = np.array([axis.indices(other[None, :])[0] for axis in axes], dtype=float)
            result = HighsSession().solve(fixed(encoded, indices).program, seconds=600)
            assert result.status is Status.OPTIMAL
            assert result.point is not None
            np.testing.assert_array_equal(encoded.indices(result.point), indices)
            scores = np.array([float(score) for score in oracle.scores(model, other)])
            values = objective.directions @ scores + objective.offsets.floats()
            value = values.min() if objective.least else values.max()
            assert result.point[column] == pytest.approx(value * factor, abs=1e-4)


def test_stable_neurons_cost_no_binary() -> None:
    """The first neuron is never active, the second always; only the third is unstable."""
    rows = [[1.0, 0, 0, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0]]
    layers = [(rows, [-100.0, -1.0, -50.0]), ([[1.0, 1.0, 1.0]], [-40.0])]
    model = feta.Model(SPACE, feta.Network.from_layers(layers), threshold=0.0)
    solver = Solver(model, Highs(), "linear")
    state = QueryState(feta.FairAt(model, PERSON), UNLIMITED, "test")
    bounds = solver.bound(model, PERSON, state.objective)
    program = solver.encode(bounds, PERSON, maximize=False).program
    free = program.integral & (program.columns.lower < program.columns.upper)
    assert free.sum() == 4  # age, two selectors of sex, one neuron


@pytest.mark.parametrize(
    ("attribute", "point", "index"),
    [
        (feta.Integer("n", -3, 9, sensitive=True), [-3.4], 0.0),
        (feta.Integer("n", -3, 9, sensitive=True), [2.4999], 5.0),
        (feta.Integer("n", -3, 9, sensitive=True), [1e300], 12.0),
        (feta.Real("n", -3, 9, sensitive=True), [-3.0000001], -3.0),
        (feta.Real("n", -3, 9, sensitive=True), [2.25], 2.25),
    ],
)
def test_numbers_are_rounded_into_the_domain(
    attribute: feta.Integer | feta.Real, point: list[float], index: float
) -> None:
    axis = feta.FeatureSpace((attribute,)).axes[0]
    assert Inputs(axis, np.array([0], dtype=np.int32)).index(np.array(point)) == index


@pytest.mark.parametrize("point", [None, np.full(3, 0.0), np.array([np.nan])])
def test_an_invalid_point_has_no_indices(point: Vector | None) -> None:
    model = feta.Model(SPACE, feta.Network.from_layers([([[1.0, 0, 0, 0]], [-40.0])]))
    solver = Solver(model, Highs(), "linear")
    state = QueryState(feta.FairAt(model, PERSON), UNLIMITED, "test")
    encoded = solver.encode(solver.bound(model, PERSON, state.objective), PERSON, maximize=False)
    if point is not None and len(point) == 1:
        point = np.full(len(encoded.program.cost), np.nan)
    assert encoded.indices(point) is None


def test_programs_of_different_people_have_one_pattern() -> None:
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(6, 4)) * [1.0, 9.0, 9.0, 0.1]
    layers = [(weights, np.full(6, -9.0)), (rng.normal(size=(1, 6)), np.zeros(1))]
    model = feta.Model(SPACE, feta.Network.from_layers(layers), threshold=2.0)
    solver = Solver(model, Highs(), "parts")
    programs = []
    for income in (1.0, 40.0, 99.0):
        person = np.array([30.0, 1.0, 0.0, income])
        state = QueryState(feta.FairAt(model, person), UNLIMITED, "test")
        bounds = solver.bound(model, person, state.objective)
        if not bounds.agrees.all():
            programs.append(solver.encode(bounds, person, maximize=False).program)
    assert len(programs) > 1
    assert all(programs[0].has_pattern_of(program) for program in programs[1:])


def test_the_constant_of_the_first_layer_includes_the_shared_columns() -> None:
    model = feta.Model(SPACE, feta.Network.from_layers([([[1.0, 2.0, 3.0, 4.0]], [5.0])]))
    terms = Terms.of(model.network.first, model.relation.axes)
    first = terms.at(PERSON, Cells.whole(terms.axes))
    assert first.constant.tolist() == [205.0]
