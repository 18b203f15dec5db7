"""Open source: what a model file holds, by the kind of file; pickles only where the user trusts them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feta.errors import NetworkError
from feta.readers.keras.read import read_keras
from feta.readers.onnx.read import read_onnx
from feta.readers.pickled import PICKLES, TORCH_PICKLES, load_pickle, load_skops
from feta.readers.torch.mode import differs_in_training
from feta.readers.torch.read import read_torch
from feta.readers.weights import read_weights
from feta.scorer.network.network import Network

KERAS = {".keras", ".h5", ".hdf5"}
TABLES = {".csv", ".tsv", ".parquet"}
KNOWN = ".feta, .onnx, .keras, .h5, .safetensors, .npz or .skops, or with --trust-pickle .joblib, .pkl, .pt or .pth"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How a user lets a file be opened."""

    layers: str | None = None  # of a file of bare weights
    external: bool = False  # whether ONNX weights may lie beside the model
    trust_pickle: bool = False  # whether a file may run any program hidden in it


@dataclass(frozen=True, slots=True, eq=False)
class ModelSource:
    """A network; or a fitted estimator, whose columns a schema must tell; or a module to replay in."""

    network: Network | None = None
    estimator: Any = None
    module: Any = None
    notes: tuple[str, ...] = ()  # what a user should know about how it was read


def open_source(path: Path, options: SourceOptions) -> ModelSource:
    """Open a file by its kind."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return ModelSource(read_onnx(path, external_data=options.external))
    if suffix in KERAS:
        return ModelSource(read_keras(path))
    if suffix in (".safetensors", ".npz"):
        names = [name.strip() for name in (options.layers or "").split(",")]
        return ModelSource(read_weights(path, [name for name in names if name]))
    if suffix == ".feta":
        raise NetworkError(f"{path}: this file holds its own schema; feta audit takes it as it is")
    if suffix == ".skops":
        return _opened(path, load_skops(path))
    if suffix in PICKLES | TORCH_PICKLES:
        if not options.trust_pickle:
            raise _refusal(path)
        return _opened(path, load_pickle(path))
    if suffix in TABLES:
        message = f"{path} is a table of people, but the model must come first: feta audit MODEL --schema schema.toml --data {path.name}"
        raise NetworkError(message)
    message = f"{path}: a model file must be {KNOWN}, got {path.suffix or 'no ending'!r}; export it as ONNX"
    raise NetworkError(message)


def _refusal(path: Path) -> NetworkError:
    """Say why a pickle is not opened, and the script that saves the model another way."""
    torch = path.suffix.lower() in TORCH_PICKLES
    package, load = ("torch", f"torch.load({path.name!r}, weights_only=False)")
    read = f"feta.read_torch({load})"
    if not torch:
        package, load = "joblib", f"joblib.load({path.name!r})"
        read = f"feta.read_sklearn({load}, schema.space)"
    error = NetworkError(
        f"{path}: opening this kind of file could run any program hidden in it, so FETA does not; if you made it yourself, add --trust-pickle, or save it once from Python:"
    )
    error.add_note(f'import feta, {package}; schema = feta.read_schema("schema.toml")')
    error.add_note(f"network = {read}")
    error.add_note('feta.save_model(schema.model(network), "model.feta", table=schema.table)')
    return error


def _wrapped(path: Path, fair: Any) -> NetworkError:  # noqa: ANN401 - scikit-learn ships no types
    """Say that a fair wrapper needs no audit, and how to take out the model inside."""
    kind = type(fair).__name__
    known = f"{path}: this is a {kind}, already a fair wrapper: call its predict for fair decisions"
    if getattr(fair, "model_", None) is None:
        return NetworkError(
            f"{known}; FETA cannot read the model inside it, so there is nothing to audit"
        )
    error = NetworkError(f"{known}; to audit the model inside it, take that out once from Python:")
    error.add_note("import feta, joblib")
    error.add_note(f'feta.save_model(joblib.load({path.name!r}).model_, "inside.feta")')
    return error


def _opened(path: Path, found: Any) -> ModelSource:  # noqa: ANN401 - anything may be in it
    if type(found).__module__.startswith("feta.estimators."):
        raise _wrapped(path, found)
    if hasattr(found, "predict") and hasattr(found, "get_params"):
        return ModelSource(estimator=found)
    if hasattr(found, "forward") and hasattr(found, "state_dict"):
        mode = differs_in_training(found)
        network = read_torch(found.eval() if mode else found)
        note = f"{path.name} was saved in training mode ({mode}); its evaluation mode is audited, in which trained networks decide: make sure that your program calls module.eval()"
        return ModelSource(network, module=found, notes=(note,) if mode else ())
    kind = type(found).__name__
    hint = "; a state_dict has no layers: save the whole module" if isinstance(found, dict) else ""
    message = f"{path}: the file must hold a fitted estimator or a torch module, got {kind}{hint}"
    raise NetworkError(message)
