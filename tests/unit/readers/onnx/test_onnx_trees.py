"""Tree operators of ONNX: sums and labels, also as onnxruntime computes them."""

import functools
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx import TensorProto, helper, numpy_helper

import feta
from feta import (
    Categorical,
    FeatureSpace,
    Integer,
    Model,
    NetworkError,
    Real,
    SchemaError,
    datasets,
)
from feta.readers.onnx.trees import has_trees, read_onnx_trees
from tests.unit.readers.onnx.tree_models import (
    SPACE,
    as_classes,
    as_doubles,
    edge_rows,
    graph,
    random_trees,
    version5,
    walk_sums,
)


def encode(rows: np.ndarray, space: FeatureSpace = SPACE) -> np.ndarray:
    names = [attribute.name for attribute in space.attributes]
    return space.encode(pd.DataFrame(rows, columns=names))


def run(model: onnx.ModelProto, rows: Any, threads: int = 1) -> list[np.ndarray]:  # noqa: ANN401 - rows, or inputs by name
    """Evaluate a graph in onnxruntime, with one thread."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    if isinstance(rows, np.ndarray):
        double = "double" in session.get_inputs()[0].type
        name = session.get_inputs()[0].name
        rows = {name: rows.astype(np.float64 if double else np.float32)}
    return [np.asarray(output) for output in session.run(None, rows)]


@pytest.mark.parametrize("seed", range(12))
def test_sums_are_those_of_a_walk_and_of_onnxruntime(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_targets = 1 + seed % 3
    attributes = random_trees(rng, n_targets=n_targets, tracks=seed % 4 > 0)
    model = graph("TreeEnsembleRegressor", attributes | {"n_targets": n_targets}, version=1)
    rows = edge_rows(rng)
    forest = read_onnx_trees(model, SPACE)
    scores = forest(encode(rows))
    np.testing.assert_array_equal(scores, walk_sums(attributes, rows.astype(np.float32), n_targets))
    np.testing.assert_array_equal(scores.astype(np.float32), run(model, rows)[0])
    assert (forest.source, forest.link, forest.equality) == ("float32", "identity", None)


@pytest.mark.parametrize("seed", range(4))
def test_double_numbers_are_compared_and_added_in_double(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain = random_trees(rng)
    stored = as_doubles(plain)
    attributes = plain | {
        name: (np.array(plain[name]) * (1 + 2.0**-40)).tolist()
        for name in ("nodes_values", "target_weights")
    }
    model = graph("TreeEnsembleRegressor", stored | {"n_targets": 1}, kind=TensorProto.DOUBLE)
    rows = edge_rows(rng)
    forest = read_onnx_trees(model, SPACE)
    scores = forest(encode(rows))
    np.testing.assert_array_equal(scores, walk_sums(attributes, rows, 1))
    np.testing.assert_array_equal(scores.astype(np.float32), run(model, rows)[0])
    assert forest.source == "float64"


@pytest.mark.parametrize("cast", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_conversions_before_the_trees_round_once(cast: int) -> None:
    rng = np.random.default_rng(5)
    attributes = random_trees(rng)
    other = TensorProto.DOUBLE if cast == TensorProto.FLOAT else TensorProto.FLOAT
    node = helper.make_node("Cast", ["in"], ["X"], to=cast)
    entry = helper.make_tensor_value_info("in", other, [None, 3])
    model = graph(
        "TreeEnsembleRegressor", attributes | {"n_targets": 1}, nodes=[node], inputs=[entry]
    )
    rows = edge_rows(rng)
    single = rows.astype(np.float32)
    expected = walk_sums(attributes, single if cast == TensorProto.FLOAT else single * 1.0, 1)
    if cast == TensorProto.DOUBLE:
        expected = walk_sums(attributes, single.astype(np.float64), 1)
    scores = read_onnx_trees(model, SPACE)(encode(rows))
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(scores.astype(np.float32), run(model, rows)[0])


def test_a_mean_of_trees_and_base_values() -> None:
    rng = np.random.default_rng(1)
    attributes = random_trees(rng, n_trees=7, n_targets=2)
    rows = edge_rows(rng)
    sums = walk_sums(attributes, rows.astype(np.float32), 2)
    mean = graph(
        "TreeEnsembleRegressor", attributes | {"n_targets": 2, "aggregate_function": "AVERAGE"}
    )
    scores = read_onnx_trees(mean, SPACE)(encode(rows))
    np.testing.assert_array_equal(scores, sums / np.float32(7))
    np.testing.assert_array_equal(scores.astype(np.float32), run(mean, rows)[0])
    base = graph("TreeEnsembleRegressor", attributes | {"n_targets": 2, "base_values": [0.1, -3.3]})
    scores = read_onnx_trees(base, SPACE)(encode(rows))
    np.testing.assert_array_equal(scores, sums + np.array([0.1, -3.3], np.float32))
    np.testing.assert_array_equal(scores.astype(np.float32), run(base, rows)[0])


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("seed", range(4))
def test_version_5_with_sets(seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    model = graph("TreeEnsemble", version5(rng, kind), kind=kind, version=5)
    rows = edge_rows(rng)
    scores = read_onnx_trees(model, SPACE)(encode(rows))
    expected = run(model, rows)[0]
    np.testing.assert_array_equal(scores.astype(expected.dtype), expected)


def test_large_sets_need_integers() -> None:
    rng = np.random.default_rng(2)
    attributes = version5(rng)
    attributes["nodes_modes"] = numpy_helper.from_array(np.full(12, 6, np.uint8), "nodes_modes")
    sets = [[-3, 2, 5], list(range(-2, 40)), [31]] * 4
    members = [number for members in sets for number in (*members, np.nan)]
    name = "membership_values"
    attributes[name] = numpy_helper.from_array(np.array(members, np.float32), name)
    model = graph("TreeEnsemble", attributes, version=5)
    expected = "a large set contains numbers of 'x.': got a column with fractions, which onnx"
    with pytest.raises(NetworkError, match=expected):
        read_onnx_trees(model, SPACE)
    space = FeatureSpace(
        tuple(Integer(f"x{i}", -5, 45, sensitive=i == 0, missing=i > 0) for i in range(3))
    )
    rows = rng.integers(-5, 45, size=(300, 3)).astype(float)
    rows[rng.random(300) < 0.2, 2] = np.nan
    scores = read_onnx_trees(model, space)(encode(rows, space))
    np.testing.assert_array_equal(scores.astype(np.float32), run(model, rows)[0])
    attributes[name] = numpy_helper.from_array(np.array(members, np.float32) - 0.5, name)
    with pytest.raises(NetworkError, match="invalid member of a set: got a fraction or a large"):
        read_onnx_trees(graph("TreeEnsemble", attributes, version=5), space)


BINARY: list[tuple[int, str, list[float], str]] = [
    # class of the weights, transformation, base values, sign of the weights
    (0, "NONE", [], "mixed"),
    (0, "NONE", [0.25], "mixed"),
    (0, "LOGISTIC", [], "mixed"),
    (0, "LOGISTIC", [-0.125], "mixed"),
    (0, "SOFTMAX", [], "mixed"),
    (0, "NONE", [], "positive"),
    (0, "NONE", [0.25], "positive"),
    (0, "SOFTMAX", [], "positive"),
    (1, "NONE", [], "mixed"),
    (1, "LOGISTIC", [], "mixed"),
    (1, "SOFTMAX", [], "mixed"),
    (1, "NONE", [], "positive"),
]


def eighths(attributes: dict[str, Any], prefix: str, sign: str) -> dict[str, Any]:
    """Return the attributes with weights in eighths, so that sums tie."""
    weights = [round(weight * 2) / 8 for weight in attributes[f"{prefix}_weights"]]
    chosen = weights if sign == "mixed" else [abs(weight) for weight in weights]
    return attributes | {f"{prefix}_weights": chosen}


@pytest.mark.parametrize(("target", "transform", "base", "sign"), BINARY)
def test_two_classes_with_one_set_of_weights(
    target: int, transform: str, base: list[float], sign: str
) -> None:
    rng = np.random.default_rng(3)
    plain = eighths(random_trees(rng, n_trees=3), "target", sign)
    attributes = as_classes(plain, [7, 4], post_transform=transform)
    attributes["class_ids"] = [target] * len(attributes["class_ids"])
    if base:
        attributes["base_values"] = base
    model = graph("TreeEnsembleClassifier", attributes)
    rows = edge_rows(rng)
    forest = read_onnx_trees(model, SPACE)
    sums = walk_sums(plain, rows.astype(np.float32), 1)[:, 0] + np.float32(sum(base))
    limit = 0.5 if sign == "positive" else 0
    assert (sums == limit).any()  # ties
    decided = Model(SPACE, forest).decide(encode(rows))
    np.testing.assert_array_equal(decided, sums > limit)
    scores = forest(encode(rows))
    np.testing.assert_array_equal(scores[:, -1], sums)
    assert (forest.link == "logit") == (
        transform == "LOGISTIC" or (target == 1 and transform != "NONE")
    )
    labels, probabilities = run(model, rows)
    np.testing.assert_array_equal(labels, np.where(decided, 4, 7))
    if sign == "positive" and target == 0:
        np.testing.assert_array_equal(scores.astype(np.float32), probabilities)
    if transform == "LOGISTIC":
        np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-sums)), rtol=1e-5)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_two_classes_with_opposite_weights(transform: str) -> None:
    rng = np.random.default_rng(4)
    plain = eighths(random_trees(rng, n_trees=3, n_targets=2), "target", "mixed")
    weights = plain["target_weights"]
    weights[::2] = [-weight for weight in weights[1::2]]
    model = graph("TreeEnsembleClassifier", as_classes(plain, [0, 1], post_transform=transform))
    rows = edge_rows(rng)
    forest = read_onnx_trees(model, SPACE)
    sums = walk_sums(plain, rows.astype(np.float32), 2)
    assert (sums[:, 1] == 0).any()
    decided = Model(SPACE, forest).decide(encode(rows))
    np.testing.assert_array_equal(decided, sums[:, 1] > 0)
    assert forest.outputs == 1 + (transform == "SOFTMAX")
    assert (forest.link == "logit") == (transform != "NONE")
    np.testing.assert_array_equal(run(model, rows)[0], decided.astype(int))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("base", [[], [0.5, 0.0, -0.25]])
def test_several_classes(transform: str, base: list[float]) -> None:
    rng = np.random.default_rng(6)
    plain = eighths(random_trees(rng, n_trees=3, n_targets=3), "target", "mixed")
    attributes = as_classes(plain, ["a", "b", "c"], post_transform=transform)
    model = graph("TreeEnsembleClassifier", attributes | ({"base_values": base} if base else {}))
    rows = edge_rows(rng)
    forest = read_onnx_trees(model, SPACE)
    sums = walk_sums(plain, rows.astype(np.float32), 3) + np.array(base or [0] * 3, np.float32)
    np.testing.assert_array_equal(forest(encode(rows)), sums)
    decided = Model(SPACE, forest, feta.Argmax(("a", "b", "c"))).decide(encode(rows))
    np.testing.assert_array_equal(decided, np.argmax(sums, axis=1))
    labels = run(model, rows)[0]
    np.testing.assert_array_equal(labels, np.array(["a", "b", "c"])[decided])


def test_operators_around_the_trees() -> None:
    rng = np.random.default_rng(7)
    attributes = random_trees(rng)
    kinds = [TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.INT64]
    inputs = [
        helper.make_tensor_value_info(name, kind, [None, 1])
        for name, kind in zip(["x1", "x0", "x2"], kinds, strict=True)
    ]
    shape = helper.make_node(
        "Constant", [], ["shape"], value=numpy_helper.from_array(np.array([-1, 3]), "shape")
    )
    chosen = helper.make_node(
        "Constant", [], ["chosen"], value=numpy_helper.from_array(np.array([1, 0, 2]), "chosen")
    )
    nodes = [
        shape,
        chosen,
        helper.make_node("Cast", ["x1"], ["a"], to=TensorProto.FLOAT),
        helper.make_node("Identity", ["x0"], ["b"]),
        helper.make_node("Cast", ["x2"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["a", "b", "c"], ["d"], axis=1),
        helper.make_node("Reshape", ["d", "shape"], ["e"]),
        helper.make_node("ArrayFeatureExtractor", ["e", "chosen"], ["X"], domain="ai.onnx.ml"),
    ]
    after = [helper.make_node("Identity", ["scores"], ["out"])]
    model = graph(
        "TreeEnsembleRegressor",
        attributes | {"n_targets": 1},
        nodes=nodes,
        inputs=inputs,
        after=after,
        outputs=["out"],
    )
    space = FeatureSpace(
        (SPACE.attributes[0], Real("x1", -8, 8, missing=True), Integer("x2", -3, 3))
    )
    rows = edge_rows(rng)
    rows[:, 2] = rng.integers(-3, 4, len(rows))
    scores = read_onnx_trees(model, space)(encode(rows, space))
    np.testing.assert_array_equal(scores, walk_sums(attributes, rows.astype(np.float32), 1))
    feeds = {
        "x1": rows[:, 1:2],
        "x0": rows[:, :1].astype(np.float32),
        "x2": rows[:, 2:].astype(np.int64),
    }
    np.testing.assert_array_equal(scores.astype(np.float32), run(model, feeds)[0])
    wrong = FeatureSpace((*space.attributes[:2], Real("x2", -3, 3)))
    with pytest.raises(SchemaError, match="the graph reads 'x2' as an integer: got "):
        read_onnx_trees(model, wrong)


def test_a_graph_of_encoded_people() -> None:
    rng = np.random.default_rng(8)
    attributes = random_trees(rng)
    space = FeatureSpace((Categorical("c", ("u", "v"), sensitive=True), Real("x", -9, 9)))
    model = graph("TreeEnsembleRegressor", attributes | {"n_targets": 1})
    frame = pd.DataFrame({"c": ["u", "v"] * 40, "x": np.round(rng.normal(size=80) * 8) / 8})
    people = space.encode(frame)
    forest = read_onnx_trees(model, space)
    np.testing.assert_array_equal(
        forest(people), walk_sums(attributes, people.astype(np.float32), 1)
    )
    verdicts = {
        type(feta.verify(feta.FairAt(Model(space, forest), person))) for person in people[:9]
    }
    assert verdicts <= {feta.Fair, feta.Unfair}


def test_labels_of_classifiers_keep_their_way_out(tmp_path: Any) -> None:  # noqa: ANN401 - a path
    rng = np.random.default_rng(9)
    attributes = as_classes(random_trees(rng), [0, 1], post_transform="LOGISTIC")
    after = [
        helper.make_node("Cast", ["label"], ["out"], to=TensorProto.INT64),
        helper.make_node(
            "ZipMap", ["scores"], ["map"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]
        ),
    ]
    model = graph("TreeEnsembleClassifier", attributes, after=after, outputs=["out", "map"])
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert has_trees(path)
    assert read_onnx_trees(path, SPACE).fingerprint == read_onnx_trees(model, SPACE).fingerprint


@functools.cache
def training_table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(600, 3)), 2).astype(np.float32)
    y = (rows[:, 0] + 0.3 * rng.normal(size=600) > rows[:, 1]).astype(int)
    return rows, y


CONVERTED = [
    "DecisionTreeClassifier",
    "RandomForestClassifier",
    "ExtraTreesClassifier",
    "GradientBoostingClassifier",
    "RandomForestRegressor",
    "GradientBoostingRegressor",
    "LGBMClassifier",
    "LGBMRegressor",
    "XGBClassifier",
    "XGBRegressor",
]


def converted(name: str, classes: int) -> onnx.ModelProto:
    """Train a model and convert it."""
    rows, y = training_table()
    y = y + (rows[:, 2] > 0.5) if classes == 3 else y
    settings: dict[str, Any] = {} if "Decision" in name else {"n_estimators": 12}
    if name.startswith(("LGBM", "XGB")):
        module = "lightgbm" if name.startswith("LGBM") else "xgboost"
        library = pytest.importorskip(module, reason=f"{module} is not installed")
        tools = pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
        types = pytest.importorskip("onnxmltools.convert.common.data_types")
        quiet = {"n_jobs": 1} | ({"verbose": -1} if module == "lightgbm" else {})
        model = getattr(library, name)(**settings, **quiet).fit(rows, y)
        convert = tools.convert_lightgbm if module == "lightgbm" else tools.convert_xgboost
        entry = ("X", types.FloatTensorType([None, 3]))
        return convert(model, initial_types=[entry])
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    ensemble, tree = pytest.importorskip("sklearn.ensemble"), pytest.importorskip("sklearn.tree")
    kind = getattr(tree if "Decision" in name else ensemble, name)
    return skl2onnx.to_onnx(kind(max_depth=5, random_state=0, **settings).fit(rows, y), rows[:1])


@pytest.mark.filterwarnings("ignore")  # of the converters
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CONVERTED)
def test_converted_models(name: str, classes: int) -> None:
    if name.endswith("Regressor") and classes == 3:
        pytest.skip("a regressor has no classes")
    model = converted(name, classes)
    rows = np.concatenate([training_table()[0], np.array([[0, np.nan, np.nan]], np.float32)])
    forest = read_onnx_trees(model, SPACE)
    people = encode(rows.astype(np.float64))
    if name.endswith("Regressor"):
        np.testing.assert_array_equal(forest(people).astype(np.float32), run(model, rows)[0])
        return
    del model.graph.output[1:]
    rule = feta.Argmax(("a", "b", "c")) if classes == 3 else feta.Threshold(0.0)
    decided = Model(SPACE, forest, rule).decide(people).astype(int)
    np.testing.assert_array_equal(decided, run(model, rows)[0].ravel())


@pytest.mark.filterwarnings("ignore")  # of the converters
@pytest.mark.parametrize("name", ["german", "adult"])
def test_real_tables_with_missing_cells(name: str) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    tools = pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
    types = pytest.importorskip("onnxmltools.convert.common.data_types")
    try:
        data = datasets.load(name)
    except feta.FetaError as error:
        pytest.skip(f"the table is not available: {error}")
    rng = np.random.default_rng(0)
    attributes = [a for a in data.space.attributes if not isinstance(a, feta.Derived)]
    rows = data.frame[[a.name for a in attributes]].iloc[:1000].copy()
    listed: list[Any] = []
    for attribute in attributes:
        gaps = rng.random(len(rows)) < 0.1
        column = rows[attribute.name]
        if isinstance(attribute, Categorical):
            codes = {value: code for code, value in enumerate(attribute.values)}
            column = column.astype(object).map(codes)
            values = tuple(range(len(codes)))
            listed.append(
                Categorical(attribute.name, values, sensitive=attribute.sensitive, missing=True)
            )
        else:
            listed.append(feta.Real(attribute.name, -1e9, 1e9, sensitive=False, missing=True))
        rows[attribute.name] = column.astype(float).mask(gaps)
    y = data.labels[: len(rows)].astype(int)
    classifier = lightgbm.LGBMClassifier(n_estimators=15, verbose=-1, n_jobs=1)
    classifier.fit(rows.to_numpy(), y)
    entry = ("X", types.FloatTensorType([None, len(listed)]))
    model = tools.convert_lightgbm(classifier, initial_types=[entry], zipmap=False)
    space = FeatureSpace(tuple(listed))
    forest = read_onnx_trees(model, space)
    people = space.encode(rows)
    labels, probabilities = run(model, rows.to_numpy())
    np.testing.assert_array_equal(Model(space, forest).decide(people), labels.ravel() == 1)
    expected = 1 / (1 + np.exp(-forest(people)[:, 0]))
    np.testing.assert_allclose(probabilities[:, 1], expected, rtol=1e-5)
