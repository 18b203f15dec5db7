"""The compiled kernel against the exhaustive engine and the definition in fractions."""

from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

import feta
from feta import Categorical, FairAt, FeatureSpace, Integer, Levels, Model, Real, WorstAt
from feta.arrays import Matrix, Vector
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED, Budget
from feta.scorer.forest import kernel
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.scorer.forest.trees import OneHot
from feta.scorer.protocol import Side
from feta.space.attribute import Derived
from feta.space.vote_weights import VoteWeights
from feta.verdict.verdict import Verdict
from tests.forests import random_forest, scores

pytestmark = pytest.mark.skipif(not kernel.is_built(), reason="the kernel was not compiled")

EQUALITIES: tuple[Literal["favorable", "unfavorable"] | None, ...]
EQUALITIES = ("favorable", "unfavorable", None)
LATTICE, EXHAUSTIVE = LatticeEngine(threads=2), ExhaustiveEngine()
SPACES = (
    FeatureSpace(
        (
            Integer("age", 18, 22, sensitive=True, missing=True),
            Categorical("sex", ("f", "m", "x"), sensitive=True, missing=True),
            Levels("hours", (10.0, 20.5, 40.0)),
            Real("income", 0, 9),
            Integer("rooms", 1, 4, missing=True),
        )
    ),
    FeatureSpace(
        (
            Categorical("country", tuple(f"c{n}" for n in range(7)), sensitive=True),
            Integer("rooms", 1, 4, missing=True),
            Levels("hours", (10.0, 20.5, 40.0), sensitive=True, missing=True),
            Integer("age", 0, 70, sensitive=True),
        )
    ),
    FeatureSpace((Real("income", 0, 9), Categorical("sex", ("f", "m"), sensitive=True))),
)


def people(rng: np.random.Generator, space: FeatureSpace, count: int) -> Matrix:
    """Return random people, some of whom lie on cuts."""
    parts = []
    for attribute in space.attributes:
        if isinstance(attribute, Real):
            parts.append(rng.choice([0, 1, 1.5, 3, 9, np.nextafter(3, 0)], count)[:, None])
        else:
            assert not isinstance(attribute, Derived)
            parts.append(attribute.codes(rng.integers(0, attribute.n_values, count)))
    rows = np.hstack(parts)
    space.check(rows)
    return rows


def counterparts(space: FeatureSpace, person: Vector) -> list[Vector]:
    """Return all counterparts in the order of their ids."""
    rows = [np.array(person)]
    for attribute in space.sensitive:
        columns = space.columns_of(attribute)
        codes = attribute.codes(np.arange(attribute.n_values))  # type: ignore[union-attr]
        moved = []
        for row in rows:
            for code in codes:
                other = np.array(row)
                other[columns] = code
                moved.append(other)
        rows = moved
    return rows


def random_model(rng: np.random.Generator, space: FeatureSpace, rows: Matrix) -> Model:
    """Return an ensemble with a rule; often, scores lie exactly on the threshold."""
    kind = rng.integers(5)
    outputs = 1 if kind < 3 else 3
    forest = random_forest(rng, space, outputs=outputs, mean=bool(rng.random() < 0.5))
    if rng.random() < 0.3:
        # Values that have no short binary form: their library's sum is rounded.
        factor = 0.1 if rng.random() < 0.5 else 1e-9
        forest = scaled(forest, factor, float32=bool(rng.random() < 0.5))
    if kind == 3:
        return Model(space, forest, feta.Argmax(("a", "b", "c")))
    if kind == 4:
        return Model(space, forest, feta.Argmax(("a", "b", "c"))).one_vs_rest("b")
    others = counterparts(space, rows[0])
    value = float(scores(forest, others[rng.integers(len(others))])[0])
    if kind == 2:
        spread = [scores(forest, other)[0] for other in others]
        span = float(max(spread) - min(spread))
        epsilon = rng.choice([span, float(np.nextafter(span, 0)), span / 2, span + 1])
        return Model(space, forest, feta.Tolerance(float(epsilon)))
    favors: Side = "above" if rng.random() < 0.5 else "below"
    equality = EQUALITIES[rng.integers(3)]
    return Model(space, forest, feta.Threshold(value, favors, equality))


def scaled(forest: Forest, factor: float, *, float32: bool) -> Forest:
    """Return an ensemble with other leaf values, and a library that adds them."""
    kind = np.float32 if float32 else np.float64
    values = np.asarray(forest.trees.values * factor, dtype=kind).astype(np.float64)
    base = np.asarray(forest.base * factor, dtype=kind).astype(np.float64)
    summation = Summation("a test", "float32" if float32 else "float64", base)
    return replace(
        forest, trees=replace(forest.trees, values=values), base=base, summation=summation
    )


