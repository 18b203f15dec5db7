"""Torch: an nn.Sequential read into a Network.

Modules are taken in their order, so only Sequential (nested too) is read; what a custom `forward`
does cannot be seen from its modules.
"""

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import MissingExtra, NetworkError
from feta.network.activation import (
    SMOOTH,
    Step,
    clip,
    hardsigmoid,
    leaky_relu,
    prelu,
    refuse_smooth,
    relu,
)
from feta.network.builder import NetworkBuilder
from feta.network.fold import BatchNorm
from feta.network.network import Network

if TYPE_CHECKING:
    from torch import nn

# Rows scored by both, to see that the reading is right: enough to reach every neuron's two sides.
CHECKED_ROWS = 64

# Float64 scores of two correct implementations differ by summation order only.
AGREEMENT = 1e-9


def read_torch(module: "nn.Module") -> Network:
    """Read a trained torch module: an nn.Sequential of what is piecewise-linear.

    A last Sigmoid or Softmax is taken off: scores are what goes into it. The reading is checked against the
    module's own forward pass in float64.
    """
    try:
        from torch import nn  # noqa: PLC0415 - torch is an extra
    except ImportError:
        raise MissingExtra("torch", "torch") from None
    steps = list(_flat(module, "", nn))
    squashed = bool(steps) and isinstance(steps[-1][1], nn.Sigmoid | nn.Softmax)
    builder = NetworkBuilder()
    for name, step in steps[:-1] if squashed else steps:
        _take(builder, name, step, nn)
    network = builder.network(sigmoid=squashed, source=_source(module))
    _check_agreement(network, module, squashed=squashed)
    return network


def _source(module: "nn.Module") -> Literal["float32", "float64"]:
    """Tell what the module computes with."""
    import torch  # noqa: PLC0415 - torch is an extra

    kinds = {parameter.dtype for parameter in module.parameters()}
    if kinds == {torch.float64}:
        return "float64"
    if kinds <= {torch.float32, torch.float64}:
        return "float32"
    shown = ", ".join(sorted(str(kind) for kind in kinds))
    raise NetworkError(
        f"the module must compute in float32 or float64, got {shown}; use module.float()"
    )


def _flat(module: "nn.Module", name: str, nn: Any) -> Iterator[tuple[str, "nn.Module"]]:  # noqa: ANN401 - torch.nn
    if isinstance(module, nn.Sequential):
        for inner, child in enumerate(module):  # named_children() would leave out repeated modules
            yield from _flat(child, f"{name}.{inner}" if name else str(inner), nn)
    else:
        yield name, module


def _take(builder: NetworkBuilder, name: str, step: "nn.Module", nn: Any) -> None:  # noqa: ANN401 - torch.nn
    where = f"module {name!r} ({type(step).__name__})"
    activation = _activation(step, nn)
    if activation is not None:
        builder.activate(activation, where)
        return
    match step:
        case nn.Linear():
            weight = _array(step.weight)
            builder.linear(
                weight, np.zeros(len(weight)) if step.bias is None else _array(step.bias)
            )
        case nn.BatchNorm1d():
            if step.running_mean is None or step.running_var is None:
                raise NetworkError(
                    f"{where} must keep running statistics, or decisions hang on the batch"
                )
            ones = np.ones(step.num_features)
            builder.batch_norm(
                BatchNorm(
                    _array(step.running_mean),
                    _array(step.running_var),
                    _array(step.weight) if step.affine else ones,
                    _array(step.bias) if step.affine else 0 * ones,
                    float(step.eps),
                ),
                where,
            )
        case nn.Dropout() | nn.Identity() | nn.Flatten():
            pass  # they change nothing when a trained network decides
        case _ if type(step).__name__.lower() in SMOOTH:
            raise refuse_smooth(type(step).__name__, where)
        case _:
            message = f"{where} is not one that FETA reads; it reads nn.Sequential of Linear, ReLU, LeakyReLU, PReLU, Hardtanh, ReLU6, Hardsigmoid, BatchNorm1d, Dropout, Flatten, Identity and a last Sigmoid or Softmax"
            raise NetworkError(message)


def _activation(step: Any, nn: Any) -> Step | None:  # noqa: ANN401 - a module, torch.nn
    match step:
        case nn.ReLU():
            return relu()
        case nn.LeakyReLU():
            return leaky_relu(step.negative_slope)
        case nn.PReLU():
            return prelu(_array(step.weight))
        case nn.Hardtanh():  # and ReLU6, which is one
            return clip(step.min_val, step.max_val)
        case nn.Hardsigmoid():
            return hardsigmoid()
        case _:
            return None


def _array(tensor: Any) -> Matrix:  # noqa: ANN401 - a torch tensor
    return np.asarray(tensor.detach().cpu().double().numpy())


def _check_agreement(network: Network, module: "nn.Module", *, squashed: bool) -> None:
    import torch  # noqa: PLC0415 - torch is an extra

    rows = np.random.default_rng(0).normal(size=(CHECKED_ROWS, network.width))
    double = copy.deepcopy(module).cpu().double().eval()
    with torch.no_grad():
        theirs = double(torch.from_numpy(rows)).numpy().reshape(CHECKED_ROWS, -1)
    ours = network(rows)
    if squashed and network.outputs == 1:
        ours = (1 + np.tanh(ours / 2)) / 2  # σ, which cannot overflow like this
    elif squashed:
        powers = np.exp(ours - ours.max(axis=1, keepdims=True))
        ours = powers / powers.sum(axis=1, keepdims=True)
    largest = np.abs(ours - theirs).max() / (1 + np.abs(theirs).max())
    if not largest <= AGREEMENT:
        message = f"FETA's scores must equal the module's own, but differ by {largest:.3g} (relative); please report this module"
        raise NetworkError(message)
