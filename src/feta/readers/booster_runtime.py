"""Boosters as the user's runtime: their own predictions for people and for rows of a table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Array, Matrix
from feta.io.raw_table import RawTable
from feta.model import Model
from feta.readers.booster_files import TreeFile
from feta.readers.boosters import Booster, open_booster
from feta.readers.catboost.read import is_catboost, raw_scores
from feta.readers.onnx.trees import onnx_tree_sums
from feta.readers.runtime import Runtime, SourceAnswers, estimator_answers, estimator_name
from feta.readers.sklearn.tree_inputs import inputs_of
from feta.readers.trees.source_table import SourceTable
from feta.scorer.protocol import SHARES

if TYPE_CHECKING:
    import pandas as pd

    from feta.scorer.network.agreement import Squash


@dataclass(frozen=True, slots=True, eq=False)
class _RawInput:
    """Raw columns as a booster takes them: categories with the codes of its training."""

    table: SourceTable
    as_frame: bool

    def of_people(self, people: Matrix) -> "pd.DataFrame | Array":
        """Return the input of encoded people."""
        return self.table.frame(people) if self.as_frame else self.table.matrix(people)

    def of_frame(self, frame: "pd.DataFrame") -> "pd.DataFrame | Array":
        """Return the input of rows of a user's table; texts become the booster's categories."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        columns = {}
        for name, categories in zip(self.table.names, self.table.categories, strict=True):
            column = frame[name]
            if categories and not isinstance(column.dtype, pd.CategoricalDtype):
                column = column.astype(pd.CategoricalDtype(list(categories)))
            columns[name] = column
        rows = pd.DataFrame(columns)
        return rows if self.as_frame else rows.to_numpy(dtype=np.float64)


def booster_runtime(source: Any, model: Model, *, from_file: bool = False) -> Runtime:  # noqa: ANN401 - an object of a library
    """Return a runtime that evaluates people with a booster or wrapper of the user."""
    booster = open_booster(source, from_file=from_file)
    wrapper = hasattr(source, "get_params")
    name = estimator_name(model, source) if wrapper else f"{booster.library}'s own predict"

    def answers(rows: Any) -> SourceAnswers:  # noqa: ANN401 - a frame or a matrix
        if wrapper:
            return estimator_answers(source, source, model, rows)
        return _answers(booster, model, rows)

    if not booster.reads_raw_columns(model.space):
        encoded = inputs_of(None, booster.columns, model.space, table=None)
        return Runtime(name, answers, encoded.table)
    table = booster.table(model.space)
    raw = _RawInput(table, as_frame=bool(booster.names))
    names = tuple(table.names)

    def run(rows: Any) -> SourceAnswers:  # noqa: ANN401 - a frame or a matrix
        return answers(raw.of_frame(rows) if hasattr(rows, "columns") else rows)

    return Runtime(name, run, raw.of_people, names)


def tree_file_runtime(trees: TreeFile, model: Model) -> Runtime | None:
    """Return a runtime of the library that wrote a file; None if it is not installed."""
    if trees.library == "onnx":
        sums = onnx_tree_sums(trees.path, model.space)
        return None if sums is None else _sums_runtime(sums, model)
    source = trees.open()
    if source is None:
        return None
    if is_catboost(source):
        return catboost_runtime(source, model)
    return booster_runtime(source, model, from_file=True)


def _sums_runtime(sums: Callable[[Matrix], Array], model: Model) -> Runtime:
    """Return a runtime that decides by the sums of onnxruntime; of 1 − s and s, it knows s."""

    def run(people: Matrix) -> SourceAnswers:
        outputs = np.asarray(sums(people), dtype=np.float64)
        if outputs.shape[1] == 1 and model.scorer.link in SHARES:
            outputs = np.hstack([1 - outputs, outputs])
        return SourceAnswers(model.rule.answers_of_outputs(outputs, probabilities=False))

    return Runtime("onnxruntime's own sums", run, lambda people: people)


def catboost_runtime(source: Any, model: Model) -> Runtime:  # noqa: ANN401 - an object of the library
    """Return a runtime that evaluates people with a model of CatBoost."""
    names = tuple(str(name) for name in source.feature_names_)
    known = tuple(attribute.name for attribute in model.space.attributes)
    table = RawTable(model.space, names if set(names) <= set(known) else known)
    classifier = hasattr(source, "predict_proba")
    name = estimator_name(model, source) if classifier else "CatBoost's own predict"

    def run(rows: Any) -> SourceAnswers:  # noqa: ANN401 - a frame
        if classifier:
            return estimator_answers(source, source, model, rows)
        raw = raw_scores(source, rows)
        outputs = raw.reshape(len(raw), -1)
        answers = model.rule.answers_of_outputs(outputs, probabilities=False)
        same = outputs.shape[1] == model.scorer.outputs
        return SourceAnswers(answers, outputs if same else None)

    return Runtime(name, run, table, table.names)


def _answers(booster: Booster, model: Model, rows: Any) -> SourceAnswers:  # noqa: ANN401 - a frame or a matrix
    """Decide by the library's own probabilities where it compares these, else by its scores."""
    probabilities = booster.boosted.link == "logit" and len(booster.boosted.base) == 1
    outputs = booster.predictions(rows) if probabilities else booster.scores(rows)
    outputs = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
    decided = model.rule.answers_of_outputs(outputs, probabilities=probabilities)
    squash: Squash | None = "sigmoid" if probabilities else None
    if outputs.shape[1] != model.scorer.outputs:
        return SourceAnswers(decided)
    return SourceAnswers(decided, outputs, squash)
