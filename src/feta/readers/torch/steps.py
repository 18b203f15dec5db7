"""Readers of single torch modules and calls: activations, batch norms, dropouts."""

from collections.abc import Callable
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.readers.torch.smooth import called_smooth, smooth_module
from feta.scorer.network.activation import (
    Step,
    absolute,
    clip,
    hardsigmoid,
    leaky_relu,
    prelu,
    relu,
)
from feta.scorer.network.fold import BatchNorm

SUPPORTED = (
    "Linear, ReLU, LeakyReLU, PReLU, Hardtanh, ReLU6, Hardsigmoid, BatchNorm1d, Embedding, slices "
    "and cat of the input, sums and products with constants, Dropout, Flatten, Identity and a last "
    "Sigmoid, Softmax or LogSoftmax"
)

# Dropout functions, and whether they are on by default.
DROPOUTS = {"dropout": True, "alpha_dropout": False}


def to_array(tensor: Any) -> Matrix:  # noqa: ANN401 - a torch tensor
    """Return a tensor's numbers in float64."""
    return np.asarray(tensor.detach().cpu().double().numpy())


def kind_of(step: Any) -> str:  # noqa: ANN401 - a module
    """Return a module's type name, with its Python module unless it is torch's own type."""
    kind = type(step)
    plain = kind.__module__.startswith("torch.nn.modules.")
    return kind.__name__ if plain else f"{kind.__module__}.{kind.__name__}"


def activation_of(step: Any) -> Step | None:  # noqa: ANN401 - a module
    """Read an activation module, of torch's exact types only; None if it is not one."""
    match kind_of(step):
        case "ReLU":
            return relu()
        case "LeakyReLU":
            return leaky_relu(step.negative_slope)
        case "PReLU":
            return prelu(to_array(step.weight))
        case "Hardtanh" | "ReLU6":
            return clip(step.min_val, step.max_val)
        case "Hardsigmoid":
            return hardsigmoid()
        case kind:
            return smooth_module(kind, step)


def called_activation(name: str, node: Any, number: Callable[[Any], float]) -> Step | None:  # noqa: ANN401 - a node of torch.fx
    """Read a call of an activation; `number` returns an argument's value."""
    options = dict(zip(("first", "second"), node.args[1:], strict=False)) | dict(node.kwargs)
    match name:
        case "relu" | "relu_":
            return relu()
        case "relu6":
            return clip(0.0, 6.0)
        case "abs":
            return absolute()
        case "hardsigmoid":
            return hardsigmoid()
        case "leaky_relu":
            return leaky_relu(number(options.get("negative_slope", options.get("first", 0.01))))
        case "hardtanh":
            low = options.get("min_val", options.get("first", -1.0))
            high = options.get("max_val", options.get("second", 1.0))
            return clip(number(low), number(high))
        case "clamp" | "clip":
            low = options.get("min", options.get("first"))
            high = options.get("max", options.get("second"))
            return clip(
                -np.inf if low is None else number(low), np.inf if high is None else number(high)
            )
        case _:
            return called_smooth(name, options, number)


def batch_norm_of(step: Any, where: str) -> BatchNorm:  # noqa: ANN401 - a module
    """Read a batch norm."""
    if step.running_mean is None or step.running_var is None:
        raise NetworkError(
            f"{where} has no running statistics: decisions would depend on the batch; "
            "train it with track_running_stats=True"
        )
    ones = np.ones(step.num_features)
    return BatchNorm(
        to_array(step.running_mean),
        to_array(step.running_var),
        to_array(step.weight) if step.affine else ones,
        to_array(step.bias) if step.affine else 0 * ones,
        float(step.eps),
    )


def dropout_is_on(node: Any, name: str) -> bool:  # noqa: ANN401 - a node of torch.fx
    """Return whether a call drops values in the traced mode."""
    options = dict(zip(("p", "training"), node.args[1:], strict=False)) | dict(node.kwargs)
    training = options.get("training", options.get("train", DROPOUTS[name]))
    return bool(training) and options.get("p", 0.5) != 0


def truncates_to_integers(node: Any, name: str) -> bool:  # noqa: ANN401 - a node of torch.fx
    """Return whether a call converts numbers to integers."""
    arguments = [str(argument) for argument in (*node.args[1:], *node.kwargs.values())]
    return name in ("int", "long") or (
        name == "to" and any(text in ("torch.int32", "torch.int64") for text in arguments)
    )