def assert_same(found: Verdict, expected: Verdict) -> None:
    """Compare everything but the engine and the effort."""
    assert type(found) is type(expected)
    if isinstance(found, feta.Fair):
        assert isinstance(expected, feta.Fair)
        assert found.runtime == expected.runtime
    if isinstance(found, feta.Unfair):
        assert isinstance(expected, feta.Unfair)
        for name in ("person", "counterpart"):
            np.testing.assert_array_equal(
                getattr(found.counterexample, name), getattr(expected.counterexample, name)
            )
        assert found.counterexample.gap == expected.counterexample.gap
        assert found.optimal == expected.optimal


@pytest.mark.parametrize("seed", range(120))
def test_the_kernel_decides_as_the_exhaustive_engine(seed: int) -> None:
    rng = np.random.default_rng([21, seed])
    space = SPACES[seed % 3]
    rows = people(rng, space, 5)
    model = random_model(rng, space, rows)
    assert LATTICE.accepts(FairAt(model, rows[0]))
    for query in [*FairAt.each(model, rows), *WorstAt.each(model, rows)]:
        found, expected = LATTICE.solve(query, UNLIMITED), EXHAUSTIVE.solve(query, UNLIMITED)
        if model.rule.tolerance is not None and not isinstance(query, WorstAt):
            assert type(found) is type(expected)  # the pairs are any that exceed the tolerance
        else:
            assert_same(found, expected)
    if model.rule.tolerance is not None:
        return
    ids = np.unique(rng.integers(0, space.lattice.size, 5))
    weights = VoteWeights(ids, rng.integers(1, 9, len(ids)), space)
    for votes in (None, weights):
        counted = LATTICE.tally(model, rows, UNLIMITED, until="all", weights=votes)
        listed = EXHAUSTIVE.tally(model, rows, UNLIMITED, until="all", weights=votes)
        np.testing.assert_array_equal(counted.by_class, listed.by_class)
        np.testing.assert_array_equal(counted.runtime_safe, listed.runtime_safe)
    winners = LATTICE.majority(model, rows)
    everybody = EXHAUSTIVE.tally(model, rows, UNLIMITED, until="all")
    if winners is not None:
        np.testing.assert_array_equal(winners, everybody.outcomes)


@pytest.mark.parametrize("seed", range(30))
def test_counts_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng([22, seed])
    space = SPACES[0]
    rows = people(rng, space, 2)
    forest = random_forest(rng, space, mean=seed % 2 == 0)
    exact = [[scores(forest, other)[0] for other in counterparts(space, row)] for row in rows]
    value = float(exact[0][rng.integers(len(exact[0]))])
    model = Model(space, forest, feta.Threshold(value, "below", "unfavorable"))
    counts = LATTICE.tally(model, rows, UNLIMITED, until="all").by_class
    for index, values in enumerate(exact):
        favorable = sum(score < Fraction(value) for score in values)
        assert counts[index].tolist() == [len(values) - favorable, favorable]


def test_a_majority_needs_rows_of_the_space() -> None:
    rng = np.random.default_rng(1)
    space = SPACES[2]
    model, rows = Model(space, random_forest(rng, space)), people(rng, space, 4)
    winners = LATTICE.majority(model, rows)
    assert winners is not None
    expected = EXHAUSTIVE.tally(model, rows, UNLIMITED, until="all").outcomes
    np.testing.assert_array_equal(winners, expected)
    rows[0, 0] = np.nan
    assert LATTICE.majority(model, rows) is None


def test_limits_leave_people_undecided() -> None:
    rng = np.random.default_rng(2)
    space = SPACES[1]
    rows = people(rng, space, 6)
    model = Model(space, random_forest(rng, space))
    spent = LATTICE.tally(model, rows, Budget(evaluations=1), until="all")
    complete = LATTICE.tally(model, rows, UNLIMITED, until="all")
    undecided = spent.undecided > 0
    assert undecided.any()
    assert not spent.runtime_safe[undecided].any()
    np.testing.assert_array_equal(spent.by_class[~undecided], complete.by_class[~undecided])
    verdict = LATTICE.solve(FairAt(model, rows[0]), Budget(evaluations=1))
    assert isinstance(verdict, feta.Unknown)


def test_what_the_kernel_cannot_represent_is_enumerated() -> None:
    rng = np.random.default_rng(3)
    space = SPACES[0]
    forest = random_forest(rng, space)
    tiny = scaled(forest, 1.0, float32=False)
    tiny = replace(tiny, base=np.array([1e-290]))
    fits = Model(space, forest).restricted.fits_kernel(space)
    assert fits
    assert not Model(space, tiny).restricted.fits_kernel(space)
    domains = tuple(
        OneHot(2, 5) if isinstance(domain, OneHot) else domain for domain in forest.trees.domains
    )
    if any(isinstance(domain, OneHot) for domain in domains):
        members = np.append(forest.trees.members, [True])
        both = replace(forest, trees=replace(forest.trees, domains=domains, members=members))
        assert not Model(space, both).restricted.fits_kernel(space)
