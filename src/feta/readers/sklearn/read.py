"""Reader of fitted scikit-learn perceptrons and linear models, with their preprocessing.

`feta.absorb` decides which pipelines can become part of a first layer, and reports why others
cannot. The numbers come from the pipeline's own `transform`.
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.absorb.absorb import absorb
from feta.absorb.evaluation import Evaluation
from feta.arrays import Matrix
from feta.errors import FetaError, NetworkError, unknown_choice
from feta.io.raw_table import TableMaker
from feta.readers.sklearn.pipeline import check_order, raw_table, split_pipeline
from feta.readers.skorch import is_skorch, read_skorch
from feta.scorer.network.agreement import check_agreement
from feta.scorer.network.network import Network
from feta.scorer.protocol import Side
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Rows on which both are scored: enough to reach both sides of every neuron.
CHECKED_ROWS = 256

# scikit-learn's names of its piecewise-linear activations; FETA uses the same names.
ACTIVATIONS = ("identity", "relu")

# Votes and counts store the class index in int8.
MAX_CLASSES = 127

# The end of messages about estimators that cannot be read.
WRAPPER_ADVICE = "use FairClassifier or FairRegressor, which vote with its predict"


def read_sklearn(
    estimator: "BaseEstimator",
    space: FeatureSpace | None = None,
    *,
    people: Matrix | None = None,
    table: TableMaker | None = None,
) -> Network:
    """Read a fitted estimator of scikit-learn or skorch.

    Supported are MLPClassifier, LogisticRegression, LogisticRegressionCV, MLPRegressor,
    LinearRegression and skorch's networks. An estimator at the end of a pipeline needs the space of
    the raw columns that the pipeline reads: the steps before it become part of the first layer.
    Without a pipeline, columns are taken in order; if space and estimator both name a column, its
    position must be the same.

    With two classes, a score above 0 stands for `classes_[1]`, and a score of 0 does not, since
    both kinds of classifiers compare strictly. With more classes, each has a score, and the first
    of the largest wins. The network's scores are compared with the estimator's, on random rows and
    on those of `people`. `table` turns the space's rows into the pipeline's input, if that is not
    a frame of raw columns.
    """
    steps, last = split_pipeline(estimator)
    reason = _obstacle(last)
    if reason is not None:
        raise NetworkError(reason)
    network = _read_bare(last)
    rng = np.random.default_rng(0)
    if steps is None:
        if space is not None:
            check_order(space, last)
        rows = rng.normal(size=(CHECKED_ROWS, network.width))
        if people is not None and people.shape[1] == network.width:  # else the model rejects it
            rows = np.concatenate([rows, people])
        _compare_scores(network, last, rows, lambda rows: rows)
        return network
    if space is None:
        raise NetworkError(
            "the space of the pipeline's raw columns is missing; "
            "call feta.read_sklearn(pipeline, space)"
        )
    table = table or raw_table(estimator, space)
    absorbed = _absorb_steps(network, steps, space, table)
    drawn = draw_people(space, rng, CHECKED_ROWS)
    rows = drawn if people is None else np.concatenate([drawn, people])
    _compare_scores(absorbed, last, rows, Evaluation(space, steps, table).features)
    return absorbed


def _absorb_steps(
    network: Network,
    steps: Any,  # noqa: ANN401 - scikit-learn ships no types
    space: FeatureSpace,
    table: TableMaker,
) -> Network:
    try:
        return absorb(network, steps, space, table)
    except FetaError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise NetworkError(
            f"the pipeline cannot be evaluated ({type(error).__name__}: {error}); {WRAPPER_ADVICE}"
        ) from error


def obstacle_inside_wrapper(error: NetworkError) -> str:
    """Return why an estimator cannot be read, without the advice to use the wrapper."""
    reason, found, _ = str(error).partition(WRAPPER_ADVICE)
    return reason.removesuffix("; ").removesuffix(", or ") if found else reason


def _obstacle(estimator: object) -> str | None:
    """Return why FETA cannot read a bare estimator, and what to do; None if it can."""
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
    if is_skorch(estimator):
        return None if hasattr(estimator, "module_") else _unfitted_message(name)
    # Only the exact types: a subclass may decide differently.
    classifiers = (LogisticRegression, LogisticRegressionCV, MLPClassifier)
    if type(estimator) not in (*classifiers, LinearRegression, MLPRegressor):
        return (
            f"the estimator is not supported: got {name}; expected an MLPClassifier, "
            "LogisticRegression, LogisticRegressionCV, MLPRegressor, LinearRegression or skorch "
            f"network, or a pipeline that ends in one; train one of those, or {WRAPPER_ADVICE}"
        )
    if not hasattr(estimator, "coefs_" if _is_mlp(estimator) else "coef_"):
        return _unfitted_message(name)
    check_outputs = _check_classes if isinstance(estimator, classifiers) else _check_one_score
    return check_outputs(estimator) or _check_activation(estimator)


def _unfitted_message(name: str) -> str:
    return f"{name} is not fitted; call its fit before it is read"


def _check_one_score(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    name = type(estimator).__name__
    n_scores = estimator.n_outputs_ if _is_mlp(estimator) else len(np.atleast_2d(estimator.coef_))
    if n_scores == 1:
        return None
    return (
        f"{name} gives several scores per person: got {n_scores}; expected 1; "
        "train one estimator per score"
    )


def _check_classes(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    name, n_classes = type(estimator).__name__, len(estimator.classes_)
    if _is_mlp(estimator) and estimator.n_outputs_ > 1 and estimator.out_activation_ == "logistic":
        return (
            f"{name} gives several labels per person: got {n_classes}; expected 1; "
            "train one estimator per label"
        )
    if n_classes == 2 and getattr(estimator, "multi_class", "") == "multinomial":  # noqa: PLR2004 - one score
        return (
            f"{name} is multinomial with two classes: got probabilities of twice the score; "
            "expected probabilities of the score; remove multi_class"
        )
    if not 2 <= n_classes <= MAX_CLASSES:  # noqa: PLR2004 - a choice
        return (
            f"{name} has an unsupported number of classes: got {n_classes}; "
            f"expected 2 to {MAX_CLASSES}"
        )
    return None


def _check_activation(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    if not _is_mlp(estimator) or estimator.activation in ACTIVATIONS:
        return None
    problem = unknown_choice(estimator.activation, ACTIVATIONS)
    name = type(estimator).__name__
    return f"unsupported activation of {name}: {problem}; train it with activation='relu'"


def _is_mlp(estimator: object) -> bool:
    return type(estimator).__name__ in ("MLPClassifier", "MLPRegressor")


def _read_bare(estimator: Any) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    if is_skorch(estimator):
        return read_skorch(estimator)
    return _read_mlp(estimator) if _is_mlp(estimator) else _read_linear(estimator)


def _read_mlp(estimator: Any) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    weights = [np.asarray(weight).T for weight in estimator.coefs_]
    return Network.from_layers(
        list(zip(weights, estimator.intercepts_, strict=True)),
        activation=estimator.activation,
        source=_source_format(weights[0]),
        equality=_equality(estimator),
        sigmoid=hasattr(estimator, "classes_"),  # classifiers compare probabilities
    )


def _read_linear(estimator: Any) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    weight = estimator.coef_
    dense = weight.toarray() if hasattr(weight, "toarray") else weight  # sparse after sparsify()
    matrix = np.atleast_2d(dense)
    bias = np.broadcast_to(estimator.intercept_, len(matrix))  # 0.0 without an intercept
    return Network.from_layers(
        [(matrix, bias)],
        source=_source_format(matrix),
        equality=_equality(estimator),
        sigmoid=hasattr(estimator, "predict_proba"),  # thresholds apply to probabilities
    )


def _equality(estimator: object) -> Side | None:
    """Return the side of a score of 0: the first of two classes, since both compare strictly.

    LogisticRegression predicts the second class if decision_function > 0, and the label binarizer
    of MLPClassifier if p > 0.5.
    """
    binary = len(getattr(estimator, "classes_", ())) == 2  # noqa: PLR2004 - one score decides
    return "below" if binary else None


def _source_format(weight: Matrix) -> Literal["float32", "float64"]:
    """Return the estimator's number format: float32 if it was fitted on float32 numbers."""
    return "float32" if weight.dtype == np.float32 else "float64"


