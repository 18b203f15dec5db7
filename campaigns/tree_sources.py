"""Models of tree libraries, trained on a table: FETA's reading, and the library's own answers.

To add a library, write one generator of `Trained` models and list it in `LIBRARIES`.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import sklearn
import xgboost
from sklearn import ensemble, tree
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from feta.arrays import Array
from feta.readers.lightgbm.read import read_lightgbm
from feta.readers.sklearn.trees import read_sklearn_trees
from feta.readers.xgboost.read import read_xgboost
from feta.scorer.forest.forest import Forest
from feta.space.attribute import Categorical
from feta.space.feature_space import FeatureSpace

# A function of a table: scores, (rows, outputs), or class indices.
Answer = Callable[[pd.DataFrame], Array]

REGRESSION = 0
MIN_TREES = 3


@dataclass(frozen=True)
class Table:
    """A table, its labels by the number of classes (0: a number), and its space."""

    name: str
    frame: pd.DataFrame
    labels: dict[int, Array]
    space: FeatureSpace
    native: bool  # whether categories are columns of their own type

    @property
    def categories(self) -> list[str]:
        """The columns that are categories."""
        return [a.name for a in self.space.attributes if isinstance(a, Categorical)]


@dataclass(frozen=True)
class Part:
    """Which models of a library are trained and compared, and how large they are."""

    wanted: Callable[[str], object] = bool  # by the name of a model
    divisor: int = 1  # of the numbers of trees
    n_rows: int = 10_000

    def size(self, n_trees: int) -> int:
        """Return how many trees to train instead of a number."""
        return max(MIN_TREES, n_trees // self.divisor)

    def rows(self, table: Table) -> pd.DataFrame:
        """Return the rows that are compared."""
        return table.frame.sample(min(self.n_rows, len(table.frame)), random_state=1)


@dataclass(frozen=True)
class Trained:
    """A trained model: what FETA reads, and what the library itself answers."""

    name: str
    classes: int  # 0: regression
    forest: Forest
    scores: Answer
    labels: Answer | None
    same_from_files: bool | None = None  # whether its files are read as the same forest


def xgboost_models(table: Table, part: Part) -> Iterator[Trained]:
    """Yield boosted trees, DART and random forests; wrappers, boosters and files."""
    cases: dict[str, tuple[dict[str, Any], int]] = {
        "100 x 6": ({"n_estimators": 100, "max_depth": 6}, 2),
        "500 x 8": ({"n_estimators": 500, "max_depth": 8}, 2),
        "dart": ({"n_estimators": 50, "max_depth": 6, "booster": "dart", "rate_drop": 0.1}, 2),
        "multi-class": ({"n_estimators": 50, "max_depth": 6}, 3),
        "multi-class dart": ({"n_estimators": 20, "booster": "dart", "rate_drop": 0.1}, 3),
        "rf": ({"n_estimators": 100, "max_depth": 8}, 2),
        "regression": ({"n_estimators": 50}, REGRESSION),
        "poisson": ({"n_estimators": 20, "objective": "count:poisson"}, REGRESSION),
    }
    for name in filter(part.wanted, cases):
        settings, classes = cases[name]
        settings["n_estimators"] = part.size(settings["n_estimators"])
        kind = "XGBRF" if name == "rf" else "XGB"
        kind += "Classifier" if classes else "Regressor"
        wrapper = getattr(xgboost, kind)(**settings, enable_categorical=True, n_jobs=1)
        wrapper.fit(table.frame, table.labels[classes])
        yield xgboost_reading(name, wrapper, classes, table.space)
        if "dart" in name:
            booster = wrapper.get_booster()
            yield booster_reading(f"{name} (Booster)", booster, classes, table.space)


def xgboost_reading(
    name: str,
    wrapper: Any,  # noqa: ANN401 - XGBoost ships no types
    classes: int,
    space: FeatureSpace,
) -> Trained:
    """Return what FETA reads of a wrapper, and its own answers."""
    forest = read_xgboost(wrapper, space)
    same = True
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("json", "ubj"):
            path = Path(folder) / f"model.{suffix}"
            wrapper.save_model(path)
            same &= read_xgboost(path, space).fingerprint == forest.fingerprint

    def margins(rows: pd.DataFrame) -> Array:
        return _columns(wrapper.predict(rows, output_margin=True))

    return Trained(name, classes, forest, margins, wrapper.predict if classes else None, same)


def booster_reading(
    name: str,
    booster: Any,  # noqa: ANN401 - XGBoost ships no types
    classes: int,
    space: FeatureSpace,
) -> Trained:
    """Return what FETA reads of a booster, whose DART adds in another order."""

    def margins(rows: pd.DataFrame) -> Array:
        matrix = xgboost.DMatrix(rows, enable_categorical=True)
        return _columns(booster.predict(matrix, output_margin=True))

    return Trained(name, classes, read_xgboost(booster, space), margins, None)


def lightgbm_models(table: Table, part: Part) -> Iterator[Trained]:
    """Yield boosted trees, DART and random forests, with each treatment of missing values."""
    rf = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.632}
    cases: dict[str, tuple[dict[str, Any], int]] = {
        "gbdt": ({"n_estimators": 200}, 2),
        "dart": ({"n_estimators": 100, "boosting_type": "dart"}, 2),
        "rf": ({"n_estimators": 100, **rf}, 2),
        "multi-class": ({"n_estimators": 50}, 3),
        "multi-class rf": ({"n_estimators": 50, **rf}, 3),
        "zero is missing": ({"n_estimators": 100, "zero_as_missing": True}, 2),
        "nothing is missing": ({"n_estimators": 100, "use_missing": False}, 2),
        "sigmoid 2": ({"n_estimators": 50, "sigmoid": 2.0}, 2),
        "regression": ({"n_estimators": 50}, REGRESSION),
        "regression rf": ({"n_estimators": 50, **rf}, REGRESSION),
        "poisson": ({"n_estimators": 20, "objective": "poisson"}, REGRESSION),
    }
    for name in filter(part.wanted, cases):
        settings, classes = cases[name]
        settings["n_estimators"] = part.size(settings["n_estimators"])
        kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        model = kind(verbose=-1, n_jobs=1, **settings)
        model.fit(table.frame, table.labels[classes])
        yield lightgbm_reading(name, model, classes, table.space)


def lightgbm_reading(
    name: str,
    model: Any,  # noqa: ANN401 - LightGBM ships no types
    classes: int,
    space: FeatureSpace,
) -> Trained:
    """Return what FETA reads of a LightGBM model, and its own answers."""
    forest = read_lightgbm(model, space)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.txt"
        model.booster_.save_model(path)
        same = read_lightgbm(path, space).fingerprint == forest.fingerprint
    factor = getattr(model, "sigmoid", 1.0)

    def raw(rows: pd.DataFrame) -> Array:
        # The raw score of a random forest is the sum; the score is the mean.
        return _columns(model.predict(rows, raw_score=True)) / forest.denominator * factor

    return Trained(name, classes, forest, raw, model.predict if classes else None, same)


def sklearn_models(table: Table, part: Part) -> Iterator[Trained]:
    """Yield single trees, forests, boosted trees and bagging, bare or behind a pipeline."""
    if table.native:
        for kind in ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"):
            model = getattr(ensemble, kind)(
                max_iter=part.size(50), categorical_features="from_dtype", random_state=0
            )
            if part.wanted(f"{kind}, native"):
                yield sklearn_reading(f"{kind}, native", model, table, 2)
    for name, classes, model in _estimators(part):
        if not table.native and "GradientBoosting" in name and "Hist" not in name:
            continue  # takes no missing numbers
        if not part.wanted(name):
            continue
        piped = make_pipeline(preprocessing(table, name), model) if table.native else model
        yield sklearn_reading(name, piped, table, classes)


def _estimators(part: Part) -> Iterator[tuple[str, int, Any]]:
    trees: dict[str, Any] = {"n_estimators": part.size(50), "n_jobs": 1, "random_state": 0}
    boosted = {"n_estimators": part.size(50), "random_state": 0}
    for kind in ("Classifier", "Regressor"):
        members: dict[str, Any] = {
            "DecisionTree": getattr(tree, f"DecisionTree{kind}")(random_state=0),
            "ExtraTree": getattr(tree, f"ExtraTree{kind}")(random_state=0),
            "RandomForest": getattr(ensemble, f"RandomForest{kind}")(**trees),
            "ExtraTrees": getattr(ensemble, f"ExtraTrees{kind}")(**trees, max_depth=12),
            "GradientBoosting": getattr(ensemble, f"GradientBoosting{kind}")(**boosted),
            "HistGradientBoosting": getattr(ensemble, f"HistGradientBoosting{kind}")(
                max_iter=part.size(50), random_state=0
            ),
            "Bagging": getattr(ensemble, f"Bagging{kind}")(**boosted | {"max_features": 0.7}),
        }
        for name, model in members.items():
            for classes in (2, 3) if kind == "Classifier" else (REGRESSION,):
                suffix = f", {classes} classes" if classes else ""
                yield f"{name}{kind}{suffix}", classes, sklearn.base.clone(model)


def preprocessing(table: Table, name: str) -> ColumnTransformer:
    """Return steps for all columns: imputed and scaled numbers, one-hot and ordinal categories."""
    missing = -2 if name.startswith("GradientBoosting") else np.nan
    numbers = [name for name in table.frame if name not in table.categories]
    half = len(table.categories) // 2
    ordinal = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=missing
    )
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            ("one-hot", one_hot, table.categories[:half]),
            ("ordinal", ordinal, table.categories[half:]),
        ]
    )


def sklearn_reading(
    name: str,
    model: Any,  # noqa: ANN401 - scikit-learn ships no types
    table: Table,
    classes: int,
) -> Trained:
    """Fit an estimator; return what FETA reads of it, and its own answers."""
    classes = REGRESSION if "Regressor" in name else classes
    model.fit(_plain(table.frame, name), table.labels[classes])
    forest = read_sklearn_trees(model, table.space)

    def scores(rows: pd.DataFrame) -> Array:
        rows = _plain(rows, name)
        if not classes:
            return _columns(model.predict(rows))
        boosted = "GradientBoosting" in name
        return _columns((model.decision_function if boosted else model.predict_proba)(rows))

    def labels(rows: pd.DataFrame) -> Array:
        return np.asarray(model.predict(_plain(rows, name)))

    return Trained(name, classes, forest, scores, labels if classes else None)


def _plain(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return categories as texts, unless the estimator reads their type."""
    if name.endswith("native"):
        return rows
    types = {column: object for column in rows if rows[column].dtype == "category"}
    return rows.astype(types)


def _columns(scores: object) -> Array:
    numbers = np.asarray(scores)
    return numbers.reshape(len(numbers), -1).astype(np.float64)


LIBRARIES: dict[str, Callable[[Table, Part], Iterator[Trained]]] = {
    f"XGBoost {xgboost.__version__}": xgboost_models,
    f"LightGBM {lightgbm.__version__}": lightgbm_models,
    f"scikit-learn {sklearn.__version__}": sklearn_models,
}
