import numpy as np
import pytest

from feta import Model
from feta.arrays import Counts, Matrix
from feta.rounding import FLOAT64, SOURCE_FLOAT32, Arithmetic
from feta.scorer.network.error_bounds import largest_error
from feta.scorer.network.evaluation import Counterparts, Rows
from tests import oracle
from tests.strategies import Case, random_case


def counterparts_of(model: Model, people: Matrix, assignment_ids: Counts) -> Counterparts:
    points = model.restricted.counterparts(people, assignment_ids)
    assert isinstance(points, Counterparts)
    return points


def drawn(seed: int) -> Case:
    return random_case(np.random.default_rng(seed), "free", plain=False)


@pytest.mark.parametrize("seed", range(6))
def test_counterparts_may_be_chosen_in_any_order(seed: int) -> None:
    case = drawn(seed)
    lattice = case.model.space.lattice
    assignment_ids = np.random.default_rng(seed).permutation(lattice.size)[:5]
    points = counterparts_of(case.model, case.people, assignment_ids)
    rows = np.array([lattice.counterpart(p, int(n)) for p in case.people for n in assignment_ids])
    chosen = np.arange(len(points))[::-1]
    expected = [score for row in rows[::-1] for score in oracle.scores(case.model, row)]
    assert points.exact_scores(chosen).fractions() == expected
    assert Rows(case.model.network.exact, rows).exact_scores(chosen).fractions() == expected
    owners, split = points.split(chosen)
    assert case.model.space.lattice.assignment_ids(rows[::-1]).tolist() == split.tolist()
    assert owners.tolist() == sorted(owners.tolist(), reverse=True)


@pytest.mark.parametrize(
    "arithmetic", [FLOAT64, SOURCE_FLOAT32], ids=lambda arithmetic_: arithmetic_.name
)
@pytest.mark.parametrize("seed", range(6))
def test_a_score_is_within_its_error_of_the_exact_one(seed: int, arithmetic: Arithmetic) -> None:
    case = drawn(seed)
    assignment_ids = np.arange(case.model.space.lattice.size)
    points: Counterparts = counterparts_of(case.model, case.people, assignment_ids)
    bounded = points.scores(arithmetic)
    exact = points.exact_scores(np.arange(len(points))).floats()
    assert (np.abs(bounded.values - exact) <= bounded.errors).all()
    part = points.scores(arithmetic, np.array([1, 0]))
    np.testing.assert_allclose(part.values, bounded.values[[1, 0]], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "arithmetic", [FLOAT64, SOURCE_FLOAT32], ids=lambda arithmetic_: arithmetic_.name
)
@pytest.mark.parametrize("seed", range(20))
def test_the_error_bound_of_a_space_covers_each_point(seed: int, arithmetic: Arithmetic) -> None:
    case = drawn(seed)
    assignment_ids = np.arange(case.model.space.lattice.size)
    points = counterparts_of(case.model, case.people, assignment_ids)
    largest = largest_error(case.model.network, case.model.space.magnitudes, arithmetic)
    assert (points.scores(arithmetic).errors <= largest).all()
    assert (Rows(case.model.network.exact, case.people).scores(arithmetic).errors <= largest).all()
    assert largest < 1e4 * points.scores(arithmetic).errors.max() + 1e-9  # the bound is not trivial
