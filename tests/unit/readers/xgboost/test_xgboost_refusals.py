"""Files and objects that are refused, and the message for each."""

import pytest

pytest.importorskip("xgboost", reason="xgboost is not installed")

import copy
import functools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost

from feta import Categorical, FeatureSpace, FetaError, Integer, NetworkError, Real, SchemaError
from feta.readers.trees.document import Place
from feta.readers.xgboost import read as reader
from feta.readers.xgboost.model import XgboostModel, parse_model
from feta.readers.xgboost.read import read_xgboost
from feta.space.attribute import Derived

GROUP = Integer("group", 0, 1, sensitive=True)  # a space needs a sensitive column
X, C = Real("x", -9, 9, missing=True), Categorical("c", ("a", "b", "d", "e", "f"))
SPACE = FeatureSpace((X, C, GROUP))
Document = dict[str, Any]


@functools.cache
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    c = rng.choice(["a", "b", "d", "e", "f"], 500)
    return pd.DataFrame({"x": x, "c": pd.Categorical(c)}), (x + np.isin(c, ["b", "e"]) > 0.5) * 1


@functools.cache
def document(booster: str = "gbtree") -> str:
    rows, y = table()
    matrix = xgboost.DMatrix(rows, y, enable_categorical=True)
    settings = {"objective": "binary:logistic", "max_depth": 3, "booster": booster, "nthread": 1}
    return xgboost.train(settings, matrix, 3).save_raw("json").decode()


def trees(model: Document) -> list[Document]:
    gradient = model["learner"]["gradient_booster"]
    return gradient.get("gbtree", gradient)["model"]["trees"]


def write(path: Path, model: Document) -> Path:
    path.write_text(json.dumps(model))
    return path


def change(path: str, value: object) -> Callable[[Document], None]:
    """Return a change of one member; path elements are separated by dots."""

    def changed(model: Document) -> None:
        *parents, last = path.split(".")
        place: Any = model
        for name in parents:
            place = place[int(name)] if isinstance(place, list) else place[name]
        if isinstance(place, list):
            place[int(last)] = value
        elif value is KeyError:
            del place[last]
        else:
            place[last] = value

    return changed


