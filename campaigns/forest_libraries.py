"""Small models that libraries train on random data, compared with their own predictions."""

import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn import ensemble, tree
from sklearn.pipeline import make_pipeline

import feta
from campaigns.tree_lattices import Answers, counterpart_table, differences
from campaigns.tree_sources import (
    REGRESSION,
    Table,
    Trained,
    lightgbm_reading,
    preprocessing,
    sklearn_reading,
    xgboost_reading,
)
from feta.space.attribute import Categorical, Derived, Real
from feta.space.feature_space import FeatureSpace
from tests import oracle
from tests.forest_cases import random_record, random_space

TRAINED_ROWS, COMPARED_PEOPLE = 120, 3

# The end of the names of differences for people whom FETA labels as sensitive to rounding.
SENSITIVE = " (runtime-sensitive)"


def random_table(rng: np.random.Generator) -> Table:
    """Draw a space, rows, and labels that depend on all columns."""
    drawn = random_space(rng)
    attributes = tuple(
        replace(a, other=False) if isinstance(a, Categorical) else a
        for a in drawn.attributes
        if not isinstance(a, Derived)
    )
    space = FeatureSpace(attributes)
    cuts = [-2.0, 0.0, 0.5]
    frame = pd.DataFrame([random_record(rng, space, cuts) for _ in range(TRAINED_ROWS)])
    score = rng.normal(size=len(frame))
    for attribute in attributes:
        column = frame[attribute.name].astype(object)
        if not isinstance(attribute, Real):  # encoders refuse sensitive values that they never saw
            values = oracle.values_of(attribute)
            column.iloc[rng.permutation(len(frame))[: len(values)]] = values
        if isinstance(attribute, Categorical):
            frame[attribute.name] = pd.Categorical(column, attribute.values)
            codes = frame[attribute.name].cat.codes.to_numpy(dtype=float)
        else:
            frame[attribute.name] = codes = column.to_numpy(dtype=float)
        # Effects of values that need not be monotone.
        score += rng.normal(size=7)[np.nan_to_num(codes, nan=5).astype(int) % 7]
    ranks = score.argsort().argsort() / len(score)
    labels = {2: (ranks > 0.5).astype(int), 3: (ranks * 3).astype(int), REGRESSION: 9 * ranks}
    return Table("random", frame, labels, space, native=True)


def xgboost_model(rng: np.random.Generator, table: Table, classes: int) -> Trained:
    """Train XGBoost with native categories."""
    booster = str(rng.choice(["gbtree", "dart"]))
    dart = {"rate_drop": 0.3} if booster == "dart" else {}
    model = xgboost.XGBClassifier(
        n_estimators=int(rng.integers(1, 12)),
        max_depth=int(rng.integers(1, 6)),
        learning_rate=float(rng.choice([0.3, 0.5])),
        booster=booster,
        enable_categorical=True,
        n_jobs=1,
        random_state=int(rng.integers(1000)),
        **dart,
    ).fit(table.frame, table.labels[classes])
    return xgboost_reading(f"XGBoost {booster}", model, classes, table.space)


def lightgbm_model(rng: np.random.Generator, table: Table, classes: int) -> Trained:
    """Train LightGBM with native categories."""
    kind = str(rng.choice(["gbdt", "dart", "rf"]))
    bagging: dict[str, Any] = {"bagging_freq": 1, "bagging_fraction": 0.6} if kind == "rf" else {}
    model = lightgbm.LGBMClassifier(
        n_estimators=int(rng.integers(1, 12)),
        num_leaves=int(rng.integers(2, 12)),
        boosting_type=kind,
        min_child_samples=3,
        min_data_per_group=2,
        cat_smooth=1.0,
        zero_as_missing=bool(rng.random() < 0.3),
        use_missing=bool(rng.random() < 0.8),
        random_state=int(rng.integers(1000)),
        verbose=-1,
        n_jobs=1,
        **bagging,
    ).fit(table.frame, table.labels[classes])
    return lightgbm_reading(f"LightGBM {kind}", model, classes, table.space)


def sklearn_model(rng: np.random.Generator, table: Table, classes: int) -> Trained:
    """Train an estimator of scikit-learn, most of them behind a pipeline."""
    seed, count = int(rng.integers(1000)), int(rng.integers(1, 9))
    kinds: dict[str, Any] = {
        "HistGradientBoosting, native": lambda: ensemble.HistGradientBoostingClassifier(
            max_iter=count, min_samples_leaf=3, categorical_features="from_dtype"
        ),
        "RandomForest": lambda: ensemble.RandomForestClassifier(2 * count, random_state=seed),
        "ExtraTrees": lambda: ensemble.ExtraTreesClassifier(count, random_state=seed),
        "GradientBoosting": lambda: ensemble.GradientBoostingClassifier(
            n_estimators=count, random_state=seed
        ),
        "Bagging": lambda: ensemble.BaggingClassifier(n_estimators=count, random_state=seed),
        "DecisionTree": lambda: tree.DecisionTreeClassifier(max_depth=4, random_state=seed),
    }
    name = str(rng.choice(list(kinds)))
    model = kinds[name]()
    if not name.endswith("native"):
        model = make_pipeline(preprocessing(table, name), model)
    return sklearn_reading(name, model, table, classes)


TRAINERS = (xgboost_model, lightgbm_model, sklearn_model)


def check_library(rng: np.random.Generator, counts: Counter[str]) -> list[str]:
    """Train a model, and name what differs from its own predictions for whole lattices."""
    classes = int(rng.choice([2, 3]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries warn about tables as small as these
        table = random_table(rng)
        trained = TRAINERS[rng.integers(len(TRAINERS))](rng, table, classes)
        wrong = _compare(table, trained, counts)
    counts[f"library models: {trained.name}"] += 1
    sensitive = [name for name in wrong if name.endswith(SENSITIVE)]
    counts["people whose library rounds differently, as labeled"] += len(sensitive)
    return [f"{trained.name}: {name}" for name in wrong if name not in sensitive]


def _compare(table: Table, trained: Trained, counts: Counter[str]) -> list[str]:
    rule = feta.Argmax(("a", "b", "c")) if trained.classes > 2 else feta.Threshold(0.0)
    model = feta.Model(table.space, trained.forest, rule)
    frame = table.frame[:COMPARED_PEOPLE]
    answers = Answers(model, table.space.encode(frame))
    wrong = ["files are read differently"] if trained.same_from_files is False else []
    for row in range(len(frame)):
        counterparts = counterpart_table(table.space, frame.iloc[[row]])
        wrong += differences(answers, row, trained, counterparts)
        scores = trained.forest(table.space.encode(counterparts))
        if not np.array_equal(scores, trained.scores(counterparts).reshape(scores.shape)):
            wrong.append("scores")
        counts["library: counterparts"] += len(counterparts)
    return wrong
