"""The part of the campaign `tree_bits` for CatBoost and for ONNX graphs."""

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import catboost
import lightgbm
import numpy as np
import onnx
import onnxmltools
import onnxruntime
import pandas as pd
import skl2onnx
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from campaigns.tree_sources import Part, Table
from campaigns.tree_table import count_decisions, count_scores, forest_scores
from feta.readers.catboost.read import read_catboost
from feta.readers.onnx.trees import read_onnx_trees
from feta.space.attribute import Attribute, Categorical
from feta.space.feature_space import FeatureSpace

ABSENT = "(missing)"


def other_versions() -> str:
    """Return the versions of the libraries."""
    libraries = (catboost, onnxruntime, skl2onnx, onnxmltools)
    return ", ".join(f"{library.__name__} {library.__version__}" for library in libraries)


def with_texts(table: Table) -> Table:
    """Return a table whose categories are texts and never missing."""
    frame = table.frame.copy()
    attributes: list[Attribute] = []
    for attribute in table.space.attributes:
        texts = isinstance(attribute, Categorical) and isinstance(attribute.values[0], str)
        if not texts or not isinstance(attribute, Categorical):
            attributes.append(attribute)
            continue
        column = frame[attribute.name].astype(object)
        frame[attribute.name] = column.where(column.notna(), ABSENT)
        values = (*attribute.values, ABSENT)
        attributes.append(replace(attribute, values=values, missing=False))
    return replace(table, frame=frame, space=FeatureSpace(tuple(attributes)))


def catboost_models(table: Table, part: Part) -> Iterator[tuple[str, Any]]:
    """Yield CatBoost's models with their names."""
    texts = [column for column in table.frame if table.frame[column].dtype == object]
    one_hot = {"one_hot_max_size": 255}
    cases: dict[str, tuple[dict[str, Any], int]] = {
        "200 x 6": ({"iterations": 200, **one_hot}, 2),
        "depthwise": ({"iterations": 100, "grow_policy": "Depthwise", **one_hot}, 2),
        "lossguide": ({"iterations": 100, "grow_policy": "Lossguide", **one_hot}, 2),
        "missing above": ({"iterations": 50, "nan_mode": "Max", "depth": 10, **one_hot}, 2),
        "multi-class": ({"iterations": 100, **one_hot}, 3),
        "statistics": ({"iterations": 200, "max_ctr_complexity": 1}, 2),
        "multi-class statistics": ({"iterations": 100, "max_ctr_complexity": 1}, 3),
    }
    for name in filter(part.wanted, cases):
        settings, classes = cases[name]
        settings["iterations"] = part.size(settings["iterations"])
        model = catboost.CatBoostClassifier(
            verbose=0, thread_count=2, allow_writing_files=False, **settings
        )
        yield name, model.fit(table.frame, table.labels[classes], cat_features=texts)


def compare_catboost(native: Table, part: Part, counts: Counter[str]) -> None:
    """Compare all models of CatBoost on one table."""
    table = with_texts(native)
    rows = part.rows(table)
    people = table.space.encode(rows)
    for name, model in catboost_models(table, part):
        forest = read_catboost(model, table.space)
        expected = np.asarray(model.predict(rows, prediction_type="RawFormulaVal"))
        report = f"{table.name}: CatBoost, {name}, {len(forest.trees.roots)} trees"
        count_scores(report, forest_scores(forest, people), expected, counts)
        count_decisions(table.space, forest, people, model.predict(rows).ravel(), counts)


def as_numbers(table: Table) -> Table:
    """Return a table of numbers: categories are codes, NaN where they are missing."""
    frame, attributes = {}, []
    for attribute in table.space.attributes:
        column = table.frame[attribute.name]
        if isinstance(attribute, Categorical):
            codes = {value: code for code, value in enumerate(attribute.values)}
            column = column.astype(object).map(codes)
            attribute = replace(attribute, values=tuple(range(len(codes))))  # noqa: PLW2901 - its codes
        frame[attribute.name] = column.astype(float)
        attributes.append(attribute)
    return replace(table, frame=pd.DataFrame(frame), space=FeatureSpace(tuple(attributes)))


