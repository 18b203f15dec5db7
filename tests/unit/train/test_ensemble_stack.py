import pytest

pytest.importorskip("torch", reason="torch is not installed")

import sys
from dataclasses import replace

import numpy as np
import torch

from feta import MissingExtra, Network, NetworkError
from feta.scorer.network.activation import relu
from feta.scorer.network.layers import Columns, LookupTable
from feta.train.ensemble_stack import Shape, Stack, one_thread
from tests.strategies import random_network
from tests.unit.train.people import SPACE

RNG = np.random.default_rng(0)
SHAPE = Shape((3, 4, 1), (relu(),))


def test_a_network_is_restored_from_its_row_of_numbers() -> None:
    numbers = SHAPE.initial(np.random.default_rng(1))
    network = SHAPE.network(numbers)
    assert SHAPE.flat(network).tolist() == numbers.tolist()
    assert Shape.of(network).widths == SHAPE.widths
    assert np.abs(numbers).max() <= 1 / np.sqrt(3)


@pytest.mark.parametrize("seed", range(12))
def test_scores_of_every_activation_are_those_of_the_network(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, SPACE, outputs=2, plain=False)
    network = replace(network, first=Columns(network.first.bias, network.first.slopes))
    people = rng.normal(size=(5, SPACE.width))
    shape = Shape.of(network)
    stack = Stack(shape, [shape.flat(network)], [0.1])
    scores = stack.scores(torch.tensor(people)[None]).detach().numpy()[0]
    assert np.allclose(scores, network(people), rtol=1e-12, atol=1e-12)


def test_steps_are_those_of_adam_in_torch() -> None:
    rates, rows = [0.1, 0.01], [SHAPE.initial(np.random.default_rng(seed)) for seed in (1, 2)]
    people, targets = (
        torch.tensor(RNG.normal(size=(2, 7, 3))),
        torch.tensor(RNG.normal(size=(2, 7))),
    )
    stack = Stack(SHAPE, rows, rates, weight_decay=0.01)
    for _ in range(5):
        stack.step(((stack.scores(people)[..., 0] - targets) ** 2).mean(-1))
    for index, (row, rate) in enumerate(zip(rows, rates, strict=True)):
        parameters = torch.tensor(row, requires_grad=True)
        adam = torch.optim.Adam([parameters], lr=rate, weight_decay=0.01)
        for _ in range(5):
            adam.zero_grad()
            hidden = torch.relu(people[index] @ parameters[:12].view(4, 3).T + parameters[12:16])
            scores = (hidden @ parameters[16:20].view(1, 4).T + parameters[20:])[:, 0]
            ((scores - targets[index]) ** 2).mean().backward()  # type: ignore[no-untyped-call]  # torch's
            adam.step()
        assert np.allclose(stack.rows()[index], parameters.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_the_number_of_threads_is_restored() -> None:
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_tables_and_diverged_numbers_are_refused() -> None:
    table = LookupTable(0, np.array([0.0, 1.0]), np.zeros((2, 1)))
    network = Network(Columns(np.zeros(1), np.zeros((1, 3)), (table,)), (), ())
    with pytest.raises(NetworkError, match="a network with tables cannot be trained"):
        Shape.of(network)
    with pytest.raises(NetworkError, match="lower the learning rate"):
        SHAPE.network(np.full(SHAPE.length, np.nan))


def test_training_without_torch_names_the_command_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtra, match=r"torch is not installed; pip install 'feta-fair\[torch\]'"
    ):
        Stack(SHAPE, [SHAPE.initial(RNG)], [0.1])
