"""Torch forwards in reduced precision or in training mode: refused, or read as evaluation mode."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from feta import NetworkError, read_torch
from feta.readers.torch.check import SCALES
from feta.readers.torch.mode import differs_in_training
from feta.readers.torch.read import torch_outputs


class Forward(nn.Module):
    """Two layers and a forward that a test supplies."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(3, 16), nn.Linear(16, 1)
        self.supplied = forward

    def hidden(self, x: Tensor) -> Tensor:
        return torch.relu(self.first(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.supplied(self, x)


def cast(x: Tensor, kind: torch.dtype) -> Tensor:
    return x.to(kind).to(torch.float32)


def in_autocast(net: Forward, x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return net.last(net.hidden(x))


def partly_in_autocast(net: Forward, x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = net.hidden(x)
    return net.last(hidden.float())


def in_cuda_autocast(net: Forward, x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch disables it if there is no such device
        with torch.autocast("cuda", dtype=torch.float16):
            return net.last(net.hidden(x))


def with_autocast_enabled(net: Forward, x: Tensor) -> Tensor:
    torch.set_autocast_enabled("cpu", True)
    try:
        return net.last(net.hidden(x))
    finally:
        torch.set_autocast_enabled("cpu", False)


def with_reduced_matmul_precision(net: Forward, x: Tensor) -> Tensor:
    torch.set_float32_matmul_precision("medium")
    try:
        return net.last(net.hidden(x))
    finally:
        torch.set_float32_matmul_precision("highest")


class Decorated(Forward):
    """A module with a decorated forward."""

    @torch.autocast("cpu", dtype=torch.bfloat16)  # type: ignore[untyped-decorator]  # of torch
    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.hidden(x))


def half_buffer() -> nn.Module:
    module = Forward(lambda net, x: net.last(net.hidden(x * net.scale)))
    module.scale = nn.Buffer(torch.ones(3, dtype=torch.float16))
    return module


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Forward(in_autocast),
            r"computes in reduced precision: got torch\.autocast for 'cpu'; expected float32 "
            r"or float64 throughout; remove it",
        ),
        (lambda: Forward(partly_in_autocast), "reduced precision: got torch.autocast for 'cpu'"),
        (lambda: Forward(in_cuda_autocast), "reduced precision: got torch.autocast for 'cuda'"),
        (lambda: Forward(with_autocast_enabled), "reduced precision: got torch.autocast for 'cpu'"),
        (
            lambda: Forward(with_reduced_matmul_precision),
            r"reduced precision: got float32_matmul_precision 'medium'",
        ),
        (lambda: Decorated(in_autocast), "reduced precision: got torch.autocast for 'cpu'"),
        (
            lambda: Forward(lambda net, x: net.last(net.hidden(x.half().float()))),
            r"half\(\) in the forward",
        ),
        (
            lambda: Forward(lambda net, x: net.last(net.hidden(x).bfloat16().float())),
            r"bfloat16\(\) in the forward",
        ),
        (
            lambda: Forward(lambda net, x: net.last(net.hidden(cast(x, torch.float16)))),
            r"to\(\) in the forward converts to an unsupported format: got torch\.float16",
        ),
        (
            lambda: Forward(lambda net, x: net.last(cast(net.hidden(x), torch.bfloat16))),
            r"to\(\) in the forward converts to an unsupported format: got torch\.bfloat16",
        ),
        (
            lambda: Forward(
                lambda net, x: net.last(net.hidden(x.to(dtype=torch.uint8).to(torch.float32)))
            ),
            r"to\(\) in the forward converts to an unsupported format: got torch\.uint8",
        ),
        (
            lambda: Forward(lambda net, x: net.last(net.hidden(x.long().float()))),
            r"long\(\) in the forward truncates column 0 to integers",
        ),
        (
            lambda: Forward(lambda net, x: net.last(net.hidden(x).int().float())),
            r"int\(\) in the forward truncates values to integers",
        ),
        (
            lambda: Forward(
                lambda net, x: functional.log_softmax(net.hidden(x), 1, dtype=torch.float16)
            ),
            r"log_softmax\(\) in the forward converts to an unsupported format: got torch\.float16",
        ),
        (
            lambda: Forward(in_autocast).half(),
            r"unsupported format: got torch\.float16; expected float32 or float64; use "
            r"module\.float\(\)",
        ),
        (
            half_buffer,
            r"unsupported format: got torch\.float16, torch\.float32; expected float32 or "
            r"float64; use",
        ),
        (
            lambda: Forward(lambda net, x: net.last(functional.dropout(net.hidden(x), 0.5))),
            r"dropout\(\) in the forward is active in evaluation mode; pass "
            r"training=self\.training",
        ),
    ],
)
def test_reduced_precision_is_refused(make: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        read_torch(make().eval())


def with_autocast_disabled(net: Forward, x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        return net.last(net.hidden(x))


def with_cuda_autocast_disabled(net: Forward, x: Tensor) -> Tensor:
    with torch.autocast("cuda", enabled=False):
        return net.last(net.hidden(x.to(torch.float32)))


@pytest.mark.parametrize("forward", [with_autocast_disabled, with_cuda_autocast_disabled])
def test_an_autocast_that_is_off_changes_nothing(
    forward: Callable[[Forward, Tensor], Tensor],
) -> None:
    module = Forward(forward).eval()
    network = read_torch(module)
    for scale in SCALES:
        rows = scale * np.random.default_rng(3).normal(size=(50, 3))
        inputs = torch.from_numpy(rows.astype(np.float32))
        expected = module(inputs).detach().double().numpy()
        outputs = network(rows.astype(np.float32).astype(np.float64))
        np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)


@pytest.fixture
def global_autocast() -> Iterator[None]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        yield


@pytest.mark.usefixtures("global_autocast")
def test_reading_within_autocast_is_refused() -> None:
    module = nn.Linear(3, 1).eval()
    message = r"reduced precision: got torch\.autocast for 'cpu'; .*leave it before"
    with pytest.raises(NetworkError, match=message):
        read_torch(module)
    with pytest.raises(NetworkError, match=message):
        torch_outputs(module)(np.zeros((2, 3)))


class Hidden(nn.Linear):
    """A layer in torch's namespace, as tracing sees it, that rounds its weights when it runs."""

    __module__ = "torch.nn.modules.linear"

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        if input.dtype == torch.float32:
            return functional.linear(
                input.bfloat16(), self.weight.bfloat16(), self.bias.bfloat16()
            ).float()
        return super().forward(input)


Hidden.__name__ = "Linear"


def test_the_module_is_also_compared_in_its_own_precision() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(Hidden(3, 4), nn.ReLU(), nn.Linear(4, 1)).eval()
    with pytest.raises(NetworkError, match="scores differ from the module's own by"):
        read_torch(module)


def with_dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))


