"""Open model: a model from the files a user names, and their own runtime if it is installed."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from feta.arrays import Flags, Matrix
from feta.audit.finding import Replay
from feta.errors import NetworkError, SchemaError
from feta.model import Model
from feta.model_file import load_model
from feta.network.network import Network
from feta.network.readers.onnx import onnx_scores, read_onnx
from feta.network.readers.weights import read_weights
from feta.schema import Schema, read_schema

PICKLES = {".pt", ".pth", ".pkl", ".pickle", ".joblib", ".bin", ".ckpt"}


@dataclass(frozen=True, slots=True)
class Opened:
    """A model, and a way to replay people in the runtime it came from."""

    model: Model
    replay: Replay | None = None


def open_model(path: Path, schema: Path | None, layers: str | None, *, external: bool) -> Opened:
    """Open a model by the kind of its file."""
    if path.suffix == ".feta":
        if schema is not None:
            raise SchemaError(f"{path} holds its own schema; leave --schema out")
        return Opened(load_model(path))
    network = open_network(path, layers, external=external)
    if schema is None:
        raise SchemaError(f"{path} needs a schema: feta init {path} DATA --sensitive … writes one")
    told = read_schema(schema)
    try:
        model = told.model(network)
    except SchemaError as error:
        raise SchemaError(f"{schema}: {error}") from None
    return Opened(model, _onnx_replay(path, told, model, network))


def open_network(path: Path, layers: str | None, *, external: bool) -> Network:
    """Open a network by the kind of its file."""
    if path.suffix == ".onnx":
        return read_onnx(path, external_data=external)
    if path.suffix in (".safetensors", ".npz"):
        return read_weights(path, [name for name in (layers or "").split(",") if name])
    if path.suffix in PICKLES:
        message = f"{path}: opening this kind of file could run any program hidden in it, so FETA does not; in Python, save the model as feta.save_model(model, 'model.feta'), or export it: torch.onnx.export(module, (row,), 'model.onnx')"
        raise NetworkError(message)
    known = ".feta, .onnx, .safetensors or .npz"
    raise NetworkError(f"{path}: a model file must be {known}, got {path.suffix or 'no ending'!r}")


def _onnx_replay(path: Path, schema: Schema, model: Model, network: Network) -> Replay | None:
    score = onnx_scores(path) if path.suffix == ".onnx" else None
    if score is None:
        return None
    centers, scales = np.array(schema.centers), np.array(schema.scales)
    rule = model.rule
    threshold = 1 / (1 + np.exp(-rule.value)) if network.sigmoid else rule.value

    def replay(people: Matrix) -> Flags:
        outputs = score((people - centers) / scales)
        if outputs.shape[1] == 2 and not network.sigmoid:
            value = outputs[:, 1] - outputs[:, 0]
        else:
            value = outputs[:, -1]
        favorable = value > threshold if rule.favors == "above" else value < threshold
        return favorable | ((value == threshold) & (rule.equality == "favorable"))

    return replay
