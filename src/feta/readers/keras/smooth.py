"""Smooth activations of Keras, as numpy computes them: only to compare scores with."""

from collections.abc import Callable, Mapping
from math import erf, pi, sqrt
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[np.float64]]

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _softplus(values: Values) -> Values:
    return np.asarray(np.logaddexp(values, 0.0))


def _elu(values: Values) -> Values:
    return np.where(values > 0, values, np.expm1(np.minimum(values, 0)))


def _gelu(values: Values) -> Values:
    return np.asarray(values / 2 * (1 + np.vectorize(erf)(values / sqrt(2))))


def sigmoid(values: Values) -> Values:
    """Return 1 / (1 + e^-z) without overflow."""
    return np.asarray((1 + np.tanh(values / 2)) / 2)


SMOOTH_VALUES: Mapping[str, Callable[[Values], Values]] = {
    "celu": _elu,
    "elu": _elu,
    "gelu": _gelu,
    "gelu_tanh": lambda z: z / 2 * (1 + np.tanh(sqrt(2 / pi) * (z + 0.044715 * z**3))),
    "hardswish": lambda z: z * np.clip(z / 6 + 0.5, 0, 1),
    "logsigmoid": lambda z: -_softplus(-z),
    "mish": lambda z: z * np.tanh(_softplus(z)),
    "selu": lambda z: SELU_SCALE * np.where(z > 0, z, SELU_ALPHA * np.expm1(np.minimum(z, 0))),
    "sigmoid": sigmoid,
    "silu": lambda z: z * sigmoid(z),
    "softplus": _softplus,
    "softsign": lambda z: z / (1 + np.abs(z)),
    "tanh": np.tanh,
}
