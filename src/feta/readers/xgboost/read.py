"""Reader of XGBoost's tree ensembles: files in JSON and UBJSON, boosters and wrappers."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from feta.errors import NetworkError, SchemaError
from feta.io.regular_file import read_bytes
from feta.readers.trees.boosted import BoostedTrees
from feta.readers.trees.features import Value
from feta.readers.xgboost.columns import bind_features
from feta.readers.xgboost.comparison import compare_scores
from feta.readers.xgboost.document import parse_document
from feta.readers.xgboost.model import XgboostModel, parse_model
from feta.readers.xgboost.objective import base_margins, classifier_objective, find_objective
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.space.feature_space import FeatureSpace

# Only the exact types: a subclass may decide differently.
BOOSTER = "xgboost.core.Booster"
WRAPPERS = (
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRegressor",
    "xgboost.sklearn.XGBRFClassifier",
    "xgboost.sklearn.XGBRFRegressor",
    "xgboost.sklearn.XGBRanker",
)


class RoundsWarning(UserWarning):
    """A file whose training stopped early, so that wrappers and boosters use different trees."""


def read_xgboost(
    source: Any,  # noqa: ANN401 - a path, or an object of a library that may not be installed
    space: FeatureSpace,
    *,
    iterations: int | None = None,
    categories: Mapping[str, Sequence[Value]] | None = None,
) -> Forest:
    """Read a tree ensemble of XGBoost that reads the columns of a space directly.

    The score is the margin (`output_margin=True`): log-odds of binary:logistic, the logarithm of
    the prediction for count:poisson, reg:gamma and reg:tweedie, one margin per class for
    multi:softprob. XGBoost rounds its input to float32 and tests x < t. Cuts are converted to the
    largest float64 number that goes left. Missing numbers go to the default side of each node.

    The exact score is the real sum of the stored float32 numbers: base margin, and leaf values
    times the weights of DART. The replay adds them in float32 in XGBoost's own order, base margin
    first, as its CPU predictor does. With DART there are two orders: wrappers predict in place and
    round each leaf value with the base margin; `Booster.predict` does not.

    With two classes, XGBClassifier decides p > 0.5 after a sigmoid in float32. So a margin of 0 is
    below the threshold (`equality`), and margins of up to about 1e-7 may be as well (`sigmoid`).

    Parameters
    ----------
    source
        A .json or .ubj file, a Booster, XGBClassifier, XGBRegressor, XGBRFClassifier,
        XGBRFRegressor or XGBRanker. The library is needed for objects only; their scores are then
        compared bit for bit. A file is treated as a wrapper if a wrapper saved it. Cells equal to
        the setting `missing` of a wrapper, if it is not NaN, are not supported; a file does not
        contain this setting, so missing cells are always NaN for a file.
    space
        The columns, by the names of the features; in order if the model has no names. Features
        with native categories must be categories of the space.
    iterations
        The number of boosting rounds. By default, wrappers use those up to their best iteration,
        and boosters use all. A warning says which of them is assumed for a file.
    categories
        The categories of columns in the order of their codes, for models that do not store them.
        Without them, integers are the codes themselves.

    Raises
    ------
    NetworkError
        If the file is damaged, or the model is not supported; the message names the place.
    SchemaError
        If the columns of the space do not fit the model.
    """
    if isinstance(source, str | Path):
        try:
            model = _decided(parse_model(parse_document(read_bytes(Path(source)))))
            _warn_about_rounds(model, iterations)
            return _forest(model, space, iterations, categories or {}, model.from_wrapper)[0]
        except NetworkError as error:
            raise NetworkError(f"{source}: {error}") from None
    model, wrapper = read_object(source)
    forest, used = _forest(model, space, iterations, categories or {}, wrapper)
    compare_scores(forest, source, model, space, rounds=used, categories=categories or {})
    return forest


def read_object(source: Any) -> tuple[XgboostModel, bool]:  # noqa: ANN401 - an object of any kind
    """Return the stored model of an object, and whether it is a wrapper."""
    wrapper = _is_wrapper(source)
    booster = source.get_booster() if wrapper else source
    model = parse_model(parse_document(bytes(booster.save_raw("ubj"))))
    classifier = wrapper and hasattr(source, "predict_proba")
    return _decided(replace(model, classifier=classifier)), wrapper


def _warn_about_rounds(model: XgboostModel, iterations: int | None) -> None:
    note = "" if iterations is not None else rounds_note(model)
    if note:
        message = f"{note}; pass iterations=… for another number"
        warnings.warn(message, RoundsWarning, stacklevel=3)


def rounds_note(model: XgboostModel) -> str:
    """Return which rounds of an early-stopped file are used; empty if there is no choice."""
    available = len(model.rounds) - 1
    best = available if model.best_iteration is None else model.best_iteration + 1
    if best >= available:
        return ""
    if model.from_wrapper:
        return (
            f"training stopped early, and a wrapper saved the file: FETA uses the {best} rounds up "
            f"to the best one, as wrappers do; Booster.predict uses all {available}"
        )
    return (
        f"training stopped early, and a Booster saved the file: FETA uses all {available} rounds, "
        f"as Booster.predict does; XGBClassifier and other wrappers use the {best} up to the best"
    )


def file_rounds_note(path: Path) -> str:
    """Return which rounds of a file are used; empty if it is clear, or the file is damaged."""
    try:
        document = parse_document(read_bytes(path))
        stopped = document.member("learner").member("attributes").has("best_iteration")
        return rounds_note(parse_model(document)) if stopped else ""
    except NetworkError:  # the reader names it
        return ""


def _decided(model: XgboostModel) -> XgboostModel:
    """Return a model with the objective by which its wrapper decides."""
    if not model.classifier:
        return model
    return replace(model, objective=classifier_objective(model.objective, model.n_outputs))


def _is_wrapper(source: Any) -> bool:  # noqa: ANN401 - an object of any kind
    """Return whether an object is a supported wrapper, not a booster; refuse all others."""
    kind = f"{type(source).__module__}.{type(source).__qualname__}"
    if kind == BOOSTER:
        return False
    name = type(source).__name__
    if kind not in WRAPPERS:
        raise NetworkError(
            f"the source is not supported: got {name}; expected a path, a Booster, XGBClassifier, "
            "XGBRegressor, XGBRFClassifier, XGBRFRegressor or XGBRanker"
        )
    if callable(source.objective):
        raise NetworkError(
            f"{name} has a custom objective: got a function; expected the name of an objective"
        )
    missing = source.missing
    if missing is not None and not np.isnan(missing):
        raise NetworkError(
            f"{name} treats a number as missing: got missing={missing}; expected NaN; "
            "replace the number by NaN before training"
        )
    if not source.__sklearn_is_fitted__():
        raise NetworkError(f"{name} is not fitted; call its fit before it is read")
    return True


def _forest(
    model: XgboostModel,
    space: FeatureSpace,
    iterations: int | None,
    categories: Mapping[str, Sequence[Value]],
    wrapper: bool,
) -> tuple[Forest, int]:
    """Return the ensemble, and the number of its boosting rounds."""
    boosted, rounds = boosted_trees(model, iterations, wrapper=wrapper)
    features = bind_features(model, space, categories)[1]
    return boosted.forest(features, space.width), rounds


def boosted_trees(
    model: XgboostModel, iterations: int | None = None, *, wrapper: bool
) -> tuple[BoostedTrees, int]:
    """Return the trees that a prediction uses, and the number of boosting rounds."""
    objective = find_objective(model.objective, model.n_outputs, model.version)
    rounds = _count_rounds(model, iterations, wrapper=wrapper)
    n_trees = int(model.rounds[rounds])
    margins = base_margins(model.base_score, objective.base).astype(np.float64)
    weights = None if model.weights is None else model.weights[:n_trees]
    in_place = weights is not None and wrapper
    summation = Summation(
        "XGBoost, predicted in place" if in_place else "XGBoost",
        "float32",
        margins,
        weights,
        around_start=in_place,
    )
    two = objective.several and model.n_outputs == 2  # noqa: PLR2004 - the first wins a tie
    boosted = BoostedTrees(
        model.trees[:n_trees],
        model.outputs[:n_trees],
        np.ones(n_trees) if weights is None else weights,
        margins,
        summation,
        equality="below" if two else objective.equality,
        link=objective.prediction,
    )
    return boosted, rounds


def _count_rounds(model: XgboostModel, iterations: int | None, *, wrapper: bool) -> int:
    """Return the number of boosting rounds that a prediction uses."""
    available = len(model.rounds) - 1
    best = model.best_iteration
    if iterations is None:
        iterations = best + 1 if wrapper and best is not None else available
    if not 0 < iterations <= available:
        raise SchemaError(
            f"invalid number of iterations: got {iterations}; expected 1 to {available}"
        )
    return iterations
