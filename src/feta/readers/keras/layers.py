"""Keras layers: the numbers and activations of single layers, as Keras stores them."""

from fractions import Fraction

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.readers.keras.file import Config, KerasLayer
from feta.scorer.network.activation import (
    Step,
    clip,
    hardsigmoid,
    leaky_relu,
    piecewise,
    prelu,
    relu,
)
from feta.scorer.network.fold import BatchNorm

# A Normalization divides by a standard deviation of at least 1e-7.
LEAST_VARIANCE = 1e-14


def check_arrays(layer: KerasLayer) -> None:
    """Refuse a layer that has not exactly the arrays that Keras's own has."""
    counts = _array_counts(layer)
    if len(layer.arrays) < min(counts):
        raise NetworkError(f"{layer.where} must have its weights in the file")
    if len(layer.arrays) not in counts:
        raise NetworkError(
            f"{layer.where} must have {max(counts)} arrays of weights, got {len(layer.arrays)}; save the model before it is quantized or altered"
        )


def _array_counts(layer: KerasLayer) -> tuple[int, ...]:
    config = layer.config
    match layer.kind:
        case "Dense":
            return (1 + bool(config.get("use_bias", True)),)
        case "Embedding" | "PReLU":
            return (1,)
        case "BatchNormalization":
            return (2 + bool(config.get("scale", True)) + bool(config.get("center", True)),)
        case "Normalization":
            return (0, 2)
        case _:
            return (0,)


def check_last_axis(layer: KerasLayer, last: int = 1) -> None:
    """Refuse a layer that works along another axis than the last one, or none."""
    axis = layer.config.get("axis", -1)
    axes = axis if isinstance(axis, list) else [axis]
    if any(one not in (None, -1, last) for one in axes):
        raise NetworkError(f"{layer.where} must work along the last axis, got the axis {axis}")


def matrix_of(layer: KerasLayer) -> Matrix:
    """Give a layer's weights, (in, out) as Keras stores them."""
    if layer.arrays[0].ndim != 2:  # noqa: PLR2004 - a matrix
        raise NetworkError(f"{layer.where} must have a matrix of weights in the file")
    return np.asarray(layer.arrays[0], dtype=np.float64)


def named_activation(name: str, version: int, layer: KerasLayer) -> Step:
    """Read an activation by its name; Keras 2 had another hard sigmoid."""
    match name:
        case "relu":
            return relu()
        case "relu6":
            return clip(0.0, 6.0)
        case "leaky_relu":
            return leaky_relu(0.2)
        case "hard_tanh":
            return clip(-1.0, 1.0)
        case "hard_sigmoid":
            return hardsigmoid() if version > 2 else hardsigmoid(Fraction(1, 5))  # noqa: PLR2004 - of Keras
        case _:
            raise NetworkError(
                f"{layer.where} has the activation {name!r}, which FETA does not know"
            )


def layer_activation(kind: str, config: Config, layer: KerasLayer) -> Step:
    """Read an activation that is a layer of its own."""
    if kind == "PReLU":
        slopes = np.ravel(np.asarray(layer.arrays[0], dtype=np.float64))
        return prelu(slopes)
    if kind == "LeakyReLU":
        slope = config["negative_slope"] if "negative_slope" in config else config.get("alpha", 0.3)
        return leaky_relu(float(slope))
    slope = float(config.get("negative_slope") or 0.0)
    most = config.get("max_value")
    if config.get("threshold"):
        raise NetworkError(f"{layer.where} must bend at 0, got the threshold {config['threshold']}")
    if most is None:
        return leaky_relu(slope) if slope else relu()
    high = float(most)
    return piecewise("relu", [0, high], [slope, 1, 0], [0, 0, high])


def batch_norm_of(layer: KerasLayer, width: int) -> BatchNorm:
    """Read a batch norm: gain and shift where it has them, mean and variance."""
    told = [np.asarray(one, dtype=np.float64) for one in layer.arrays]
    gain = told.pop(0) if layer.config.get("scale", True) else np.ones(width)
    shift = told.pop(0) if layer.config.get("center", True) else np.zeros(width)
    if len(told) != 2 or any(one.shape != (width,) for one in (gain, shift, *told)):  # noqa: PLR2004 - mean, variance
        raise NetworkError(f"{layer.where} must have numbers for {width} values in the file")
    mean, variance = told
    return BatchNorm(mean, variance, gain, shift, float(layer.config.get("epsilon", 1e-3)))


def scaling_of(layer: KerasLayer, width: int) -> tuple[list[Fraction], list[Fraction]]:
    """Read factor and shift, value by value."""
    if layer.kind == "Rescaling":
        scale, offset = (
            _spread(layer.config.get(key, 0.0), width, layer) for key in ("scale", "offset")
        )
        return [Fraction(one) for one in scale.tolist()], [Fraction(one) for one in offset.tolist()]
    norm = (
        batch_norm_of(layer, width)
        if layer.kind == "BatchNormalization"
        else _normalization(layer, width)
    )
    factors = [norm.factor(index) for index in range(width)]
    shifts = [
        Fraction(float(norm.shift[index])) - Fraction(float(norm.mean[index])) * factors[index]
        for index in range(width)
    ]
    return factors, shifts


def _normalization(layer: KerasLayer, width: int) -> BatchNorm:
    """Read what was adapted to the data, or told when the layer was made."""
    if layer.config.get("invert"):
        raise NetworkError(f"{layer.where} must not invert")
    mean, variance = layer.config.get("mean"), layer.config.get("variance")
    if mean is None or variance is None:
        if not layer.arrays:
            raise NetworkError(f"{layer.where} must be adapted before the model is saved")
        mean, variance = layer.arrays
    means, variances = (_spread(one, width, layer) for one in (mean, variance))
    if (variances < 0).any():
        raise NetworkError(f"{layer.where} must have variances of at least 0")
    ones = np.ones(width)
    return BatchNorm(means, np.maximum(variances, LEAST_VARIANCE), ones, 0 * ones, 0.0)


def _spread(value: object, width: int, layer: KerasLayer) -> Vector:
    """Give a number for each value, in the format that the layer stores them in."""
    stored = np.float64 if layer.precision == "float64" else np.float32
    flat = np.ravel(np.asarray(value, dtype=np.float64)).astype(stored)
    if flat.size not in (1, width) or not np.isfinite(flat).all():
        raise NetworkError(f"{layer.where} must have finite numbers for {width} values")
    return np.broadcast_to(flat, (width,)).astype(np.float64)