def onnx_lightgbm(rows: np.ndarray, labels: np.ndarray, size: int) -> onnx.ModelProto:
    """Return a converted model of LightGBM."""
    model = lightgbm.LGBMClassifier(n_estimators=size, verbose=-1, n_jobs=2).fit(rows, labels)
    return onnxmltools.convert_lightgbm(model, initial_types=_entry(rows), zipmap=False)


def onnx_xgboost(rows: np.ndarray, labels: np.ndarray, size: int) -> onnx.ModelProto:
    """Return a converted model of XGBoost."""
    model = xgboost.XGBClassifier(n_estimators=size, n_jobs=2).fit(rows, labels)
    return onnxmltools.convert_xgboost(model, initial_types=_entry(rows))


def onnx_random_forest(rows: np.ndarray, labels: np.ndarray, size: int) -> onnx.ModelProto:
    """Return a converted random forest of scikit-learn."""
    forest = RandomForestClassifier(size, max_depth=8, random_state=0, n_jobs=2)
    return _from_sklearn(forest, rows, labels)


def onnx_gradient_boosting(rows: np.ndarray, labels: np.ndarray, size: int) -> onnx.ModelProto:
    """Return converted boosted trees of scikit-learn."""
    return _from_sklearn(GradientBoostingClassifier(n_estimators=max(5, size // 4)), rows, labels)


def _from_sklearn(
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    rows: np.ndarray,
    labels: np.ndarray,
) -> onnx.ModelProto:
    filled = np.nan_to_num(rows, nan=-1.0)
    first = filled[:1].astype(np.float32)
    return skl2onnx.to_onnx(estimator.fit(filled, labels), first, options={"zipmap": False})


def _entry(rows: np.ndarray) -> list[tuple[str, FloatTensorType]]:
    return [("X", FloatTensorType([None, rows.shape[1]]))]


CONVERTED = {
    "LightGBM": onnx_lightgbm,
    "XGBoost": onnx_xgboost,
    "RandomForest": onnx_random_forest,
    "GradientBoosting": onnx_gradient_boosting,
}


def onnx_models(table: Table, part: Part) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield converted models with their names."""
    for classes in (2, 3):
        for name, convert in CONVERTED.items():
            if part.wanted(f"{name}, {classes} classes"):
                model = convert(table.frame.to_numpy(), table.labels[classes], part.size(100))
                yield f"{name}, {classes} classes", model


def compare_onnx(native: Table, part: Part, counts: Counter[str]) -> None:
    """Compare converted models on one table."""
    table = as_numbers(native)
    rows = part.rows(table)
    people = table.space.encode(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the converters
        for name, model in onnx_models(table, part):
            forest = read_onnx_trees(model, table.space)
            labels = _run(model, rows)[0].ravel()
            count_decisions(table.space, forest, people, labels, counts)
            report = f"{table.name}: ONNX, {name}"
            expected = _raw_scores(model, rows)[:, -forest.outputs :]
            count_scores(report, forest_scores(forest, people), expected, counts)


def _run(model: onnx.ModelProto, rows: pd.DataFrame) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds = {session.get_inputs()[0].name: rows.to_numpy(dtype=np.float32)}
    return [np.asarray(output) for output in session.run(None, feeds)]


def _raw_scores(model: onnx.ModelProto, rows: pd.DataFrame) -> np.ndarray:
    """Return the scores of the same graph without their transformation."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    (trees,) = (node for node in copy.graph.node if node.op_type.startswith("TreeEnsemble"))
    for attribute in trees.attribute:
        if attribute.name == "post_transform":
            attribute.s = b"NONE"
    return _run(copy, rows)[1]
