from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feta
from feta.model import Model
from feta.scorer.network.layers import Affine
from feta.scorer.network.milp.equilibrate import equilibrate
from tests import oracle
from tests.examples import rescaled
from tests.strategies import Case, cases


@given(case=cases(plain=False), power=st.sampled_from([0, 20, 30]), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_it_is_the_same_function_exactly(case: Case, power: int, seed: int) -> None:
    model = case.model
    network = rescaled(model.network, np.random.default_rng(seed), power)
    model = Model(model.space, network, model.rule)
    scaled = equilibrate(model.network, model.space.magnitudes)
    other = Model(model.space, scaled.network, model.rule)
    for person in case.people:
        factor = Fraction(scaled.output)
        assert [score * factor for score in oracle.scores(model, person)] == oracle.scores(
            other, person
        )


def test_neurons_of_any_size_are_scaled_to_about_one() -> None:
    rng = np.random.default_rng(0)
    space = feta.FeatureSpace((feta.Integer("a", 0, 9, sensitive=True), feta.Real("b", 0, 1)))
    sizes = 2.0 ** np.array([-30, 0, 30])
    layers = [
        (rng.normal(size=(3, 2)) * sizes[:, None], np.zeros(3)),
        (rng.normal(size=(3, 3)) / sizes * sizes[:, None], np.zeros(3)),
        (rng.normal(size=(1, 3)) / sizes, np.zeros(1)),
    ]
    model = Model(space, feta.Network.from_layers(layers), threshold=0.0)
    scaled = equilibrate(model.network, model.space.magnitudes).network
    assert np.abs(scaled.first.slopes).max() < 4
    for layer in scaled.layers:
        assert 1e-3 < np.abs(layer.weight).max() < 4


@pytest.mark.parametrize("factor", [2.0**-1070, 2.0**-1000])
def test_numbers_that_would_be_rounded_are_not_scaled(factor: float) -> None:
    space = feta.FeatureSpace((feta.Integer("a", 0, 9, sensitive=True),))
    layers = [([[1.0], [2.0**200]], [factor, 0.0]), ([[1.0, 1.0]], [0.0])]
    model = Model(space, feta.Network.from_layers(layers), threshold=0.0)
    scaled = equilibrate(model.network, model.space.magnitudes)
    person = np.array([3.0])
    other = Model(space, scaled.network, model.rule)
    score = oracle.score(model, person) * Fraction(scaled.output)
    assert score == oracle.score(other, person)
    tiny = replace(
        model.network, layers=(Affine(model.network.layers[0].weight, np.array([factor])),)
    )
    assert equilibrate(tiny, space.magnitudes).network is not None
