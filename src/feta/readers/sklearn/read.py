"""Sklearn: a fitted perceptron or linear model read into a Network, with the pipeline before it.

The numbers that preprocessing makes come from its own `transform`; `feta.absorb` says which
pipelines can be part of a first layer, and why others cannot.
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.absorb.absorb import absorb
from feta.absorb.evaluation import Evaluation
from feta.absorb.known_values import KnownValues, known_values, marker_formats
from feta.arrays import Matrix
from feta.errors import FetaError, NetworkError, SchemaError, missing, one_of
from feta.io.column_format import ColumnFormat, Formats
from feta.io.raw_table import RawTable, TableMaker, with_markers
from feta.readers.skorch import is_skorch, read_skorch
from feta.scorer.network.agreement import check_agreement
from feta.scorer.network.network import Network, Side
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Rows scored by both, to see that the reading is right: enough to reach every neuron's two sides.
CHECKED_ROWS = 256

# scikit-learn's names for the piecewise-linear activations among its own; ours are the same.
ACTIVATIONS = ("identity", "relu")

# Votes and counts are by class, numbered in int8.
MAX_CLASSES = 127


def read_sklearn(
    estimator: "BaseEstimator",
    space: FeatureSpace | None = None,
    *,
    people: Matrix | None = None,
    table: TableMaker | None = None,
) -> Network:
    """Read a fitted MLPClassifier, LogisticRegression, MLPRegressor or LinearRegression, or skorch's.

    One at the end of a pipeline needs the space of the raw columns that the pipeline takes: the
    steps before it become part of the first layer. Without a pipeline columns are taken in their order;
    where space and estimator both have names for them, the space must list them in the estimator's. Of two classes, a score above 0 is for
    `classes_[1]`; a score of 0 is not, since both compare strictly. Several classes have a score
    each, and the first of the largest wins. The reading is checked against the estimator's own
    scores, on random rows and on those of `people`. `table` turns the space's rows into what the
    pipeline takes, where that is not a frame of raw columns.
    """
    steps, last = taken_apart(estimator)
    reason = _obstacle(last)
    if reason is not None:
        raise NetworkError(reason)
    network = _read_bare(last)
    rng = np.random.default_rng(0)
    if steps is None:
        if space is not None:
            check_order(space, last)
        rows = rng.normal(size=(CHECKED_ROWS, network.width))
        if people is not None and people.shape[1] == network.width:  # else a model will refuse it
            rows = np.concatenate([rows, people])
        _compare(network, last, rows, lambda rows: rows)
        return network
    if space is None:
        raise NetworkError(
            "a pipeline takes raw columns, so their space must be given: feta.read_sklearn(pipeline, space)"
        )
    made = table or raw_table(estimator, space)
    try:
        absorbed = absorb(network, steps, space, made)
    except FetaError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        message = f"the pipeline could not be tried out ({type(error).__name__}: {error}); let FairClassifier or FairRegressor take the votes by its predict"
        raise NetworkError(message) from error
    drawn = draw_people(space, rng, CHECKED_ROWS)
    rows = drawn if people is None else np.concatenate([drawn, people])
    _compare(absorbed, last, rows, Evaluation(space, steps, made).features)
    return absorbed


def check_order(space: FeatureSpace, estimator: Any) -> None:  # noqa: ANN401 - scikit-learn ships no types
    """Refuse an estimator whose columns, where they have names, are in another order than the space's."""
    names = [str(name) for name in getattr(estimator, "feature_names_in_", [])]
    for attribute in space.attributes:
        index = space.columns_of(attribute).start
        if attribute.name in names and names.index(attribute.name) != index:
            message = f"{attribute.name!r} must be column {names.index(attribute.name)} of the space, as in the estimator's training, got column {index}; put the attributes in that order"
            raise SchemaError(message)


def taken_apart(estimator: Any) -> tuple[Any, Any]:  # noqa: ANN401 - scikit-learn ships no types
    """Split a fitted estimator into its preprocessing, or None, and the bare one at its end."""
    kind = type(estimator)
    # The very types: others may decide in a way of their own.
    name = kind.__name__ if kind.__module__.startswith("sklearn.") else ""
    if name == "FrozenEstimator":
        return taken_apart(estimator.estimator)
    if name.endswith("SearchCV") and hasattr(estimator, "best_estimator_"):
        return taken_apart(estimator.best_estimator_)
    if name != "Pipeline":
        return None, estimator
    before, last = estimator[:-1], estimator.steps[-1][1]
    inner, bare = taken_apart(last)
    if inner is not None:
        before = type(before)([*before.steps, *inner.steps])
    return before if before.steps else None, bare


