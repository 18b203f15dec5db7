"""Loaders of pickles, which run code when opened, and of skops files, which do not."""

from pathlib import Path
from typing import Any

from feta.errors import MissingExtra, NetworkError

PICKLES = {".pkl", ".pickle", ".joblib"}
TORCH_PICKLES = {".pt", ".pth", ".bin", ".ckpt"}

# Types in every fitted perceptron that skops does not list as trusted, though they run no code.
HARMLESS = {
    "numpy.dtype",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
}

# Characters of an exception, and untrusted types, that a message quotes.
MAX_QUOTED = 200
MAX_TYPES = 8


def load_pickle(path: Path) -> Any:  # noqa: ANN401 - anything may be in it
    """Open a file that may run any code: call this only if the user trusts the file."""
    _check_exists(path)
    try:
        if path.suffix.lower() in TORCH_PICKLES:
            return _load_torch(path)
        import joblib  # noqa: PLC0415 - comes with scikit-learn

        return joblib.load(path)
    except MissingExtra:
        raise
    except Exception as error:  # the code in a pickle may raise anything
        raise NetworkError(
            f"{path}: the file cannot be opened: got {type(error).__name__}: {_quote(error)}; "
            "expected a pickled model whose packages are installed here"
        ) from None


def _load_torch(path: Path) -> Any:  # noqa: ANN401 - anything may be in it
    try:
        import torch  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("torch", "torch") from None
    return torch.load(path, map_location="cpu", weights_only=False)


def load_skops(path: Path) -> Any:  # noqa: ANN401 - an estimator
    """Open a skops file, if skops trusts all types in it."""
    try:
        import skops.io as skops  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("skops", "skops") from None
    _check_exists(path)
    try:
        types = skops.get_untrusted_types(file=path)
        untrusted = set(types) - HARMLESS
        if untrusted:
            listed = ", ".join(sorted(untrusted)[:MAX_TYPES])
            raise NetworkError(
                f"{path}: the file holds types that skops does not trust: got {listed}; if you "
                "wrote the file, save the model from Python: feta.save_model(schema.model("
                "feta.read_sklearn(estimator, schema.space)), 'model.feta')"
            )
        return skops.load(path, trusted=list(types))
    except NetworkError:
        raise
    except Exception as error:  # skops's errors share no other class
        raise NetworkError(
            f"{path}: the file cannot be read: got {_quote(error)}; "
            "expected a model that skops wrote"
        ) from None


def _check_exists(path: Path) -> None:
    if not path.is_file():
        raise NetworkError(f"{path}: there is no such file")


def _quote(error: Exception) -> str:
    return " ".join(str(error).split())[:MAX_QUOTED]
