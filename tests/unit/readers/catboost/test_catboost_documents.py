"""Documents of CatBoost without the library: their scores, and what is refused."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from feta import Categorical, FeatureSpace, FetaError, Integer, NetworkError, SchemaError
from feta.absorb.absorb import UnseenValueWarning
from feta.readers.catboost.category_hash import category_hash, row_hash
from feta.readers.catboost.read import read_catboost
from tests.unit.readers.catboost.documents import (
    DOCUMENT,
    KEY,
    NESTED,
    SPACE,
    STATISTIC,
    changed,
    write,
)

# Numbers that CatBoost 1.2.10 stored in models that were trained on these texts.
HASHES = {
    "": 797982799,
    "x": -784473192,
    "xxx": 1066650174,
    "xxxx": 458691678,
    "green": 1390465085,
    "ünited": 1681854093,
    "x" * 8: 2132102367,
    "x" * 9: -172984651,
    "x" * 16: 2067776764,
    "x" * 17: 400127573,
    "x" * 32: 664286079,
    "x" * 33: 1424607287,
    "x" * 64: 648792787,
    "x" * 65: -148743473,
    "x" * 128: 1142986461,
    "x" * 129: 235182457,
    "x" * 200: 692612926,
}


@pytest.mark.parametrize("text", HASHES)
def test_categories_have_the_numbers_that_models_store(text: str) -> None:
    assert category_hash(text) == HASHES[text]


def people(*rows: tuple[float | None, str, int]) -> np.ndarray:
    frame = pd.DataFrame(rows, columns=["x", "color", "age"])
    return SPACE.encode(frame.astype({"x": float}))


@pytest.mark.parametrize(
    ("row", "score"),
    [
        ((0.25, "red", 4), 1 + 0.5),
        ((float(np.nextafter(np.float32(0.25), np.float32(1))), "red", 4), 2 + 0.5),
        ((np.nextafter(0.25, 1), "red", 4), 1 + 0.5),  # float32 rounds it to the border
        ((0.25, "green", 5), 4 - 16),
        ((9.0, "green", 5), 8 - 16),
        ((None, "green", 5), 8 - 16),  # missing numbers are above all borders
        ((None, "blue", 0), 2 + 0.5),
    ],
)
def test_scores_of_symmetric_trees(
    row: tuple[float | None, str, int], score: float, tmp_path: Path
) -> None:
    forest = read_catboost(write(tmp_path / "m.json", DOCUMENT), SPACE)
    assert forest(people(row))[0, 0] == score + 0.125
    assert (forest.equality, forest.link, forest.source) == ("below", "logit", "float64")


def test_scores_of_nested_trees(tmp_path: Path) -> None:
    document = {**DOCUMENT, "trees": NESTED}
    del document["oblivious_trees"]
    forest = read_catboost(write(tmp_path / "m.json", document), SPACE)
    rows = people((0.0, "red", 4), (0.0, "red", 5), (1.0, "red", 5), (None, "red", 9))
    assert forest(rows)[:, 0].tolist() == [3.125, 5.125, 7.125, 7.125]


def with_statistic(table: list[object] | None = None, **members: object) -> dict[str, Any]:
    """Return the document with statistics of colors in place of its second tree's test."""
    document = copy.deepcopy(DOCUMENT)
    document["features_info"]["ctrs"] = [STATISTIC | members]
    rows = [str(row_hash(category_hash("red"))), 3, 1, str(row_hash(category_hash("blue"))), 1, 5]
    rows += [str(2**64 - 1), 9, 9]
    document["ctr_data"] = {
        KEY: {"counter_denominator": 7, "hash_map": table or rows, "hash_stride": 3}
    }
    test = {"split_index": 4, "split_type": "OnlineCtr", "border": 7.5}
    document["oblivious_trees"][1]["splits"] = [test]
    return document


