"""Numbers and activations of single layers, as Keras stores them."""

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
    """Reject a layer whose number of arrays differs from that of Keras's layer."""
    counts = _array_counts(layer)
    if len(layer.arrays) < min(counts):
        raise NetworkError(
            f"{layer.where} lacks weights in the file: got {len(layer.arrays)} arrays; "
            f"expected {min(counts)}; save the whole model again"
        )
    if len(layer.arrays) not in counts:
        raise NetworkError(
            f"{layer.where} has too many arrays of weights: got {len(layer.arrays)}; "
            f"expected {max(counts)}; save the model before it is quantized or altered"
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
    """Reject a layer that works along another axis than the last."""
    axis = layer.config.get("axis", -1)
    axes = axis if isinstance(axis, list) else [axis]
    if any(number not in (None, -1, last) for number in axes):
        raise NetworkError(
            f"{layer.where} works along an unsupported axis: got {axis}; expected the last axis"
        )


def matrix_of(layer: KerasLayer) -> Matrix:
    """Return a layer's weights, (in, out) as Keras stores them."""
    if layer.arrays[0].ndim != 2:  # noqa: PLR2004 - a matrix
        raise NetworkError(
            f"{layer.where} has weights of the wrong shape: got {layer.arrays[0].shape}; "
            "expected a matrix"
        )
    return np.asarray(layer.arrays[0], dtype=np.float64)


def named_activation(name: str, version: int, layer: KerasLayer) -> Step:
    """Return an activation by its name; Keras 2 had another hard sigmoid."""
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
                f"{layer.where} has an unknown activation: got {name!r}; "
                "expected relu, relu6, leaky_relu, hard_tanh or hard_sigmoid"
            )


def layer_activation(kind: str, config: Config, layer: KerasLayer) -> Step:
    """Read an activation that is a layer."""
    if kind == "PReLU":
        slopes = np.ravel(np.asarray(layer.arrays[0], dtype=np.float64))
        return prelu(slopes)
    if kind == "LeakyReLU":
        slope = config["negative_slope"] if "negative_slope" in config else config.get("alpha", 0.3)
        return leaky_relu(float(slope))
    slope = float(config.get("negative_slope") or 0.0)
    max_value = config.get("max_value")
    if config.get("threshold"):
        raise NetworkError(
            f"{layer.where} has an unsupported threshold: got {config['threshold']}; expected 0"
        )
    if max_value is None:
        return leaky_relu(slope) if slope else relu()
    high = float(max_value)
    return piecewise("relu", [0, high], [slope, 1, 0], [0, 0, high])


def batch_norm_of(layer: KerasLayer, width: int) -> BatchNorm:
    """Read a batch norm: gain and shift if it has them, mean and variance."""
    arrays = [np.asarray(array, dtype=np.float64) for array in layer.arrays]
    gain = arrays.pop(0) if layer.config.get("scale", True) else np.ones(width)
    shift = arrays.pop(0) if layer.config.get("center", True) else np.zeros(width)
    if len(arrays) != 2 or any(array.shape != (width,) for array in (gain, shift, *arrays)):  # noqa: PLR2004 - mean, variance
        raise NetworkError(
            f"{layer.where} has arrays of the wrong shape; expected {width} numbers in each"
        )
    mean, variance = arrays
    return BatchNorm(mean, variance, gain, shift, float(layer.config.get("epsilon", 1e-3)))


def scaling_of(layer: KerasLayer, width: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return one factor and one shift per value."""
    if layer.kind == "Rescaling":
        scale, offset = (
            _broadcast(layer.config.get(key, 0.0), width, layer) for key in ("scale", "offset")
        )
        return [Fraction(number) for number in scale.tolist()], [
            Fraction(number) for number in offset.tolist()
        ]
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
    """Read the statistics that were adapted to data or set when the layer was created."""
    if layer.config.get("invert"):
        raise NetworkError(f"{layer.where} has invert=True; expected invert=False")
    mean, variance = layer.config.get("mean"), layer.config.get("variance")
    if mean is None or variance is None:
        if not layer.arrays:
            raise NetworkError(
                f"{layer.where} is not adapted; call its adapt before the model is saved"
            )
        mean, variance = layer.arrays
    means, variances = (_broadcast(value, width, layer) for value in (mean, variance))
    if (variances < 0).any():
        raise NetworkError(
            f"{layer.where} has a negative variance: got {float(variances.min())!r}; "
            "expected at least 0"
        )
    ones = np.ones(width)
    return BatchNorm(means, np.maximum(variances, LEAST_VARIANCE), ones, 0 * ones, 0.0)


def _broadcast(value: object, width: int, layer: KerasLayer) -> Vector:
    """Return one number per value, rounded to the format in which the layer stores them."""
    stored = np.float64 if layer.precision == "float64" else np.float32
    flat = np.ravel(np.asarray(value, dtype=np.float64)).astype(stored)
    if flat.size not in (1, width):
        raise NetworkError(
            f"{layer.where} has the wrong number of values: got {flat.size}; expected 1 or {width}"
        )
    if not np.isfinite(flat).all():
        invalid = float(flat[~np.isfinite(flat)][0])
        raise NetworkError(f"{layer.where} has invalid values: got {invalid}; expected numbers")
    return np.broadcast_to(flat, (width,)).astype(np.float64)
