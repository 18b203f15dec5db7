"""The ensembles that `benchmarks.forests` measures: trained, read, and called by their library.

One-hot cases are trained on encoded people, native ones on the codes of categories.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta import Argmax, FeatureSpace, Integer, Threshold
from feta.arrays import Array, Counts, Matrix
from feta.datasets.dataset import Dataset
from feta.readers.catboost.read import read_catboost
from feta.readers.lightgbm.read import read_lightgbm
from feta.readers.sklearn.trees import read_sklearn_trees
from feta.readers.trees.features import Value
from feta.readers.xgboost.read import read_xgboost
from feta.scorer.forest.forest import Forest
from feta.space.attribute import Categorical

Case = Callable[[Dataset, Counts], "Trained"]


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A trained ensemble, as FETA reads it and as its library is called."""

    forest: Forest
    rule: Threshold | Argmax
    prepare: Callable[[Array], Any]  # rows in the library's own format; not measured
    raw_score: Callable[[Any], object]
    inputs: Array  # one row per measured person
    library: str  # its name and version


def encoded_space(space: FeatureSpace) -> FeatureSpace:
    """Return the space whose attributes are the encoded columns: trees read them directly."""
    lows, highs = np.zeros(space.width, dtype=int), np.ones(space.width, dtype=int)
    for attribute in space.attributes:
        if not isinstance(attribute, Categorical):
            column = space.columns_of(attribute).start
            assert isinstance(attribute, Integer)
            lows[column], highs[column] = attribute.low, attribute.high
    limits = zip(lows.tolist(), highs.tolist(), strict=True)
    return FeatureSpace(
        tuple(Integer(f"f{n}", *ends, sensitive=n == 0) for n, ends in enumerate(limits))
    )


def codes(data: Dataset) -> tuple[Matrix, dict[str, Sequence[Value]]]:
    """Return the rows with categories as codes, and the categories in the order of codes."""
    columns, categories = [], dict[str, Sequence[Value]]()
    for attribute in data.space.attributes:
        values = data.frame[attribute.name]
        if isinstance(attribute, Categorical):
            categories[attribute.name] = attribute.values
            columns.append(values.map(dict(zip(attribute.values, range(99), strict=False))))
        else:
            columns.append(values)
    return np.stack([column.to_numpy(float) for column in columns], axis=1), categories


def xgboost_case(*, trees: int, depth: int, native: bool = False) -> Case:
    """Return a case of XGBoost.

    `predict` of a prepared DMatrix is faster than `inplace_predict`. It caches the prediction, so
    every call gets a new DMatrix.
    """

    def train(data: Dataset, chosen: Counts) -> Trained:
        import xgboost  # noqa: PLC0415 - only for its own cases

        settings = {"objective": "binary:logistic", "max_depth": depth, "nthread": 1}
        rows, categories = codes(data) if native else (data.space.encode(data.frame), None)
        kinds = [
            "c" if isinstance(attribute, Categorical) else "q"
            for attribute in data.space.attributes
        ]
        matrix = xgboost.DMatrix(
            rows,
            data.labels,
            feature_types=kinds if native else None,
            enable_categorical=native,
        )
        booster = xgboost.train(settings, matrix, num_boost_round=trees)
        space = data.space if native else encoded_space(data.space)
        forest = read_xgboost(booster, space, categories=categories)
        inputs = np.ascontiguousarray(rows[chosen], dtype=np.float32)
        return Trained(
            forest,
            Threshold(0.0),
            lambda rows: xgboost.DMatrix(rows, feature_types=kinds if native else None, nthread=1),
            lambda matrix: booster.predict(matrix, output_margin=True),
            inputs,
            f"XGBoost {xgboost.__version__}",
        )

    return train


def lightgbm_case(*, trees: int, leaves: int, native: bool = False) -> Case:
    """Return a case of LightGBM."""

    def train(data: Dataset, chosen: Counts) -> Trained:
        import lightgbm  # noqa: PLC0415 - only for its own cases

        rows, categories = codes(data) if native else (data.space.encode(data.frame), None)
        listed = [
            index
            for index, attribute in enumerate(data.space.attributes)
            if isinstance(attribute, Categorical)
        ]
        settings = {"objective": "binary", "num_leaves": leaves, "num_threads": 1, "verbose": -1}
        table = lightgbm.Dataset(
            rows, data.labels, categorical_feature=listed if native else "auto"
        )
        booster = lightgbm.train(settings, table, num_boost_round=trees)
        space = data.space if native else encoded_space(data.space)
        forest = read_lightgbm(booster, space, categories=categories)
        return Trained(
            forest,
            Threshold(0.0),
            lambda rows: rows,
            lambda rows: booster.predict(rows, raw_score=True),
            np.ascontiguousarray(rows[chosen]),
            f"LightGBM {lightgbm.__version__}",
        )

    return train


def catboost_case(*, trees: int, depth: int) -> Case:
    """Return a case of CatBoost, whose call gets a prepared Pool, the fastest input."""

    def train(data: Dataset, chosen: Counts) -> Trained:
        import catboost  # noqa: PLC0415 - only for its own cases

        rows = data.space.encode(data.frame)
        model = catboost.CatBoostClassifier(
            iterations=trees, depth=depth, thread_count=1, verbose=0, allow_writing_files=False
        )
        model.fit(rows, data.labels)
        return Trained(
            read_catboost(model, encoded_space(data.space)),
            Threshold(0.0),
            catboost.Pool,
            lambda pool: model.predict(pool, prediction_type="RawFormulaVal", thread_count=1),
            np.ascontiguousarray(rows[chosen], dtype=np.float32),
            f"CatBoost {catboost.__version__}",
        )

    return train


def random_forest_case(*, trees: int) -> Case:
    """Return a case of scikit-learn's random forest."""

    def train(data: Dataset, chosen: Counts) -> Trained:
        import sklearn  # noqa: PLC0415 - only for its own cases
        from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

        rows = data.space.encode(data.frame)
        estimator: Any = RandomForestClassifier(trees, random_state=0, n_jobs=1)
        estimator.fit(rows, data.labels)
        forest = read_sklearn_trees(estimator, data.space).difference()
        return Trained(
            forest,
            Threshold(0.0),
            lambda rows: rows,
            estimator.predict_proba,
            rows[chosen].astype(np.float32),
            f"scikit-learn {sklearn.__version__}",
        )

    return train


CASES: dict[str, Case] = {
    "xgboost-100x6": xgboost_case(trees=100, depth=6),
    "xgboost-500x8": xgboost_case(trees=500, depth=8),
    "lightgbm-1000x31": lightgbm_case(trees=1000, leaves=31),
    "catboost-200x6": catboost_case(trees=200, depth=6),
    "xgboost-100x6-native": xgboost_case(trees=100, depth=6, native=True),
    "lightgbm-200x31-native": lightgbm_case(trees=200, leaves=31, native=True),
    "random-forest-300": random_forest_case(trees=300),
}
