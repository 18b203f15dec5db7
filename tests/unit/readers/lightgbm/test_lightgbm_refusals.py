"""Files and objects that are refused, and the message for each."""

import pytest

pytest.importorskip("lightgbm", reason="lightgbm is not installed")

import functools
import re
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd

from feta import Categorical, FeatureSpace, FetaError, Integer, NetworkError, Real, SchemaError
from feta.readers.lightgbm import read as reader
from feta.readers.lightgbm.model import LightgbmModel, parse_model
from feta.readers.lightgbm.read import read_lightgbm
from feta.readers.lightgbm.text import ModelText

X, C = Real("x", -9, 9, missing=True), Categorical("c", ("a", "b", "d", "e", "f"))
GROUP = Integer("group", 0, 1, sensitive=True)  # a space needs a sensitive column
SPACE = FeatureSpace((X, C, GROUP))
SETTINGS = {"objective": "binary", "verbose": -1, "num_threads": 1, "num_leaves": 6}


@functools.cache
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=900)
    c = rng.choice(["a", "b", "d", "e", "f"], 900)
    return pd.DataFrame({"x": x, "c": pd.Categorical(c)}), (x + np.isin(c, ["b", "e"]) > 0.5) * 1


@functools.cache
def model() -> lightgbm.Booster:
    rows, y = table()
    settings = SETTINGS | {"max_cat_to_onehot": 1, "min_data_per_group": 5}
    return lightgbm.train(settings, lightgbm.Dataset(rows, y), 3)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def changed(field: str, value: str | None) -> str:
    """Return the file with another value of a field, first of the header, then of tree 0."""
    text = model().model_to_string()
    line = "" if value is None else f"{field}={value}"
    return re.sub(rf"^{field}=.*$", line, text, count=1, flags=re.MULTILINE)


CASES: list[tuple[str, str | None, str]] = [
    ("version", "v9", "unsupported version of the file: got 'v9'; expected one of 'v3', 'v4'"),
    ("version", None, "the header: invalid version: got nothing; expected a value"),
    ("feature_names", "x", "the header: invalid feature_names: got 'x'; expected one name per"),
    ("feature_names", "x x", "invalid feature_names: got 'x x'; expected one name per feature"),
    ("feature_infos", "[0:1]", "invalid feature_infos: got '.0:1.'; expected 2 words"),
    ("max_feature_idx", "one", "invalid max_feature_idx: got 'one'; expected 1 integers"),
    ("num_tree_per_iteration", "0", "invalid num_tree_per_iteration: got '0'; expected 1 to 127"),
    ("num_tree_per_iteration", "2", "wrong number of trees: got 3; expected a multiple of 2"),
    ("objective", "multiclass", "wrong number of outputs of multiclass: got 1; expected 2 or more"),
    ("objective", "multiclassova num_class:3", "objective is not supported: got 'multiclassova'"),
    ("objective", "regression sqrt", "got regression with reg_sqrt, whose predictions are squares"),
    ("objective", "binary sigmoid:0.7", "the setting sigmoid .* is not supported: got 0.7; expect"),
    ("objective", "binary sigmoid:x", "the setting sigmoid .* is not supported: got x"),
    ("objective", None, "the model has no objective, .*: got a custom objective"),
    ("Tree", "1", "the trees are not in order: got 'Tree=1'; expected 'Tree=0'"),
    ("num_leaves", "0", "tree 0: invalid num_leaves: got '0'; expected 1 or more"),
    ("num_leaves", "7", "tree 0: invalid leaf_value: got .*; expected 7 numbers"),
    ("num_leaves", "9" * 30, "tree 0: invalid num_leaves: got .*; expected 1 integers"),
    ("leaf_value", "1 2 3 4 5 nan", "tree 0: invalid leaf_value: got .*; expected 6 numbers"),
    ("leaf_value", "1 2 3 4 5 inf", "tree 0, node 10: invalid value of a leaf: got inf; expected"),
    ("leaf_value", "1 2 3 4 5 1e999", "tree 0, node 10: invalid value of a leaf: got inf"),
    ("leaf_value", "1 2 3 4 5 1_0", "invalid leaf_value: got '1 2 3 4 5 1_0'; expected 6 numbers"),
    ("left_child", "0 1 2 3 4", "tree 0, node 0: invalid child: got 0; expected one of 11 nodes"),
    ("left_child", "99 1 2 3 4", "tree 0, node 0: invalid child: got 99"),
    ("left_child", "-99 1 2 3 4", "tree 0, node 0: invalid child: got 103"),
    ("left_child", "1 2", "tree 0: invalid left_child: got '1 2'; expected 5 integers"),
    ("decision_type", "12 2 2 2 2", "tree 0: invalid decision_type: got .*; expected types from 0"),
    ("decision_type", "-1 2 2 2 2", "tree 0: invalid decision_type: got .*; expected types from 0"),
    ("decision_type", "1 1 1 1 1", "tree 0: invalid num_cat: got .*; expected one set for each"),
    ("threshold", "nan 0 0 0 0", "tree 0: invalid threshold: got .*; expected 5 numbers"),
    ("num_cat", "9", "tree 0: invalid num_cat: got '9'; expected one set for each node"),
    ("cat_boundaries", "1 0", "tree 0: invalid cat_boundaries: got '1 0'"),
    ("cat_threshold", "-1", "tree 0: invalid cat_threshold: got '-1'; expected"),
    (
        "is_linear",
        "1",
        "tree 0 is linear: got a linear model in each leaf; expected numbers; train",
    ),
]


