"""The activations of networks that are trained, as torch computes them."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.errors import SchemaError, unknown_choice
from feta.scorer.network.activation import NAMED, Activation
from feta.scorer.network.smooth.activation import NAMED_SMOOTH, Smooth
from feta.train.import_torch import import_torch

if TYPE_CHECKING:
    from torch import Tensor

Function = Callable[["Tensor"], "Tensor"]

# Each smooth function, from torch.nn.functional and the parameter.
FUNCTIONS: Mapping[str, Callable[[Any, float], Function]] = {
    "celu": lambda functional, alpha: lambda values: functional.celu(values, alpha),
    "elu": lambda functional, alpha: lambda values: functional.elu(values, alpha),
    "gelu": lambda functional, _: functional.gelu,
    "gelu_tanh": lambda functional, _: lambda values: functional.gelu(values, approximate="tanh"),
    "hardswish": lambda functional, _: functional.hardswish,
    "logsigmoid": lambda functional, _: functional.logsigmoid,
    "mish": lambda functional, _: functional.mish,
    "selu": lambda functional, _: functional.selu,
    "sigmoid": lambda functional, _: functional.sigmoid,
    "silu": lambda functional, _: functional.silu,
    "softplus": lambda functional, beta: lambda values: functional.softplus(values, beta),
    "softsign": lambda functional, _: functional.softsign,
    "tanh": lambda functional, _: functional.tanh,
}


def trained_activation(name: str) -> Activation | Smooth:
    """Return an activation by its name; raise for one that cannot be trained."""
    if name in NAMED_SMOOTH:
        return Smooth(NAMED_SMOOTH[name])
    activation = NAMED.get(name, lambda: None)()
    if isinstance(activation, Activation):
        return activation
    straight = [known for known, make in NAMED.items() if isinstance(make(), Activation)]
    known = sorted({*straight, *NAMED_SMOOTH})
    raise SchemaError(f"invalid activation: {unknown_choice(name, known)}")


def torch_activation(activation: Activation | Smooth) -> Function:
    """Return an activation as a function of tensors."""
    torch = import_torch()
    if isinstance(activation, Smooth):
        return _smooth(activation)
    if activation.is_relu:
        function: Function = torch.relu
        return function
    breaks, slopes, shifts = (
        torch.tensor(np.array(values))
        for values in (activation.breaks, activation.slopes, activation.intercepts)
    )

    def activate(values: "Tensor") -> "Tensor":
        result = slopes[0] * values + shifts[0]
        for index in range(len(breaks)):
            piece = slopes[index + 1] * values + shifts[index + 1]
            result = torch.where(values >= breaks[index], piece, result)
        return result

    return activate


def _smooth(activation: Smooth) -> Function:
    torch = import_torch()
    function = FUNCTIONS[activation.name](torch.nn.functional, activation.parameter)
    if activation.on is None:
        return function
    chosen = torch.tensor(activation.applies)
    return lambda values: torch.where(chosen, function(values), values)
