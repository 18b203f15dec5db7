import pytest

pytest.importorskip("torch", reason="torch is not installed")

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from feta import (
    Fair,
    FairAt,
    FeatureSpace,
    Levels,
    MissingExtra,
    Model,
    Network,
    NetworkError,
    read_torch,
    verify,
)

ROWS = np.random.default_rng(1).normal(size=(200, 3))


class Doubled(nn.Linear):
    """A Linear whose forward doubles its output, which its weights do not show."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
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
        lambda: nn.Sequential(nn.Linear(3, 4), nn.PReLU(1), nn.Linear(4, 1)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU6(), nn.Hardtanh(), nn.Linear(4, 3)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Hardtanh(-float("inf"), 0.3), nn.Linear(4, 1)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(-0.5), nn.Hardsigmoid()),
    ],
)
def test_scores_agree_with_torch(make: Callable[[], nn.Module]) -> None:
    module = make()
    network = read_torch(module.eval())
    assert not network.sigmoid
    np.testing.assert_allclose(network(ROWS), torch_scores(module, ROWS), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("in_module", [False, True])
def test_a_last_sigmoid_is_removed(*, in_module: bool) -> None:
    sigmoid = nn.Sequential(nn.Sigmoid()) if in_module else nn.Sigmoid()
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1), sigmoid)
    network = read_torch(module.eval())
    assert network.sigmoid
    probabilities = 1 / (1 + np.exp(-network(ROWS)))
    np.testing.assert_allclose(probabilities, torch_scores(module, ROWS), rtol=1e-9)


def test_a_last_softmax_is_removed() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.Softmax(dim=1))
    network = read_torch(module.eval())
    powers = np.exp(network(ROWS))
    shares = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, torch_scores(module, ROWS), rtol=1e-9)


def test_the_weights_are_those_of_torch() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    network = read_torch(module.eval())
    expected = Network.from_layers(
        [
            (layer.weight.detach().numpy(), layer.bias.detach().numpy())
            for layer in module
            if isinstance(layer, nn.Linear)
        ]
    )
    assert network.fingerprint == expected.fingerprint


def test_a_batch_norm_folds_into_the_layer_before_it() -> None:
    network = read_torch(
        nn.Sequential(nn.Linear(3, 4), trained_norm(4), nn.ReLU(), nn.Linear(4, 1)).eval()
    )
    assert len(network.layers) == 1
    assert (network.first.cancelled_magnitude > 0).all()


def test_reading_does_not_change_the_module() -> None:
    module = nn.Sequential(nn.Linear(3, 4), trained_norm(4), nn.Dropout(), nn.Linear(4, 1)).eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    read_torch(module)
    assert not any(submodule.training for submodule in module.modules())
    assert module[0].weight.dtype == torch.float32
    assert all(torch.equal(before[name], after) for name, after in module.state_dict().items())


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
        (lambda: nn.Sequential(), "needs at least one affine layer: got none"),
        (lambda: nn.Sigmoid(), "needs at least one affine layer: got none"),
        (lambda: nn.Sequential(nn.ReLU()), r"invalid position of module '0' \(ReLU\)"),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.Softplus(threshold=5), nn.Linear(2, 1)),
            "Softplus is replaced by a straight line too early: got threshold=5; expected 20",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.Sigmoid()),
            r"module '1' \(Sigmoid\) is the last step: got 2 outputs; expected one; several",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)),
            r"module '1' \(LayerNorm\) is not supported: it divides values by their own spread",
        ),
        (lambda: nn.ModuleList([nn.Linear(3, 1)]), r"cannot be traced: got Module \[ModuleList\]"),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=False)),
            r"module '1' \(BatchNorm1d\) has no running statistics",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(5)),
            "got 5 values; expected 2",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.Linear(4, 1)),
            "wrong number of inputs of layer 2: got 4; expected 2",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.PReLU(5), nn.Linear(2, 1)),
            r"wrong width of module '1' \(PReLU\): got 5 neurons; expected 1 or 2",
        ),
        (
            lambda: nn.Linear(3, 1).half(),
            r"unsupported format: got torch\.float16; expected float32 or float64; use "
            r"module\.float\(\)",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1).bfloat16()),
            r"got torch\.bfloat16, torch\.float32; expected float32 or float64; use "
            r"module\.float\(\)",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.Softmax(dim=1), nn.Linear(2, 1)),
            r"module '1' \(Softmax\) is not piecewise-linear",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.Softmax(dim=0)),
            "FETA's scores differ from the module's own by",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.RReLU(), nn.Linear(2, 1)),
            r"module '1' \(RReLU\) is not supported",
        ),
        (
            lambda: nn.Sequential(nn.BatchNorm1d(3), nn.Linear(4, 1)),
            r"wrong (number|width) of .*: got 4.*; expected 3",
        ),
        (nan_weight, r"invalid weights of .*: got nan at \(0, 0\)"),
        (negative_variance, r"got variance \+ epsilon = -0\.99999\d*; expected more than 0"),
    ],
)
def test_a_module_that_cannot_be_read_is_refused(
    make: Callable[[], nn.Module], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_torch(make().eval())


def test_a_missing_torch_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtra, match=r"^torch is not installed; pip install 'feta-fair\[torch\]'$"
    ):
        read_torch(nn.Linear(3, 1))


SMOOTH = (
    nn.Tanh(),
    nn.Softsign(),
    nn.ELU(),
    nn.ELU(0.5),
    nn.SELU(),
    nn.CELU(1.7),
    nn.Sigmoid(),
    nn.GELU(),
    nn.GELU(approximate="tanh"),
    nn.SiLU(),
    nn.Mish(),
    nn.Softplus(),
    nn.Softplus(2.0),
    nn.LogSigmoid(),
    nn.Hardswish(),
)


@pytest.mark.parametrize("activation", SMOOTH, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_smooth_activation_is_enclosed(activation: nn.Module, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(3, 4), activation, nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1)]
    module = nn.Sequential(*layers, activation, nn.Linear(1, 1)).to(dtype).eval()
    network = read_torch(module)
    assert not network.piecewise_linear
    rows = np.random.default_rng(0).normal(size=(300, 3)) * 8
    theirs = module(torch.from_numpy(rows).to(dtype)).detach().double().numpy()
    scores = network.points(rows).scores(network.arithmetic)
    assert (np.abs(scores.values - theirs) <= scores.errors).all()


@pytest.mark.parametrize(
    "call",
    [
        torch.tanh,
        lambda z: z.sigmoid(),
        nn.functional.gelu,
        lambda z: nn.functional.gelu(z, approximate="tanh"),
        lambda z: nn.functional.elu(z, 0.5),
        lambda z: nn.functional.celu(z, alpha=2.0),
        lambda z: nn.functional.softplus(z, 2.0, 25),
        nn.functional.silu,
        nn.functional.selu,
    ],
)
def test_a_called_smooth_activation_is_enclosed(call: Callable[[Any], Any]) -> None:
    class Called(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 2), nn.Linear(2, 1)

        def forward(self, rows: Any) -> Any:  # noqa: ANN401 - a tensor
            return self.last(call(self.first(rows)))

    assert not read_torch(Called().eval()).piecewise_linear


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_last_softmax_over_several_classes_is_removed(classes: int) -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, classes), nn.Softmax(dim=1))
    network = read_torch(module.eval())
    assert network.sigmoid
    assert network.outputs == classes
    np.testing.assert_array_equal(
        network(ROWS).argmax(axis=1), torch_scores(module, ROWS).argmax(axis=1)
    )


def test_a_module_object_used_twice_is_read_twice() -> None:
    relu, square = nn.ReLU(), nn.Linear(3, 3)
    module = nn.Sequential(square, relu, square, relu, nn.Linear(3, 1))
    network = read_torch(module.eval())
    assert [activation.name for activation in network.activations] == ["relu", "relu"]
    assert network.layers[0].weight.tobytes() == network.first.slopes.tobytes()
    np.testing.assert_allclose(network(ROWS), torch_scores(module, ROWS), rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "source"),
    [
        (lambda: nn.Linear(3, 1), "float32"),
        (lambda: nn.Linear(3, 1).double(), "float64"),
        (lambda: nn.Sequential(nn.BatchNorm1d(3, affine=False)), "float32"),
    ],
)
def test_the_source_is_the_arithmetic_of_the_module(
    make: Callable[[], nn.Module], source: str
) -> None:
    assert read_torch(make().eval()).source == source


def test_cancellation_in_two_batch_norms_makes_decisions_sensitive() -> None:
    """A float32 near 10^6 has steps of 0.06, so torch's scores near 0.022 are uncertain."""
    linear, norm = nn.Linear(1, 1), nn.BatchNorm1d(1)
    nn.init.ones_(linear.weight)
    nn.init.constant_(linear.bias, 1e6)
    nn.init.constant_(norm.running_mean, 1e6)  # type: ignore[arg-type]
    module = nn.Sequential(linear, norm, nn.BatchNorm1d(1)).eval()
    space = FeatureSpace((Levels("x", (0.01, 0.02), sensitive=True),))
    verdict = verify(FairAt(Model(space, read_torch(module), threshold=0.022), np.array([0.01])))
    assert isinstance(verdict, Fair)
    assert verdict.runtime == "sensitive"


def test_a_custom_layer_is_read_by_its_forward() -> None:
    module = nn.Sequential(Doubled(3, 1))
    np.testing.assert_allclose(read_torch(module)(ROWS), torch_scores(module, ROWS), rtol=1e-9)
