"""Evaluation of a saved model layer by layer in float64, to compare scores with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.readers.keras.file import KerasLayer, KerasModel
from feta.readers.keras.smooth import SMOOTH_VALUES, sigmoid
from feta.scorer.network.smooth.activation import NAMED_SMOOTH

SQUASHES = ("sigmoid", "softmax", "log_softmax")

Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class KerasEvaluator:
    """An evaluator of a model on rows of all its inputs; it folds no layers."""

    model: KerasModel
    skipped: str = ""  # a layer whose sigmoid or softmax is not applied

    def __call__(self, rows: Matrix) -> Matrix:
        """Return the last layer's outputs."""
        values: dict[str, Values] = {}
        layers = {layer.name: layer for layer in self.model.layers}
        start = 0
        for name in self.model.entries:
            config = layers[name].config
            width = (config.get("batch_shape") or config["batch_input_shape"])[1]
            values[name] = rows[:, start : start + width]
            start += width
        for layer in self.model.layers:
            if layer.name not in values:
                inputs = [values[name] for name in layer.inbound]
                values[layer.name] = _evaluate_layer(layer, inputs, self)
        return values[self.model.end].reshape(len(rows), -1)


def _evaluate_layer(layer: KerasLayer, inputs: list[Values], evaluator: KerasEvaluator) -> Values:
    value = inputs[0]
    arrays = [np.asarray(array, dtype=np.float64) for array in layer.arrays]
    match layer.kind:
        case "Dense":
            sums = value @ arrays[0] + (arrays[1] if len(arrays) > 1 else 0.0)
            return _activate(layer.config.get("activation", "linear"), sums, layer, evaluator)
        case "Activation":
            return _activate(layer.config["activation"], value, layer, evaluator)
        case "Softmax":
            return _activate("softmax", value, layer, evaluator)
        case "ReLU" | "LeakyReLU" | "PReLU":
            return _rectify(layer.kind, layer.config, value, arrays)
        case "Embedding":
            return np.asarray(arrays[0][value.astype(np.int64)])
        case "Add" | "Subtract":
            sign = -1 if layer.kind == "Subtract" else 1
            return np.asarray(value + sign * sum(inputs[1:]))
        case "Concatenate":
            return np.concatenate(inputs, axis=layer.config.get("axis", -1))
        case "Flatten" | "Reshape":
            return _reshape(layer, value)
        case _:
            return _scale(layer, arrays, value)


def _reshape(layer: KerasLayer, value: Values) -> Values:
    if layer.kind == "Reshape":
        sizes = [-1 if size is None else size for size in layer.config["target_shape"]]
        return value.reshape(len(value), *sizes)
    if layer.config.get("data_format") == "channels_first":
        value = np.moveaxis(value, 1, -1)
    return value.reshape(len(value), -1)


def _scale(layer: KerasLayer, arrays: list[Values], value: Values) -> Values:
    config = layer.config
    match layer.kind:
        case "BatchNormalization":
            gain = arrays.pop(0) if config.get("scale", True) else np.ones(1)
            shift = arrays.pop(0) if config.get("center", True) else np.zeros(1)
            deviation = np.sqrt(arrays[1] + config.get("epsilon", 1e-3))
            return (value - arrays[0]) / deviation * gain + shift
        case "Normalization":
            mean, variance = config.get("mean"), config.get("variance")
            if mean is None or variance is None:
                mean, variance = arrays[:2]
            means, variances = (_round_to_format(number, layer) for number in (mean, variance))
            return np.asarray((value - means) / np.maximum(np.sqrt(variances), 1e-7))
        case "Rescaling":
            scale, offset = (
                _round_to_format(config.get(key, 0.0), layer) for key in ("scale", "offset")
            )
            return value * scale + offset
        case _:
            return value


def _round_to_format(value: object, layer: KerasLayer) -> Values:
    """Round numbers to the format in which the layer stores them."""
    numbers = np.asarray(value, dtype=np.float64)
    return (
        numbers if layer.precision == "float64" else numbers.astype(np.float32).astype(np.float64)
    )


def _activate(
    activation: object, value: Values, layer: KerasLayer, evaluator: KerasEvaluator
) -> Values:
    if isinstance(activation, dict):
        config = activation.get("config", {})
        if activation.get("class_name") in ("ReLU", "LeakyReLU"):
            return _rectify(str(activation["class_name"]), config, value)
        activation = config if isinstance(config, str) else activation.get("class_name")
    if activation in SQUASHES:
        skipped = layer.name == evaluator.skipped
        return value if skipped else _squash(str(activation), value)
    smooth = NAMED_SMOOTH.get(str(activation).replace("_", ""))
    if smooth is not None:
        return SMOOTH_VALUES[smooth](value)
    match activation:
        case "relu":
            return np.maximum(value, 0)
        case "relu6":
            return np.clip(value, 0, 6)
        case "leaky_relu":
            return np.where(value < 0, 0.2 * value, value)
        case "hard_tanh":
            return np.clip(value, -1, 1)
        case "hard_sigmoid":
            is_keras_2 = evaluator.model.version <= 2  # noqa: PLR2004 - of Keras
            return np.clip(0.2 * value + 0.5 if is_keras_2 else value / 6 + 0.5, 0, 1)
        case _:
            return value


def _squash(kind: str, value: Values) -> Values:
    if kind == "sigmoid":
        return sigmoid(value)
    below = value - value.max(axis=-1, keepdims=True)
    logs = below - np.log(np.exp(below).sum(axis=-1, keepdims=True))
    return np.asarray(np.exp(logs) if kind == "softmax" else logs)


def _rectify(
    kind: str, config: dict[str, Any], value: Values, arrays: Sequence[Values] = ()
) -> Values:
    if kind == "PReLU":
        return np.maximum(value, 0) + arrays[0] * np.minimum(value, 0)
    if kind == "LeakyReLU":
        slope = config.get("negative_slope", config.get("alpha", 0.3))
        return np.where(value < 0, slope * value, value)
    rectified = np.where(value < 0, (config.get("negative_slope") or 0.0) * value, value)
    max_value = config.get("max_value")
    return rectified if max_value is None else np.minimum(rectified, max_value)
