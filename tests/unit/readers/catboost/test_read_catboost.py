"""Scores of CatBoost's models: bit for bit in its own order, and exactly."""

import pytest

pytest.importorskip("catboost", reason="catboost is not installed")

import functools
import json
import sys
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import catboost
import numpy as np
import pandas as pd

import feta
from feta import Categorical, FeatureSpace, Integer, NetworkError, Real, datasets
from feta.absorb.absorb import UnseenValueWarning
from feta.readers.catboost.category_hash import category_hash
from feta.readers.catboost.read import read_catboost
from tests.unit.readers.xgboost import people as shared

CATEGORIES = ["country", "grade"]
SPACE = FeatureSpace(
    tuple(
        replace(attribute, missing=False)
        if isinstance(attribute, Categorical) and attribute.name in CATEGORIES
        else attribute
        for attribute in shared.SPACE.attributes
    )
)
ONE_HOT = {"one_hot_max_size": 50}
KINDS = ["Borders:TargetBorderCount=2", "Buckets", "BinarizedTargetMeanValue", "Counter"]
SETTINGS: dict[str, dict[str, Any]] = {
    "symmetric": ONE_HOT,
    "missing above": ONE_HOT | {"nan_mode": "Max"},
    "deep": ONE_HOT | {"depth": 9, "iterations": 6},
    "depthwise": ONE_HOT | {"grow_policy": "Depthwise"},
    "lossguide": ONE_HOT | {"grow_policy": "Lossguide", "max_leaves": 20},
    "three classes": ONE_HOT | {"classes": 3},
    "one vs all": ONE_HOT | {"classes": 3, "loss_function": "MultiClassOneVsAll"},
    "three classes, depthwise": ONE_HOT | {"classes": 3, "grow_policy": "Depthwise"},
    "two classes, one score each": ONE_HOT | {"loss_function": "MultiClass"},
    "statistics": {"max_ctr_complexity": 1},
    "statistics of all kinds": {"classes": 3, "max_ctr_complexity": 1, "simple_ctr": KINDS},
}


def table(n_rows: int = 1500, *, seed: int = 0) -> pd.DataFrame:
    """Return random people; categories are never missing, as CatBoost requires."""
    rows = shared.table(n_rows, seed=seed)
    country, grade = rows["country"].astype(object), rows["grade"].astype(object)
    return rows.assign(
        country=country.where(country.notna(), "us"),
        grade=grade.where(grade.notna(), 5).astype(int),
    )


@functools.cache
def model(name: str) -> catboost.CatBoostClassifier:
    """Return a trained classifier."""
    settings = {"iterations": 20, "depth": 5, **SETTINGS[name]}
    y = shared.labels(shared.table(1500), classes=settings.pop("classes", 2))
    classifier = catboost.CatBoostClassifier(
        learning_rate=0.4, verbose=0, thread_count=1, allow_writing_files=False, **settings
    )
    return classifier.fit(table(), y, cat_features=CATEGORIES)


def rows_of(classifier: catboost.CatBoostClassifier) -> pd.DataFrame:
    """Return random rows, and rows at the borders of the balance."""
    borders = [border for border in classifier.get_borders()[0] if abs(border) < 1e30]
    people = table(1000, seed=1)
    return pd.concat([people, shared.at_thresholds(people, borders[:100])], ignore_index=True)


def raw(classifier: Any, rows: Any, **options: int) -> np.ndarray:  # noqa: ANN401 - any model and table
    """Return the library's own raw scores, (rows, outputs)."""
    scores = classifier.predict(rows, prediction_type="RawFormulaVal", **options)
    return np.asarray(scores).reshape(len(rows), -1)


@pytest.mark.parametrize("name", SETTINGS)
def test_scores_are_identical(name: str) -> None:
    classifier = model(name)
    rows = rows_of(classifier)
    forest = read_catboost(classifier, SPACE)
    scores = forest(SPACE.encode(rows))
    for n_rows in (1, 3, 129, len(rows)):  # CatBoost has different code for these
        np.testing.assert_array_equal(scores[:n_rows], raw(classifier, rows.iloc[:n_rows]))


def test_numbers_that_were_never_missing_in_training_may_be_missing() -> None:
    rows = table(600)
    rows["balance"] = rows["balance"].fillna(1.0)
    y = shared.labels(shared.table(600))
    classifier = catboost.CatBoostClassifier(
        iterations=10, verbose=0, thread_count=1, allow_writing_files=False, **ONE_HOT
    ).fit(rows, y, cat_features=CATEGORIES)
    other = table(600, seed=3)
    assert other["balance"].isna().any()
    forest = read_catboost(classifier, SPACE)
    np.testing.assert_array_equal(forest(SPACE.encode(other)), raw(classifier, other))


