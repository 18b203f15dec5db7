"""Pickled: models in files that run code as they are opened, and skops's files, which do not."""

from pathlib import Path
from typing import Any

from feta.errors import MissingExtra, NetworkError

PICKLES = {".pkl", ".pickle", ".joblib"}
TORCH_PICKLES = {".pt", ".pth", ".bin", ".ckpt"}

# What every fitted perceptron holds and skops does not list as trusted, though none of it runs code.
HARMLESS = {
    "numpy.dtype",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
}


def load_pickle(path: Path) -> Any:  # noqa: ANN401 - anything may be in it
    """Open a file that runs whatever is hidden in it: only where the user has said that they trust it."""
    if not path.is_file():
        raise NetworkError(f"{path}: there is no such file")
    try:
        if path.suffix.lower() in TORCH_PICKLES:
            return _load_torch(path)
        import joblib  # noqa: PLC0415 - comes with scikit-learn

        return joblib.load(path)
    except MissingExtra:
        raise
    except Exception as error:  # whatever the code in a pickle raises
        told = " ".join(str(error).split())[:200]
        message = f"{path}: the file must be a pickled model whose packages are installed here, but cannot be opened ({type(error).__name__}: {told})"
        raise NetworkError(message) from None


def _load_torch(path: Path) -> Any:  # noqa: ANN401 - anything may be in it
    try:
        import torch  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("torch", "torch") from None
    return torch.load(path, map_location="cpu", weights_only=False)


def load_skops(path: Path) -> Any:  # noqa: ANN401 - an estimator
    """Open a file of skops, if it holds nothing but types that skops itself trusts."""
    try:
        import skops.io as skops  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("skops", "skops") from None
    if not path.is_file():
        raise NetworkError(f"{path}: there is no such file")
    try:
        found = skops.get_untrusted_types(file=path)
        strange = set(found) - HARMLESS
        if strange:
            listed = ", ".join(sorted(strange)[:8])
            message = f"{path}: the file holds types that skops does not trust ({listed}); if you made it yourself, save the model from Python: feta.save_model(schema.model(feta.read_sklearn(estimator, schema.space)), 'model.feta')"
            raise NetworkError(message)
        return skops.load(path, trusted=list(found))
    except NetworkError:
        raise
    except Exception as error:  # skops's errors share no other class
        told = " ".join(str(error).split())[:200]
        raise NetworkError(f"{path}: the file must be a model that skops wrote: {told}") from None