@pytest.mark.parametrize(("field", "value", "message"), CASES)
def test_damaged_files_are_rejected(
    field: str, value: str | None, message: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "model.txt", changed(field, value))
    with pytest.raises(NetworkError, match=re.escape(str(file))) as error:
        read_lightgbm(file, SPACE)
    assert re.search(message, str(error.value)), str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("end of trees", "", "the file is not complete: 'end of trees' is missing"),
        ("num_cat=1", "num_cat=1\nnum_cat=1", "tree 0: got 'num_cat' twice"),
        ("pandas_categorical:[", "pandas_categorical:[[", "invalid pandas_categorical: "),
        (
            "pandas_categorical:[",
            'pandas_categorical:["a",',
            "invalid pandas_categorical: expected",
        ),
        ('pandas_categorical:[["a"', "pandas_categorical:[[null", "unsupported category: got None"),
        (
            "split_feature=",
            "split_feature=7",
            "tree 0, node 0: invalid feature: got 7.; expe",
        ),
        ("tree\n", "boost\n", "not a model of LightGBM: got the first line 'boost'"),
    ],
)
def test_damaged_texts_are_rejected(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = model().model_to_string()
    assert old in text
    file = write(tmp_path / "model.txt", text.replace(old, new, 1))
    with pytest.raises(NetworkError, match=message):
        read_lightgbm(file, SPACE)


def test_files_with_random_damage_never_crash(tmp_path: Path) -> None:
    content = model().model_to_string().encode()
    end = content.index(b"end of trees")
    rng = np.random.default_rng(3)
    file = tmp_path / "model.txt"
    rejected = 0
    for _ in range(300):
        damaged = bytearray(content)
        for place in rng.integers(0, end, rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        file.write_bytes(bytes(damaged[: rng.integers(1, 4 * len(content))]))
        try:
            read_lightgbm(file, SPACE)
        except FetaError:
            rejected += 1
    assert rejected > 100


def test_an_empty_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="not a model of LightGBM: got the first line ''"):
        read_lightgbm(write(tmp_path / "m.txt", ""), SPACE)
    (tmp_path / "m.txt").write_bytes(b"tree\n\xff\xfe")
    with pytest.raises(NetworkError, match="the file is not a text in UTF-8"):
        read_lightgbm(tmp_path / "m.txt", SPACE)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ((X,), "the schema must have the column 'c'; it has 'x', 'group'"),
        ((X, Integer("c", 0, 5)), "'c' has different types .*: got an integer from 0 to 5 in the"),
        ((X, Categorical("c", ("y", "z"))), "'c' has no category of the model: got 'y'; expected"),
        ((X, Categorical("c", (0, 1))), "'c' has no category of the model: got 0; expected one of"),
        ((X, C, Categorical("x y", ("a",)), Categorical("x_y", ("a",))), "ambiguous columns: got"),
    ],
)
def test_columns_must_fit_the_model(
    attributes: tuple[Any, ...], message: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "m.txt", model().model_to_string())
    with pytest.raises(SchemaError, match=message):
        read_lightgbm(file, FeatureSpace((*attributes, GROUP)))