@pytest.mark.parametrize("name", ["symmetric", "lossguide", "three classes", "statistics"])
def test_files_and_objects_give_the_same_forest(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = model(name)
    fingerprint = read_catboost(classifier, SPACE).fingerprint
    classifier.save_model(str(tmp_path / "model.json"), format="json")
    classifier.save_model(str(tmp_path / "model.cbm"))
    assert read_catboost(tmp_path / "model.cbm", SPACE).fingerprint == fingerprint
    monkeypatch.setitem(sys.modules, "catboost", None)  # JSON needs no library
    assert read_catboost(tmp_path / "model.json", SPACE).fingerprint == fingerprint
    with pytest.raises(NetworkError, match=r"a .cbm file needs the library: got no catboost; inst"):
        read_catboost(tmp_path / "model.cbm", SPACE)


def leaf_sums(document: dict[str, Any], row: pd.Series) -> list[Fraction]:
    """Walk symmetric trees of a document in fractions."""
    features = document["features_info"]
    scale, bias = document["scale_and_bias"]
    totals = [Fraction(constant) for constant in bias]
    for tree in document["oblivious_trees"]:
        leaf = 0
        for bit, split in enumerate(tree["splits"]):
            if split["split_type"] == "OneHotFeature":
                at = features["categorical_features"][split["cat_feature_index"]]
                above = category_hash(str(row[at["feature_id"]])) == split["value"]
            else:
                at = features["float_features"][split["float_feature_index"]]
                number = row[at["feature_id"]]
                above = np.float32(number) > np.float32(split["border"])
                if np.isnan(number):
                    above = at["nan_value_treatment"] == "AsTrue"
            leaf |= int(above) << bit
        for output in range(len(totals)):
            value = tree["leaf_values"][leaf * len(totals) + output]
            totals[output] += Fraction(scale) * Fraction(value)
    return totals


@pytest.mark.parametrize("name", ["symmetric", "missing above", "three classes"])
def test_exact_scores_are_sums_of_the_stored_numbers(name: str, tmp_path: Path) -> None:
    classifier = model(name)
    classifier.save_model(str(tmp_path / "model.json"), format="json")
    document = json.loads((tmp_path / "model.json").read_text())
    rows = rows_of(classifier).iloc[-60:]
    forest = read_catboost(classifier, SPACE)
    exact = forest.points(SPACE.encode(rows)).exact_scores(np.arange(60)).fractions()
    expected = [total for _, row in rows.iterrows() for total in leaf_sums(document, row)]
    assert exact == expected


@pytest.mark.parametrize(
    "loss", ["RMSE", "MAE", "Quantile:alpha=0.3", "Poisson", "Tweedie:variance_power=1.5"]
)
def test_regressors_are_read_with_their_bias(loss: str) -> None:
    rows = table(600)
    y = shared.labels(shared.table(600), classes=9) + 0.5
    regressor = catboost.CatBoostRegressor(
        loss_function=loss, iterations=8, verbose=0, thread_count=1, allow_writing_files=False,
        **ONE_HOT,
    ).fit(rows, y, cat_features=CATEGORIES)  # fmt: skip
    forest = read_catboost(regressor, SPACE)
    np.testing.assert_array_equal(forest(SPACE.encode(rows)), raw(regressor, rows))
    assert forest.equality is None
    assert forest.link in ("identity", "log")
    regressor.set_scale_and_bias(4.0, 0.1)
    forest = read_catboost(regressor, SPACE)
    np.testing.assert_array_equal(forest(SPACE.encode(rows)), raw(regressor, rows))
    regressor.set_scale_and_bias(0.3, 0.1)
    with pytest.raises(NetworkError, match=r"the scale of the model is not supported: got 0.3"):
        read_catboost(regressor, SPACE)


def test_decisions_are_those_of_the_classifier() -> None:
    rows = rows_of(model("symmetric"))
    people = SPACE.encode(rows)
    for name in ("symmetric", "two classes, one score each"):
        forest = read_catboost(model(name), SPACE)
        scorer = forest.difference() if forest.outputs == 2 else forest
        decided = feta.Model(SPACE, scorer).decide(people)
        np.testing.assert_array_equal(decided, model(name).predict(rows).ravel() == 1)
    several = model("three classes")
    decided = feta.Model(SPACE, read_catboost(several, SPACE), feta.Argmax(("a", "b", "c"))).decide(
        people
    )
    np.testing.assert_array_equal(decided, several.predict(rows).ravel())


def test_ties_are_decided_as_the_library_does(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": [-1.0, 1.0] * 50})
    classifier = catboost.CatBoostClassifier(
        iterations=1, depth=1, verbose=0, allow_writing_files=False
    ).fit(rows, [0, 1] * 50)
    classifier.save_model(str(tmp_path / "m.json"), format="json")
    document = json.loads((tmp_path / "m.json").read_text())
    document["oblivious_trees"][0]["leaf_values"] = [0.0, 5e-324]
    (tmp_path / "m.json").write_text(json.dumps(document))
    changed = catboost.CatBoostClassifier().load_model(str(tmp_path / "m.json"), format="json")
    space = FeatureSpace((Real("x", -9, 9, sensitive=True),))
    decided = feta.Model(space, read_catboost(tmp_path / "m.json", space)).decide(
        space.encode(rows[:2])
    )
    assert decided.tolist() == [False, True] == (changed.predict(rows[:2]) == 1).tolist()


def test_models_shrunk_to_the_best_iteration_or_by_the_caller() -> None:
    rows = table(600)
    y = np.random.default_rng(0).permutation(shared.labels(shared.table(600)))
    classifier = catboost.CatBoostClassifier(
        iterations=40, verbose=0, thread_count=1, allow_writing_files=False,
        early_stopping_rounds=3, **ONE_HOT,
    ).fit(rows, y, cat_features=CATEGORIES, eval_set=(table(200, seed=2), y[:200]))  # fmt: skip
    assert classifier.tree_count_ < 40
    people = SPACE.encode(rows)
    forest = read_catboost(classifier, SPACE)
    np.testing.assert_array_equal(forest(people), raw(classifier, rows))
    trained = model("symmetric")
    forest = read_catboost(trained, SPACE, iterations=7)
    np.testing.assert_array_equal(forest(people), raw(trained, rows, ntree_end=7))


def test_a_sum_of_models_is_read() -> None:
    parts = [model("symmetric"), model("missing above")]
    both = catboost.sum_models([parts[0], parts[0]], weights=[0.5, 0.3])
    rows = table(300, seed=4)
    forest = read_catboost(both, SPACE)
    np.testing.assert_array_equal(forest(SPACE.encode(rows)), raw(both, rows))


def test_features_without_names_are_matched_by_position() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(500, 2))
    y = (numbers[:, 0] > numbers[:, 1]).astype(int)
    classifier = catboost.CatBoostClassifier(
        iterations=5, verbose=0, thread_count=1, allow_writing_files=False
    ).fit(numbers, y)
    space = FeatureSpace((Real("a", -9, 9, sensitive=True), Real("b", -9, 9)))
    forest = read_catboost(classifier, space)
    np.testing.assert_array_equal(forest(numbers), raw(classifier, numbers))


@pytest.mark.parametrize(
    "texts", [["x" * length for length in range(12)], ["é" * 9, "漢" * 22, "x" * 31, "y" * 300]]
)
def test_categories_of_all_lengths_are_found(texts: list[str]) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"text": np.repeat(np.array(texts, dtype=object), 20)})
    y = np.repeat(rng.normal(size=len(texts)), 20)
    regressor = catboost.CatBoostRegressor(
        iterations=60, depth=1, learning_rate=1, verbose=0, thread_count=1,
        allow_writing_files=False, one_hot_max_size=99,
    ).fit(rows, y, cat_features=["text"])  # fmt: skip
    space = FeatureSpace((Categorical("text", tuple(texts), sensitive=True),))
    forest = read_catboost(regressor, space)
    scores = forest(space.encode(rows))
    assert len(np.unique(scores)) == len(texts)
    np.testing.assert_array_equal(scores, raw(regressor, rows))


