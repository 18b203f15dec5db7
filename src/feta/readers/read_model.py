"""`feta.read_model`: the best reader for any model."""

import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from feta.arrays import Matrix
from feta.errors import FetaError, NetworkError, SchemaError, unknown_choice
from feta.io.raw_table import TableMaker
from feta.readers.boosters import is_booster, read_booster
from feta.readers.callable.read import read_callable
from feta.readers.catboost.read import is_catboost, read_catboost
from feta.readers.keras.function import is_keras, keras_function, read_keras_object
from feta.readers.onnx.function import onnx_function
from feta.readers.sklearn.combinations import is_combination, read_combination
from feta.readers.sklearn.pipeline import split_pipeline
from feta.readers.sklearn.read import read_sklearn
from feta.readers.sklearn.tree_ensembles import is_tree_ensemble
from feta.readers.sklearn.trees import read_sklearn_trees
from feta.readers.source import SourceOptions, open_source
from feta.readers.statsmodels.read import read_statsmodels
from feta.readers.statsmodels.results import is_statsmodels
from feta.readers.torch.function import is_module, torch_function
from feta.readers.torch.read import read_torch
from feta.readers.xgboost.read import RoundsWarning
from feta.scorer.counted.options import CountingOptions
from feta.scorer.protocol import Scorer
from feta.space.feature_space import FeatureSpace

Method = Literal["auto", "exact", "counted"]
METHODS = ("auto", "exact", "counted")


class CountedModelWarning(UserWarning):
    """A model that could not be read exactly, so its own predictions are counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A scorer, and why it is not a better one."""

    scorer: Scorer
    obstacle: str = ""  # why the model could not be read exactly


def read_model(
    source: Any,  # noqa: ANN401 - any model
    space: FeatureSpace,
    *,
    method: Method = "auto",
    table: TableMaker | None = None,
    people: Matrix | None = None,
    options: CountingOptions | None = None,
) -> Scorer:
    """Read a model with the best reader: exactly if possible, else by counting its predictions.

    Parameters
    ----------
    source
        A path, a fitted estimator or pipeline, a model of XGBoost, LightGBM or CatBoost, results of
        statsmodels, a torch module, a model of Keras, an object with `predict`, or a function of
        a frame. A network takes rows as `space.encode` returns them.
    space
        The raw columns.
    method
        "exact" refuses models that can only be counted. "counted" evaluates the model's own
        predict on every counterpart, even if FETA could read it.
    table
        Converts encoded people to the input of the model, if that is not a frame of raw columns.
    people
        Rows of the user's table, encoded; scores are also compared on them.
    options
        Repetition, batches and limits of a counted model.

    Returns
    -------
    Scorer
        The scorer, for `feta.Model`. Its `provenance` is "proved", "sampled" or "counted".

    Raises
    ------
    NetworkError
        If the model cannot be read, or not exactly with method="exact".

    Warns
    -----
    CountedModelWarning
        If the model could not be read exactly and is counted instead.

    Examples
    --------
    >>> import feta, pandas as pd
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X = pd.DataFrame({"age": [20, 60, 25, 70], "income": [10, 20, 70, 80]})
    >>> forest = RandomForestClassifier(10, random_state=0).fit(X, [0, 0, 1, 1])
    >>> space = feta.FeatureSpace.from_frame(X, sensitive=["age"])
    >>> scorer = feta.read_model(forest, space)
    >>> scorer.provenance, scorer.outputs
    ('proved', 2)
    """
    reading = read_any(source, space, method=method, table=table, people=people, options=options)
    if reading.obstacle and method == "auto":
        message = f"counted, not proved: {reading.obstacle}"
        warnings.warn(message, CountedModelWarning, stacklevel=2)
    return reading.scorer


def read_any(
    source: Any,  # noqa: ANN401 - any model
    space: FeatureSpace,
    *,
    method: Method = "auto",
    table: TableMaker | None = None,
    people: Matrix | None = None,
    options: CountingOptions | None = None,
) -> Reading:
    """Read a model; return also why it could not be read exactly."""
    if method not in METHODS:
        raise SchemaError(f"invalid method: {unknown_choice(method, METHODS)}")
    obstacle = ""
    content = source
    try:
        counted_file = method == "counted" and can_be_counted(source)
        if isinstance(source, str | Path) and not counted_file:
            content = _open(source, space)
        if hasattr(content, "restrict"):  # a file that needs no other reader
            return Reading(content)
        if method != "counted":
            return Reading(read_exactly(content, space, table=table, people=people))
    except NetworkError as error:
        if method == "exact" or not can_be_counted(content):
            raise
        obstacle = str(error)
    try:
        function = countable(content)
        counted = read_callable(function, space, table=table, people=people, options=options)
    except FetaError as error:
        if not obstacle:
            raise
        raise NetworkError(f"{obstacle}; and it cannot be counted either: {error}") from error
    return Reading(counted, obstacle)


def read_exactly(
    source: Any,  # noqa: ANN401 - any model
    space: FeatureSpace,
    *,
    table: TableMaker | None = None,
    people: Matrix | None = None,
) -> Scorer:
    """Read a model in memory with the reader of its kind; raise if there is none."""
    _, last = split_pipeline(source)
    if is_booster(last):
        return read_booster(source, space, table=table)
    if is_catboost(last):
        return _read_catboost(source, space)
    if is_statsmodels(source):
        return read_statsmodels(source, space, table=table)
    if is_combination(last):
        read = partial(read_exactly, space=space, table=table, people=people)
        return read_combination(source, space, read, table=table)
    if is_tree_ensemble(last):
        return read_sklearn_trees(source, space, table=table)
    if is_keras(source):  # before torch: with that backend, it is a module as well
        return read_keras_object(source)
    if is_module(source):
        return read_torch(source)
    if hasattr(source, "predict"):
        return read_sklearn(source, space, people=people, table=table)
    kind = getattr(source, "__qualname__", type(source).__name__)
    raise NetworkError(
        f"there is no exact reader for this model: got {kind}; expected an estimator, a booster "
        "or a torch module"
    )


def _read_catboost(source: Any, space: FeatureSpace) -> Scorer:  # noqa: ANN401 - an estimator
    steps, last = split_pipeline(source)
    if steps is not None:
        raise NetworkError(
            f"{type(last).__name__} after a pipeline is not read exactly: got "
            f"{len(steps.steps)} steps before it; expected none; pass raw columns to CatBoost"
        )
    return read_catboost(last, space)


def _open(path: str | Path, space: FeatureSpace) -> Any:  # noqa: ANN401 - a scorer or an estimator
    """Return the content of a file; pickles are opened by the caller's own code."""
    source = open_source(Path(path), SourceOptions())
    if source.trees is not None:
        for note in source.notes:
            warnings.warn(note, RoundsWarning, stacklevel=4)
        return source.trees.read(space)
    return source.network if source.network is not None else source.estimator


def can_be_counted(source: object) -> bool:
    """Return whether a model in memory, or the file at a path, has a function that predicts."""
    if isinstance(source, str | Path):
        return Path(source).suffix.lower() == ".onnx"
    return hasattr(source, "predict") or callable(source)


def countable(source: Any) -> Any:  # noqa: ANN401 - any model
    """Return the function that is counted; networks take encoded rows."""
    if isinstance(source, str | Path):
        return onnx_function(Path(source))
    if is_keras(source):
        return keras_function(source)
    return torch_function(source) if is_module(source) else source
