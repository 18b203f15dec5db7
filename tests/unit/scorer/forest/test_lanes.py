"""Majorities in lanes of 32 and 16 bits, against the exhaustive engine."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from feta import Categorical, FeatureSpace, Integer, Levels, Model, Real, Threshold
from feta.arrays import Matrix
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED
from feta.scorer.forest import kernel
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.scorer.forest.trees import LEAF, SET, OneHot
from feta.scorer.protocol import Side
from tests.forests import Grower
from tests.unit.scorer.forest.test_kernel import people

pytestmark = pytest.mark.skipif(not kernel.is_built(), reason="the kernel was not compiled")

LATTICE, EXHAUSTIVE = LatticeEngine(threads=1), ExhaustiveEngine()
Equality = Literal["favorable", "unfavorable"]
EQUALITIES: tuple[Equality, ...] = ("favorable", "unfavorable")
SIDES: tuple[Side, ...] = ("above", "below")
# Leaves are listed in blocks of 1,024. Some of these cannot be reached.
MANY_LEAVES = 4096
SPACES = (
    FeatureSpace(  # an axis with slices, and lanes of two axes that fill no block
        (
            Integer("age", 18, 26, sensitive=True, missing=True),
            Categorical("country", tuple(f"c{n}" for n in range(13)), sensitive=True),
            Categorical("race", ("a", "b", "c", "d", "e"), sensitive=True),
            Categorical("sex", ("f", "m"), sensitive=True, missing=True),
            Real("income", 0, 9),
            Integer("rooms", 1, 4, missing=True),
        )
    ),
    FeatureSpace(  # lanes without slices; rows of values that are not adjacent
        (
            Categorical("country", tuple(f"c{n}" for n in range(9)), sensitive=True),
            Levels("hours", (10.0, 20.5, 40.0), sensitive=True, missing=True),
            Integer("rooms", 1, 4),
        )
    ),
    FeatureSpace((Categorical("sex", ("f", "m"), sensitive=True), Real("income", 0, 9))),
    FeatureSpace((Integer("age", 18, 60, sensitive=True), Real("income", 0, 9))),
)


def forest_of(rng: np.random.Generator, space: FeatureSpace, *, trees: int, depth: int) -> Forest:
    """Return an ensemble whose library adds without rounding."""
    grower = Grower(rng, space, 1)
    roots = [grower.grow(depth) for _ in range(trees)]
    summation = Summation("a test", "float64", np.zeros(1))
    return Forest(grower.trees(roots), np.zeros(1), summation, space.width)


def assert_same_majorities(model: Model, rows: Matrix) -> None:
    """Compare with the counts of the exhaustive engine."""
    expected = EXHAUSTIVE.tally(model, rows, UNLIMITED, until="all").outcomes
    np.testing.assert_array_equal(LATTICE.majority(model, rows), expected)


@pytest.mark.parametrize("seed", range(8))
def test_majorities_of_many_leaves_are_those_of_the_exhaustive_engine(seed: int) -> None:
    rng = np.random.default_rng([44, seed])
    space = SPACES[seed % len(SPACES)]
    rows = people(rng, space, 2)
    forest = forest_of(rng, space, trees=100, depth=8)
    assert np.count_nonzero(forest.trees.kind == LEAF) > MANY_LEAVES
    others = space.lattice.moved(
        np.repeat(rows[:1], 25, axis=0), rng.integers(0, space.lattice.size, 25)
    )
    middle = float(np.median(forest(others)[:, 0]))
    equality: Equality = "favorable" if rng.random() < 0.5 else "unfavorable"
    assert_same_majorities(Model(space, forest, Threshold(middle, "above", equality)), rows)


@pytest.mark.parametrize("space", SPACES)
def test_scores_closer_to_the_threshold_than_rounded_sums_are_decided(space: FeatureSpace) -> None:
    rng = np.random.default_rng(45)
    rows = people(rng, space, 2)
    forest = forest_of(rng, space, trees=64, depth=3)
    equal = np.full_like(forest.trees.values, 0.1)
    forest = replace(forest, trees=replace(forest.trees, values=equal))
    score = 64 * 0.1  # exact: the product of a power of two
    for value in (score, np.nextafter(score, 0), np.nextafter(score, 9)):
        for favors in SIDES:
            for equality in EQUALITIES:
                rule = Threshold(float(value), favors, equality)
                assert_same_majorities(Model(space, forest, rule), rows)


@pytest.mark.parametrize("seed", range(6))
def test_a_person_whose_median_score_is_near_the_threshold_is_decided(seed: int) -> None:
    """Rounded sums of slices decide almost half of the counterparts on each side."""
    rng = np.random.default_rng([47, seed])
    space = SPACES[0]
    rows = people(rng, space, 1)
    forest = forest_of(rng, space, trees=int(rng.integers(1, 40)), depth=int(rng.integers(2, 6)))
    everybody = np.concatenate(list(space.lattice.counterparts(rows[0])))
    scores = np.sort(forest(everybody)[:, 0])
    for share in (0.2, 0.49, 0.5, 0.51, 0.8):
        score = scores[int(share * len(scores))]
        for value in (score, np.nextafter(score, 0), np.nextafter(score, 9)):
            equality = EQUALITIES[int(rng.integers(2))]
            assert_same_majorities(Model(space, forest, Threshold(value, "above", equality)), rows)


def set_test(grower: Grower, name: str, members: set[int], values: tuple[float, float]) -> int:
    """Append a tree with one test of a category; return its root."""
    columns = grower.space.columns_of(next(a for a in grower.space.attributes if a.name == name))
    domain = OneHot(columns.start, columns.stop - columns.start)
    grower.domains.append(domain)
    root, start = len(grower.nodes), len(grower.members)
    source = len(grower.domains) - 1
    grower.nodes.append(
        {"kind": SET, "source": source, "start": start, "left": root + 1, "right": root + 2}
    )
    grower.nodes += [{"kind": LEAF, "values": np.array([value])} for value in values]
    grower.members += [number in members for number in range(len(domain))]
    return root


@pytest.mark.parametrize("trees", [1, 3, 7, 40, 41])
def test_slices_whose_changes_all_have_one_sign_are_decided(trees: int) -> None:
    """All trees give the same value to six countries; the sex decides the others."""
    space = SPACES[0]
    grower = Grower(np.random.default_rng(48), space, 1)
    roots = [set_test(grower, "country", set(range(6)), (1.0, -0.3)) for _ in range(trees)]
    roots.append(set_test(grower, "sex", {0}, (99.0, -50.0)))
    # These distinguish all values, so that countries are slices, but add nothing.
    roots += [set_test(grower, "country", {number}, (0.0, 0.0)) for number in range(13)]
    roots += [set_test(grower, "race", {number}, (0.0, 0.0)) for number in range(5)]
    summation = Summation("a test", "float64", np.zeros(1))
    forest = Forest(grower.trees(roots), np.zeros(1), summation, space.width)
    rows = people(np.random.default_rng(49), space, 2)
    for threshold in (-60.0, -50.5, -49.0, 0.0, 60.0, 99.0):
        assert_same_majorities(Model(space, forest, Threshold(threshold)), rows)


@pytest.mark.parametrize("space", SPACES)
def test_half_of_the_counterparts_on_each_side_tie(space: FeatureSpace) -> None:
    """Half of the values of one attribute pass the only test, or one value more."""
    rng = np.random.default_rng(46)
    rows = people(rng, space, 2)
    for _ in range(8):
        forest = forest_of(rng, space, trees=1, depth=1)
        for equality in EQUALITIES:
            values = np.unique(forest.trees.values[forest.trees.kind == LEAF])
            for value in values.tolist():
                assert_same_majorities(
                    Model(space, forest, Threshold(value, "above", equality)), rows
                )
