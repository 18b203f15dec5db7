"""Sklearn: a fitted MLPClassifier or LogisticRegression read into a Network.

Only bare estimators are read: what a pipeline does before the last step is not looked at here.
"""

import copy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError, one_of
from feta.network.network import Network

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

# Rows scored by both, to see that the reading is right: enough to reach every neuron's two sides.
CHECKED_ROWS = 64

# Float64 scores of two correct implementations differ by summation order only.
AGREEMENT = 1e-9

# scikit-learn's names for the piecewise-linear activations among its own; ours are the same.
ACTIVATIONS = ("identity", "relu")


def read_sklearn(estimator: "MLPClassifier | LogisticRegression") -> Network:
    """Read a fitted, bare classifier of two classes: MLPClassifier or LogisticRegression.

    A score above 0 is for `classes_[1]`; a score of 0 is not, since both compare strictly. The
    reading is checked against the estimator's own scores.
    """
    reason = obstacle(estimator)
    if reason is not None:
        raise NetworkError(reason)
    network = _read_mlp(estimator) if _is_mlp(estimator) else _read_logistic(estimator)
    _check_agreement(network, estimator)
    return network


def obstacle(estimator: object) -> str | None:
    """Say what keeps FETA from reading an estimator, and what to do; None if nothing does."""
    from sklearn.linear_model import (  # noqa: PLC0415 - import feta stays light
        LogisticRegression,
        LogisticRegressionCV,
    )
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415 - import feta stays light

    name = type(estimator).__name__
    # The very types: a subclass may decide in a way of its own.
    if type(estimator) not in (LogisticRegression, LogisticRegressionCV, MLPClassifier):
        return f"the estimator must be a bare MLPClassifier or LogisticRegression, got {name}; train one of those, or let FairClassifier take the votes by its predict"
    if not hasattr(estimator, "coefs_" if _is_mlp(estimator) else "coef_"):
        return f"{name} must be fitted before it is read; call its fit first"
    return _two_classes(estimator) or _piecewise_linear(estimator)


def _two_classes(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    name, n_classes = type(estimator).__name__, len(estimator.classes_)
    if _is_mlp(estimator) and estimator.n_outputs_ > 1 and estimator.out_activation_ == "logistic":
        return f"{name} must answer one question, got {n_classes} labels a person; train one estimator a label"
    if n_classes != 2:  # noqa: PLR2004 - a decision is one of two
        return f"{name} must decide between two classes, got {n_classes}; train it for one class against the rest"
    return None


def _piecewise_linear(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    if not _is_mlp(estimator) or estimator.activation in ACTIVATIONS:
        return None
    allowed = one_of(estimator.activation, ACTIVATIONS)
    return f"MLPClassifier's activation must be {allowed}; train it with activation='relu'"


def _is_mlp(estimator: object) -> bool:
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415 - import feta stays light

    return isinstance(estimator, MLPClassifier)


def _read_mlp(estimator: Any) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    weights = [np.asarray(weight).T for weight in estimator.coefs_]
    return Network.from_layers(
        list(zip(weights, estimator.intercepts_, strict=True)),
        activation=estimator.activation,
        source=_source(weights[0]),
        equality="below",  # its label binarizer takes the second class where p > 0.5, strictly
        sigmoid=True,
    )


def _read_logistic(estimator: Any) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    weight = estimator.coef_
    dense = weight.toarray() if hasattr(weight, "toarray") else weight  # after its sparsify()
    return Network.from_layers(
        [(dense, estimator.intercept_)],
        source=_source(np.asarray(dense)),
        equality="below",  # predict takes the second class where decision_function > 0, strictly
    )


def _source(weight: Matrix) -> Literal["float32", "float64"]:
    """Tell what the estimator computes with: float32 if it was fitted on float32 numbers."""
    return "float32" if weight.dtype == np.float32 else "float64"


def _check_agreement(network: Network, estimator: Any) -> None:  # noqa: ANN401 - scikit-learn ships no types
    rows = np.random.default_rng(0).normal(size=(CHECKED_ROWS, network.width))
    theirs = _their_scores(estimator, rows)
    largest = np.abs(network(rows)[:, 0] - theirs).max() / (1 + np.abs(theirs).max())
    if not largest <= AGREEMENT:
        message = f"FETA's scores must equal the estimator's own, but differ by {largest:.3g} (relative); please report this {type(estimator).__name__}"
        raise NetworkError(message)


def _their_scores(estimator: Any, rows: Matrix) -> Vector:  # noqa: ANN401 - scikit-learn ships no types
    table: object = rows
    if hasattr(estimator, "feature_names_in_"):  # without its names it would warn
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        table = pd.DataFrame(rows, columns=estimator.feature_names_in_)
    if not _is_mlp(estimator):
        return np.asarray(estimator.decision_function(table))
    # Probabilities saturate and would hide a difference; without its sigmoid it gives scores.
    bare = copy.copy(estimator)
    bare.out_activation_ = "identity"
    return np.asarray(bare.predict_proba(table)[:, 1])