def raw_table(
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    space: FeatureSpace,
    formats: Formats | None = None,
) -> RawTable:
    """Return what makes the table that an estimator takes, from what it saw when it was fitted.

    `formats` says how the user's own table writes each column; without it, the values that the
    estimator's encoders know decide.
    """
    steps, _ = taken_apart(estimator)
    known = [attribute.name for attribute in space.attributes]
    names = getattr(steps, "feature_names_in_", None)
    if names is None:
        count = getattr(steps, "n_features_in_", len(known))
        if count != len(known):
            message = f"the pipeline was fitted on {count} columns without names, so the schema must list these in their order, got {len(known)}"
            raise NetworkError(message)
        types = with_markers(formats or {}, marker_formats(steps, known))
        return RawTable(space, tuple(known), as_frame=False, formats=types)
    for name in _needed(steps):
        if name not in known:
            told = missing(name, known).replace("the table must", "the schema must")
            raise NetworkError(f"the pipeline reads {name!r}: {told}")
    fitted = [str(name) for name in names]
    types = with_markers(formats or {}, marker_formats(steps, fitted))
    return RawTable(space, tuple(fitted), formats=types)


def read_columns(estimator: Any) -> list[str] | None:  # noqa: ANN401 - scikit-learn ships no types
    """Name the raw columns that a pipeline looks at; None where it was fitted without names."""
    steps, _ = taken_apart(estimator)
    return _needed(steps) if hasattr(steps, "feature_names_in_") else None


def encoder_values(estimator: Any) -> dict[str, KnownValues]:  # noqa: ANN401 - scikit-learn ships no types
    """Return what a pipeline's encoders know about the raw columns; nothing if it has no names."""
    steps, _ = taken_apart(estimator)
    names = getattr(steps, "feature_names_in_", None)
    return {} if names is None else known_values(steps, [str(name) for name in names])


def encoder_markers(estimator: Any) -> dict[str, ColumnFormat]:  # noqa: ANN401 - scikit-learn ships no types
    """Return formats of the raw columns in which a pipeline's encoders know None."""
    steps, _ = taken_apart(estimator)
    names = getattr(steps, "feature_names_in_", None)
    return {} if names is None else marker_formats(steps, [str(name) for name in names])


def _needed(steps: Any) -> list[str]:  # noqa: ANN401 - scikit-learn ships no types
    """Name the columns that preprocessing looks at: a ColumnTransformer may drop some."""
    names = [str(name) for name in steps.feature_names_in_]
    first = steps.steps[0][1]
    if type(first).__name__ != "ColumnTransformer":
        return names
    indices = first._transformer_to_input_indices  # noqa: SLF001 - there is no public name
    kept = {
        index
        for name, step, _ in first.transformers_
        for index in (
            indices.get(name, []) if not (isinstance(step, str) and step == "drop") else []
        )
    }
    return [name for index, name in enumerate(names) if index in kept]


def _obstacle(estimator: object) -> str | None:
    """Say what keeps FETA from reading a bare estimator, and what to do; None if nothing does."""
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
        return None if hasattr(estimator, "module_") else _unfitted(name)
    # The very types: a subclass may decide in a way of its own.
    classifiers = (LogisticRegression, LogisticRegressionCV, MLPClassifier)
    if type(estimator) not in (*classifiers, LinearRegression, MLPRegressor):
        return f"the estimator must be an MLPClassifier, LogisticRegression, LogisticRegressionCV, MLPRegressor, LinearRegression or skorch's network, or a pipeline that ends in one, got {name}; train one of those, or let FairClassifier or FairRegressor take the votes by its predict"
    if not hasattr(estimator, "coefs_" if _is_mlp(estimator) else "coef_"):
        return _unfitted(name)
    several = _classes if isinstance(estimator, classifiers) else _one_score
    return several(estimator) or _piecewise_linear(estimator)


def _unfitted(name: str) -> str:
    return f"{name} must be fitted before it is read; call its fit first"


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
    if n_classes == 2 and getattr(estimator, "multi_class", "") == "multinomial":  # noqa: PLR2004 - one score
        return f"{name} must not be multinomial for two classes, since its probabilities are of twice the score; leave multi_class out"
    if not 2 <= n_classes <= MAX_CLASSES:  # noqa: PLR2004 - a choice
        return f"{name} must decide between 2 to {MAX_CLASSES} classes, got {n_classes}"
    return None


def _piecewise_linear(estimator: Any) -> str | None:  # noqa: ANN401 - scikit-learn ships no types
    if not _is_mlp(estimator) or estimator.activation in ACTIVATIONS:
        return None
    allowed = one_of(estimator.activation, ACTIVATIONS)
    name = type(estimator).__name__
    return f"{name}'s activation must be {allowed}; train it with activation='relu'"


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
        [(matrix, bias)],
        source=_source(matrix),
        equality=_equality(estimator),
        sigmoid=hasattr(estimator, "predict_proba"),  # what other thresholds are compared with
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


def _compare(
    network: Network,
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    rows: Matrix,
    features: Callable[[Matrix], Matrix],
) -> None:
    """Compare scores with the estimator's own, but for skorch's, which its reader compares."""
    if is_skorch(estimator):
        return
    what = f"the {type(estimator).__name__}'s own"
    rounded = network.source == "float32"
    check_agreement(network, rows, _their_scores(estimator, features(rows)), what, rounded=rounded)


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
