from typing import Any

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

import itertools

from flint import arb, ctx

from feta.scorer.network.smooth.activation import FACTS, Smooth
from feta.scorer.network.smooth.prove_table import error_bound, proved_cell
from feta.scorer.network.smooth.table import CELLS_PER_UNIT, RANGES, TAILS, table
from tests.smooth_cases import TRUTH

# Every one of this many cells is proved again; the campaign does all.
STRIDE = 41


@pytest.fixture(autouse=True)
def precision() -> object:
    before = ctx.prec
    ctx.prec = 600
    yield
    ctx.prec = before


@pytest.mark.parametrize("name", RANGES)
def test_stored_cells_are_proved_again(name: str) -> None:
    stored = table(name)
    for cell in range(0, len(stored.errors), STRIDE):
        coefficients = stored.coefficients[:, cell]
        assert error_bound(name, cell, coefficients) <= stored.errors[cell] * (1 + 1e-9)
        assert (proved_cell(name, cell)[0] == coefficients).all()


@pytest.mark.parametrize("name", RANGES)
def test_a_wrong_coefficient_is_noticed(name: str) -> None:
    stored = table(name)
    cell = len(stored.errors) // 2
    for degree in (0, 1, 5):
        wrong = stored.coefficients[:, cell].copy()
        wrong[degree] += 1e-6
        assert error_bound(name, cell, wrong) > 1e-13 > stored.errors[cell]


@pytest.mark.parametrize("name", RANGES)
def test_every_cell_of_the_range_has_an_error_above_zero(name: str) -> None:
    low, high = RANGES[name]
    errors = table(name).errors
    assert len(errors) == (high - low) * CELLS_PER_UNIT
    assert (errors > 0).all()
    assert (errors < 1e-13).all()


def points_of(name: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    ends = np.arange(-45, 45.01, 0.625)
    special = [0.0, -0.0, 5e-324, -5e-324, 1e-300, 2.0**-1022, 300.0, -300.0]
    low, high = (1.0 * end for end in next(iter(RANGES.values())))
    edges = [low, high, np.nextafter(low, -99), np.nextafter(high, 99)]
    drawn = rng.uniform(-45, 45, 60)
    del name
    return np.concatenate([ends, np.nextafter(ends, -99), special, edges, drawn])


@pytest.mark.parametrize("name", FACTS)
def test_enclosures_contain_the_function(name: str) -> None:
    parameter = 1.7 if FACTS[name].positive_parameter else 1.0
    points = points_of(name)
    found = Smooth(name, parameter).at(points)
    for point, value, error in zip(points, found.values, found.errors, strict=True):
        truth = TRUTH[name](arb(float(point)), arb(parameter))
        assert abs(truth - arb(float(value))) <= arb(float(error)), point


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("parameter", [0.25, 1.0, 3.0])
def test_slopes_and_limits_hold(name: str, parameter: float) -> None:
    if not FACTS[name].positive_parameter:
        parameter = 1.0
    function = Smooth(name, parameter)
    points = np.linspace(-9, 9, 181)
    values = [TRUTH[name](arb(float(point)), arb(parameter)) for point in points]
    steepest, (low, high) = float(function.steepest[0]), function.limits
    for before, after in itertools.pairwise(values):
        assert abs(after - before) <= arb(steepest) * arb(0.1) * (1 + arb("1e-12"))
    for point, value in zip(points, values, strict=True):
        assert value >= arb(float(low[0])) - arb("1e-12")
        assert value <= arb(float(min(high[0], 1e300)))
        assert abs(value) <= arb(steepest) * abs(arb(float(point))) + arb(float(function.lift[0]))


@pytest.mark.parametrize("name", RANGES)
def test_the_ends_of_tails_are_as_close_as_stated(name: str) -> None:
    formulas: dict[str, Any] = {"expm1": lambda x, _: x.exp() - 1}
    formula = formulas.get(name) or TRUTH[name]
    for end, tail in zip(RANGES[name], TAILS[name], strict=True):
        if tail.error:
            for factor in (1, 1.01, 1.5, 4):
                line = arb(tail.slope) * end * arb(factor) + arb(tail.intercept)
                assert abs(formula(arb(end) * arb(factor), arb(1)) - line) <= arb(tail.error)


def test_nan_stays_nan_and_infinity_has_a_limit() -> None:
    found = Smooth("tanh").at(np.array([np.nan, np.inf, -np.inf]))
    assert np.isnan(found.values[0])
    assert not found.errors[0] >= 0