def test_combinations_of_columns_and_unfitted_models_are_refused() -> None:
    classifier = catboost.CatBoostClassifier(
        iterations=50, learning_rate=0.4, max_ctr_complexity=2, verbose=0, thread_count=1,
        allow_writing_files=False,
    )  # fmt: skip
    with pytest.raises(NetworkError, match="CatBoostClassifier is not fitted; call its fit"):
        read_catboost(classifier, SPACE)
    classifier.fit(table(), shared.labels(shared.table(1500)), cat_features=CATEGORIES)
    with pytest.raises(
        NetworkError, match=r"statistics of combinations of columns .*train it with"
    ):
        read_catboost(classifier, SPACE)
    decides = model("statistics").copy()
    decides.set_probability_threshold(0.3)
    with pytest.raises(NetworkError, match=r"the model decides by its own probability: got '0.3'"):
        read_catboost(decides, SPACE)


def test_a_damaged_binary_file_is_refused(tmp_path: Path) -> None:
    model("symmetric").save_model(str(tmp_path / "m.cbm"))
    content = (tmp_path / "m.cbm").read_bytes()
    (tmp_path / "m.cbm").write_bytes(content[: len(content) // 2])
    with pytest.raises(NetworkError, match="CatBoost cannot load the file: "):
        read_catboost(tmp_path / "m.cbm", SPACE)


def test_a_verdict_is_confirmed_by_the_library() -> None:
    classifier = model("statistics")
    rows = table(40, seed=5)
    fair = feta.Model(SPACE, read_catboost(classifier, SPACE))
    verdicts = [feta.verify(feta.FairAt(fair, person)) for person in SPACE.encode(rows)]
    assert {type(verdict) for verdict in verdicts} == {feta.Fair, feta.Unfair}
    ages = [*map(float, range(-3, 91)), np.nan]
    for index, verdict in enumerate(verdicts[:8]):
        group = rows.iloc[np.full(len(ages) * len(shared.COUNTRIES), index)].reset_index(drop=True)
        group["age"] = np.repeat(ages, len(shared.COUNTRIES))
        group["country"] = np.tile(np.array(shared.COUNTRIES, dtype=object), len(ages))
        assert isinstance(verdict, feta.Fair) == (len(set(classifier.predict(group))) == 1)


@pytest.mark.parametrize(("dataset", "classes"), [("german", 3), ("adult", 2)])
def test_real_tables_with_missing_cells(dataset: str, classes: int) -> None:
    try:
        data = datasets.load(dataset)
    except feta.FetaError as error:
        pytest.skip(f"the table is not available: {error}")
    rng = np.random.default_rng(0)
    attributes = [a for a in data.space.attributes if not isinstance(a, feta.Derived)]
    rows = data.frame[[a.name for a in attributes]].iloc[:1500].copy()
    for attribute in attributes:
        column = rows[attribute.name].astype(object)
        gaps = rng.random(len(rows)) < 0.1
        if isinstance(attribute, Categorical):
            rows[attribute.name] = column.where(~gaps, "(missing)").astype(str)
        else:
            rows[attribute.name] = column.astype(float).mask(gaps)
    space = FeatureSpace(
        tuple(
            replace(a, values=(*a.values, "(missing)"))
            if isinstance(a, Categorical)
            else replace(a, missing=True)
            for a in attributes
        )
    )
    numbers = next(a.name for a in attributes if not isinstance(a, Categorical))
    more = (rows[numbers] > rows[numbers].median()).to_numpy() if classes == 3 else 0
    y = data.labels[: len(rows)].astype(int) + more
    texts = [a.name for a in attributes if isinstance(a, Categorical)]
    classifier = catboost.CatBoostClassifier(
        iterations=15, learning_rate=0.3, max_ctr_complexity=1, verbose=0, thread_count=1,
        allow_writing_files=False,
    ).fit(rows, y, cat_features=texts)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenValueWarning)
        seen = tuple(
            replace(a, values=tuple(v for v in a.values if v in set(rows[a.name])))
            if isinstance(a, Categorical) and space.is_sensitive(a)
            else a
            for a in space.attributes
        )
        space = FeatureSpace(seen)
        forest = read_catboost(classifier, space)
    np.testing.assert_array_equal(forest(space.encode(rows)), raw(classifier, rows))
    rule = feta.Argmax(("a", "b", "c")) if classes == 3 else feta.Threshold(0.0)
    decided = feta.Model(space, forest, rule).decide(space.encode(rows)).astype(int)
    np.testing.assert_array_equal(decided, classifier.predict(rows).ravel())


def test_one_sigmoid_per_class_is_no_link_of_a_difference() -> None:
    """With MultiClassOneVsAll, p of the second class is σ of its own score."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(20, 30, 400), "income": rng.integers(0, 9, 400)})
    y = ((rows["income"] + rows["age"] + rng.normal(0, 3, 400)) > 29).astype(int)
    settings = {"iterations": 20, "depth": 3, "verbose": 0, "thread_count": 1}
    model = catboost.CatBoostClassifier(
        loss_function="MultiClassOneVsAll", allow_writing_files=False, **settings
    ).fit(rows, y)
    space = FeatureSpace((Integer("age", 20, 29, sensitive=True), Integer("income", 0, 8)))
    scorer = feta.read_model(model, space, method="exact")
    assert scorer.link == "identity"
    audited = feta.Model(space, scorer)
    decided = model.predict(rows).ravel() == 1
    np.testing.assert_array_equal(audited.decide(space.encode(rows)), decided)
    feta.audit(audited, rows.head(8), replay=feta.runtime_of(model, audited))
