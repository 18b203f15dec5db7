"""Sklearn: a fitted multilayer perceptron or linear model read into a Network.

Only bare estimators are read: what a pipeline does before the last step is not looked at here.
"""

import copy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError, one_of
from feta.network.network import Network, Side

if TYPE_CHECKING:
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor

# Rows scored by both, to see that the reading is right: enough to reach every neuron's two sides.
CHECKED_ROWS = 64

# Float64 scores of two correct implementations differ by summation order only.
AGREEMENT = 1e-9

# scikit-learn's names for the piecewise-linear activations among its own; ours are the same.
ACTIVATIONS = ("identity", "relu")

# Votes and counts are by class, numbered in int8.
MOST_CLASSES = 127


def read_sklearn(
    estimator: "MLPClassifier | LogisticRegression | MLPRegressor | LinearRegression",
) -> Network:
    """Read a fitted, bare MLPClassifier, LogisticRegression, MLPRegressor or LinearRegression.

    Of two classes, a score above 0 is for `classes_[1]`; a score of 0 is not, since both compare
    strictly. Several classes have a score each, and the first of the largest wins. The reading is
    checked against the estimator's own scores.
    """
    reason = obstacle(estimator)
    if reason is not None:
        raise NetworkError(reason)
    network = _read_mlp(estimator) if _is_mlp(estimator) else _read_linear(estimator)
    _check_agreement(network, estimator)
    return network


def obstacle(estimator: object) -> str | None:
    """Say what keeps FETA from reading an estimator, and what to do; None if nothing does."""
    from sklearn.linear_model import (  # noqa: PLC0415 - import feta stays light
        LinearRegression,
        LogisticRegression,
        LogisticRegressionCV,
    )
    from sklearn.neural_network import (  # noqa: PLC0415 - import feta stays light
        MLPClassifier,
        MLPRegressor,
    )

    name = type(estimator).__name__
    # The very types: a subclass may decide in a way of its own.
    classifiers = (LogisticRegression, LogisticRegressionCV, MLPClassifier)
    if type(estimator) not in (*classifiers, LinearRegression, MLPRegressor):
        return f"the estimator must be a bare MLPClassifier, LogisticRegression, MLPRegressor or LinearRegression, got {name}; train one of those, or let FairClassifier or FairRegressor take the votes by its predict"
    if not hasattr(estimator, "coefs_" if _is_mlp(estimator) else "coef_"):
        return f"{name} must be fitted before it is read; call its fit first"
    several = _classes if isinstance(estimator, classifiers) else _one_score
    return several(estimator) or _piecewise_linear(estimator)


def _one_score(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    name = type(estimator).__name__
    n_scores = estimator.n_outputs_ if _is_mlp(estimator) else len(np.atleast_2d(estimator.coef_))
    if n_scores == 1:
        return None
    return f"{name} must give one score a person, got {n_scores}; train one estimator a score"


def _classes(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    name, n_classes = type(estimator).__name__, len(estimator.classes_)
    if _is_mlp(estimator) and estimator.n_outputs_ > 1 and estimator.out_activation_ == "logistic":
        return f"{name} must answer one question, got {n_classes} labels a person; train one estimator a label"
    if not 2 <= n_classes <= MOST_CLASSES:  # noqa: PLR2004 - a choice
        return f"{name} must decide between 2 to {MOST_CLASSES} classes, got {n_classes}"
    return None


def _piecewise_linear(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    if not _is_mlp(estimator) or estimator.activation in ACTIVATIONS:
        return None
    allowed = one_of(estimator.activation, ACTIVATIONS)
    name = type(estimator).__name__
    return f"{name}'s activation must be {allowed}; train it with activation='relu'"


def _is_mlp(estimator: object) -> bool:
    from sklearn.neural_network import (  # noqa: PLC0415 - import feta stays light
        MLPClassifier,
        MLPRegressor,
    )

    return isinstance(estimator, MLPClassifier | MLPRegressor)


def _read_mlp(estimator: Any) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    weights = [np.asarray(weight).T for weight in estimator.coefs_]
    return Network.from_layers(
        list(zip(weights, estimator.intercepts_, strict=True)),
        activation=estimator.activation,
        source=_source(weights[0]),
        equality=_equality(estimator),
        sigmoid=hasattr(estimator, "classes_"),  # it compares probabilities
    )


def _read_linear(estimator: Any) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    weight = estimator.coef_
    dense = weight.toarray() if hasattr(weight, "toarray") else weight  # after its sparsify()
    matrix = np.atleast_2d(dense)
    bias = np.broadcast_to(estimator.intercept_, len(matrix))  # 0.0 without an intercept
    return Network.from_layers(
        [(matrix, bias)], source=_source(matrix), equality=_equality(estimator)
    )


def _equality(estimator: object) -> Side | None:
    """Tell where a score of 0 goes: to the first of two classes, since both compare strictly.

    LogisticRegression takes the second class where decision_function > 0, and the label binarizer
    of MLPClassifier where p > 0.5.
    """
    two = len(getattr(estimator, "classes_", ())) == 2  # noqa: PLR2004 - one score decides
    return "below" if two else None


def _source(weight: Matrix) -> Literal["float32", "float64"]:
    """Tell what the estimator computes with: float32 if it was fitted on float32 numbers."""
    return "float32" if weight.dtype == np.float32 else "float64"


def _check_agreement(network: Network, estimator: Any) -> None:  # noqa: ANN401 - scikit-learn ships no types
    rows = np.random.default_rng(0).normal(size=(CHECKED_ROWS, network.width))
    theirs = _their_scores(estimator, rows)
    ours = network(rows)
    largest = np.abs(ours - theirs.reshape(ours.shape)).max() / (1 + np.abs(theirs).max())
    if not largest <= AGREEMENT:
        message = f"FETA's scores must equal the estimator's own, but differ by {largest:.3g} (relative); please report this {type(estimator).__name__}"
        raise NetworkError(message)


def _their_scores(estimator: Any, rows: Matrix) -> Matrix:  # noqa: ANN401 - scikit-learn ships no types
    table: object = rows
    if hasattr(estimator, "feature_names_in_"):  # without its names it would warn
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        table = pd.DataFrame(rows, columns=estimator.feature_names_in_)
    if not hasattr(estimator, "classes_"):
        return np.asarray(estimator.predict(table))
    if not _is_mlp(estimator):
        return np.asarray(estimator.decision_function(table))
    # Probabilities saturate and would hide a difference; without its sigmoid it gives scores.
    bare = copy.copy(estimator)
    bare.out_activation_ = "identity"
    scores = np.asarray(bare.predict_proba(table))
    return scores[:, 1] if len(estimator.classes_) == 2 else scores  # noqa: PLR2004 - 1 − z, z
