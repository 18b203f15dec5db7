"""Keras models for tests, their files, and the scores of Keras."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from feta import read_keras
from feta.arrays import Matrix
from feta.scorer.network.network import Network

RNG = np.random.default_rng(4)
NUMBERS = RNG.normal(size=(60, 4)).astype(np.float32).astype(np.float64)
CODES = RNG.integers(0, 5, size=(60, 4)).astype(np.float64)
Keras = Any  # the package or one of its models; it has no types
Make = Callable[[Keras], Keras]


def model_of(keras: Keras, *layers: Keras, **options: object) -> Keras:
    """Build a sequential model of these layers on four columns, with random weights."""
    model = keras.Sequential([keras.Input((4,), **options), *layers])
    for array in model.weights:
        if array.dtype.startswith("float") and "variance" not in array.name:
            array.assign(RNG.uniform(-1.5, 1.5, size=array.shape))
    return model


def save_model(model: Keras, folder: Path, ending: str = "keras") -> Path:
    path = folder / f"model.{ending}"
    model.save(path)
    return path


def rewrite(path: Path, name: str, edit: Callable[[Any], None]) -> None:
    """Change a description or the weights in a .keras file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if name.endswith(".json"):
        content = json.loads(members[name])
        edit(content)
        members[name] = json.dumps(content).encode()
    else:
        buffer = io.BytesIO(members[name])
        with h5py.File(buffer, "r+") as file:
            edit(file)
        members[name] = buffer.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)


def scores(model: Keras, rows: Matrix) -> Matrix:
    """Return Keras's scores; `rows` contains the columns of all inputs."""
    widths = [tensor.shape[1] for tensor in model.inputs]
    parts = np.split(rows, np.cumsum(widths)[:-1], axis=1)
    inputs = [part.astype(tensor.dtype) for part, tensor in zip(parts, model.inputs, strict=True)]
    predictions = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
    return np.asarray(predictions, dtype=np.float64).reshape(len(rows), -1)


def assert_read(model: Keras, path: Path, rows: Matrix, *, rtol: float = 1e-5) -> Network:
    network = read_keras(path)
    expected = scores(model, rows)
    np.testing.assert_allclose(network(rows), expected, rtol=rtol, atol=rtol)
    return network
