"""Contents of model files, by the type of file; pickles only if the user trusts them."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feta.errors import NetworkError
from feta.readers.booster_files import SUFFIXES as TREES
from feta.readers.booster_files import TreeFile, identify_tree_file
from feta.readers.boosters import is_booster
from feta.readers.catboost.read import is_catboost
from feta.readers.keras.read import read_keras
from feta.readers.onnx.read import read_onnx
from feta.readers.onnx.trees import has_trees
from feta.readers.pickled import PICKLES, TORCH_PICKLES, load_pickle, load_skops
from feta.readers.torch.mode import differs_in_training
from feta.readers.torch.read import read_torch
from feta.readers.weights import read_weights
from feta.scorer.network.network import Network

KERAS = {".keras", ".h5", ".hdf5"}
TABLES = {".csv", ".tsv", ".parquet"}
SUPPORTED = (
    ".feta, .onnx, .keras, .h5, .safetensors, .npz, .skops, .json or .ubj (XGBoost), "
    ".txt (LightGBM), .cbm or .json (CatBoost), "
    "or with --trust-pickle .joblib, .pkl, .pt or .pth"
)


UNTRUSTED = "opening this type of file could run any code hidden in it, so FETA does not"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The user's options for opening a model file."""

    layers: str | None = None  # names in a file of weights, separated by commas
    external: bool = False  # whether ONNX weights may be in other files of its folder
    trust_pickle: bool = False  # whether a file may run code when it is opened


@dataclass(frozen=True, slots=True, eq=False)
class ModelSource:
    """A network, with its torch module if any; or what needs a schema: an estimator, or trees."""

    network: Network | None = None
    estimator: Any = None
    trees: TreeFile | None = None
    module: Any = None
    notes: tuple[str, ...] = ()  # remarks for the user about how it was read


def open_source(path: Path, options: SourceOptions, *, first_schema: bool = False) -> ModelSource:
    """Open a file by its type; `first_schema` states that there is no schema yet."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return _open_onnx(path, options)
    if suffix in KERAS:
        return ModelSource(read_keras(path))
    if suffix in TREES:
        trees = identify_tree_file(path)
        return ModelSource(trees=trees, notes=trees.notes)
    if suffix in (".safetensors", ".npz"):
        names = [name.strip() for name in (options.layers or "").split(",")]
        return ModelSource(read_weights(path, [name for name in names if name]))
    if suffix == ".feta":
        raise NetworkError(
            f"{path}: the file already contains a schema; run feta audit on it, without --schema"
        )
    if suffix == ".skops":
        return _identify(path, load_skops(path))
    if suffix in PICKLES | TORCH_PICKLES:
        if not options.trust_pickle:
            raise _first_pickle_error(path) if first_schema else _pickle_error(path)
        return _identify(path, load_pickle(path))
    if suffix in TABLES:
        raise NetworkError(
            f"{path} is a table of people; expected a model as the first argument: "
            f"feta audit MODEL --schema schema.toml --data {path.name}"
        )
    raise NetworkError(
        f"{path}: the file type is not supported: got {path.suffix or 'no suffix'!r}; "
        f"expected {SUPPORTED}; export the model as ONNX"
    )


def _open_onnx(path: Path, options: SourceOptions) -> ModelSource:
    """Read a network; trees need a schema."""
    with suppress(NetworkError):  # the other reader names the file
        if has_trees(path):
            return ModelSource(trees=TreeFile(path, "onnx"))
    return ModelSource(read_onnx(path, external_data=options.external))


def _first_pickle_error(path: Path) -> NetworkError:
    """Return the error for an untrusted pickle, if there is no schema to convert it with."""
    torch = path.suffix.lower() in TORCH_PICKLES
    safe = "as ONNX (torch.onnx.export)" if torch else "as .skops (skops.io.dump)"
    return NetworkError(
        f"{path}: {UNTRUSTED}; if you wrote it, add --trust-pickle, or save the model {safe}"
    )


def _pickle_error(path: Path) -> NetworkError:
    """Return the error for an untrusted pickle, with a script that converts it."""
    torch = path.suffix.lower() in TORCH_PICKLES
    error = NetworkError(
        f"{path}: {UNTRUSTED}; if you wrote it, add --trust-pickle, or save the model once from "
        "Python:"
    )
    package = "torch" if torch else "joblib"
    error.add_note(f'import feta, {package}; schema = feta.read_schema("schema.toml")')
    if torch:
        error.add_note(f"network = feta.read_torch(torch.load({path.name!r}, weights_only=False))")
    else:
        error.add_note(f"model = joblib.load({path.name!r})")
        error.add_note('schema.check_classes(getattr(model, "classes_", ()))')
        error.add_note("network = feta.read_sklearn(model, schema.space)")
    error.add_note('feta.save_model(schema.model(network), "model.feta", table=schema.table)')
    return error


def _wrapper_error(path: Path, fair: Any) -> NetworkError:  # noqa: ANN401 - scikit-learn ships no types
    """Return the error for a fair wrapper, with a script that saves the model inside."""
    kind = type(fair).__name__
    message = f"{path}: a {kind} is already fair; call its predict for fair decisions"
    if getattr(fair, "model_", None) is None:
        return NetworkError(
            f"{message}; FETA cannot read the model inside it, so there is nothing to audit"
        )
    error = NetworkError(f"{message}; to audit the model inside it, save that once from Python:")
    error.add_note("import feta, joblib")
    error.add_note(f'feta.save_model(joblib.load({path.name!r}).model_, "inside.feta")')
    return error


def _identify(path: Path, content: Any) -> ModelSource:  # noqa: ANN401 - anything may be in it
    """Return the estimator or the module that a file contains."""
    if type(content).__module__.startswith("feta.estimators."):
        raise _wrapper_error(path, content)
    if (
        is_booster(content)
        or is_catboost(content)
        or (hasattr(content, "predict") and hasattr(content, "get_params"))
    ):
        return ModelSource(estimator=content)
    if hasattr(content, "forward") and hasattr(content, "state_dict"):
        mode = differs_in_training(content)
        network = read_torch(content.eval() if mode else content)
        note = (
            f"{path.name} was saved in training mode ({mode}); FETA audits its evaluation mode, in "
            "which trained networks decide: check that your program calls module.eval()"
        )
        return ModelSource(network, module=content, notes=(note,) if mode else ())
    kind = type(content).__name__
    hint = (
        "; a state_dict has no layers: save the whole module" if isinstance(content, dict) else ""
    )
    raise NetworkError(
        f"{path}: the file's content is not supported: got {kind}; "
        f"expected a fitted estimator or a torch module{hint}"
    )
