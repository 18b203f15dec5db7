"""Tree ensembles of scikit-learn: their trees, and how their values become a score."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.readers.sklearn.tree_nodes import SourceTree, known_codes, read_predictor, read_tree
from feta.scorer.forest.summation import Summation
from feta.scorer.protocol import Link, Side

Estimator = Any  # scikit-learn ships no types

# Votes and counts store the class index in int8.
MAX_CLASSES = 127

SINGLE_TREES = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
)


@dataclass(frozen=True, slots=True, eq=False)
class SourceEnsemble:
    """What a fitted ensemble computes: (base + Σ values) / denominator."""

    trees: tuple[SourceTree, ...]
    base: Vector
    summation: Summation
    denominator: int = 1
    equality: Side | None = None
    link: Link = "identity"
    single: bool = True  # whether features are cast to float32
    preprocessor: Estimator = None  # what the estimator does with its table first


def is_tree_ensemble(estimator: object) -> bool:
    """Return whether a bare estimator is one of scikit-learn's tree ensembles."""
    kind = type(estimator)  # only the exact types: a subclass may decide differently
    return kind.__name__ in READERS and kind.__module__.startswith("sklearn.")


def read_ensemble(estimator: Estimator) -> SourceEnsemble:
    """Read a fitted tree ensemble."""
    name = type(estimator).__name__
    if not is_tree_ensemble(estimator):
        raise NetworkError(
            f"the estimator is no tree ensemble: got {name}; expected one of {', '.join(READERS)}"
        )
    if not any(hasattr(estimator, mark) for mark in ("tree_", "estimators_", "_predictors")):
        raise NetworkError(f"{name} is not fitted; call its fit before it is read")
    _check_outputs(estimator)
    return READERS[name](estimator)


def n_classes(estimator: Estimator) -> int:
    """Return the number of classes; 0 for a regressor."""
    return len(getattr(estimator, "classes_", ()))


def _check_outputs(estimator: Estimator) -> None:
    name, n_outputs = type(estimator).__name__, getattr(estimator, "n_outputs_", 1)
    if n_outputs != 1:
        raise NetworkError(
            f"{name} gives several answers per person: got {n_outputs}; expected 1; "
            "train one estimator per answer"
        )
    if hasattr(estimator, "classes_") and not 2 <= n_classes(estimator) <= MAX_CLASSES:  # noqa: PLR2004 - a choice
        raise NetworkError(
            f"{name} has an unsupported number of classes: got {n_classes(estimator)}; "
            f"expected 2 to {MAX_CLASSES}"
        )


def _read_single(estimator: Estimator) -> SourceEnsemble:
    return _mean_of([estimator], estimator, divide=False)


def _read_forest(estimator: Estimator) -> SourceEnsemble:
    return _mean_of(list(estimator.estimators_), estimator, divide=True)


def _mean_of(members: list[Estimator], estimator: Estimator, *, divide: bool) -> SourceEnsemble:
    """Return the mean of class fractions or of predicted numbers."""
    trees = tuple(read_tree(member.tree_, _fractions(member.tree_)) for member in members)
    return _mean(trees, estimator, divide=divide)


def _mean(trees: tuple[SourceTree, ...], estimator: Estimator, *, divide: bool) -> SourceEnsemble:
    start = np.zeros(trees[0].values.shape[1])
    return SourceEnsemble(
        trees,
        start,
        Summation(_library("with n_jobs=1"), "float64", start, divide=divide),
        len(trees),
        equality="below" if n_classes(estimator) == 2 else None,  # noqa: PLR2004 - argmax of two
        link="share" if n_classes(estimator) else "identity",
    )


def _fractions(tree: Estimator) -> Matrix:
    """Return the values of all nodes: class fractions, or one number."""
    return np.asarray(tree.value[:, 0, :], dtype=np.float64)


def _read_bagging(estimator: Estimator) -> SourceEnsemble:
    for member in estimator.estimators_:
        kind = type(member)
        if kind.__name__ not in SINGLE_TREES or not kind.__module__.startswith("sklearn."):
            raise NetworkError(
                f"{type(estimator).__name__} averages estimators that are no single trees: "
                f"got {kind.__name__}; expected one of {', '.join(SINGLE_TREES)}"
            )
    pairs = zip(estimator.estimators_, estimator.estimators_features_, strict=True)
    trees = [_member(member, features, estimator) for member, features in pairs]
    return _mean(tuple(trees), estimator, divide=True)


