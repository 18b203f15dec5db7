"""Open model: a model from the files a user names, and their own runtime if it is installed."""

from dataclasses import dataclass
from pathlib import Path

from feta.errors import NetworkError, SchemaError
from feta.model import Model
from feta.model_file import load_model
from feta.network.network import Network
from feta.network.readers.onnx import read_onnx
from feta.network.readers.onnx_runtime import onnx_scores
from feta.network.readers.weights import read_weights
from feta.rule import Argmax
from feta.runtime import Replay, graph_runtime
from feta.schema import Schema, read_schema

# Counts of counterparts are 64-bit numbers.
MOST_COUNTERPARTS = 2**62

PICKLES = {".pt", ".pth", ".pkl", ".pickle", ".joblib", ".bin", ".ckpt"}


@dataclass(frozen=True, slots=True)
class Opened:
    """A model, a way to replay people in the runtime it came from, and the unit of its scores."""

    model: Model
    replay: Replay | None = None
    unit: str = ""


def open_model(
    path: Path,
    schema: Path | None,
    layers: str | None,
    *,
    external: bool,
    one_vs_rest: str | None = None,
) -> Opened:
    """Open a model by the kind of its file, perhaps to ask about one of its classes only."""
    if path.suffix.lower() == ".feta":
        if schema is not None:
            raise SchemaError(f"{path} holds its own schema; leave --schema out")
        return Opened(_answerable(path, load_model(path), one_vs_rest))
    network = open_network(path, layers, external=external)
    if schema is None:
        raise SchemaError(f"{path} needs a schema: feta init {path} DATA --sensitive … writes one")
    told = read_schema(schema)
    try:
        model = _answerable(schema, told.model(network), one_vs_rest)
    except NetworkError as error:
        raise NetworkError(f"{path} with {schema}: {error}") from None
    except SchemaError as error:
        raise SchemaError(f"{schema}: {str(error).removeprefix(f'{schema}: ')}") from None
    return Opened(model, _onnx_replay(path, told, model, network), told.decision.unit)


def _answerable(path: Path, model: Model, one_vs_rest: str | None) -> Model:
    """Take the view asked for; refuse what no command here can answer for, and say what would do."""
    if one_vs_rest is not None:
        if not isinstance(model.rule, Argmax):
            message = f"{path}: --one-vs-rest needs several classes, got {type(model.rule).__name__}; list them in [decision], classes = [...]"
            raise SchemaError(message)
        model = model.one_vs_rest(one_vs_rest)
    if model.space.finite and model.space.lattice.size > MOST_COUNTERPARTS:
        message = f"{path}: a person must have at most 2^62 counterparts, got {model.space.lattice.size:.2g}; narrow the sensitive columns' min and max"
        raise SchemaError(message)
    return model


def open_network(path: Path, layers: str | None, *, external: bool) -> Network:
    """Open a network by the kind of its file."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return read_onnx(path, external_data=external)
    if suffix in (".safetensors", ".npz"):
        names = [name.strip() for name in (layers or "").split(",")]
        return read_weights(path, [name for name in names if name])
    if suffix == ".feta":
        raise NetworkError(f"{path}: this file holds its own schema; feta audit takes it as it is")
    if suffix in PICKLES:
        message = f"{path}: opening this kind of file could run any program hidden in it, so FETA does not; in Python, save the model as feta.save_model(model, 'model.feta'), or export it: torch.onnx.export(module, (row,), 'model.onnx')"
        raise NetworkError(message)
    known = ".feta, .onnx, .safetensors or .npz"
    message = f"{path}: a model file must be {known}, got {path.suffix or 'no ending'!r}; export it as ONNX"
    raise NetworkError(message)


def _onnx_replay(path: Path, schema: Schema, model: Model, network: Network) -> Replay | None:
    outputs_of = onnx_scores(path) if path.suffix.lower() == ".onnx" else None
    if outputs_of is None:
        return None
    return graph_runtime(outputs_of, model, network, schema=schema)
