"""Skorch: a torch module in scikit-learn's clothing, read with the way it turns scores into classes."""

from dataclasses import replace
from typing import Any

from feta.errors import NetworkError
from feta.network.network import Network
from feta.network.readers.torch import read_torch

# What each of skorch's estimators does with the module's outputs.
KINDS = ("NeuralNetBinaryClassifier", "NeuralNetClassifier", "NeuralNetRegressor")


def is_skorch(estimator: object) -> bool:
    """Say whether this is one of skorch's estimators; the very types, as a subclass may differ."""
    kind = type(estimator)
    return kind.__module__.startswith("skorch.") and kind.__name__ in KINDS


def read_skorch(estimator: Any) -> Network:  # noqa: ANN401 - skorch ships no types
    """Read the trained module; all of skorch's classifiers compare strictly."""
    network = read_torch(estimator.module_)
    match type(estimator).__name__:
        case "NeuralNetRegressor":
            return network
        case "NeuralNetBinaryClassifier":
            if network.outputs != 1 or estimator.threshold != 0.5:  # noqa: PLR2004 - σ(0)
                message = f"NeuralNetBinaryClassifier must have one output and the threshold 0.5, got {network.outputs} and {estimator.threshold}; give the threshold in the schema instead"
                raise NetworkError(message)
            return replace(network, equality="below", sigmoid=True)
        case _:
            if network.outputs < 2:  # noqa: PLR2004 - a choice
                raise NetworkError(
                    "NeuralNetClassifier must have an output a class, got 1; use NeuralNetBinaryClassifier"
                )
            two = network.outputs == 2  # noqa: PLR2004 - argmax takes the first on a tie
            return replace(network, equality="below" if two else None, sigmoid=True)
