"""Linear models of scikit-learn: their scores, and how these become answers.

Every linear classifier compares strictly: one score above 0 stands for `classes_[1]`, and the
first of the largest of several scores wins. Most give no probabilities.
"""

from typing import Any, Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.scorer.network.agreement import with_inverse_link
from feta.scorer.network.network import InverseLink, Network
from feta.scorer.protocol import Side

Estimator = Any  # scikit-learn ships no types

# How a probability of the second class follows from the score z: σ(z), or (clip(z, −1, 1) + 1) / 2.
Probability = Literal["logistic", "clipped"]

# Classifiers whose probabilities are the sigmoid or the softmax of their scores.
LOGISTIC = ("LinearDiscriminantAnalysis", "LogisticRegression", "LogisticRegressionCV")

CLASSIFIERS = (
    *LOGISTIC,
    "LinearSVC",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
)

# The losses of SGDClassifier that give probabilities.
SGD_PROBABILITIES: dict[str, Probability] = {"log_loss": "logistic", "modified_huber": "clipped"}

# Regressors that predict a link's inverse of their score.
GENERALIZED = ("GammaRegressor", "PoissonRegressor", "TweedieRegressor")
LINKS: dict[str, InverseLink | None] = {"IdentityLink": None, "LogLink": "log"}

REGRESSORS = (
    *GENERALIZED,
    "ARDRegression",
    "BayesianRidge",
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lars",
    "LarsCV",
    "Lasso",
    "LassoCV",
    "LassoLars",
    "LassoLarsCV",
    "LassoLarsIC",
    "LinearRegression",
    "LinearSVR",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "PassiveAggressiveRegressor",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "SGDRegressor",
    "TheilSenRegressor",
)

LINEAR = frozenset((*CLASSIFIERS, *REGRESSORS))


def is_linear(estimator: object) -> bool:
    """Return whether a bare estimator is one of scikit-learn's linear models."""
    kind = type(estimator)  # only the exact types: a subclass may decide differently
    return kind.__name__ in LINEAR and kind.__module__.startswith("sklearn.")


def read_linear(estimator: Estimator) -> Network:
    """Read the coefficients of a fitted linear model."""
    matrix = coefficients(estimator)
    bias = np.broadcast_to(estimator.intercept_, len(matrix))  # 0.0 without an intercept
    network = Network.from_layers(
        [(matrix, bias)],
        source="float32" if matrix.dtype == np.float32 else "float64",
        equality=tie_side(estimator),
        sigmoid=_is_logistic(estimator),
    )
    link = _link(estimator)
    return network if link is None else with_inverse_link(network, link)


def linear_scores(estimator: Estimator, rows: object) -> Matrix:
    """Compute an estimator's own scores."""
    if type(estimator).__name__ in GENERALIZED:
        return np.asarray(estimator._linear_predictor(rows))  # noqa: SLF001 - predict saturates
    if hasattr(estimator, "classes_"):
        return np.asarray(estimator.decision_function(rows))
    return np.asarray(estimator.predict(rows))


def probability_of(estimator: Estimator) -> Probability | None:
    """Return how the probabilities of a classifier follow from its score; None if it has none."""
    name = type(estimator).__name__
    if name == "SGDClassifier":
        return SGD_PROBABILITIES.get(str(estimator.loss))
    return "logistic" if name in LOGISTIC else None


def tie_side(estimator: object) -> Side | None:
    """Return the side of a score of 0: the first of two classes, since all compare strictly."""
    binary = len(getattr(estimator, "classes_", ())) == 2  # noqa: PLR2004 - one score decides
    return "below" if binary else None


def linear_obstacle(estimator: Estimator) -> str | None:
    """Return why a fitted linear model has more than one answer per person; None if it has one."""
    name, n_scores = type(estimator).__name__, len(coefficients(estimator))
    if not hasattr(estimator, "classes_"):
        return None if n_scores == 1 else several_scores(name, n_scores)
    n_classes = len(estimator.classes_)
    expected = 1 if n_classes == 2 else n_classes  # noqa: PLR2004 - one score decides
    if _is_multilabel(estimator) or n_scores != expected:
        return several_labels(name, n_scores)
    return None


def several_scores(name: str, n_scores: int) -> str:
    """Return the message about a regressor of several scores."""
    return (
        f"{name} gives several scores per person: got {n_scores}; expected 1; "
        "train one estimator per score"
    )


def several_labels(name: str, n_labels: int) -> str:
    """Return the message about a classifier of several labels."""
    return (
        f"{name} gives several labels per person: got {n_labels}; expected 1; "
        "train one estimator per label"
    )


def _is_multilabel(estimator: Estimator) -> bool:
    binarizer = getattr(estimator, "_label_binarizer", None)  # of RidgeClassifier
    return str(getattr(binarizer, "y_type_", "")).startswith("multilabel")


def coefficients(estimator: Estimator) -> Matrix:
    """Return the coefficients, one row per score."""
    weight = estimator.coef_
    dense = weight.toarray() if hasattr(weight, "toarray") else weight  # sparse after sparsify()
    return np.atleast_2d(dense)


def _is_logistic(estimator: Estimator) -> bool:
    """Return whether thresholds apply to the sigmoid or softmax of the scores."""
    if type(estimator).__name__ in LOGISTIC:
        return True
    # With more classes, SGDClassifier divides sigmoids by their sum.
    return tie_side(estimator) is not None and probability_of(estimator) == "logistic"


def _link(estimator: Estimator) -> InverseLink | None:
    if type(estimator).__name__ not in GENERALIZED:
        return None
    kind = type(estimator._base_loss.link).__name__  # noqa: SLF001 - there is no public name
    if kind not in LINKS:
        raise NetworkError(
            f"{type(estimator).__name__} has an unsupported link: got {kind}; "
            f"expected one of {', '.join(LINKS)}"
        )
    return LINKS[kind]
