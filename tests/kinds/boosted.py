"""Models of XGBoost, LightGBM and CatBoost in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from feta.arrays import Array
from tests.kinds.kind import Built, Kind, Source, amount, several, two, value
from tests.kinds.people import AMOUNTS, MERIT, TABLE, THREE, YES, native

Make = Callable[[Source, Any], Built]
NATIVE = native(TABLE)
N_GROUPS = 8  # for ranking
GROUPS = np.full(N_GROUPS, len(TABLE) // N_GROUPS)


def xgboost(kind: str, target: Array, **settings: Any) -> Source:  # noqa: ANN401 - of the library
    """Train a small wrapper of XGBoost on native categories."""
    import xgboost as library

    options = {"n_estimators": 5, "max_depth": 3, "n_jobs": 1, "enable_categorical": True}
    fit = {"group": GROUPS} if kind == "XGBRanker" else {}
    return getattr(library, kind)(**options | settings).fit(NATIVE, target, **fit)


def lightgbm(kind: str, target: Array, **settings: Any) -> Source:  # noqa: ANN401 - of the library
    """Train a small wrapper of LightGBM on native categories."""
    import lightgbm as library

    options = {"n_estimators": 5, "num_leaves": 6, "min_child_samples": 5, "n_jobs": 1}
    fit = {"group": GROUPS} if kind == "LGBMRanker" else {}
    return getattr(library, kind)(**options | {"verbose": -1} | settings).fit(NATIVE, target, **fit)


def catboost(kind: str, target: Array, **settings: Any) -> Source:  # noqa: ANN401 - of the library
    """Train a small model of CatBoost; categories are texts."""
    import catboost as library

    options = {"iterations": 5, "depth": 3, "thread_count": 1, "random_seed": 0, "verbose": False}
    options |= {"one_hot_max_size": 10, "allow_writing_files": False}
    model = getattr(library, kind)(**options | settings)
    ranked = {"group_id": np.repeat(range(N_GROUPS), GROUPS)} if kind == "CatBoostRanker" else {}
    return model.fit(library.Pool(TABLE, target, cat_features=["sex", "job"], **ranked))


def _xgboost(name: str, make: Make, kind: str, target: Array, **settings: object) -> Kind:
    def build(folder: Path) -> Built:
        del folder
        model = xgboost(kind, target, **settings)
        return make(model, lambda frame: model.predict(native(frame)))

    return Kind("XGBoost", name, build, ("xgboost",))


def _lightgbm(name: str, make: Make, kind: str, target: Array, **settings: object) -> Kind:
    def build(folder: Path) -> Built:
        del folder
        model = lightgbm(kind, target, **settings)
        return make(model, lambda frame: model.predict(native(frame)))

    return Kind("LightGBM", name, build, ("lightgbm",))


def _catboost(name: str, make: Make, kind: str, target: Array, **settings: object) -> Kind:
    def build(folder: Path) -> Built:
        del folder
        return make(catboost(kind, target, **settings), None)

    return Kind("CatBoost", name, build, ("catboost",))


def _xgboost_booster(folder: Path) -> Built:
    import xgboost as library

    del folder
    booster = xgboost("XGBClassifier", YES).get_booster()

    def predict(frame: pd.DataFrame) -> Array:
        matrix = library.DMatrix(native(frame), enable_categorical=True)
        return np.asarray(booster.predict(matrix)) > 0.5

    return two(booster, predict)


def _lightgbm_booster(folder: Path) -> Built:
    del folder
    booster = lightgbm("LGBMClassifier", YES).booster_
    return two(booster, lambda frame: booster.predict(native(frame)) > 0.5)


POISSON = {"objective": "count:poisson"}
LOG_LINK = {"objective": "poisson", "learning_rate": 1.0}
DART = {"booster": "dart", "rate_drop": 0.3}
RF = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
ALONE = {"one_hot_max_size": 1, "max_ctr_complexity": 1}
COMBINED = {"one_hot_max_size": 1, "max_ctr_complexity": 2, "iterations": 40, "depth": 4}

KINDS = (
    _xgboost("XGBClassifier, native categories", two, "XGBClassifier", YES),
    _xgboost("XGBClassifier, several classes", several, "XGBClassifier", THREE),
    _xgboost("XGBClassifier, DART", two, "XGBClassifier", YES, **DART),
    _xgboost("XGBRFClassifier", two, "XGBRFClassifier", YES),
    _xgboost("XGBRegressor", value, "XGBRegressor", MERIT),
    _xgboost("XGBRegressor, Poisson", amount, "XGBRegressor", AMOUNTS, **POISSON),
    _xgboost("XGBRFRegressor", value, "XGBRFRegressor", MERIT),
    _xgboost("XGBRanker", value, "XGBRanker", YES),
    Kind("XGBoost", "Booster", _xgboost_booster, ("xgboost",)),
    _lightgbm("LGBMClassifier, native categories", two, "LGBMClassifier", YES),
    _lightgbm("LGBMClassifier, several classes", several, "LGBMClassifier", THREE),
    _lightgbm("LGBMClassifier, DART", two, "LGBMClassifier", YES, boosting_type="dart"),
    _lightgbm("LGBMClassifier, rf", two, "LGBMClassifier", YES, **RF),
    _lightgbm("LGBMClassifier, GOSS", two, "LGBMClassifier", YES, data_sample_strategy="goss"),
    _lightgbm("LGBMClassifier, linear trees", two, "LGBMClassifier", YES, linear_tree=True),
    _lightgbm("LGBMRegressor", value, "LGBMRegressor", MERIT),
    _lightgbm("LGBMRegressor, Poisson", amount, "LGBMRegressor", AMOUNTS, **LOG_LINK),
    _lightgbm("LGBMRanker", value, "LGBMRanker", YES),
    Kind("LightGBM", "Booster", _lightgbm_booster, ("lightgbm",)),
    _catboost("CatBoostClassifier, one-hot", two, "CatBoostClassifier", YES),
    _catboost("CatBoostClassifier, statistics", two, "CatBoostClassifier", YES, **ALONE),
    _catboost("CatBoostClassifier, combinations", two, "CatBoostClassifier", YES, **COMBINED),
    _catboost("CatBoostClassifier, several classes", several, "CatBoostClassifier", THREE),
    _catboost("CatBoostRegressor", value, "CatBoostRegressor", MERIT),
    _catboost("CatBoostRanker", value, "CatBoostRanker", YES),
)