def _member(member: Estimator, features: Any, estimator: Estimator) -> SourceTree:  # noqa: ANN401 - an array
    """Return a tree that reads some of the features, and may know only some of the classes."""
    values = _fractions(member.tree_)
    if hasattr(estimator, "classes_"):
        all_values = np.zeros((len(values), n_classes(estimator)))
        all_values[:, np.asarray(member.classes_, dtype=np.int64)] = values
        values = all_values
    tree = read_tree(member.tree_, values)
    chosen = np.asarray(features, dtype=np.int64)
    return replace(tree, feature=chosen[np.maximum(tree.feature, 0)])  # a leaf has none


def _read_boosting(estimator: Estimator) -> SourceEnsemble:
    base = _initial_scores(estimator)
    rate = float(estimator.learning_rate)
    trees = []
    for stage in estimator.estimators_:
        for output, member in enumerate(stage):
            values = np.zeros((member.tree_.node_count, len(base)))
            values[:, output] = rate * member.tree_.value[:, 0, 0]  # rounded, as it is added
            trees.append(read_tree(member.tree_, values))
    binary = n_classes(estimator) == 2  # noqa: PLR2004 - one score decides
    return SourceEnsemble(
        tuple(trees),
        base,
        Summation(_library(), "float64", base),
        equality="above" if binary else None,
        link=_boosting_link(estimator),
    )


def _boosting_link(estimator: Estimator) -> Link:
    """Return "logit" where probabilities are those of the score itself."""
    classifier = n_classes(estimator) > 0
    return "logit" if classifier and estimator.loss == "log_loss" else "identity"


def _initial_scores(estimator: Estimator) -> Vector:
    """Return the scores before the first tree; they must not depend on the person."""
    initial = estimator.init_
    constant = isinstance(initial, str) and initial == "zero"
    dummy = type(initial).__name__ in ("DummyClassifier", "DummyRegressor")
    if dummy and type(initial).__module__.startswith("sklearn."):
        constant = getattr(initial, "strategy", "") not in ("stratified", "uniform")
    if not constant:
        raise NetworkError(
            f"{type(estimator).__name__} starts from another estimator: got "
            f"init={initial!r}; expected init=None or init='zero'"
        )
    row = np.zeros((1, estimator.n_features_in_), dtype=np.float32)
    return np.asarray(estimator._raw_predict_init(row)[0], dtype=np.float64)  # noqa: SLF001 - there is no public name


def _read_histogram_boosting(estimator: Estimator) -> SourceEnsemble:
    _check_link(estimator)
    base = np.asarray(estimator._baseline_prediction, dtype=np.float64).reshape(-1)  # noqa: SLF001 - there is no public name
    known = known_codes(estimator._bin_mapper, estimator.n_features_in_)  # noqa: SLF001 - there is no public name
    trees = []
    for stage in estimator._predictors:  # noqa: SLF001 - there is no public name
        for output, predictor in enumerate(stage):
            values = np.zeros((len(predictor.nodes), len(base)))
            values[:, output] = predictor.nodes["value"]
            trees.append(read_predictor(predictor, values, known))
    binary = n_classes(estimator) == 2  # noqa: PLR2004 - one score decides
    return SourceEnsemble(
        tuple(trees),
        base,
        Summation(_library(), "float64", base),
        equality="below" if binary else None,
        link="logit" if n_classes(estimator) else "identity",
        single=False,
        preprocessor=estimator._preprocessor,  # noqa: SLF001 - there is no public name
    )


def _check_link(estimator: Estimator) -> None:
    """Reject regressors that predict the exponential of their score."""
    if not hasattr(estimator, "classes_") and estimator.loss in ("gamma", "poisson"):
        raise NetworkError(
            f"{type(estimator).__name__} predicts the exponential of its score: got "
            f"loss={estimator.loss!r}; expected a loss without a logarithm, such as "
            "'squared_error'"
        )


def _library(how: str = "") -> str:
    import sklearn  # noqa: PLC0415 - import feta stays light

    return f"scikit-learn {sklearn.__version__} {how}".strip()


READERS: dict[str, Callable[[Estimator], SourceEnsemble]] = {
    **dict.fromkeys(SINGLE_TREES, _read_single),
    "RandomForestClassifier": _read_forest,
    "RandomForestRegressor": _read_forest,
    "ExtraTreesClassifier": _read_forest,
    "ExtraTreesRegressor": _read_forest,
    "GradientBoostingClassifier": _read_boosting,
    "GradientBoostingRegressor": _read_boosting,
    "HistGradientBoostingClassifier": _read_histogram_boosting,
    "HistGradientBoostingRegressor": _read_histogram_boosting,
    "BaggingClassifier": _read_bagging,
    "BaggingRegressor": _read_bagging,
}
