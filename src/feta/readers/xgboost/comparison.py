"""Comparison of a forest with the XGBoost object that it was read from."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.readers.trees.features import Value
from feta.readers.trees.source_table import CHECKED_ROWS, SourceTable, check_bits
from feta.readers.xgboost.columns import bind_features, stored_categories
from feta.readers.xgboost.model import XgboostModel
from feta.scorer.forest.forest import Forest
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people


def compare_scores(
    forest: Forest,
    source: Any,  # noqa: ANN401 - a booster or a wrapper
    model: XgboostModel,
    space: FeatureSpace,
    *,
    rounds: int,
    categories: Mapping[str, Sequence[Value]],
) -> None:
    """Compare margins with those of a booster or wrapper on random people."""
    import xgboost  # noqa: PLC0415 - only for objects of the library

    people = draw_people(space, np.random.default_rng(0), CHECKED_ROWS)
    table = source_table(model, space, categories)
    margins = predict_margins(source, model, table, people, rounds=rounds)
    check_bits(forest, people, margins, f"XGBoost {xgboost.__version__}")


def source_table(
    model: XgboostModel, space: FeatureSpace, categories: Mapping[str, Sequence[Value]]
) -> SourceTable:
    """Return the columns that the model reads."""
    attributes, features = bind_features(model, space, categories)
    stored = [
        stored_categories(model, index, attribute, categories)
        for index, attribute in enumerate(attributes)
    ]
    names = model.names or tuple(attribute.name for attribute in attributes)
    return SourceTable(names, attributes, features, stored)


def predict_margins(
    source: Any,  # noqa: ANN401 - a booster or a wrapper
    model: XgboostModel,
    table: SourceTable,
    people: Matrix,
    *,
    rounds: int,
) -> Matrix:
    """Return the margins that the library itself predicts."""
    import xgboost  # noqa: PLC0415 - only for objects of the library

    used = (0, rounds)
    stored = any(categories.values for categories in model.categories)
    as_frame = stored or (model.names and not model.categorical)
    rows: Any = table.frame(people) if as_frame else table.matrix(people)
    if not isinstance(source, xgboost.Booster):
        return np.asarray(source.predict(rows, output_margin=True, iteration_range=used))
    named: dict[str, Any] = {}
    if not as_frame:
        named = {"feature_names": source.feature_names, "feature_types": source.feature_types}
    matrix = xgboost.DMatrix(rows, enable_categorical=True, **named)
    return np.asarray(source.predict(matrix, output_margin=True, iteration_range=used))
