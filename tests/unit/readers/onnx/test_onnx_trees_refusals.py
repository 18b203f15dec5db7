"""Graphs of trees that are refused, and the message for each."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from feta import FeatureSpace, FetaError, NetworkError, Real, SchemaError
from feta.readers.onnx.read import read_onnx
from feta.readers.onnx.trees import read_onnx_trees
from tests.unit.readers.onnx.tree_models import SPACE, as_classes, graph, random_trees, version5


def trees(n_targets: int = 1, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - attributes
    """Return two random trees with other attributes."""
    plain = random_trees(np.random.default_rng(0), n_trees=2, n_targets=n_targets)
    return plain | {"n_targets": n_targets} | more


def classes(n_sets: int, labels: list[Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - attributes
    """Return a classifier with weights of some classes."""
    plain = random_trees(np.random.default_rng(0), n_trees=2, n_targets=n_sets)
    return as_classes(plain, labels, **more)


def positive(attributes: dict[str, Any]) -> dict[str, Any]:
    weights = [abs(weight) for weight in attributes["class_weights"]]
    return attributes | {"class_weights": weights}


def changed(name: str, at: int, value: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    """Return a regressor with one other number."""
    attributes = copy.deepcopy(trees())
    attributes[name][at] = value
    return attributes


REGRESSORS: list[tuple[dict[str, Any], str]] = [
    (trees(post_transform="PROBIT"), "the transformation of scores is not supported: got 'PROBIT'"),
    (trees(post_transform="LOGISTIC"), "runtimes disagree about LOGISTIC of 1 targets"),
    (trees(2, post_transform="SOFTMAX_ZERO"), "runtimes disagree about SOFTMAX_ZERO of 2 targets"),
    (trees(aggregate_function="MAX"), "the aggregate of trees is not supported: got 'MAX'; exp"),
    (trees(aggregate_function="AVERAGE", base_values=[1.0]), "base values after a mean are not"),
    (trees(base_values=[1.0, 2.0]), "the base values are not supported: got .1.0, 2.0.; expected"),
    (trees() | {"n_targets": 0}, "unsupported number of targets: got 0; expected 1 to 127"),
    (trees() | {"n_targets": 2**40}, "unsupported number of targets: got 1099511627776"),
    (trees() | {"nodes_values": [0.0]}, "wrong length of nodes_values: got the shape .1,."),
    (changed("nodes_modes", 0, "BRANCH_XOR"), "unknown mode of a node: got 'BRANCH_XOR'"),
    (changed("nodes_values", 0, float("nan")), "node 0: invalid threshold: got NaN"),
    (changed("nodes_truenodeids", 0, 99), "tree 0, node 0: invalid child: got -2"),
    (changed("nodes_truenodeids", 1, 0), "tree 0, node 1: invalid child: got 0"),
    (
        changed("nodes_featureids", 0, 7),
        "tree 0, node 0: invalid feature: got 7; expected one of 3",
    ),
    (changed("nodes_treeids", 29, 0), "the nodes of a tree are not stored together"),
    (changed("nodes_nodeids", 1, 0), "tree 0: a node is stored twice"),
    (changed("target_weights", 0, float("inf")), "invalid value of a leaf: got NaN or infinity"),
    (changed("target_ids", 0, 3), "a weight has an unknown target: expected 0 to 0"),
    (changed("target_nodeids", 0, 99), "a weight has no node: got .0, 99."),
    (changed("target_nodeids", 0, 8), "a leaf has two weights for one target; expected one each"),
    (changed("target_nodeids", 0, 0), "a leaf has no weight; export the model again"),
]


@pytest.mark.parametrize(("attributes", "message"), REGRESSORS)
def test_regressors_that_are_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        read_onnx_trees(graph("TreeEnsembleRegressor", attributes), SPACE)


DISAGREE = "onnxruntime's labels and probabilities disagree: got LOGISTIC and weights of one class"
CLASSIFIERS: list[tuple[dict[str, Any], str]] = [
    (classes(1, [0]), "unsupported classes: got 1; expected 2 to 127 different labels"),
    (classes(3, [0, 0, 1]), "unsupported classes: got 3; expected 2 to 127 different labels"),
    (positive(classes(1, [0, 1], post_transform="LOGISTIC")), DISAGREE),
    (classes(1, [0, 1], base_values=[0.1, 0.2]), "the base values are not supported: got .0.1"),
    (classes(2, [0, 1]), "onnxruntime labels by the second of two scores, not by the largest"),
    (classes(1, [0, 1, 2]), "class 1 may have no score: expected a tree whose leaves all have"),
    (classes(3, [0, 1, 2], base_values=[1.0]), "the base values are not supported: got .1.0."),
    (classes(1, [0, 1], post_transform="PROBIT"), "the transformation of scores is not supported"),
]


@pytest.mark.parametrize(("attributes", "message"), CLASSIFIERS)
def test_classifiers_that_are_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        read_onnx_trees(graph("TreeEnsembleClassifier", attributes), SPACE)


def test_opposite_weights_need_the_labels_0_and_1() -> None:
    attributes = classes(2, [5, 9])
    weights = attributes["class_weights"]
    weights[::2] = [-weight for weight in weights[1::2]]
    with pytest.raises(NetworkError, match=r"onnxruntime labels people 0 or 1: got the classes .5"):
        read_onnx_trees(graph("TreeEnsembleClassifier", attributes), SPACE)


def before(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    entry = helper.make_tensor_value_info("in", TensorProto.FLOAT, [None, 3])
    return graph("TreeEnsembleRegressor", trees(), nodes=nodes, inputs=[entry])


def after(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    return graph("TreeEnsembleRegressor", trees(), after=nodes, outputs=["out"])


def twice() -> onnx.ModelProto:
    model = graph("TreeEnsembleRegressor", trees())
    node = model.graph.node.add()
    node.CopyFrom(model.graph.node[0])
    return model


def of_type(kind: int, shape: list[int | None]) -> onnx.ModelProto:
    entry = helper.make_tensor_value_info("X", kind, shape)
    return graph("TreeEnsembleRegressor", trees(), inputs=[entry])


MUL_TWO = [
    helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.array([2.0]), "t")),
    helper.make_node("Mul", ["scores", "two"], ["out"]),
]
GRAPHS: list[tuple[onnx.ModelProto, str]] = [
    (
        before(helper.make_node("Scaler", ["in"], ["X"], domain="ai.onnx.ml", scale=[2.0] * 3)),
        r"operator 0 \(Scaler\) comes before the trees: expected only ArrayFeatureExtractor, Cast",
    ),
    (
        before(helper.make_node("Imputer", ["in"], ["X"], domain="ai.onnx.ml")),
        r"operator 0 \(Imputer\) comes before the trees",
    ),
    (before(helper.make_node("Cast", ["in"], ["X"], to=TensorProto.INT64)), "converts columns to"),
    (after(helper.make_node("Exp", ["scores"], ["out"])), r"operator 1 \(Exp\) follows the trees"),
    (after(*MUL_TWO), r"\(Mul\) follows the trees: expected only Cast, Flatten"),
    (after(helper.make_node("Identity", ["scores"], ["x"])), "the outputs of the graph are not"),
    (twice(), "unsupported number of tree operators: got 2; expected 1 of TreeEnsemble, Tree"),
    (of_type(TensorProto.STRING, [None, 3]), "'X' has an unsupported type: got type 8; expected"),
    (of_type(TensorProto.FLOAT, [None, None]), "'X' has an unsupported shape: got .0, 0."),
    (graph("TreeEnsembleRegressor", trees(), version=9), "the version of ai.onnx.ml is not supp"),
]


@pytest.mark.parametrize(("model", "message"), GRAPHS)
def test_graphs_that_are_refused(model: onnx.ModelProto, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        read_onnx_trees(model, SPACE)


def test_files_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\xff\xff\xff")
    with pytest.raises(NetworkError, match=r"m.onnx: the file cannot be decoded; expected an ONNX"):
        read_onnx_trees(path, SPACE)
    path.write_bytes(graph("TreeEnsembleRegressor", trees()).SerializeToString())
    with pytest.raises(NetworkError, match=r"TreeEnsembleRegressor.* read it with read_onnx_trees"):
        read_onnx(path)


def test_schemas_that_do_not_fit_are_refused() -> None:
    space = FeatureSpace((Real("a", 0, 1, sensitive=True), Real("b", 0, 1)))
    with pytest.raises(SchemaError, match="wrong number of columns: got 2 in the schema; expec"):
        read_onnx_trees(graph("TreeEnsembleRegressor", trees()), space)


def test_random_damage_gives_an_error_or_a_forest(monkeypatch: pytest.MonkeyPatch) -> None:
    # Only FETA's own checks are tested: damaged files need not reach onnxruntime.
    monkeypatch.setattr("feta.readers.onnx.trees.check_runtime", lambda *_: None)
    rng = np.random.default_rng(1)
    models = [
        graph("TreeEnsembleRegressor", trees(2)),
        graph("TreeEnsembleClassifier", classes(3, ["a", "b", "c"])),
        graph("TreeEnsemble", version5(rng), version=5),
    ]
    messages = []
    for index in range(300):
        model = onnx.ModelProto()
        model.CopyFrom(models[index % 3])
        attributes = model.graph.node[0].attribute
        attribute = attributes[int(rng.integers(len(attributes)))]
        values = attribute.ints or attribute.floats
        action = rng.integers(4)
        if action == 0:
            attributes.remove(attribute)
        elif action == 1 and values:
            del values[int(rng.integers(len(values))) :]
        elif attribute.ints:
            at, number = int(rng.integers(len(values))), [-1, 0, 7, 2**40, -(2**62)]
            attribute.ints[at] = number[int(rng.integers(5))]
        elif attribute.floats:
            at = int(rng.integers(len(values)))
            attribute.floats[at] = [float("nan"), float("inf"), 0.5][int(rng.integers(3))]
        else:
            attribute.t.CopyFrom(numpy_helper.from_array(rng.normal(size=2), "x"))
        try:
            read_onnx_trees(model, SPACE)
        except FetaError as error:
            messages.append(str(error))
    assert len(messages) > 125
    assert not [text for text in messages if "cannot be read" in text]  # all have a reason


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT16])
def test_scores_that_are_converted_to_other_numbers_are_refused(kind: int, tmp_path: Path) -> None:
    """An integer cuts a score off, so that 0.9 and 0.1 become equal."""
    same = helper.make_node("Identity", ["scores"], ["same"])
    cast = helper.make_node("Cast", ["same"], ["cut"], to=kind)
    regressor = graph("TreeEnsembleRegressor", trees(), after=[same, cast], outputs=["cut"])
    classifier = graph(
        "TreeEnsembleClassifier",
        positive(classes(2, [0, 1])),
        after=[same, cast],
        outputs=["label", "cut"],
    )
    for model in (regressor, classifier):
        onnx.save(model, tmp_path / "m.onnx")
        with pytest.raises(NetworkError, match=f"converts the scores of the trees to type {kind}:"):
            read_onnx_trees(tmp_path / "m.onnx", SPACE)


def test_labels_may_be_converted(tmp_path: Path) -> None:
    cast = helper.make_node("Cast", ["label"], ["named"], to=TensorProto.INT64)
    attributes = classes(3, [0, 1, 2])
    onnx.save(
        graph("TreeEnsembleClassifier", attributes, after=[cast], outputs=["named"]),
        tmp_path / "m.onnx",
    )
    assert read_onnx_trees(tmp_path / "m.onnx", SPACE).outputs == 3