MODEL = "learner.gradient_booster.model"
TREE = f"{MODEL}.trees.0"
PARAMETERS = "learner.learner_model_param"
CASES = [
    (f"{TREE}.left_children.0", 0, "tree 0, node 0: invalid child: got 0; expected one of"),
    (f"{TREE}.left_children.0", 99, "tree 0, node 0: invalid child: got 99"),
    (f"{TREE}.right_children.0", -1, "tree 0, node 0: invalid child: got -1"),
    (f"{TREE}.right_children.1", 1, "tree 0, node 1: invalid child: got 1"),
    (f"{TREE}.left_children", [1], "tree 0: wrong length of .*left_children: got 1; expected"),
    (f"{TREE}.left_children", "no", "tree 0: invalid .*left_children: got 'no'; expected a list"),
    (f"{TREE}.left_children.0", 2**70, "left_children: got .* values; expected numbers of 64 bits"),
    (f"{TREE}.left_children.0", 1.5, r"left_children\[0\]: got 1.5; expected an integer"),
    (f"{TREE}.split_conditions.0", float("nan"), "tree 0: node 0: invalid threshold: got NaN"),
    (f"{TREE}.split_conditions.0", None, r"split_conditions\[0\]: got None; expected a number"),
    (f"{TREE}.split_conditions.0", 10**400, "split_conditions: got .* values; expected numbers"),
    (f"{TREE}.split_conditions.-1", float("nan"), r"tree 0, node \d+: invalid value of a leaf"),
    (f"{TREE}.split_conditions.-1", 1e39, r"tree 0, node \d+: invalid value .*: got inf"),
    (f"{TREE}.split_indices.0", 2, "tree 0, node 0: invalid feature: got 2; expected one of 2"),
    (f"{TREE}.split_indices.0", -1, "tree 0, node 0: invalid feature: got -1"),
    (f"{TREE}.default_left.0", 7, "default_left: got .* values; expected 0 or 1 each"),
    (f"{TREE}.tree_param.num_nodes", "x", "num_nodes: got 'x'; expected an integer"),
    (f"{TREE}.tree_param.num_nodes", "9" * 40, "num_nodes: got .*; expected an integer"),
    (f"{TREE}.tree_param.size_leaf_vector", "2", "tree 0: its leaves have several values: got 2"),
    (f"{TREE}.categories", [], "invalid categories: got .* from 0; expected them after"),
    (f"{TREE}.categories_nodes", [], "wrong length of .*categories_segments"),
    (f"{TREE}.categories_sizes.0", -1, "invalid categories: got -1 from 0"),
    (f"{TREE}.categories.0", 2**24, "categories: got .* values; expected codes from 0 to"),
    (f"{MODEL}.tree_info.0", 1, "tree_info: got 3 values; expected outputs from 0 to 0"),
    (f"{MODEL}.iteration_indptr", [0, 2], "invalid boosting rounds"),
    (f"{MODEL}.trees", [], "wrong length of .*tree_info: got 3; expected 0"),
    (f"{MODEL}.trees", {}, "trees: got 0 values; expected a list"),
    (f"{MODEL}.trees", KeyError, "missing learner.gradient_booster.model.trees: the file is not"),
    (f"{MODEL}.cats.enc", [{}], "wrong number of lists of categories: got 1; expected 2"),
    (f"{MODEL}.cats.enc.1.offsets", [0, 9], "offsets: got 2 values; expected ascending numbers"),
    ("learner.gradient_booster.name", "gblinear", "booster is not supported: got gblinear, a lin"),
    ("learner.gradient_booster.name", "forest", "unknown booster: got 'forest'; expected one of"),
    ("learner.objective.name", "survival:cox", "objective is not supported: got 'survival:cox'"),
    ("learner.objective.name", "multi:softprob", "wrong number of outputs of multi:softprob"),
    ("learner.feature_names", ["x"], "wrong length of feature_names: got 1; expected 2"),
    (f"{PARAMETERS}.num_target", "2", "the model has several targets: got 2; expected 1; train"),
    (f"{PARAMETERS}.num_class", "128", "unsupported number of classes: got 128; expected at most"),
    (f"{PARAMETERS}.base_score", "[2.0]", "invalid base score: got .*; expected probabilities"),
    (f"{PARAMETERS}.base_score", "[a]", "base_score: got '.a.'; expected numbers"),
    (f"{PARAMETERS}.base_score", "[nan]", "base_score: got '.nan.'; expected one finite number"),
    (f"{PARAMETERS}.base_score", "[0.1,0.2]", "base_score: got .*; expected one finite number"),
    ("learner", 5, "invalid learner: got 5; expected an object"),
    ("version", [2, 1, 0], None),  # categories are stored, so the version does not matter
]


