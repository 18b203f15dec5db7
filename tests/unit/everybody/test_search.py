"""The guided search finds unfairness that draws do not."""

import time

import numpy as np
import pytest

import feta
from feta.everybody.decide import treated
from feta.everybody.population import uniform
from feta.everybody.search import search
from feta.everybody.where import Where


def planted(flips: float) -> feta.Model:
    """One neuron reads sex only in a corner of four columns: a share of about 2e-8."""
    space = feta.FeatureSpace(
        (
            feta.Categorical("sex", ("f", "m"), sensitive=True),
            *(feta.Integer(name, 0, 99) for name in "abcd"),
            feta.Real("e", 0.0, 1.0, missing=True),
        )
    )
    corner = [0.0, 4.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]  # above 393 of 396
    other = [0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 3.0, 0.0]
    layers = [([corner, other], [-397.0, 20.0]), ([[flips, 1.0]], [-20.0 - 1e-3])]
    return feta.Model(space, feta.Network.from_layers(layers), threshold=0.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_corner_is_found(seed: int) -> None:
    model = planted(50.0)
    population = uniform(model.space, Where())
    drawn = treated(model, population.draw(np.random.default_rng(seed), 20_000))
    assert not drawn.unfair.any()
    rng = np.random.default_rng(seed)
    people = search(model, population, rng, deadline=time.monotonic() + 60)
    assert treated(model, people).unfair.any()


def test_nobody_is_found_where_the_neuron_is_too_weak() -> None:
    layers = [([[0.0, 4.0, 1.0]], [-101.0]), ([[1e-3]], [-1.0])]
    space = feta.FeatureSpace(
        (feta.Categorical("sex", ("f", "m"), sensitive=True), feta.Integer("a", 0, 99))
    )
    model = feta.Model(space, feta.Network.from_layers(layers), threshold=0.0)
    rng = np.random.default_rng(0)
    assert not len(search(model, uniform(space, Where()), rng, deadline=time.monotonic() + 60))
