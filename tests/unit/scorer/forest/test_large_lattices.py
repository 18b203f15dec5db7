"""The kernel on lattices with long category axes, against the exhaustive engine."""

from dataclasses import replace

import numpy as np
import pytest

import feta
from feta import Categorical, FairAt, FeatureSpace, Integer, Model, Real, WorstAt
from feta.arrays import Matrix
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED
from feta.scorer.forest import kernel
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.scorer.forest.units import WIDE, Units
from feta.scorer.kernel import Limits
from tests.forests import Grower
from tests.unit.scorer.forest.test_kernel import assert_same, people

pytestmark = pytest.mark.skipif(not kernel.is_built(), reason="the kernel was not compiled")

LATTICE, EXHAUSTIVE = LatticeEngine(threads=2), ExhaustiveEngine()
COUNTRIES = tuple(f"c{n}" for n in range(23))
SPACES = (
    FeatureSpace(
        (
            Integer("age", 18, 60, sensitive=True, missing=True),
            Categorical("country", COUNTRIES, sensitive=True),
            Categorical("race", ("a", "b", "c", "d", "e"), sensitive=True),
            Real("income", 0, 9),
        )
    ),
    FeatureSpace(  # no ordered axis, and one of more than 64 groups
        (
            Categorical("town", tuple(f"t{n}" for n in range(80)), sensitive=True),
            Categorical("country", COUNTRIES, sensitive=True),
            Integer("rooms", 1, 4),
        )
    ),
    FeatureSpace(
        (
            Integer("days", 0, 150, sensitive=True),
            Integer("rooms", 1, 4, missing=True),
            Categorical("country", COUNTRIES, sensitive=True, missing=True),
        )
    ),
)


def large_forest(rng: np.random.Generator, space: FeatureSpace, *, one_hot: bool) -> Forest:
    """Return an ensemble with many nodes; with `one_hot`, sets have one value or all but one."""
    grower = Grower(rng, space, 1)
    roots = [grower.grow(int(rng.integers(3, 6))) for _ in range(20)]
    trees = grower.trees(roots)
    if one_hot:
        members = np.array(trees.members)
        for node in np.flatnonzero(trees.kind == 2).tolist():
            domain = trees.domains[trees.source[node]]
            chosen = np.arange(len(domain)) == rng.integers(len(domain))
            start = int(trees.start[node])
            members[start : start + len(domain)] = chosen ^ (rng.random() < 0.5)
        trees = replace(trees, members=members)
    return Forest(trees, np.zeros(1), Summation("a test", "float64", np.zeros(1)), space.width)


def wide(forest: Forest) -> Forest:
    """Return an ensemble whose sums need 128 bits; scores that tied still tie."""
    values = forest.trees.values * (1 + 2.0**-50)
    base = np.array([2.0**-70 * 3])
    summation = Summation("a test", "float64", base)
    return replace(
        forest, trees=replace(forest.trees, values=values), base=base, summation=summation
    )


def assert_same_answers(model: Model, rows: Matrix) -> None:
    """Compare counts, labels, majorities and pairs with those of the exhaustive engine."""
    counted = LATTICE.tally(model, rows, UNLIMITED, until="all")
    listed = EXHAUSTIVE.tally(model, rows, UNLIMITED, until="all")
    np.testing.assert_array_equal(counted.by_class, listed.by_class)
    np.testing.assert_array_equal(counted.runtime_safe, listed.runtime_safe)
    majority = LATTICE.tally(model, rows, UNLIMITED, until="majority")
    np.testing.assert_array_equal(majority.outcomes, listed.outcomes)
    np.testing.assert_array_equal(LATTICE.majority(model, rows), listed.outcomes)
    for query in (FairAt(model, rows[0]), WorstAt(model, rows[0])):
        assert_same(LATTICE.solve(query, UNLIMITED), EXHAUSTIVE.solve(query, UNLIMITED))


@pytest.mark.parametrize("seed", range(18))
def test_long_categories_are_decided_as_by_the_exhaustive_engine(seed: int) -> None:
    rng = np.random.default_rng([41, seed])
    space = SPACES[seed % 3]
    rows = people(rng, space, 2)
    forest = large_forest(rng, space, one_hot=seed % 2 == 0)
    if seed >= 9:
        forest = wide(forest)
        assert Units(forest).bits == WIDE
    ids = rng.integers(0, space.lattice.size, 9)
    others = space.lattice.moved(np.repeat(rows[:1], 9, axis=0), ids)
    # The threshold is a counterpart's score, often the median, so that majorities are close.
    value = float(np.median(forest(others)[:, 0]))
    for equality in ("favorable", "unfavorable"):
        model = Model(space, forest, feta.Threshold(value, "above", equality))
        assert_same_answers(model, rows)


@pytest.mark.parametrize("seed", range(4))
def test_many_people_on_several_threads_get_the_answers_of_one_thread(seed: int) -> None:
    rng = np.random.default_rng([42, seed])
    space = SPACES[0]
    model = Model(space, large_forest(rng, space, one_hot=True), threshold=0.1)
    rows = people(rng, space, 90)
    alone, together = LatticeEngine(threads=1), LatticeEngine(threads=4)
    np.testing.assert_array_equal(alone.majority(model, rows), together.majority(model, rows))
    one, four = (
        engine.tally(model, rows, UNLIMITED, until="all").by_class for engine in (alone, together)
    )
    np.testing.assert_array_equal(one, four)


def test_an_error_bound_that_is_not_finite_makes_everybody_sensitive() -> None:
    rng = np.random.default_rng(43)
    space = SPACES[2]
    model = Model(space, large_forest(rng, space, one_hot=True), threshold=0.1)
    rows = people(rng, space, 3)
    counts = LATTICE.tally(model, rows, UNLIMITED, until="all").by_class
    for size in (np.inf, np.nan):
        compiled = model.restricted.kernel(
            space, model.rule.kernel_rule, source_error=size, simd=True
        )
        result = compiled.tally(rows, majority=False, weights=None, limits=Limits(), threads=1)
        np.testing.assert_array_equal(result.by_class, counts)
        assert not result.runtime_safe.any()
