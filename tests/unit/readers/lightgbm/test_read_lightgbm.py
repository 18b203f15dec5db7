"""Scores of LightGBM's models: bit for bit in its own order, and exactly."""

import pytest

pytest.importorskip("lightgbm", reason="lightgbm is not installed")

import functools
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd

import feta
from feta import Categorical, FeatureSpace, Integer, Real
from feta.absorb.absorb import UnseenValueWarning
from feta.readers.lightgbm.model import ZERO, zero_split
from feta.readers.lightgbm.read import read_lightgbm
from tests.unit.readers.xgboost.people import SPACE, at_thresholds, labels, table

BAGGING = {"bagging_freq": 1, "bagging_fraction": 0.6}
SETTINGS: dict[str, dict[str, Any]] = {
    "gbdt": {},
    "one-hot": {"max_cat_to_onehot": 100},
    "dart": {"boosting": "dart", "drop_rate": 0.5},
    "rf": {"boosting": "rf", **BAGGING},
    "three classes": {"objective": "multiclass", "num_class": 3},
    "three classes, rf": {"objective": "multiclass", "num_class": 3, "boosting": "rf", **BAGGING},
    "zero is missing": {"zero_as_missing": True},
    "nothing is missing": {"use_missing": False},
    "sigmoid 2": {"sigmoid": 2.0},
}


@functools.cache
def booster(name: str) -> lightgbm.Booster:
    """Return a trained booster."""
    settings = {"objective": "binary", "max_cat_to_onehot": 1, "num_leaves": 15, **SETTINGS[name]}
    settings |= {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 5, "learning_rate": 0.3}
    people = table()
    data = lightgbm.Dataset(people, labels(people, classes=settings.get("num_class", 2)))
    return lightgbm.train(settings, data, 20)