@pytest.mark.parametrize(
    ("members", "above"),
    [
        # 15 (1 + 1) / (4 + 1) = 6; 15 (5 + 1) / (6 + 1) = 12.9; unseen: 15 (0 + 1) / (0 + 1) = 15
        ({}, {"red": False, "blue": True, "green": True}),
        # 15 (3 + 1) / 5 = 12; 15 (1 + 1) / 7 = 4.3
        ({"ctr_type": "Buckets"}, {"red": True, "blue": False, "green": True}),
        # 15 (3 + 1) / (1 + 1) = 30; 15 (1 + 1) / (5 + 1) = 5
        ({"ctr_type": "BinarizedTargetMeanValue"}, {"red": True, "blue": False, "green": True}),
        # a border at the statistic itself is not exceeded
        ({"scale": 18.75}, {"red": False, "blue": True, "green": True}),
        ({"scale": float(np.nextafter(np.float32(18.75), np.float32(99)))}, {"red": True}),
    ],
)
def test_statistics_of_a_column(
    members: dict[str, Any], above: dict[str, bool], tmp_path: Path
) -> None:
    path = write(tmp_path / "m.json", with_statistic(**members))
    space = SPACE.with_sensitive({"age"})
    with pytest.warns(UnseenValueWarning, match="that the model never saw: got 'green'"):
        forest = read_catboost(path, space)
    for color, right in above.items():
        first = 4 if color == "green" else 1
        score = forest(people((0.0, color, 4)))[0, 0]
        assert score == first + (-16 if right else 0.5) + 0.125


def test_a_sensitive_value_without_statistics_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.json", with_statistic())
    expected = "sensitive column 'color' has a value that the model never saw: got 'green'"
    with pytest.raises(SchemaError, match=expected):
        read_catboost(path, SPACE)


TWO_COLUMNS = [*STATISTIC["elements"], {"combination_element": "float_feature"}]  # type: ignore[misc]  # a list
CASES: list[tuple[Any, str]] = [
    ([], "the file is not a model of CatBoost: got the first bytes"),
    ({}, "missing features_info: the file is not a complete model"),
    (changed("scale_and_bias", [3, [0]]), "the scale of the model is not supported: got 3.0"),
    (changed("scale_and_bias", [0, [0]]), "the scale of the model is not supported: got 0.0"),
    (changed("scale_and_bias", [1, []]), "invalid scale_and_bias: got 2 values; expected finite"),
    (changed("scale_and_bias", [1]), "invalid scale_and_bias: got 1 values; expected a scale"),
    (changed("scale_and_bias", [1, ["a"]]), "invalid scale_and_bias.*'a'; expected a number"),
    (changed("model_info.params", None), "missing model_info.loss_function"),
    (
        changed("model_info.params.loss_function.type", "MultiRMSE"),
        "the loss is not supported: got 'MultiRMSE'; expected one of ",
    ),
    (
        changed("model_info.params.loss_function.type", "MultiClass"),
        "wrong number of outputs of MultiClass: got 1; expected 2 or more",
    ),
    (
        changed("model_info.binclass_probability_threshold", "0.3"),
        "the model decides by its own probability: got '0.3'; expected 0.5; call set_prob",
    ),
    (
        changed("features_info.text_features", [{}]),
        "the model reads text features: expected numbers and categories only",
    ),
    (
        changed("features_info.float_features.0.flat_feature_index", 2),
        "invalid features_info.float_features.1..flat_feature_index: got 2; expected different",
    ),
    (
        changed("features_info.float_features.0.flat_feature_index", 7),
        "the model does not list all its features: got the positions .1, 2, 7.; expected all",
    ),
    (
        changed("features_info.float_features.0.nan_value_treatment", "AsZero"),
        "unknown treatment of missing values: ",
    ),
    (
        changed("features_info.float_features.0.borders", [1e300, 0.25]),
        "invalid border: got NaN or infinity; expected numbers of float32",
    ),
    (
        changed("oblivious_trees.0.splits.0.split_index", 9),
        "tree.*split_index: got 9; expected one of 4 tests",
    ),
    (
        changed("oblivious_trees.0.splits.0.border", 0.5),
        "tree.*border: got 0.5; expected 0.25, that of test 1 of the features",
    ),
    (
        changed("oblivious_trees.0.splits.0.split_type", "Text"),
        "split_type: got 'Text'; expected one of FloatFeature, OneHotFeature, OnlineCtr",
    ),
    (changed("oblivious_trees.1.leaf_values", [1]), "wrong length of .*: got 1; expected 2"),
    (changed("oblivious_trees.1.leaf_values", [1, float("nan")]), "invalid value of a leaf"),
    (
        changed("oblivious_trees.1.splits", [DOCUMENT["oblivious_trees"][1]["splits"][0]] * 17),
        "tree 1 is too deep: got 17 tests; expected at most 16",
    ),
    (changed("oblivious_trees", []), "an ensemble needs at least one tree"),
    (
        with_statistic(elements=TWO_COLUMNS),
        r"statistics of combinations of columns \(features_info.ctrs\[0\]\): got 2 columns",
    ),
    (with_statistic(ctr_type="Other"), "the statistics of categories are not supported: "),
    (with_statistic(target_border_idx=2), "target_border_idx: got 2; expected a class from 0 to 1"),
    (with_statistic(identifier="x"), "missing ctr_data.x"),
    (with_statistic(["x", 1, 1]), "hash_map.*expected keys that are integers of 64 bits"),
    (with_statistic(["1", 1, 1, "1", 2, 2]), "hash_map.*expected different keys and finite"),
    (with_statistic(["1", 1, 1, "2"]), "hash_map.*expected rows of a key and two or more numbers"),
    (with_statistic(ctr_type="Counter"), "hash_map.*expected rows of a key and 1 numbers"),
]


