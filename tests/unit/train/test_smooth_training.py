import pytest

pytest.importorskip("torch", reason="torch is not installed")

from dataclasses import replace

import numpy as np

import feta
from feta import FeatureSpace, Model, Real, SchemaError
from feta.metrics.rates import ce_rate
from feta.scorer.network.smooth.activation import FACTS, Smooth
from feta.train.ce_fair import CEFairTrainer
from feta.train.ensemble_stack import Shape, Stack
from feta.train.functions import torch_activation
from feta.train.import_torch import import_torch
from feta.train.plain import PlainTrainer
from feta.train.worst_counterparts import worst_counterparts
from tests.unit.train.people import LABELS, PEOPLE, SPACE

PLAIN = PlainTrainer(
    SPACE, hidden=(6,), activation="tanh", learning_rates=(0.03,), batch_sizes=(32,), epochs=25
)


@pytest.mark.parametrize("name", FACTS)
def test_torch_computes_the_function_that_the_network_has(name: str) -> None:
    torch = import_torch()
    points = np.linspace(-6, 6, 61)
    for on in (None, np.array([1.0, 0.0])):
        function = Smooth(name, 1.5 if FACTS[name].positive_parameter else 1.0, on)
        rows = np.stack([points, points], axis=1)
        found = torch_activation(function)(torch.tensor(rows)).numpy()
        assert np.allclose(found, function(rows), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["tanh", "gelu", "swish"])
def test_plain_training_returns_a_smooth_network(name: str) -> None:
    run = replace(PLAIN, activation=name).train(PEOPLE, LABELS)
    assert not run.network.piecewise_linear
    accuracy = (Model(SPACE, run.network).decide(PEOPLE) == LABELS).mean()
    assert accuracy > max(LABELS.mean(), 1 - LABELS.mean())
    shape = Shape.of(run.network)
    scores = Stack(shape, [shape.flat(run.network)], [0.1]).scores(
        import_torch().tensor(PEOPLE[None])
    )
    assert np.allclose(scores.detach().numpy()[0], run.network(PEOPLE), atol=1e-9)


def test_fair_training_reduces_counterexamples_of_a_smooth_network() -> None:
    unfair = PLAIN.train(PEOPLE, LABELS).network
    trainer = CEFairTrainer(SPACE, learning_rate=0.01, batch_size=32, epochs=8)
    run = trainer.train(unfair, PEOPLE, LABELS)

    def rate(network: feta.Network) -> float:
        return ce_rate(feta.tally(Model(SPACE, network), PEOPLE))

    assert not run.network.piecewise_linear
    assert rate(run.network) < 0.9 * rate(unfair)


@pytest.mark.parametrize("engine", ["auto", "exhaustive"])
def test_the_worst_counterpart_of_a_smooth_network_has_the_highest_score(engine: str) -> None:
    network = PLAIN.train(PEOPLE, LABELS).network
    upward = np.arange(12) % 2 == 0
    _, scores = worst_counterparts(SPACE, network, PEOPLE[:12], upward, engine=engine)  # type: ignore[arg-type]
    for person, up, score in zip(PEOPLE, upward, scores, strict=False):
        everyone = np.repeat(person[None], SPACE.lattice.size, axis=0)
        found = network(np.array(SPACE.lattice.moved(everyone, np.arange(SPACE.lattice.size))))
        assert score == pytest.approx(found.max() if up else found.min(), abs=1e-12)


def test_a_real_sensitive_attribute_needs_straight_pieces() -> None:
    space = FeatureSpace((Real("age", 0.0, 1.0, sensitive=True), Real("income", 0.0, 1.0)))
    layers = [(np.ones((2, 2)), np.zeros(2)), (np.ones((1, 2)), np.zeros(1))]
    network = feta.Network.from_layers(layers, activation="tanh")
    with pytest.raises(SchemaError, match=r"got 'age' and .*tanh; expected integers; add a step"):
        worst_counterparts(space, network, np.zeros((1, 2)), np.array([True]))
