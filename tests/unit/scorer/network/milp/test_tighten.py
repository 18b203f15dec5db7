from fractions import Fraction

import numpy as np
import pytest

import feta
from feta.bounds import linear
from feta.bounds.first_layer import Terms
from feta.cells.cells import Cells
from feta.engine.milp.backends.highs import Highs, HighsSession
from feta.engine.milp.engine import MilpEngine
from feta.engine.protocol import UNLIMITED
from feta.interval_box import IntervalBox
from feta.model import Model
from feta.program import Program, ProgramBuilder
from feta.scorer.network.milp.equilibrate import equilibrate
from feta.scorer.network.milp.tighten import dual_bound, tighten
from tests import oracle
from tests.examples import PERSON, SPACE
from tests.strategies import random_case
from tests.unit.bounds.exact_layers import contains, layers_of


def small() -> Program:
    """Return a program: x and y from 0 to 2, x + y ≥ 1, x − y ≤ 1/2."""
    builder = ProgramBuilder()
    columns = builder.columns(IntervalBox(np.zeros(2), np.full(2, 2.0)))
    builder.rows([(columns, np.array([[1.0, 1.0]]))], lower=1.0, n_rows=1)
    builder.rows([(columns, np.array([[1.0, -1.0]]))], upper=0.5, n_rows=1)
    return builder.program()


def test_any_duals_give_a_bound_and_the_solvers_duals_give_the_optimum() -> None:
    program, rng = small(), np.random.default_rng(0)
    for _ in range(200):
        cost = rng.normal(size=2)
        corners = [(0, 1), (0, 2), (2, 2), (2, 1.5), (0.75, 0.25)]
        least = min(cost @ np.array(corner) for corner in corners)
        assert dual_bound(program, cost, rng.normal(size=2) * 3) <= least
        duals = HighsSession().solve_lp(program, cost, keep=False)
        assert least - 1e-9 <= dual_bound(program, cost, duals) <= least


@pytest.mark.parametrize("duals", [np.array([np.nan, 0.0]), np.zeros(3)])
def test_invalid_duals_bound_nothing(duals: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert dual_bound(small(), np.ones(2), duals) == -np.inf


@pytest.mark.parametrize("seed", range(8))
def test_tightened_bounds_hold_and_are_no_looser(seed: int) -> None:
    case = random_case(np.random.default_rng([9, seed]), "free", plain=seed % 2 == 0)
    model, person = case.model, case.people[0]
    terms = Terms.of(model.network.first, model.relation.axes)
    cells = Cells.whole(terms.axes)
    first = terms.at(person, cells)
    known = linear.forward(model.network, first)
    if not known:
        return
    hidden = [layer.box for layer in known]
    scaled = equilibrate(model.network, model.space.magnitudes)
    boxes = tighten(model.network, scaled, first, hidden, HighsSession)
    linear_boxes = [*hidden, linear.next_box(model.network, first, known)]
    for tight, loose in zip(boxes, linear_boxes, strict=True):
        assert (tight.lower >= loose.lower).all()
        assert (tight.upper <= loose.upper).all()
    for other in oracle.counterparts(model, person):
        for box, values in zip(boxes, layers_of(model, other), strict=True):
            assert contains(box, 0, values)


def test_a_linear_program_is_tighter_than_linear_bounds() -> None:
    """Three ReLUs of one number, whose upper and lower lines cannot both be tight at once."""
    layers = [
        ([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [1.0, 0, 0, 0]], [-40.0, 60.0, -50.0]),
        ([[1.0, 1.0, -1.0], [-1.0, 1.0, 1.0]], [-20.0, -10.0]),
        ([[1.0, 1.0]], [-15.0]),
    ]
    model = Model(SPACE, feta.Network.from_layers(layers), threshold=0.0)
    terms = Terms.of(model.network.first, model.relation.axes)
    first = terms.at(PERSON, Cells.whole(terms.axes))
    known = linear.forward(model.network, first)
    hidden = [layer.box for layer in known]
    scaled = equilibrate(model.network, model.space.magnitudes)
    tight = tighten(model.network, scaled, first, hidden, HighsSession)[-1]
    loose = linear.next_box(model.network, first, known)
    assert tight.upper[0, 0] < loose.upper[0, 0] - 0.1
    scores = [oracle.score(model, other) for other in oracle.counterparts(model, PERSON)]
    assert max(scores) <= Fraction(float(tight.upper[0, 0]))
    for bounds in ("interval", "linear", "parts", "lp"):
        verdict = MilpEngine("here", Highs(), bounds=bounds).solve(
            feta.WorstAt(model, PERSON), UNLIMITED
        )
        reference = feta.worst(model, PERSON, engine="exhaustive")
        assert type(verdict) is type(reference)
        if isinstance(verdict, feta.Unfair) and isinstance(reference, feta.Unfair):
            assert verdict.counterexample.gap == reference.counterexample.gap
