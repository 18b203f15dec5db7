from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feta
from feta import NetworkError
from feta.arrays import Matrix
from feta.checker.prove import prove
from feta.space.attribute import Integer, Real

pytest.importorskip("torch", reason="torch is not installed")

import torch
from torch import Tensor, nn

from feta.readers.torch.read import read_torch

Step = Callable[[Any, Tensor, Tensor], Tensor]  # of a module, its input and a layer's output

SPACE = feta.FeatureSpace(
    (
        Integer("age", 0, 4, sensitive=True),
        Integer("zone", -2, 2, sensitive=True),
        Real("income", -3.0, 3.0),
        Integer("debts", 0, 4),
    )
)


class Residual(nn.Module):
    def __init__(self, activation: Callable[[], nn.Module] = nn.ReLU) -> None:
        super().__init__()
        self.enter = nn.Linear(4, 3)
        self.first, self.second = nn.Linear(3, 5), nn.Linear(5, 3)
        self.norm = nn.BatchNorm1d(3)
        self.activation, self.last = activation(), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation(self.enter(x))
        h = self.norm(self.second(self.activation(self.first(x))))
        h += x
        return self.last(self.activation(h))


class WideAndDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(4, 1)
        self.deep = nn.Sequential(nn.Linear(2, 4), nn.GELU(), nn.Linear(4, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.wide(x) + self.deep(x[:, 1:3]))


class Towers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(
            nn.Linear(2, 3), nn.ReLU(inplace=True), nn.Linear(3, 2), nn.ReLU()
        )
        self.right = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())
        self.last = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        joined = torch.cat([self.left(x[:, :2]), self.right(x[:, 1:])], dim=1)
        return torch.softmax(self.last(joined), dim=1)


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower, self.last = nn.Linear(2, 3), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        left, right = torch.relu(self.tower(x[:, :2])), torch.relu(self.tower(x[:, 2:]))
        return self.last(torch.sub(left, right) * 0.5 + left[:, [2, 0, 1]])


class Dense(nn.Module):
    """Each layer reads all values before it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 3), nn.Linear(7, 3), nn.Linear(10, 1)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = torch.cat((x, nn.functional.elu(layer(x))), 1)
        return self.layers[-1](x)


MODULES = {
    "residual": Residual,
    "smooth residual": lambda: Residual(nn.Tanh),
    "wide and deep": WideAndDeep,
    "towers": Towers,
    "shared": Shared,
    "dense": Dense,
}


def seeded(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    module = build().double()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d):
            part.running_mean = torch.randn(part.num_features).double()
            part.running_var = torch.rand(part.num_features).double() + 0.5
    return module.eval()


def own_scores(module: nn.Module, rows: Matrix) -> Matrix:
    with torch.no_grad():
        found: Matrix = module(torch.from_numpy(rows)).numpy()
    # Logits, from probabilities of this size, are exact enough for the comparison of signs.
    if isinstance(module, WideAndDeep):
        return np.asarray(np.log(found / (1 - found)))
    return (
        np.asarray(np.log(found[:, [1]] / found[:, [0]])) if isinstance(module, Towers) else found
    )


@pytest.mark.parametrize("name", MODULES)
def test_scores_and_verdicts_are_those_of_the_module(name: str) -> None:
    module = seeded(MODULES[name])
    network = read_torch(module, columns=4)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4))
    scores = network(rows)
    scores = scores[:, [1]] - scores[:, [0]] if scores.shape[1] == 2 else scores
    np.testing.assert_allclose(scores, own_scores(module, rows), rtol=1e-8, atol=1e-8)

    scorer = network.difference() if network.outputs == 2 else network
    median = float(np.median(own_scores(module, people(rng, 200))))
    model = feta.Model(SPACE, scorer, threshold=median)
    seen = set[type]()
    for person in people(rng, 12):
        lattice = np.array(
            [[*pair, *person[2:]] for pair in product(range(5), range(-2, 3))], float
        )
        truth = own_scores(module, lattice)[:, 0] > median
        verdict = feta.verify(feta.FairAt(model, person))
        assert isinstance(verdict, feta.Fair if len(set(truth)) == 1 else feta.Unfair)
        assert model.decide(lattice).tolist() == truth.tolist()
        if not seen:
            prove(verdict, feta.FairAt(model, person))
        seen.add(type(verdict))
    assert feta.Unfair in seen


def people(rng: np.random.Generator, count: int) -> Matrix:
    return np.column_stack(
        [
            rng.integers(0, 5, count),
            rng.integers(-2, 3, count),
            rng.normal(size=count).clip(-3, 3),
            rng.integers(0, 5, count),
        ]
    ).astype(float)


def test_single_precision_is_read_too() -> None:
    module = seeded(Residual).float()
    assert read_torch(module).source == "float32"


def test_a_model_file_keeps_neurons_that_pass(tmp_path: Path) -> None:
    model = feta.Model(SPACE, read_torch(seeded(MODULES["smooth residual"])), threshold=0.1)
    feta.save_model(model, tmp_path / "residual.feta")
    again = feta.load_model(tmp_path / "residual.feta")
    assert again.fingerprint == model.fingerprint
    assert again.scorer.fingerprint == model.scorer.fingerprint


def residual_of(step: Step) -> nn.Module:
    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.last = nn.Linear(4, 4), nn.Linear(4, 1)
            self.norm, self.relu = nn.LayerNorm(4), nn.ReLU(inplace=True)
            self.drop = nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            h = self.layer(x)
            return self.last(step(self, x, h))

    return seeded(Module)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda _, x, h: x * h, "combines 2 values that depend on the input; of two values"),
        (lambda _, x, h: x / h, "of two values, only sums, differences and cat"),
        (lambda m, x, h: m.norm(h) + x, r"LayerNorm.*: it divides values by their own spread"),
        (lambda m, _, h: m.relu(h) + h, "in place that other steps read"),
        (lambda m, x, h: m.relu(m.drop(h)) + x, "in place that other steps read"),
        (lambda m, x, h: m.relu(x) + h, "changes the input in place"),
        (
            lambda _, x, h: torch.add(x, h, alpha=2),
            "unsupported arguments: got input, other, alpha",
        ),
        (lambda _, x, h: torch.cat([x, h], 0)[:3] + h, "joins the wrong dimension: got dim=0"),
        (lambda _, x, h: torch.softmax(h, 1) + x, "not piecewise-linear"),
    ],
)
def test_what_is_no_sum_is_refused_with_the_reason(step: Step, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        read_torch(residual_of(step))


def test_a_value_in_place_after_its_last_reader_is_read() -> None:
    module = residual_of(lambda m, x, h: m.relu(h) + x)
    rows = np.random.default_rng(1).normal(size=(30, 4))
    np.testing.assert_allclose(read_torch(module)(rows), own_scores(module, rows), rtol=1e-9)
