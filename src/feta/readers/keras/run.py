"""Keras run: a saved model's layers run one by one in float64, as they stand, to compare scores with."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.readers.keras.file import KerasLayer, KerasModel

Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class KerasRun:
    """Runs a model on rows of its inputs side by side; nothing is folded here."""

    model: KerasModel
    squash: bool = True  # whether a last sigmoid or softmax is run, too

    def __call__(self, rows: Matrix) -> Matrix:
        """Give the last layer's outputs."""
        values: dict[str, Values] = {}
        layers = {one.name: one for one in self.model.layers}
        start = 0
        for name in self.model.entries:
            config = layers[name].config
            width = (config.get("batch_shape") or config["batch_input_shape"])[1]
            values[name] = rows[:, start : start + width]
            start += width
        for layer in self.model.layers:
            if layer.name not in values:
                taken = [values[name] for name in layer.inbound]
                values[layer.name] = _run(layer, taken, self)
        return values[self.model.end].reshape(len(rows), -1)


def _run(layer: KerasLayer, taken: list[Values], how: KerasRun) -> Values:
    value = taken[0]
    arrays = [np.asarray(one, dtype=np.float64) for one in layer.arrays]
    match layer.kind:
        case "Dense":
            sums = value @ arrays[0] + (arrays[1] if len(arrays) > 1 else 0.0)
            return _activated(layer.config.get("activation", "linear"), sums, how)
        case "Activation":
            return _activated(layer.config["activation"], value, how)
        case "Softmax":
            return _activated("softmax", value, how)
        case "ReLU" | "LeakyReLU":
            return _rectified(layer.kind, layer.config, value)
        case "PReLU":
            return np.maximum(value, 0) + arrays[0] * np.minimum(value, 0)
        case "Embedding":
            return np.asarray(arrays[0][value.astype(np.int64)])
        case "Concatenate":
            return np.concatenate(taken, axis=layer.config.get("axis", -1))
        case "Flatten" | "Reshape":
            return _reshaped(layer, value)
        case _:
            return _scaled(layer, arrays, value)


def _reshaped(layer: KerasLayer, value: Values) -> Values:
    if layer.kind == "Reshape":
        sizes = [-1 if size is None else size for size in layer.config["target_shape"]]
        return value.reshape(len(value), *sizes)
    if layer.config.get("data_format") == "channels_first":
        value = np.moveaxis(value, 1, -1)
    return value.reshape(len(value), -1)


def _scaled(layer: KerasLayer, arrays: list[Values], value: Values) -> Values:
    config = layer.config
    match layer.kind:
        case "BatchNormalization":
            gain = arrays.pop(0) if config.get("scale", True) else np.ones(1)
            shift = arrays.pop(0) if config.get("center", True) else np.zeros(1)
            spread = np.sqrt(arrays[1] + config.get("epsilon", 1e-3))
            return (value - arrays[0]) / spread * gain + shift
        case "Normalization":
            mean, variance = config.get("mean"), config.get("variance")
            if mean is None or variance is None:
                mean, variance = arrays[:2]
            means, variances = (_stored(one, layer) for one in (mean, variance))
            return np.asarray((value - means) / np.maximum(np.sqrt(variances), 1e-7))
        case "Rescaling":
            scale, offset = (_stored(config.get(key, 0.0), layer) for key in ("scale", "offset"))
            return value * scale + offset
        case _:
            return value


def _stored(told: object, layer: KerasLayer) -> Values:
    numbers = np.asarray(told, dtype=np.float64)
    return (
        numbers if layer.precision == "float64" else numbers.astype(np.float32).astype(np.float64)
    )


def _activated(told: object, value: Values, how: KerasRun) -> Values:
    if isinstance(told, dict):
        config = told.get("config", {})
        if told.get("class_name") in ("ReLU", "LeakyReLU"):
            return _rectified(str(told["class_name"]), config, value)
        told = config if isinstance(config, str) else told.get("class_name")
    if told in ("sigmoid", "softmax", "log_softmax"):
        return _squashed(str(told), value) if how.squash else value
    match told:
        case "relu":
            return np.maximum(value, 0)
        case "relu6":
            return np.clip(value, 0, 6)
        case "leaky_relu":
            return np.where(value < 0, 0.2 * value, value)
        case "hard_tanh":
            return np.clip(value, -1, 1)
        case "hard_sigmoid":
            return np.clip(value / 6 + 0.5 if how.model.version > 2 else 0.2 * value + 0.5, 0, 1)  # noqa: PLR2004 - of Keras
        case _:
            return value


def _squashed(kind: str, value: Values) -> Values:
    if kind == "sigmoid":
        return np.asarray(1 / (1 + np.exp(-value)))
    below = value - value.max(axis=-1, keepdims=True)
    logs = below - np.log(np.exp(below).sum(axis=-1, keepdims=True))
    return np.asarray(np.exp(logs) if kind == "softmax" else logs)


def _rectified(kind: str, config: dict[str, Any], value: Values) -> Values:
    if kind == "LeakyReLU":
        slope = config.get("negative_slope", config.get("alpha", 0.3))
        return np.where(value < 0, slope * value, value)
    bent = np.where(value < 0, (config.get("negative_slope") or 0.0) * value, value)
    return bent if config.get("max_value") is None else np.minimum(bent, config["max_value"])
