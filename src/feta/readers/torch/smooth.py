"""Readers of smooth activations: modules of torch and calls of its functions."""

from collections.abc import Callable, Mapping
from typing import Any

from feta.errors import NetworkError
from feta.scorer.network.smooth.activation import SOFTPLUS_THRESHOLD, Smooth

# Modules without options.
PLAIN = {
    "Hardswish": "hardswish",
    "LogSigmoid": "logsigmoid",
    "Mish": "mish",
    "SELU": "selu",
    "SiLU": "silu",
    "Softsign": "softsign",
    "Tanh": "tanh",
}

# Functions and methods without options.
PLAIN_CALLS = {
    "hardswish": "hardswish",
    "logsigmoid": "logsigmoid",
    "mish": "mish",
    "selu": "selu",
    "silu": "silu",
    "softsign": "softsign",
    "tanh": "tanh",
}


def smooth_module(kind: str, step: Any) -> Smooth | None:  # noqa: ANN401 - a module
    """Read a module that is a smooth activation; None if it is not one."""
    match kind:
        case "GELU":
            return _gelu(step.approximate)
        case "ELU" | "CELU":
            return Smooth(kind.lower(), float(step.alpha))
        case "Softplus":
            return _softplus(float(step.beta), float(step.threshold))
        case _:
            return Smooth(PLAIN[kind]) if kind in PLAIN else None


def called_smooth(
    name: str, options: Mapping[str, Any], number: Callable[[Any], float]
) -> Smooth | None:
    """Read a call of a smooth activation; None if it is not one."""
    name = name.removesuffix("_")
    match name:
        case "gelu":
            return _gelu(options.get("approximate", "none"))
        case "elu" | "celu":
            return Smooth(name, number(options.get("alpha", options.get("first", 1.0))))
        case "softplus":
            beta = options.get("beta", options.get("first", 1.0))
            threshold = options.get("threshold", options.get("second", SOFTPLUS_THRESHOLD))
            return _softplus(number(beta), number(threshold))
        case _:
            return Smooth(PLAIN_CALLS[name]) if name in PLAIN_CALLS else None


def _gelu(approximate: str) -> Smooth:
    return Smooth("gelu_tanh" if approximate == "tanh" else "gelu")


def _softplus(beta: float, threshold: float) -> Smooth:
    if threshold < SOFTPLUS_THRESHOLD:
        raise NetworkError(
            f"Softplus is replaced by a straight line too early: got threshold={threshold:g}; "
            f"expected {SOFTPLUS_THRESHOLD:g} or more"
        )
    return Smooth("softplus", beta)
