"""Scores of XGBoost's models: bit for bit in its own order, and exactly."""

import pytest

pytest.importorskip("xgboost", reason="xgboost is not installed")

import functools
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost

import feta
from feta import Categorical, FeatureSpace, Integer, Real
from feta.readers.xgboost.read import read_xgboost
from tests.unit.readers.xgboost.people import COUNTRIES, SPACE, at_thresholds, labels, table

SETTINGS: dict[str, dict[str, Any]] = {
    "partitions": {"max_cat_to_onehot": 1},
    "one-hot": {"max_cat_to_onehot": 100},
    "dart": {"booster": "dart", "rate_drop": 0.3, "base_score": 0.3},
    "parallel trees": {"num_parallel_tree": 3, "subsample": 0.7},
    "three classes": {"classes": 3},
    "three classes, dart": {"classes": 3, "booster": "dart", "rate_drop": 0.3},
    "softmax": {"classes": 3, "objective": "multi:softmax"},
    "exact": {"tree_method": "exact", "numbers only": True},
}


@functools.cache
def wrapper(name: str) -> xgboost.XGBClassifier:
    """Return a trained classifier."""
    settings = dict(SETTINGS[name])
    people = table()
    if settings.pop("numbers only", False):
        people = people[["balance", "account", "age", "member"]]
    y = labels(table(), classes=settings.pop("classes", 2))
    model = xgboost.XGBClassifier(
        n_estimators=20,
        max_depth=5,
        learning_rate=0.4,
        enable_categorical="tree_method" not in settings,
        n_jobs=1,
        **settings,
    )
    return model.fit(people, y)


def rows_of(model: xgboost.XGBClassifier) -> pd.DataFrame:
    """Return random rows, and rows at the thresholds of the balance."""
    booster = model.get_booster()
    nodes = booster.trees_to_dataframe() if "c" not in (booster.feature_types or []) else None
    if nodes is None:
        document = json.loads(booster.save_raw("json"))["learner"]
        gradient = document["gradient_booster"]
        trees = gradient.get("gbtree", gradient)["model"]["trees"]
        thresholds = [
            condition
            for tree in trees
            for condition, feature, left in zip(
                tree["split_conditions"], tree["split_indices"], tree["left_children"], strict=True
            )
            if feature == 0 and left != -1
        ]
    else:
        thresholds = nodes.loc[nodes["Feature"] == "balance", "Split"].tolist()
    people = table(2000, seed=1)
    rows = pd.concat([people, at_thresholds(people, thresholds[:300])], ignore_index=True)
    return rows[list(booster.feature_names or [])]


def encoded(rows: pd.DataFrame) -> np.ndarray:
    """Return people of the space; columns that a model does not read get any value."""
    rest = {str(name): table(1)[name].iloc[0] for name in table(1) if name not in rows}
    return SPACE.encode(rows.assign(**rest))


@pytest.mark.parametrize("name", SETTINGS)
def test_scores_of_wrappers_are_identical(name: str) -> None:
    model = wrapper(name)
    rows = rows_of(model)
    assert len(rows) > 2000
    expected = model.predict(rows, output_margin=True)
    forest = read_xgboost(model, SPACE)
    np.testing.assert_array_equal(forest(encoded(rows)).reshape(expected.shape), expected)


@pytest.mark.parametrize("name", ["partitions", "dart", "three classes, dart"])
def test_scores_of_boosters_are_identical(name: str) -> None:
    booster = wrapper(name).get_booster()
    rows = rows_of(wrapper(name))
    matrix = xgboost.DMatrix(rows, enable_categorical=True)
    expected = booster.predict(matrix, output_margin=True)
    forest = read_xgboost(booster, SPACE)
    np.testing.assert_array_equal(forest(encoded(rows)).reshape(expected.shape), expected)


def test_dart_has_two_orders_of_summation() -> None:
    model = wrapper("dart")
    people = encoded(rows_of(model))
    in_place, matrix = read_xgboost(model, SPACE), read_xgboost(model.get_booster(), SPACE)
    assert (in_place(people) != matrix(people)).any()
    assert in_place.fingerprint != matrix.fingerprint
    chosen = np.arange(len(people))
    exact = [
        forest.points(people).exact_scores(chosen).fractions() for forest in (in_place, matrix)
    ]
    assert exact[0] == exact[1]


