import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from feta import MissingExtra, Network, NetworkError, read_torch

ROWS = np.random.default_rng(1).normal(size=(200, 3))


class Doubled(nn.Linear):
    """A Linear whose forward does something that its weights do not say."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's own name
        return 2 * super().forward(input)


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    state = torch.get_rng_state()
    torch.manual_seed(0)
    yield
    torch.set_rng_state(state)


def trained_norm(width: int, **options: bool) -> nn.BatchNorm1d:
    norm = nn.BatchNorm1d(width, **options)
    norm.train()
    norm(torch.randn(50, width) * 3 + 1)
    if norm.affine:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    return norm


def torch_scores(module: nn.Module, rows: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return np.asarray(module.double().eval()(torch.from_numpy(rows)).numpy())


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(3, 1),
        lambda: nn.Sequential(nn.Linear(3, 1, bias=False)),
        lambda: nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)),
        lambda: nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1)),
        lambda: nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.ReLU(), nn.Linear(5, 1), nn.ReLU()),
        lambda: nn.Sequential(
            nn.Flatten(),
            nn.Linear(3, 5),
            nn.Dropout(0.9),
            nn.ReLU(),
            nn.Identity(),
            nn.Linear(5, 1),
        ),
        lambda: nn.Sequential(
            nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU())), nn.Linear(4, 1)
        ),
        lambda: nn.Sequential(nn.Linear(3, 4), trained_norm(4), nn.ReLU(), nn.Linear(4, 1)),
        lambda: nn.Sequential(trained_norm(3), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), trained_norm(4), nn.Linear(4, 1)),
        lambda: nn.Sequential(nn.Linear(3, 4), trained_norm(4), trained_norm(4, affine=False)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(0.3), nn.Linear(4, 1)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.PReLU(4), nn.Linear(4, 4), nn.PReLU()),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Hardtanh(-0.2, 0.3), nn.ReLU6()),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Hardsigmoid(), nn.Linear(4, 1)),
    ],
)
def test_scores_agree_with_torch(make: Callable[[], nn.Module]) -> None:
    module = make()
    network = read_torch(module)
    assert not network.sigmoid
    np.testing.assert_allclose(network(ROWS), torch_scores(module, ROWS), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("inside", [False, True])
def test_a_last_sigmoid_is_taken_off(*, inside: bool) -> None:
    sigmoid = nn.Sequential(nn.Sigmoid()) if inside else nn.Sigmoid()
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1), sigmoid)
    network = read_torch(module)
    assert network.sigmoid
    probabilities = 1 / (1 + np.exp(-network(ROWS)))
    np.testing.assert_allclose(probabilities, torch_scores(module, ROWS), rtol=1e-9)


def test_a_last_softmax_is_taken_off() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.Softmax(dim=1))
    network = read_torch(module)
    powers = np.exp(network(ROWS))
    shares = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, torch_scores(module, ROWS), rtol=1e-9)


def test_the_numbers_read_are_torchs_own() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    network = read_torch(module)
    expected = Network.from_layers(
        [
            (one.weight.detach().numpy(), one.bias.detach().numpy())
            for one in module
            if isinstance(one, nn.Linear)
        ]
    )
    assert network.fingerprint == expected.fingerprint


def test_a_batch_norm_folds_into_the_layer_before_it() -> None:
    network = read_torch(
        nn.Sequential(nn.Linear(3, 4), trained_norm(4), nn.ReLU(), nn.Linear(4, 1))
    )
    assert len(network.layers) == 1
    assert (network.first.folded > 0).all()


def test_reading_leaves_the_module_alone() -> None:
    module = nn.Sequential(nn.Linear(3, 4), trained_norm(4), nn.Dropout(), nn.Linear(4, 1)).train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    read_torch(module)
    assert all(one.training for one in module.modules())
    assert module[0].weight.dtype == torch.float32
    assert all(torch.equal(before[name], now) for name, now in module.state_dict().items())


def nan_weight() -> nn.Module:
    module = nn.Linear(3, 1)
    nn.init.constant_(module.weight, float("nan"))
    return module


def negative_variance() -> nn.Module:
    norm = trained_norm(2)
    nn.init.constant_(norm.running_var, -1.0)  # type: ignore[arg-type]
    return nn.Sequential(nn.Linear(3, 2), norm)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Sequential(), "must have at least one .* layer, got none"),
        (lambda: nn.Sigmoid(), "must have at least one .* layer, got none"),
        (lambda: nn.Sequential(nn.ReLU()), r"module '0' \(ReLU\) must follow an? \w+ layer"),
        (
            lambda: nn.Sequential(nn.Sequential(nn.Linear(3, 1), nn.Tanh())),
            r"module '0\.1' \(Tanh\) is not piecewise-linear.* retrain with 'hardtanh'",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.Sigmoid(), nn.Linear(2, 1)),
            r"module '1' \(Sigmoid\) is not piecewise-linear.* retrain with 'hardsigmoid'",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)),
            r"module '1' \(LayerNorm\) is not one that FETA reads; it reads nn\.Sequential of Linear",
        ),
        (lambda: nn.ModuleList([nn.Linear(3, 1)]), r"\(ModuleList\) is not one that FETA reads"),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=False)),
            r"module '1' \(BatchNorm1d\) must keep running statistics",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(5)),
            "2 .*, got 5",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.Linear(4, 1)),
            "layer 2 must take 2 inputs, got 4",
        ),
        (nan_weight, r"the weights of .* must be finite, got .*nan.* at \(0, 0\)"),
        (negative_variance, r"a batch norm must have variance \+ epsilon above 0, got -0\.99999"),
        (
            lambda: nn.Sequential(Doubled(3, 1)),
            "FETA's scores must equal the module's own, but differ by",
        ),
    ],
)
def test_a_module_that_cannot_be_read_is_refused(
    make: Callable[[], nn.Module], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_torch(make())


def test_a_missing_torch_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtra, match=r"^torch is not installed; pip install 'feta-fair\[torch\]'$"
    ):
        read_torch(nn.Linear(3, 1))
