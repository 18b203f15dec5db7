"""The label of the runtime where sums of 64 bits decide everybody, but the library differs."""

import numpy as np
import pytest

import feta
from feta import FairAt, FeatureSpace, Integer, Model
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED, Until
from feta.scorer.forest import kernel
from feta.scorer.forest.builder import CutTest, TreesBuilder
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.scorer.forest.units import WIDE, Units

pytestmark = pytest.mark.skipif(not kernel.is_built(), reason="the kernel was not compiled")

LATTICE, EXHAUSTIVE = LatticeEngine(threads=1), ExhaustiveEngine()
SPACE = FeatureSpace((Integer("age", 0, 8, sensitive=True), Integer("rooms", 1, 4)))
PEOPLE = np.array([[0.0, 1.0], [8.0, 4.0]])


def canceling_model(large: float, small: float, unreached: float) -> Model:
    """Return a model with scores of 1 + small; up to age 6, float32 loses the 1.

    Nobody reaches the leaf `unreached`.
    """
    builder = TreesBuilder(1)
    for value in (large, -large):
        root = builder.inner(CutTest(0, 6.5))
        builder.root(root)
        builder.link(root, left=builder.leaf([value]), right=builder.leaf([0.0]))
    root = builder.inner(CutTest(0, 6.5))
    builder.root(root)
    inner = builder.inner(CutTest(0, 7.5))
    builder.link(root, left=inner, right=builder.leaf([small]))
    builder.link(inner, left=builder.leaf([small]), right=builder.leaf([unreached]))
    start = np.ones(1)
    summation = Summation("a test", "float32", start)
    forest = Forest(builder.build(), start, summation, SPACE.width)
    assert Units(forest).bits == WIDE
    return Model(SPACE, forest, feta.Threshold(0.5))


# Sums are rounded to 64 bits, or fit in them because the largest leaf is not reached.
@pytest.mark.parametrize("sizes", [(2.0**40, 2.0**-30, 0.0), (2.0**27, 2.0**-25, 2.0**60)])
@pytest.mark.parametrize("until", ["all", "majority"])
def test_sums_of_64_bits_do_not_hide_that_the_library_differs(
    sizes: tuple[float, float, float], until: Until
) -> None:
    model = canceling_model(*sizes)
    counted = LATTICE.tally(model, PEOPLE, UNLIMITED, until=until)
    listed = EXHAUSTIVE.tally(model, PEOPLE, UNLIMITED, until=until)
    assert not listed.runtime_safe.any()
    np.testing.assert_array_equal(counted.runtime_safe, listed.runtime_safe)
    np.testing.assert_array_equal(counted.by_class, listed.by_class)


@pytest.mark.parametrize("sizes", [(2.0**40, 2.0**-30, 0.0), (2.0**27, 2.0**-25, 2.0**60)])
def test_verdicts_of_a_batch_have_the_label_of_each_alone(
    sizes: tuple[float, float, float],
) -> None:
    model = canceling_model(*sizes)
    queries = FairAt.each(model, PEOPLE)
    for engine in (LATTICE, EXHAUSTIVE):
        alone = [engine.solve(query, UNLIMITED) for query in queries]
        for verdict in [*engine.solve_many(queries, UNLIMITED), *alone]:
            assert isinstance(verdict, feta.Fair)
            assert verdict.runtime == "sensitive"