def with_norm() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


def with_function() -> nn.Module:
    def forward(net: Forward, x: Tensor) -> Tensor:
        return net.last(functional.dropout(net.hidden(x), 0.1, net.training))

    return Forward(forward)


@pytest.mark.parametrize("make", [with_dropout, with_norm, with_function])
def test_a_module_in_training_mode_is_refused_if_that_matters(
    make: Callable[[], nn.Module],
) -> None:
    module = make().train()
    with pytest.raises(
        NetworkError, match=r"the module is not in evaluation mode: got .*; call module\.eval\(\)"
    ):
        read_torch(module)
    assert differs_in_training(module)
    assert module.training
    assert read_torch(module.eval()).outputs == 1
    assert not differs_in_training(module)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.Linear(3, 1)),
        lambda: nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.0), nn.Linear(2, 1)),
        lambda: Forward(lambda net, x: net.last(net.hidden(x))),
    ],
)
def test_training_mode_without_effect_is_read(make: Callable[[], nn.Module]) -> None:
    module = make().train()
    assert read_torch(module).outputs == 1


def test_a_submodule_in_training_mode_is_named() -> None:
    module = with_norm().eval()
    module.get_submodule("1").train()
    with pytest.raises(NetworkError, match=r"module '1' \(BatchNorm1d\) is in training mode"):
        read_torch(module)