def test_lists_of_categories_that_fit_no_column_are_rejected(tmp_path: Path) -> None:
    file = write(tmp_path / "m.txt", model().model_to_string())
    space = FeatureSpace((Categorical("x", ("low", "high")), C, GROUP))
    with pytest.raises(NetworkError, match=r"got 1 lists of .* the schema in no way; expected one"):
        read_lightgbm(file, space)


def test_categories_can_be_passed(tmp_path: Path) -> None:
    order = ("a", "b", "d", "e", "f")
    full = write(tmp_path / "m.txt", model().model_to_string())
    text = model().model_to_string().replace("pandas_categorical:[[", "other:[[")
    bare = write(tmp_path / "bare.txt", text)
    with pytest.raises(
        SchemaError, match="the codes of the categories of 'c' are unknown: got the"
    ):
        read_lightgbm(bare, SPACE)
    passed = read_lightgbm(bare, SPACE, categories={"c": order})
    assert passed.fingerprint == read_lightgbm(full, SPACE).fingerprint
    with pytest.raises(SchemaError, match="unknown column in categories: got 'd'; expected one of"):
        read_lightgbm(bare, SPACE, categories={"d": order})
    with pytest.raises(SchemaError, match=r"the categories are not those of the model: got .* all"):
        read_lightgbm(full, SPACE, categories={"c": order[::-1]})
    with pytest.raises(
        SchemaError, match="too few categories of 'c': got 4; expected one for each"
    ):
        read_lightgbm(bare, SPACE, categories={"c": order[:4]})


def test_iterations_must_exist(tmp_path: Path) -> None:
    file = write(tmp_path / "m.txt", model().model_to_string())
    for count in (0, 4):
        with pytest.raises(
            SchemaError, match=f"number of iterations: got {count}; expected 1 to 3"
        ):
            read_lightgbm(file, SPACE, iterations=count)


def test_linear_trees_of_the_library_are_rejected() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 1))
    settings = SETTINGS | {"objective": "regression", "linear_tree": True}
    linear = lightgbm.train(settings, lightgbm.Dataset(rows, rows[:, 0] ** 2), 3)
    with pytest.raises(NetworkError, match="is linear: got a linear model in each leaf"):
        read_lightgbm(linear, FeatureSpace((GROUP,)))


class Subclass(lightgbm.LGBMClassifier):
    """A subclass, which may predict in another way."""


def test_other_objects_are_rejected() -> None:
    rows, y = table()
    fit: dict[str, Any] = {"n_estimators": 1, "verbose": -1, "n_jobs": 1}
    early = lightgbm.train(SETTINGS | {"pred_early_stop": True}, lightgbm.Dataset(rows, y), 3)
    for source, message in (
        (object(), "the source is not supported: got object; expected a path, a Booster, LGBM"),
        (Subclass(**fit).fit(rows, y), "the source is not supported: got Subclass"),
        (lightgbm.LGBMClassifier(), "LGBMClassifier is not fitted; call its fit"),
        (early, "Booster stops predictions early: got pred_early_stop=True"),
    ):
        with pytest.raises(NetworkError, match=message):
            read_lightgbm(source, SPACE)


def test_a_model_that_adds_in_another_way_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:

    def other(text: ModelText) -> LightgbmModel:
        parsed = parse_model(text)
        parsed.trees[0].values[:] += 1e-12
        return parsed

    monkeypatch.setattr(reader, "parse_model", other)
    with pytest.raises(
        NetworkError, match=r"the scores are not those of LightGBM.*of 512 rows diff"
    ):
        read_lightgbm(model(), SPACE)