def _compare_scores(
    network: Network,
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    rows: Matrix,
    features: Callable[[Matrix], Matrix],
) -> None:
    """Compare scores with the estimator's; the reader of skorch has compared its own."""
    if is_skorch(estimator):
        return
    what = f"the {type(estimator).__name__}'s own"
    rounded = network.source == "float32"
    scores = _estimator_scores(estimator, features(rows))
    check_agreement(network, rows, scores, what, rounded=rounded)


def _estimator_scores(estimator: Any, rows: Matrix) -> Matrix:  # noqa: ANN401 - scikit-learn ships no types
    table: object = rows
    if hasattr(estimator, "feature_names_in_"):  # avoids its warning about missing names
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        table = pd.DataFrame(rows, columns=estimator.feature_names_in_)
    if not hasattr(estimator, "classes_"):
        return np.asarray(estimator.predict(table))
    if not _is_mlp(estimator):
        return np.asarray(estimator.decision_function(table))
    # Saturated probabilities would hide a difference; without the sigmoid it returns scores.
    bare = copy.copy(estimator)
    bare.out_activation_ = "identity"
    scores = np.asarray(bare.predict_proba(table))
    return scores[:, 1] if len(estimator.classes_) == 2 else scores  # noqa: PLR2004 - 1 − z, z