@pytest.mark.parametrize(("path", "value", "message"), CASES)
def test_damaged_files_are_rejected(
    path: str, value: object, message: str | None, tmp_path: Path
) -> None:
    model = json.loads(document())
    change(path, value)(model)
    file = write(tmp_path / "model.json", model)
    if message is None:
        read_xgboost(file, SPACE)
        return
    with pytest.raises(NetworkError, match=re.escape(str(file))) as error:
        read_xgboost(file, SPACE)
    assert re.search(message, str(error.value)), str(error.value)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_files_with_random_damage_never_crash(suffix: str, tmp_path: Path) -> None:
    booster = xgboost.Booster()
    booster.load_model(bytearray(document().encode()))
    content = bytes(booster.save_raw(suffix))
    rng = np.random.default_rng(3)
    file = tmp_path / f"model.{suffix}"
    rejected = 0
    for _ in range(300):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        file.write_bytes(bytes(damaged[: rng.integers(1, 2 * len(content))]))
        try:
            read_xgboost(file, SPACE)
        except FetaError:
            rejected += 1
    assert rejected > 100


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a model of XGBoost in JSON or UBJSON: got the first bytes b''"),
        (b"binf\0\0\0\0", "got the first bytes b'binf.*save it as .json or .ubj"),
        (b'{"learner": ', "the file is not valid JSON"),
        (b'{"a":' + b"[" * 100_000, "the file is not valid JSON"),
        (b"{}", "missing learner: the file is not a complete model"),
        (b"{L\0", "invalid UBJSON"),
    ],
)
def test_other_files_are_rejected(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_bytes(content)
    with pytest.raises(NetworkError, match=message):
        read_xgboost(file, SPACE)


def test_weights_of_dart_are_checked(tmp_path: Path) -> None:
    for weights, message in (
        ([1.0], "wrong number of weights of trees: got 1; expected 3"),
        ([1.0, float("nan"), 1.0], "invalid weights of trees: got NaN or infinity"),
    ):
        model = json.loads(document("dart"))
        model["learner"]["gradient_booster"]["weight_drop"] = weights
        with pytest.raises(NetworkError, match=message):
            read_xgboost(write(tmp_path / "m.json", model), SPACE)


def test_a_round_of_an_older_file_has_one_tree_per_class(tmp_path: Path) -> None:
    model = json.loads(document())
    del model["learner"]["gradient_booster"]["model"]["iteration_indptr"]
    forest = read_xgboost(write(tmp_path / "m.json", model), SPACE, iterations=2)
    assert len(forest.trees.roots) == 2
    settings = model["learner"]["gradient_booster"]["model"]["gbtree_model_param"]
    settings["num_parallel_tree"] = "2"
    with pytest.raises(
        NetworkError, match="wrong number of trees: got 3; expected a multiple of 2"
    ):
        read_xgboost(write(tmp_path / "m.json", model), SPACE)


def test_older_models_do_not_store_categories(tmp_path: Path) -> None:
    model = json.loads(document())
    del model["learner"]["gradient_booster"]["model"]["cats"]
    file = write(tmp_path / "m.json", model)
    with pytest.raises(
        SchemaError, match=r"codes of the categories of 'c' are unknown: got the va"
    ):
        read_xgboost(file, SPACE)
    order = ("a", "b", "d", "e", "f")
    same = read_xgboost(write(tmp_path / "same.json", json.loads(document())), SPACE)
    assert read_xgboost(file, SPACE, categories={"c": order}).fingerprint == same.fingerprint
    model["version"] = [2, 1, 0]
    with pytest.raises(SchemaError, match=r"got a model of XGBoost 2.1.0, which does not store"):
        read_xgboost(write(tmp_path / "m.json", model), SPACE)
    with pytest.raises(SchemaError, match="unknown column in categories: got 'd'; expected one of"):
        read_xgboost(file, SPACE, categories={"d": order})
    with pytest.raises(NetworkError, match="repeated category of 'c'"):
        read_xgboost(file, SPACE, categories={"c": ("a", "a")})


def test_the_base_score_of_an_older_logitraw_is_rejected(tmp_path: Path) -> None:
    model = json.loads(document())
    model["learner"]["objective"]["name"] = "binary:logitraw"
    read_xgboost(write(tmp_path / "m.json", model), SPACE)
    model["version"] = [2, 1, 0]
    with pytest.raises(NetworkError, match="base score of binary:logitraw has another meaning"):
        read_xgboost(write(tmp_path / "m.json", model), SPACE)


def test_a_base_score_must_fit_its_link(tmp_path: Path) -> None:
    model = json.loads(document())
    model["learner"]["objective"]["name"] = "count:poisson"
    model["learner"]["learner_model_param"]["base_score"] = "[0]"
    with pytest.raises(NetworkError, match=r"invalid base score: got .*; expected positive"):
        read_xgboost(write(tmp_path / "m.json", model), SPACE)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ((X,), "the schema must have the column 'c'; it has 'x', 'group'"),
        ((X, Integer("c", 0, 5)), "'c' has different types .*: got an integer from 0 to 5 in the"),
        ((X, Categorical("c", ("a", "b", "z"))), "'c' has a value that XGBoost rejects: got 'z'"),
        ((X, Categorical("c", ("a",), other=True)), "XGBoost rejects: got '.other.'"),
        ((X, Categorical("c", (1, 2))), "XGBoost rejects: got 1; expected one of 'a', 'b'"),
        ((Categorical("x", ("low", "high")), C), "'x' has different types .*: got the text 'low'"),
        (
            (Real("y", 0, 9), Derived("x", "y", (("all", 0, 9),)), C),
            "the model reads 'x', which the schema derives from 'y'",
        ),
    ],
)
def test_columns_must_fit_the_model(
    attributes: tuple[Any, ...], message: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "m.json", json.loads(document()))
    with pytest.raises(SchemaError, match=message):
        read_xgboost(file, FeatureSpace((*attributes, GROUP)))