@pytest.mark.parametrize(("document", "message"), CASES)
def test_damaged_documents_are_refused(document: Any, message: str, tmp_path: Path) -> None:  # noqa: ANN401 - any JSON value
    path = write(tmp_path / "m.json", document)
    with pytest.raises(FetaError, match=message):
        read_catboost(path, SPACE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is not a model of CatBoost: got the first bytes b''; expected JSON or"),
        (b"\x89HDF", "the file is not a model of CatBoost: got the first bytes"),
        (b"{", "the file is not valid JSON"),
        (b'{"a":' * 100_000, "the file is not valid JSON"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(NetworkError, match=message):
        read_catboost(path, SPACE)


def test_other_objects_are_refused() -> None:
    with pytest.raises(NetworkError, match="the source is not supported: got dict; expected a"):
        read_catboost({}, SPACE)


@pytest.mark.parametrize("count", [0, 3])
def test_the_number_of_trees_is_checked(count: int, tmp_path: Path) -> None:
    path = write(tmp_path / "m.json", DOCUMENT)
    with pytest.raises(SchemaError, match=f"iterations: got {count}; expected 1 to 2"):
        read_catboost(path, SPACE, iterations=count)
    assert read_catboost(path, SPACE, iterations=1)(people((0.0, "red", 9)))[0, 0] == 1.125


X, AGE = SPACE.attributes[0], SPACE.attributes[2]
SCHEMAS: list[tuple[Any, str]] = [
    (
        Categorical("color", ("Red", "Green"), sensitive=True),
        "has no category that the model tests",
    ),
    (
        Categorical("color", ("red", "green"), sensitive=True, missing=True),
        "has a value that CatBoost rejects in a category: got a missing value; expected texts",
    ),
    (Integer("color", 0, 3, sensitive=True), "expected a category, which the model reads"),
    (Categorical("colour", ("red",), sensitive=True), "color"),
]


@pytest.mark.parametrize(("attribute", "message"), SCHEMAS)
def test_schemas_that_do_not_fit_are_refused(attribute: Any, message: str, tmp_path: Path) -> None:  # noqa: ANN401 - any attribute
    path = write(tmp_path / "m.json", DOCUMENT)
    with pytest.raises(SchemaError, match=message):
        read_catboost(path, FeatureSpace((X, attribute, AGE)))


def test_categories_may_be_integers_or_booleans(tmp_path: Path) -> None:
    for values, text in (((7, 8), "7"), ((True, False), "1")):
        document = changed("features_info.categorical_features.0.values", [category_hash(text)])
        document["oblivious_trees"][0]["splits"][1]["value"] = category_hash(text)
        space = FeatureSpace((X, Categorical("color", values, sensitive=True), AGE))
        forest = read_catboost(write(tmp_path / "m.json", document), space)
        rows = pd.DataFrame({"x": [0.0, 0.0], "color": list(values), "age": [4, 4]})
        assert forest(space.encode(rows))[:, 0].tolist() == [4.625, 1.625]


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401 - any JSON value
    """Return the path of every member of a document."""
    found = [prefix] if prefix else []
    if isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            found += paths(item, (*prefix, name))
    return found


def test_random_damage_gives_an_error_or_a_forest(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nested = {**DOCUMENT, "trees": NESTED}
    del nested["oblivious_trees"]
    replacements: list[Any] = [
        None, -1, 2**70, 1e400, "x", [], {}, True, [[]], float("nan"), "9" * 30, 0.5,
    ]  # fmt: skip
    refused = 0
    documents = [DOCUMENT, nested, with_statistic(ctr_type="Buckets")]
    for index in range(400):
        document = copy.deepcopy(documents[index % 3])
        everything = paths(document)
        path = everything[int(rng.integers(len(everything)))]
        place: Any = document
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = replacements[int(rng.integers(len(replacements)))]
        (tmp_path / "m.json").write_text(json.dumps(document))
        try:
            read_catboost(tmp_path / "m.json", SPACE.with_sensitive({"age"}))
        except FetaError:
            refused += 1
        except UnseenValueWarning:
            pass
    assert refused > 200
