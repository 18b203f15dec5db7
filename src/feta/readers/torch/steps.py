"""Torch steps: the modules and functions of torch that are activations or batch norms, one by one."""

from collections.abc import Callable
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
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

READ = "Linear, ReLU, LeakyReLU, PReLU, Hardtanh, ReLU6, Hardsigmoid, BatchNorm1d, Embedding, slices and cat of the input, sums and products with constants, Dropout, Flatten, Identity and a last Sigmoid, Softmax or LogSoftmax"

# Dropouts that a forward calls, and whether they are on unless the call says otherwise.
DROPOUTS = {"dropout": True, "alpha_dropout": False}


def array(tensor: Any) -> Matrix:  # noqa: ANN401 - a torch tensor
    """Take a tensor's numbers as they are."""
    return np.asarray(tensor.detach().cpu().double().numpy())


def kind_of(step: Any) -> str:  # noqa: ANN401 - a module
    """Name a module's type: plainly if it is torch's own, as another of that name may differ."""
    kind = type(step)
    plain = kind.__module__.startswith("torch.nn.modules.")
    return kind.__name__ if plain else f"{kind.__module__}.{kind.__name__}"


def activation_of(step: Any) -> Step | None:  # noqa: ANN401 - a module
    """Read a module that is an activation; the very types, as a subclass may differ."""
    match kind_of(step):
        case "ReLU":
            return relu()
        case "LeakyReLU":
            return leaky_relu(step.negative_slope)
        case "PReLU":
            return prelu(array(step.weight))
        case "Hardtanh" | "ReLU6":
            return clip(step.min_val, step.max_val)
        case "Hardsigmoid":
            return hardsigmoid()
        case _:
            return None


def called_activation(name: str, node: Any, number: Callable[[Any], float]) -> Step | None:  # noqa: ANN401 - a node of torch.fx
    """Read a call in a forward that is an activation; `number` gives an argument's value."""
    told = dict(zip(("first", "second"), node.args[1:], strict=False)) | dict(node.kwargs)
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
            return leaky_relu(number(told.get("negative_slope", told.get("first", 0.01))))
        case "hardtanh":
            low, high = (
                told.get("min_val", told.get("first", -1.0)),
                told.get("max_val", told.get("second", 1.0)),
            )
            return clip(number(low), number(high))
        case "clamp" | "clip":
            low, high = told.get("min", told.get("first")), told.get("max", told.get("second"))
            return clip(
                -np.inf if low is None else number(low), np.inf if high is None else number(high)
            )
        case _:
            return None


def batch_norm_of(step: Any, where: str) -> BatchNorm:  # noqa: ANN401 - a module
    """Read a batch norm's numbers."""
    if step.running_mean is None or step.running_var is None:
        raise NetworkError(f"{where} must keep running statistics, or decisions hang on the batch")
    ones = np.ones(step.num_features)
    return BatchNorm(
        array(step.running_mean),
        array(step.running_var),
        array(step.weight) if step.affine else ones,
        array(step.bias) if step.affine else 0 * ones,
        float(step.eps),
    )


def dropout_is_on(node: Any, name: str) -> bool:  # noqa: ANN401 - a node of torch.fx
    """Say whether a call drops values in the mode that was traced."""
    options = dict(zip(("p", "training"), node.args[1:], strict=False)) | dict(node.kwargs)
    training = options.get("training", options.get("train", DROPOUTS[name]))
    return bool(training) and options.get("p", 0.5) != 0


def cuts_to_integers(node: Any, name: str) -> bool:  # noqa: ANN401 - a node of torch.fx
    """Say whether a call converts numbers to integers."""
    given = [str(one) for one in (*node.args[1:], *node.kwargs.values())]
    return name in ("int", "long") or (
        name == "to" and any(one in ("torch.int32", "torch.int64") for one in given)
    )
