"""Random tree ensembles against the oracle in fractions, and defects that must be noticed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from campaigns.forest_answers import disagreements
from feta import Integer, Threshold
from feta.scorer.forest import kernel
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.kernel import ForestKernel
from feta.scorer.forest.trees import LEAF, Trees
from feta.scorer.kernel import KernelSearch
from feta.space.feature_space import FeatureSpace
from tests.forest_cases import ForestCase, random_case
from tests.strategies import EDGES

Plant = Callable[[ForestCase], ForestCase]


def random_cases(seed: int, count: int) -> Iterator[tuple[ForestCase, np.random.Generator]]:
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        yield random_case(rng, EDGES[number % len(EDGES)]), rng


def first_difference(plant: Plant, *, count: int) -> str:
    """Return the first answer that is wrong with a planted defect; empty if none is."""
    for case, rng in random_cases(3, count):
        for name in disagreements(plant(case), rng):
            if name != "number of counterparts":
                return name
    return ""


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_the_oracle(seed: int) -> None:
    for case, rng in random_cases(100 + seed, 2):
        assert list(disagreements(case, rng)) == []


@pytest.mark.parametrize("seed", range(4))
def test_trees_that_are_followed_give_the_same_answers(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "MAX_SET_BYTES", 0)
    for case, rng in random_cases(200 + seed, 2):
        assert list(disagreements(case, rng)) == []


def trees_of(case: ForestCase) -> Trees:
    forest = case.model.scorer
    assert isinstance(forest, Forest)
    return forest.trees


def with_trees(case: ForestCase, **arrays: Any) -> ForestCase:  # noqa: ANN401 - any arrays
    forest = case.model.scorer
    assert isinstance(forest, Forest)
    changed = replace(forest, trees=replace(forest.trees, **arrays))
    return replace(case, model=replace(case.model, scorer=changed, threshold=None))


def missing_direction_flipped(case: ForestCase) -> ForestCase:
    return with_trees(case, missing_left=~trees_of(case).missing_left)


def cut_exclusive(case: ForestCase) -> ForestCase:
    return with_trees(case, cut=np.nextafter(trees_of(case).cut, -np.inf))


def last_leaf_one_ulp_higher(case: ForestCase) -> ForestCase:
    trees = trees_of(case)
    values = np.array(trees.values)
    leaf = np.flatnonzero(trees.kind == LEAF)[-1]
    values[leaf] = np.nextafter(values[leaf], np.inf)
    return with_trees(case, values=values)


def set_complemented(case: ForestCase) -> ForestCase:
    return with_trees(case, members=~trees_of(case).members)


def tie_side_flipped(case: ForestCase) -> ForestCase:
    rule = case.model.rule
    if not isinstance(rule, Threshold):
        return case
    flipped = replace(rule, equality="unfavorable" if rule.equality == "favorable" else "favorable")
    return replace(case, model=replace(case.model, rule=flipped, threshold=None))


def value_left_out(case: ForestCase) -> ForestCase:
    """Leave out the highest age, if nobody has it."""
    age = case.space.attribute("age")
    assert isinstance(age, Integer)
    if age.low == age.high or any(record["age"] == age.high for record in case.records):
        return case
    shorter = replace(age, high=age.high - 1)
    space = FeatureSpace(tuple(shorter if a is age else a for a in case.space.attributes))
    model = replace(case.model, space=space, relation=None, threshold=None)  # type: ignore[arg-type]  # the default
    return replace(case, model=model, weights=None)


@pytest.mark.parametrize(
    "plant",
    [
        missing_direction_flipped,
        cut_exclusive,
        last_leaf_one_ulp_higher,
        set_complemented,
        tie_side_flipped,
        value_left_out,
    ],
)
def test_planted_defects_are_found(plant: Plant) -> None:
    assert first_difference(plant, count=60)


def test_a_kernel_that_overlooks_counterparts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ForestKernel.find

    def overlooks(kernel: ForestKernel, *arguments: Any) -> KernelSearch:  # noqa: ANN401 - as find
        search = real(kernel, *arguments)
        return replace(search, found=np.zeros_like(search.found), undecided={})

    monkeypatch.setattr(ForestKernel, "find", overlooks)
    assert first_difference(lambda case: case, count=60).startswith("lattice, verify")