@pytest.mark.parametrize("name", ["partitions", "dart", "three classes"])
def test_files_and_objects_give_the_same_forest(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = wrapper(name)
    fingerprint = read_xgboost(model, SPACE).fingerprint
    for suffix in ("json", "ubj"):
        model.save_model(tmp_path / f"model.{suffix}")
    monkeypatch.setitem(sys.modules, "xgboost", None)  # files need no library
    for suffix in ("json", "ubj"):
        assert read_xgboost(tmp_path / f"model.{suffix}", SPACE).fingerprint == fingerprint


def walk(node: dict[str, Any], person: dict[Any, Any]) -> Fraction:
    """Return the leaf value of a person in a tree of XGBoost's own dump."""
    while "leaf" not in node:
        number, condition = person[node["split"]], node["split_condition"]
        if np.isnan(number):
            target = node["missing"]
        elif isinstance(condition, list):
            target = node["yes" if number in condition else "no"]
        else:
            target = node["yes" if np.float32(number) < np.float32(condition) else "no"]
        node = next(child for child in node["children"] if child["nodeid"] == target)
    return Fraction(float(np.float32(node["leaf"])))


@pytest.mark.parametrize("name", SETTINGS)
def test_exact_scores_are_sums_over_the_dump(name: str) -> None:
    model = wrapper(name)
    booster = model.get_booster()
    document = json.loads(booster.save_raw("json"))["learner"]
    gradient = document["gradient_booster"]
    outputs = gradient.get("gbtree", gradient)["model"]["tree_info"]
    weights = gradient.get("weight_drop", [1.0] * len(outputs))
    trees = [json.loads(tree) for tree in booster.get_dump(dump_format="json")]
    rows = rows_of(model).iloc[::40]
    codes = rows.copy()
    for column in ("country", "grade"):
        if column in codes:
            codes[column] = codes[column].cat.codes.astype(float).replace(-1.0, np.nan)
    forest = read_xgboost(model, SPACE)
    expected = []
    for person in codes.astype(float).to_dict("records"):
        sums = [Fraction(float(number)) for number in forest.base]
        for tree, output, weight in zip(trees, outputs, weights, strict=True):
            sums[output] += walk(tree, person) * Fraction(float(np.float32(weight)))
        expected += sums
    people = encoded(rows)
    assert forest.points(people).exact_scores(np.arange(len(people))).fractions() == expected


@pytest.mark.parametrize(
    ("objective", "settings"),
    [
        ("binary:logistic", {}),
        ("binary:logitraw", {}),
        ("binary:hinge", {}),
        ("reg:logistic", {}),
        ("reg:squarederror", {}),
        ("reg:squaredlogerror", {}),
        ("reg:absoluteerror", {}),
        ("reg:pseudohubererror", {}),
        ("reg:quantileerror", {"quantile_alpha": 0.7}),
        ("count:poisson", {}),
        ("reg:gamma", {}),
        ("reg:tweedie", {}),
        ("rank:pairwise", {}),
        ("binary:logistic", {"base_score": 0.1}),
        ("count:poisson", {"base_score": 3.3}),
        ("multi:softprob", {"num_class": 2}),
    ],
)
def test_margins_of_objectives_are_identical(objective: str, settings: dict[str, Any]) -> None:
    people = table()
    positive = objective in ("reg:gamma", "reg:tweedie", "count:poisson")
    y = labels(people) + (0.5 if positive else 0)
    matrix = xgboost.DMatrix(people, y, enable_categorical=True)
    booster = xgboost.train(
        {"objective": objective, "max_depth": 3, "nthread": 1, **settings}, matrix, 5
    )
    rows = xgboost.DMatrix(people, enable_categorical=True)
    expected = booster.predict(rows, output_margin=True)
    forest = read_xgboost(booster, SPACE)
    np.testing.assert_array_equal(forest(encoded(people)).reshape(expected.shape), expected)
    probability = objective in ("binary:logistic", "reg:logistic", "multi:softprob")
    assert (forest.link == "logit") == probability
    decides = objective in ("binary:logistic", "binary:hinge") or settings.get("num_class") == 2
    assert forest.equality == ("below" if decides else None)


def test_logarithms_are_those_of_the_library() -> None:
    people = table()
    y = labels(people)
    matrix = xgboost.DMatrix(people, y, enable_categorical=True)
    booster = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 1, "nthread": 1}, matrix, 1
    )
    document = json.loads(booster.save_raw("json"))
    rows = people.iloc[:1]
    rng = np.random.default_rng(0)
    for probability in [0.0, 1.0, 1e-7, 0.5, *rng.random(100).tolist()]:
        document["learner"]["learner_model_param"]["base_score"] = f"[{probability}]"
        changed = xgboost.Booster()
        changed.load_model(bytearray(json.dumps(document).encode()))
        expected = changed.predict(
            xgboost.DMatrix(rows, enable_categorical=True), output_margin=True
        )
        np.testing.assert_array_equal(read_xgboost(changed, SPACE)(encoded(rows))[:, 0], expected)


def test_a_random_forest_is_read() -> None:
    people = table()
    model = xgboost.XGBRFClassifier(n_estimators=30, max_depth=6, enable_categorical=True, n_jobs=1)
    model.fit(people, labels(people))
    expected = model.predict(people, output_margin=True)
    np.testing.assert_array_equal(read_xgboost(model, SPACE)(encoded(people))[:, 0], expected)