def nodes_of(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the inner nodes of a dumped tree."""
    if "left_child" not in tree:
        return []
    return [tree, *nodes_of(tree["left_child"]), *nodes_of(tree["right_child"])]


@functools.cache
def rows_of(name: str) -> pd.DataFrame:
    """Return random rows, and rows at the thresholds of the balance."""
    thresholds = [
        node["threshold"]
        for tree in booster(name).dump_model()["tree_info"]
        for node in nodes_of(tree["tree_structure"])
        if node["split_feature"] == 0 and abs(node["threshold"]) < 1e300
    ]
    people = table(2000, seed=1)
    return pd.concat([people, at_thresholds(people, thresholds[:200])], ignore_index=True)


@pytest.mark.parametrize("name", SETTINGS)
def test_raw_scores_are_identical(name: str) -> None:
    model, rows = booster(name), rows_of(name)
    assert len(rows) > 2000
    raw = np.asarray(model.predict(rows, raw_score=True))
    forest = read_lightgbm(model, SPACE)
    scores = forest(SPACE.encode(rows)).reshape(raw.shape)
    if "rf" in name:
        assert forest.denominator == 20
        np.testing.assert_array_equal(scores, raw / 20)
    else:
        np.testing.assert_array_equal(scores, raw * SETTINGS[name].get("sigmoid", 1.0))


@pytest.mark.parametrize("name", ["gbdt", "three classes, rf", "zero is missing"])
def test_files_and_objects_give_the_same_forest(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fingerprint = read_lightgbm(booster(name), SPACE).fingerprint
    booster(name).save_model(tmp_path / "model.txt")
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # files need no library
    assert read_lightgbm(tmp_path / "model.txt", SPACE).fingerprint == fingerprint


def walk(node: dict[str, Any], person: list[float]) -> Fraction:
    """Return the leaf value of a person in a tree of LightGBM's own dump."""
    while "left_child" in node:
        number = person[node["split_feature"]]
        number = 0.0 if abs(number) <= ZERO else number  # before any test
        if node["decision_type"] == "==":
            left = not np.isnan(number) and int(number) in map(int, node["threshold"].split("||"))
        else:
            if np.isnan(number) and node["missing_type"] != "NaN":
                number = 0.0
            zero = node["missing_type"] == "Zero" and abs(number) <= ZERO
            missing = zero or np.isnan(number)
            left = node["default_left"] if missing else number <= node["threshold"]
        node = node["left_child" if left else "right_child"]
    return Fraction(node["leaf_value"])


@pytest.mark.parametrize("name", SETTINGS)
def test_exact_scores_are_sums_over_the_dump(name: str) -> None:
    dump = booster(name).dump_model()
    rows = rows_of(name).iloc[::40]
    codes = rows.copy()
    for column in ("country", "grade"):
        codes[column] = codes[column].cat.codes.astype(float).replace(-1.0, np.nan)
    n_outputs, expected = dump["num_tree_per_iteration"], []
    factor = Fraction(SETTINGS[name].get("sigmoid", 1.0)) / (20 if "rf" in name else 1)
    for person in codes.astype(float).to_numpy().tolist():
        sums = [Fraction(0)] * n_outputs
        for index, tree in enumerate(dump["tree_info"]):
            sums[index % n_outputs] += walk(tree["tree_structure"], person) * factor
        expected += sums
    people = SPACE.encode(rows)
    exact = read_lightgbm(booster(name), SPACE).points(people).exact_scores(np.arange(len(people)))
    assert exact.fractions() == expected


@pytest.mark.parametrize(
    "objective",
    [
        "regression",
        "regression_l1",
        "huber",
        "fair",
        "quantile",
        "mape",
        "poisson",
        "gamma",
        "tweedie",
        "cross_entropy",
    ],
)
def test_objectives_are_read(objective: str) -> None:
    people = table()
    settings = {"objective": objective, "verbose": -1, "num_threads": 1, "num_leaves": 5}
    y = labels(people) + (0 if objective == "cross_entropy" else 0.5)
    model = lightgbm.train(settings, lightgbm.Dataset(people, y), 3)
    forest = read_lightgbm(model, SPACE)
    expected = model.predict(people, raw_score=True)
    np.testing.assert_array_equal(forest(SPACE.encode(people))[:, 0], expected)
    assert forest.equality is None
    assert (forest.link == "logit") == (objective == "cross_entropy")


def test_decisions_are_those_of_the_classifiers() -> None:
    rows = rows_of("gbdt")
    cases: list[tuple[dict[str, Any], int]] = [({}, 2), ({}, 3)]
    for settings, classes in [*cases, ({"boosting_type": "rf", **BAGGING}, 2)]:
        model = lightgbm.LGBMClassifier(n_estimators=9, verbose=-1, n_jobs=1, **settings)
        model.fit(table(), labels(table(), classes=classes))
        forest = read_lightgbm(model, SPACE)
        rule = feta.Argmax(("a", "b", "c")) if classes == 3 else feta.Threshold(0.0)
        decided = feta.Model(SPACE, forest, rule).decide(SPACE.encode(rows))
        np.testing.assert_array_equal(decided.astype(int), model.predict(rows))
        assert forest.link == "logit"
        assert forest.equality == ("below" if classes == 2 else None)


def test_only_trees_up_to_the_best_iteration_are_used(tmp_path: Path) -> None:
    people, held_out = table(), table(400, seed=2)
    data = lightgbm.Dataset(people, labels(people))
    valid = data.create_valid(held_out, labels(held_out))
    settings = {"objective": "binary", "verbose": -1, "num_threads": 1, "learning_rate": 0.5}
    stop = lightgbm.early_stopping(2, verbose=False)
    model = lightgbm.train(
        settings, data, 40, valid_sets=[valid], callbacks=[stop], keep_training_booster=True
    )
    assert 1 < model.best_iteration < model.current_iteration()
    expected = model.predict(people, raw_score=True)
    model.save_model(tmp_path / "model.txt")
    for source in (model, tmp_path / "model.txt"):
        forest = read_lightgbm(source, SPACE)
        assert len(forest.trees.roots) == model.best_iteration
        np.testing.assert_array_equal(forest(SPACE.encode(people))[:, 0], expected)
    assert len(read_lightgbm(model, SPACE, iterations=1).trees.roots) == 1


@pytest.mark.parametrize("default_left", [False, True])
@pytest.mark.parametrize(
    "threshold", [-3.0, -1e-34, -ZERO, -1e-36, 0.0, 1e-36, ZERO, 1e-34, 0.5, np.inf]
)
def test_zero_counts_as_missing(threshold: float, default_left: bool) -> None:
    bands = zero_split(threshold, default_left=default_left)
    numbers = [-4.0, -3.0, -1e-34, np.nextafter(-ZERO, -1), -ZERO, -1e-36, -5e-324, 0.0]
    numbers += [1e-36, ZERO, np.nextafter(ZERO, 1), 1e-34, 0.5, np.nextafter(0.5, 1), 7.0, np.nan]
    expected = [
        default_left if np.isnan(number) or abs(number) <= ZERO else number <= threshold
        for number in numbers
    ]
    for test in (bands, bands.joined()):
        assert test.goes_left(np.array(numbers)).tolist() == expected


def test_features_without_names_are_matched_by_position() -> None:
    space = FeatureSpace(
        (Real("x", -9, 9, missing=True), Categorical("code", tuple(range(6)), sensitive=True))
    )
    rng = np.random.default_rng(0)
    rows = np.stack([rng.normal(size=2000), rng.integers(0, 6, 2000)], axis=1)
    rows[rng.random(2000) < 0.1, 0] = np.nan
    y = (np.isin(rows[:, 1], [1, 4]) + np.nan_to_num(rows[:, 0]) > 0.5).astype(int)
    settings = {"objective": "binary", "verbose": -1, "num_threads": 1}
    model = lightgbm.train(settings, lightgbm.Dataset(rows, y, categorical_feature=[1]), 10)
    people = space.encode(pd.DataFrame({"x": rows[:, 0], "code": rows[:, 1].astype(int)}))
    expected = model.predict(rows, raw_score=True)
    forest = read_lightgbm(model, space)
    np.testing.assert_array_equal(forest(people)[:, 0], expected)
    named = read_lightgbm(model, space, categories={"code": (0, 1, 2, 3, 4, 5)})
    assert named.fingerprint == forest.fingerprint


def test_spaces_in_names_and_values_that_the_model_never_saw() -> None:
    rng = np.random.default_rng(0)
    values = np.array(["a", "b", "c"])[rng.integers(0, 3, 900)]
    rows = pd.DataFrame({"my x": rng.normal(size=900), "c": pd.Categorical(values)})
    y = (rows["my x"] + rows["c"].isin(["b"]) > 0.5).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(rows, y)
    x, group = Real("my x", -9, 9), Integer("group", 0, 1, sensitive=True)
    known = FeatureSpace((x, Categorical("c", ("a", "b", "c"), sensitive=True)))
    expected = model.predict(rows, raw_score=True)
    np.testing.assert_array_equal(read_lightgbm(model, known)(known.encode(rows))[:, 0], expected)
    wider = FeatureSpace((x, group, Categorical("c", ("a", "b", "c", "new"), other=True)))
    with pytest.warns(UnseenValueWarning, match="'c' has a value that the model never saw: got 'n"):
        forest = read_lightgbm(model, wider)
    unseen = rows.assign(group=0, c=pd.Categorical(np.where(values == "a", "new", "any")))
    expected = model.predict(unseen[["my x", "c"]], raw_score=True)
    np.testing.assert_array_equal(forest(wider.encode(unseen))[:, 0], expected)
    sensitive = FeatureSpace((x, Categorical("c", ("a", "new"), sensitive=True)))
    with pytest.raises(
        feta.SchemaError, match="sensitive column 'c' has a value that the model ne"
    ):
        read_lightgbm(model, sensitive)
