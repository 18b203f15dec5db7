"""Modules whose weights do not determine their behavior: refused, or read correctly."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, prune, spectral_norm

from feta import NetworkError, read_torch
from feta.readers.torch import read as reader
from feta.readers.torch.check import check_double_scores

ROWS = np.random.default_rng(1).normal(size=(200, 3)) * 20


def chain(*end: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1), *end)


def with_input_hook() -> nn.Module:
    module = chain()
    module.register_forward_pre_hook(lambda _, inputs: (inputs[0].clamp(-10, 10),))
    return module


def with_output_hook() -> nn.Module:
    module = chain()
    module[0].register_forward_hook(lambda _, inputs, outputs: outputs.clamp(max=8))  # noqa: ARG005
    return module


def patched() -> nn.Module:
    module = chain()
    inner = module.forward
    module.forward = lambda x: inner(x.clamp(-9, 9))  # type: ignore[method-assign,no-untyped-call]
    return module


class Called(nn.Linear):
    """A layer whose call does more than its forward."""

    def __call__(self, x: Tensor) -> Tensor:
        return torch.as_tensor(super().__call__(x.clamp(-1e6, 1e6)))


def pruned() -> nn.Module:
    module = chain()
    prune.l1_unstructured(module[0], "weight", 0.5)  # type: ignore[no-untyped-call]
    return module


def spectral() -> nn.Module:
    module = chain()
    spectral_norm(module[0])
    return module


def parametrized() -> nn.Module:
    module = chain()
    parametrizations.weight_norm(module[0])
    return module


def normed(parameter: str, number: float) -> nn.Module:
    """Return a batch norm and a layer, of which one has a number that is not finite."""
    module = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))
    index, name = parameter.split(".")
    nn.init.constant_(getattr(module[int(index)], name), number)
    return module


class Forward(nn.Module):
    """A layer, constants, and a forward that a test supplies."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.last = nn.Linear(3, 4), nn.Linear(4, 1)
        self.top = nn.Buffer(torch.tensor(2.0))
        self.tops = nn.Buffer(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        self.never = nn.Buffer(torch.tensor(float("nan")))
        self.given = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.given(self, x))


def not_copied() -> nn.Module:
    module = chain()
    module.kept = torch.ones(3, requires_grad=True) * 2
    return module


def quantized() -> nn.Module:
    quantization: Any = torch.ao.quantization
    return quantization.quantize_dynamic(chain(), {nn.Linear})


@pytest.mark.filterwarnings("ignore")  # torch warns that this function is deprecated
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            with_input_hook,
            r"module '' \(Sequential\) has a hook: got with_input_hook.*; remove it, or move",
        ),
        (with_output_hook, r"module '0' \(Linear\) has a hook: got with_output_hook"),
        (patched, r"module '' \(Sequential\) has a replaced forward: got one set by hand"),
        (
            lambda: torch.compile(chain()),
            "has a replaced forward: .* torch.compile .*; pass the module without it",
        ),
        (
            lambda: Called(3, 1),
            r"module '' \(Called\) overrides __call__; expected that of nn.Module",
        ),
        (
            pruned,
            r"has a hook: got L1Unstructured; .*make its weights permanent: "
            r"torch\.nn\.utils\.prune\.remove",
        ),
        (
            lambda: nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 1))),
            "has a hook: got WeightNorm; .*make its weights permanent",
        ),
        (spectral, "has a hook: got SpectralNorm; .*make its weights permanent"),
        (
            parametrized,
            "is parametrized: got weights that each run computes; expected fixed ones; make "
            "them permanent: .*remove_parametrizations",
        ),
        (lambda: nn.LazyLinear(1), "run the module once on some rows first"),
        (not_copied, r"the module cannot be copied: got Only Tensors"),
        (quantized, r"module '0' \(torch\.ao\.\S+\.Linear\) is not supported"),
        (
            lambda: Forward(lambda net, x: net.layer(x).clamp(max=net.tops)),
            r"clamp\(\) in the forward takes an unsupported argument: got tops; expected one "
            r"fixed number",
        ),
        (
            lambda: Forward(lambda net, x: torch.add(net.layer(x), 1.0, alpha=2)),
            r"add\(\) in the forward takes unsupported arguments: got input, other, alpha; "
            r"expected input and other only",
        ),
        (
            lambda: Forward(lambda net, x: net.layer(x) + net.never),
            r"add\(\) in the forward has constants that are not finite: got \[nan\]",
        ),
        (
            lambda: Forward(lambda net, x: net.layer(x.float().double())).double(),
            r"float\(\) in the forward rounds to float32, but the module computes in float64",
        ),
        (
            lambda: Forward(lambda net, x: net.layer(x).half().float()),
            r"half\(\) in the forward is not supported",
        ),
        (
            lambda: normed("0.running_var", float("inf")),
            "invalid variance of a batch norm: got inf; .*; train",
        ),
        (
            lambda: normed("0.running_mean", float("nan")),
            "invalid mean of a batch norm: got nan; .*; train",
        ),
        (
            lambda: normed("1.weight", float("nan")),
            r"invalid weights of a layer: got nan at \(0, 0\)",
        ),
        (lambda: normed("1.bias", float("inf")), r"invalid bias of a layer: got inf at \(0,\)"),
    ],
)
def test_behavior_that_the_weights_do_not_determine_is_refused(
    make: Callable[[], nn.Module], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_torch(make().eval())


@pytest.mark.parametrize(
    "forward",
    [
        lambda net, x: torch.clamp(net.layer(x), max=net.top),
        lambda net, x: functional.relu(torch.mul(net.layer(x), other=2.0)),
        lambda net, x: functional.relu(net.layer(x.float())).float(),
    ],
)
def test_constants_of_the_module_and_keyword_arguments_are_read(
    forward: Callable[[Any, Tensor], Tensor],
) -> None:
    module = Forward(forward)
    with torch.no_grad():
        expected = module(torch.from_numpy(ROWS).float()).numpy()
    np.testing.assert_allclose(read_torch(module)(ROWS), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("end", [(), (nn.Sigmoid(),)])
def test_a_clamp_at_large_values_is_detected_by_the_comparison(end: tuple[nn.Module, ...]) -> None:
    module = chain(*end).double()
    network, squashed = reader.read_module(module)
    cut = nn.Sequential(nn.Hardtanh(-500, 500), module)
    with pytest.raises(NetworkError, match=r"scores differ from the module's own by"):
        check_double_scores(network, reader.torch_outputs(cut), squashed)


def test_cancelled_large_terms_are_not_reported_as_a_difference() -> None:
    """Torch and NumPy sum 60 terms of 10^8 in different orders, which is the only difference."""
    torch.manual_seed(0)
    first, second = nn.Linear(9, 60, bias=False), nn.Linear(60, 3)
    with torch.no_grad():
        first.weight.mul_(1e5)
        first.weight[30:] = first.weight[:30].flip(0)
        second.weight[:, 30:] = -second.weight[:, :30].flip(1)
    module = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(3, 1))
    assert read_torch(module).width == 9


def test_an_unexpected_exception_becomes_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(reader, "trace_module", stumble)
    with pytest.raises(
        NetworkError, match=r"the module cannot be read \(KeyError: 'odd'\); export"
    ):
        read_torch(chain())