def test_features_without_names_need_all_columns(tmp_path: Path) -> None:
    model = json.loads(document())
    model["learner"]["feature_names"] = []
    file = write(tmp_path / "m.json", model)
    space = FeatureSpace((X, replace(C, sensitive=True)))
    named = read_xgboost(write(tmp_path / "n.json", json.loads(document())), space)
    assert read_xgboost(file, space).fingerprint == named.fingerprint
    with pytest.raises(
        SchemaError, match="wrong number of columns: got 1 in the schema; expected 2"
    ):
        read_xgboost(file, FeatureSpace((GROUP,)))


def test_texts_that_are_not_ascii_are_restored_or_rejected() -> None:
    rng = np.random.default_rng(1)
    values = ("Österreich", "España", "Perú", "Chile")
    rows = pd.DataFrame(
        {"x": rng.normal(size=400), "c": pd.Categorical(rng.choice(values, 400), categories=values)}
    )
    y = rows["c"].isin(["España", "Chile"]).astype(int)
    settings = {
        "objective": "binary:logistic",
        "max_depth": 3,
        "nthread": 1,
        "max_cat_to_onehot": 1,
    }
    matrix = xgboost.DMatrix(rows, y, enable_categorical=True)
    booster = xgboost.train(settings, matrix, 3)
    space = FeatureSpace((X, Categorical("c", tuple(sorted(values)), sensitive=True)))
    forest = read_xgboost(booster, space)
    expected = booster.predict(matrix, output_margin=True)
    np.testing.assert_array_equal(forest(space.encode(rows))[:, 0], expected)
    # The last letters of the last category are lost: two values fit.
    ambiguous = FeatureSpace((X, GROUP, Categorical("c", ("Chile", "Chilx", "España"))))
    with pytest.raises(
        NetworkError, match="texts that are not ASCII, which XGBoost does not store"
    ):
        read_xgboost(booster, ambiguous)


def test_iterations_must_exist(tmp_path: Path) -> None:
    file = write(tmp_path / "m.json", json.loads(document()))
    for count in (0, 4, -1):
        with pytest.raises(
            SchemaError, match=f"number of iterations: got {count}; expected 1 to 3"
        ):
            read_xgboost(file, SPACE, iterations=count)


class Subclass(xgboost.XGBClassifier):
    """A subclass, which may predict in another way."""


def squared(y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return p - y, np.ones_like(y)


def test_other_objects_are_rejected() -> None:
    rows, y = table()
    fit = {"n_estimators": 1, "n_jobs": 1, "enable_categorical": True}
    for source, message in (
        (object(), "the source is not supported: got object; expected a path, a Booster, XGB"),
        (Subclass(**fit).fit(rows, y), "the source is not supported: got Subclass"),
        (xgboost.XGBClassifier(), "XGBClassifier is not fitted; call its fit"),
        (
            xgboost.XGBRegressor(objective=squared, **fit).fit(rows, y),
            "XGBRegressor has a custom objective: got a function",
        ),
        (
            xgboost.XGBClassifier(missing=-9.0, **fit).fit(rows, y),
            "XGBClassifier treats a number as missing: got missing=-9.0; expected NaN",
        ),
    ):
        with pytest.raises(NetworkError, match=message):
            read_xgboost(source, SPACE)


def test_a_model_that_adds_in_another_way_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    booster = xgboost.Booster()
    booster.load_model(bytearray(document().encode()))

    def other(place: Place) -> XgboostModel:
        model = parse_model(place)
        model.trees[0].values[:] += 1e-6
        return model

    monkeypatch.setattr(reader, "parse_model", other)
    with pytest.raises(
        NetworkError, match=r"the scores are not those of XGBoost .*of 512 rows diff"
    ):
        read_xgboost(booster, SPACE)


def test_large_files_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    with file.open("wb") as stream:
        stream.truncate(2**28)
    with pytest.raises(NetworkError, match="the file is too large: got 256 MB"):
        read_xgboost(file, SPACE)


def test_large_ensembles_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feta.readers.trees.builder.MAX_NODES", 20)
    file = write(tmp_path / "m.json", copy.deepcopy(json.loads(document())))
    with pytest.raises(NetworkError, match=r"the ensemble is too large: got more than .* nodes"):
        read_xgboost(file, SPACE)
