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
from feta.readers.sklearn.column_names import check_columns
from feta.readers.sklearn.linear import (
    Probability,
    is_linear,
    linear_obstacle,
    linear_scores,
    probability_of,
    read_linear,
    several_labels,
    several_scores,
    tie_side,
)
from feta.readers.sklearn.own_threshold import (
    OwnThreshold,
    has_own_threshold,
    inner_classifier,
)
from feta.readers.sklearn.pipeline import raw_table, split_pipeline
from feta.readers.skorch import is_skorch, read_skorch
from feta.scorer.network.agreement import check_agreement
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Rows on which both are scored: enough to reach both sides of every neuron.
CHECKED_ROWS = 256

# scikit-learn's names of its piecewise-linear activations; FETA uses the same names.
ACTIVATIONS = ("identity", "logistic", "relu", "tanh")

MLPS = ("MLPClassifier", "MLPRegressor")

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

    Supported are MLPClassifier, MLPRegressor, the linear models of scikit-learn, classifiers with
    their own threshold around one of these, and skorch's networks. An estimator at the end of a
    pipeline needs the space of the raw columns that the pipeline reads: the steps before it become
    part of the first layer. Without a pipeline, columns are taken in order; if the estimator
    names them, the names must be those of the space's columns and values.

    With two classes, a score above 0 stands for `classes_[1]`, and a score of 0 does not, since
    all these classifiers compare strictly; a classifier with its own threshold gives ties to the
    class of that threshold. With more classes, each has a score, and the first of the largest
    wins. The score of a generalized linear model is its linear predictor, before the inverse of
    its link. The network's scores are compared with the estimator's, on random rows and on those
    of `people`. `table` turns the space's rows into the estimator's input, if that is not a frame
    of raw columns.
    """
    steps, last = split_pipeline(estimator)
    own = OwnThreshold.of(last) if _is_thresholded(last) else None
    bare = last if own is None else inner_classifier(last)
    reason = _obstacle(bare)
    if own is not None and not _is_readable(bare):
        reason = _threshold_obstacle(last, bare)
    if reason is not None:
        raise NetworkError(reason)
    network = _read_bare(bare)
    if steps is None and table is None:
        network = _check_encoded(network, bare, space, people)
    else:
        if space is None:
            raise NetworkError(
                "the space of the pipeline's raw columns is missing; "
                "call feta.read_sklearn(pipeline, space)"
            )
        table = table or raw_table(estimator, space)
        evaluation = Evaluation(space, _identity() if steps is None else steps, table)
        network = _absorb_steps(network, evaluation, table)
        drawn = draw_people(space, np.random.default_rng(0), CHECKED_ROWS)
        rows = drawn if people is None else np.concatenate([drawn, people])
        _compare_scores(network, bare, rows, evaluation.features)
    return network if own is None else own.shift(network, _probability(bare))


def _is_thresholded(last: object) -> bool:
    return has_own_threshold(last) and hasattr(inner_classifier(last), "classes_")


def _probability(estimator: object) -> Probability | None:
    return "logistic" if _is_mlp(estimator) else probability_of(estimator)


def _identity() -> Any:  # noqa: ANN401 - scikit-learn ships no types
    """Return steps that change nothing, for an estimator that reads raw columns itself."""
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415 - import feta stays light

    return make_pipeline("passthrough")


def _check_encoded(
    network: Network,
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    space: FeatureSpace | None,
    people: Matrix | None,
) -> Network:
    """Check an estimator that reads encoded people; return its network."""
    if space is not None:
        check_columns(space, estimator)
    rows = np.random.default_rng(0).normal(size=(CHECKED_ROWS, network.width))
    if people is not None and people.shape[1] == network.width:  # else the model rejects it
        rows = np.concatenate([rows, people])
    _compare_scores(network, estimator, rows, lambda rows: rows)
    return network


def _absorb_steps(network: Network, evaluation: Evaluation, table: TableMaker) -> Network:
    steps, space = evaluation.preprocessing, evaluation.space
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
    name = type(estimator).__name__
    if is_skorch(estimator):
        return None if hasattr(estimator, "module_") else _unfitted_message(name)
    if has_own_threshold(estimator):
        return _unfitted_message(name)
    if not _is_readable(estimator):
        return (
            f"the estimator is not supported: got {name}; expected a perceptron (MLPClassifier, "
            "MLPRegressor) or a linear model of scikit-learn, a skorch network, or a pipeline "
            f"that ends in one; train one of those, or {WRAPPER_ADVICE}"
        )
    if not hasattr(estimator, "coefs_" if _is_mlp(estimator) else "coef_"):
        return _unfitted_message(name)
    several = _mlp_obstacle(estimator) if _is_mlp(estimator) else linear_obstacle(estimator)
    return several or (_check_classes(estimator) if hasattr(estimator, "classes_") else None)


def _is_readable(estimator: object) -> bool:
    """Return whether an estimator is of a kind that becomes a network."""
    return is_skorch(estimator) or _is_mlp(estimator) or is_linear(estimator)


def _threshold_obstacle(last: object, bare: object) -> str:
    name = type(bare).__name__
    return (
        f"{type(last).__name__} around this classifier is not read exactly: got {name} inside; "
        "expected a perceptron or a linear model of scikit-learn; read the "
        f"{name} alone, and state the threshold in the rule of the model"
    )


def _unfitted_message(name: str) -> str:
    return f"{name} is not fitted; call its fit before it is read"


def _mlp_obstacle(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    name, n_outputs = type(estimator).__name__, estimator.n_outputs_
    if n_outputs > 1 and not hasattr(estimator, "classes_"):
        return several_scores(name, n_outputs)
    if n_outputs > 1 and estimator.out_activation_ == "logistic":
        return several_labels(name, len(estimator.classes_))
    if estimator.activation in ACTIVATIONS:
        return None
    problem = unknown_choice(estimator.activation, ACTIVATIONS)
    return f"unsupported activation of {name}: {problem}; train it with activation='relu'"


def _check_classes(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    name, n_classes = type(estimator).__name__, len(estimator.classes_)
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


def _is_mlp(estimator: object) -> bool:
    kind = type(estimator)  # only the exact types: a subclass may decide differently
    return kind.__name__ in MLPS and kind.__module__.startswith("sklearn.")


def _read_bare(estimator: Any) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    if is_skorch(estimator):
        return read_skorch(estimator)
    return _read_mlp(estimator) if _is_mlp(estimator) else read_linear(estimator)


def _read_mlp(estimator: Any) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    weights = [np.asarray(weight).T for weight in estimator.coefs_]
    return Network.from_layers(
        list(zip(weights, estimator.intercepts_, strict=True)),
        activation=estimator.activation,
        source=_source_format(weights[0]),
        equality=tie_side(estimator),  # the label binarizer compares p > 0.5
        sigmoid=hasattr(estimator, "classes_"),  # classifiers compare probabilities
    )


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
    if not _is_mlp(estimator):
        return linear_scores(estimator, table)
    if not hasattr(estimator, "classes_"):
        return np.asarray(estimator.predict(table))
    # Saturated probabilities would hide a difference; without the sigmoid it returns scores.
    bare = copy.copy(estimator)
    bare.out_activation_ = "identity"
    scores = np.asarray(bare.predict_proba(table))
    return scores[:, 1] if len(estimator.classes_) == 2 else scores  # noqa: PLR2004 - 1 − z, z