def test_decisions_are_those_of_the_classifier() -> None:
    model = wrapper("partitions")
    rows = rows_of(model)
    decided = feta.Model(SPACE, read_xgboost(model, SPACE)).decide(encoded(rows))
    np.testing.assert_array_equal(decided, model.predict(rows) == 1)
    several = wrapper("three classes")
    decided = feta.Model(SPACE, read_xgboost(several, SPACE), feta.Argmax(("a", "b", "c"))).decide(
        encoded(rows)
    )
    np.testing.assert_array_equal(decided, several.predict(rows))


def test_wrappers_stop_at_the_best_iteration_and_boosters_do_not(tmp_path: Path) -> None:
    people = table()
    y = np.random.default_rng(0).permutation(labels(people))  # nothing to learn: it stops early
    model = xgboost.XGBClassifier(
        n_estimators=30, max_depth=4, enable_categorical=True, early_stopping_rounds=3, n_jobs=1
    )
    model.fit(people, y, eval_set=[(table(300, seed=2), labels(table(300, seed=2)))], verbose=False)
    used = model.best_iteration + 1
    assert used < model.get_booster().num_boosted_rounds()
    expected = model.predict(people, output_margin=True)
    model.save_model(tmp_path / "wrapper.json")
    with pytest.warns(UserWarning, match=f"a wrapper saved the file: FETA uses the {used} rounds"):
        stored = read_xgboost(tmp_path / "wrapper.json", SPACE)
    for forest in (read_xgboost(model, SPACE), stored):
        np.testing.assert_array_equal(forest(encoded(people))[:, 0], expected)
        assert len(forest.trees.roots) == used
    booster = model.get_booster()
    assert len(read_xgboost(booster, SPACE).trees.roots) == booster.num_boosted_rounds()
    assert len(read_xgboost(booster, SPACE, iterations=2).trees.roots) == 2
    booster.save_model(tmp_path / "booster.json")
    with pytest.warns(UserWarning, match=r"a Booster saved the file: FETA uses all .* iterations="):
        forest = read_xgboost(tmp_path / "booster.json", SPACE)
    assert len(forest.trees.roots) == booster.num_boosted_rounds()
    passed = read_xgboost(tmp_path / "booster.json", SPACE, iterations=used)  # without a warning
    assert passed.fingerprint == stored.fingerprint


def test_features_without_names_are_matched_by_position() -> None:
    space = FeatureSpace(
        (Real("x", -9, 9, missing=True), Categorical("code", tuple(range(6)), sensitive=True))
    )
    rng = np.random.default_rng(0)
    rows = np.stack([rng.normal(size=2000), rng.integers(0, 6, 2000)], axis=1)
    rows[rng.random(2000) < 0.1, 0] = np.nan
    types = {"feature_types": ["q", "c"], "enable_categorical": True}
    y = (np.isin(rows[:, 1], [1, 4]) + np.nan_to_num(rows[:, 0]) > 0.5).astype(int)
    matrix = xgboost.DMatrix(rows, y, **types)
    booster = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 4, "nthread": 1}, matrix, 10
    )
    people = space.encode(pd.DataFrame({"x": rows[:, 0], "code": rows[:, 1].astype(int)}))
    expected = booster.predict(xgboost.DMatrix(rows, **types), output_margin=True)
    forest = read_xgboost(booster, space)
    np.testing.assert_array_equal(forest(people)[:, 0], expected)
    reordered = {"code": (0, 1, 2, 3, 4, 5)}
    assert read_xgboost(booster, space, categories=reordered).fingerprint == forest.fingerprint
    other = read_xgboost(booster, space, categories={"code": (1, 0, 2, 3, 4, 5)})
    assert other.fingerprint != forest.fingerprint


def test_columns_that_the_model_does_not_read_do_not_matter() -> None:
    space = FeatureSpace((*SPACE.attributes, Integer("extra", 0, 5)))
    forest = read_xgboost(wrapper("partitions"), space)
    assert not forest.reads(space.attribute("extra"), space)
    assert forest.reads(space.attribute("country"), space)


def test_a_verdict_of_a_booster_is_confirmed_by_the_library() -> None:
    model = wrapper("partitions")
    rows = rows_of(model).iloc[:40]
    people = encoded(rows)
    verdicts = [
        feta.verify(feta.FairAt(feta.Model(SPACE, read_xgboost(model, SPACE)), person))
        for person in people
    ]
    assert {type(verdict) for verdict in verdicts} == {feta.Fair, feta.Unfair}
    ages, countries = [*range(-3, 91), None], [*COUNTRIES, None]
    for index, verdict in enumerate(verdicts[:10]):
        row = rows.iloc[[index]]
        group = row.loc[row.index.repeat(len(ages) * len(countries))].reset_index(drop=True)
        group["age"] = np.repeat(np.array(ages, dtype=float), len(countries))
        values = [*countries] * len(ages)
        group["country"] = pd.Categorical(values, categories=row["country"].cat.categories)
        assert isinstance(verdict, feta.Fair) == (len(set(model.predict(group))) == 1)
