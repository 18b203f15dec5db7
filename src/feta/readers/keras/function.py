"""Keras models in memory: read through a file of theirs, or counted by their own predict."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.readers.keras.read import read_keras
from feta.readers.network_function import End, NetworkFunction
from feta.scorer.network.network import Network

Keras = Any  # Keras ships no types

ENDS: dict[str, End] = {"linear": "scores", "sigmoid": "sigmoid", "softmax": "softmax"}


def is_keras(source: object) -> bool:
    """Return whether an object is a model of Keras."""
    return any(
        kind.__name__ == "Model" and kind.__module__.startswith("keras.")
        for kind in type(source).__mro__
    )


def read_keras_object(model: Keras) -> Network:
    """Read a model in memory as the file that it saves."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        try:
            model.save(path)
        except Exception as error:  # a model of the user's own code may raise anything
            reason = " ".join(str(error).split())[:200]
            raise NetworkError(f"the model of Keras cannot be saved: {reason}") from error
        try:
            return read_keras(path)
        except NetworkError as error:
            raise NetworkError(str(error).removeprefix(f"{path}: ")) from None


def keras_function(model: Keras) -> NetworkFunction:
    """Return the model's own predict as a function of encoded rows."""

    def outputs(rows: Matrix) -> Matrix:
        answers = model.predict(rows, batch_size=max(1, len(rows)), verbose=0)
        return np.asarray(answers).reshape(len(rows), -1)

    last = model.layers[-1]
    activation = getattr(getattr(last, "activation", None), "__name__", type(last).__name__.lower())
    single = str(model.compute_dtype) != "float64"
    label = f"predict of the Keras model {type(model).__name__}"
    return NetworkFunction(label, outputs, ENDS.get(activation, "unknown"), single)
