"""Graphs of trees made by hand, and a walk through their attributes that shares no code."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from feta import FeatureSpace, Real

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
# A sensitive real number is never missing.
SPACE = FeatureSpace(tuple(Real(f"x{i}", -8, 8, sensitive=i == 0, missing=i > 0) for i in range(3)))
COMPARE: dict[str, Any] = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


def random_trees(
    rng: np.random.Generator, *, n_trees: int = 5, n_targets: int = 1, tracks: bool = True
) -> dict[str, Any]:
    """Return the attributes of random trees of depth 3 with thresholds in eighths."""
    lists: dict[str, list[Any]] = {
        name: [] for name in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids")
    }
    lists["falsenodeids"], lists["missing_value_tracks_true"] = [], []
    weights: dict[str, list[Any]] = {"treeids": [], "nodeids": [], "ids": [], "weights": []}
    for tree in range(n_trees):
        for node in range(15):
            leaf = node >= 7
            lists["treeids"].append(tree)
            lists["nodeids"].append(node)
            lists["modes"].append("LEAF" if leaf else str(rng.choice(MODES)))
            lists["featureids"].append(0 if leaf else int(rng.integers(3)))
            lists["values"].append(0.0 if leaf else float(rng.integers(-16, 16)) / 8)
            lists["truenodeids"].append(0 if leaf else 2 * node + 1)
            lists["falsenodeids"].append(0 if leaf else 2 * node + 2)
            lists["missing_value_tracks_true"].append(
                int(not leaf and tracks and rng.random() < 0.5)
            )
            for target in range(n_targets) if leaf else ():
                weights["treeids"].append(tree)
                weights["nodeids"].append(node)
                weights["ids"].append(target)
                weights["weights"].append(float(np.float32(rng.normal())))
    nodes = {f"nodes_{name}": values for name, values in lists.items()}
    return nodes | {f"target_{name}": values for name, values in weights.items()}


def graph(
    op_type: str,
    attributes: dict[str, Any],
    *,
    kind: int = TensorProto.FLOAT,
    version: int = 3,
    width: int = 3,
    nodes: Sequence[onnx.NodeProto] = (),
    inputs: Sequence[onnx.ValueInfoProto] | None = None,
    after: Sequence[onnx.NodeProto] = (),
    outputs: Sequence[str] = (),
) -> onnx.ModelProto:
    """Return a model with one tree operator, which reads `X`."""
    classifier = op_type == "TreeEnsembleClassifier"
    names = ["label", "scores"] if classifier else ["scores"]
    trees = helper.make_node(op_type, ["X"], names, domain="ai.onnx.ml", **attributes)
    entries = inputs or [helper.make_tensor_value_info("X", kind, [None, width])]
    results = []
    for name in outputs or names:
        label = TensorProto.STRING if "classlabels_strings" in attributes else TensorProto.INT64
        double = op_type == "TreeEnsemble" and kind == TensorProto.DOUBLE
        number = TensorProto.DOUBLE if double else TensorProto.FLOAT
        results.append(
            helper.make_tensor_value_info(name, label if name == "label" else number, None)
        )
    return helper.make_model(
        helper.make_graph([*nodes, trees, *after], "trees", entries, results),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)],
        ir_version=9,
    )


def as_classes(attributes: dict[str, Any], labels: Sequence[Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - attributes
    """Return the attributes of a classifier with the trees of a regressor."""
    renamed = {name.replace("target_", "class_"): value for name, value in attributes.items()}
    key = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s"
    return renamed | {key: list(labels)} | more


def as_doubles(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes with numbers in stored arrays of float64, off the grid of float32."""
    result = dict(attributes)
    for name in ("nodes_values", "target_weights"):
        numbers = np.array(result.pop(name)) * (1 + 2.0**-40)
        result[f"{name}_as_tensor"] = numpy_helper.from_array(numbers, name)
    return result


def walk(attributes: dict[str, Any], row: np.ndarray, tree: int) -> int:
    """Return the number of the leaf that a row reaches, in the type of the row."""
    thresholds = attributes["nodes_values"]
    at = attributes["nodes_treeids"].index(tree)
    first = at
    while attributes["nodes_modes"][at] != "LEAF":
        number = row[attributes["nodes_featureids"][at]]
        threshold = row.dtype.type(thresholds[at])
        true = bool(COMPARE[attributes["nodes_modes"][at]](number, threshold))
        true |= bool(np.isnan(number) and attributes["nodes_missing_value_tracks_true"][at])
        at = first + attributes["nodes_truenodeids" if true else "nodes_falsenodeids"][at]
    return int(attributes["nodes_nodeids"][at])


def walk_sums(attributes: dict[str, Any], rows: np.ndarray, n_targets: int) -> np.ndarray:
    """Add the weights of the leaves in the type of the rows, tree by tree."""
    weights = {
        key: weight
        for *key_parts, weight in zip(
            attributes["target_treeids"],
            attributes["target_nodeids"],
            attributes["target_ids"],
            attributes["target_weights"],
            strict=True,
        )
        for key in [tuple(key_parts)]
    }
    sums = np.zeros((len(rows), n_targets), dtype=rows.dtype)
    for index, row in enumerate(rows):
        for tree in dict.fromkeys(attributes["nodes_treeids"]):
            leaf = walk(attributes, row, tree)
            for target in range(n_targets):
                sums[index, target] += rows.dtype.type(weights[tree, leaf, target])
    return sums


def edge_rows(rng: np.random.Generator, count: int = 300) -> np.ndarray:
    """Return rows on thresholds, next to them in float64 and float32, and with NaN."""
    rows = rng.integers(-17, 17, size=(count, 3)) / 8
    kind = rng.integers(0, 5, size=rows.shape)
    single = rows.astype(np.float32)
    rows = np.where(kind == 1, np.nextafter(rows, 99), rows)
    rows = np.where(kind == 2, np.nextafter(single, np.float32(99)).astype(float), rows)
    rows = np.where(kind == 3, np.nextafter(single, np.float32(-99)).astype(float), rows)
    return np.where((kind == 4) & (np.arange(3) > 0), np.nan, rows)


def version5(rng: np.random.Generator, kind: int = TensorProto.FLOAT) -> dict[str, Any]:
    """Return random trees of depth 2 in version 5, with sets."""
    dtype = np.float32 if kind == TensorProto.FLOAT else np.float64
    modes, splits, members, features = [], [], [], []
    ends: dict[str, list[int]] = {"true": [], "false": []}
    weights: list[float] = []
    for tree in range(4):
        first_leaf = len(weights)
        for node in range(3):
            mode = int(rng.integers(0, 7))
            modes.append(mode)
            splits.append(float(rng.integers(-8, 8)) / 4)
            features.append(int(rng.integers(3)))
            if mode == 6:
                chosen = rng.choice(np.arange(8) / 4, int(rng.integers(1, 5)), replace=False)
                members += [*chosen.tolist(), np.nan]
            root = node == 0
            ends["true"].append(3 * tree + 1 if root else first_leaf + 2 * (node - 1))
            ends["false"].append(3 * tree + 2 if root else first_leaf + 2 * (node - 1) + 1)
        weights += rng.normal(size=4).astype(dtype).tolist()
    leafs = [int(index % 3 > 0) for index in range(12)]
    tensors = {
        "nodes_splits": np.array(splits, dtype),
        "membership_values": np.array(members, dtype),
        "leaf_weights": np.array(weights, dtype),
        "nodes_modes": np.array(modes, np.uint8),
    }
    return {
        **{name: numpy_helper.from_array(array, name) for name, array in tensors.items()},
        "nodes_featureids": features,
        "nodes_truenodeids": ends["true"],
        "nodes_falsenodeids": ends["false"],
        "nodes_trueleafs": leafs,
        "nodes_falseleafs": leafs,
        "nodes_missing_value_tracks_true": [int(rng.random() < 0.5) for _ in range(12)],
        "leaf_targetids": [0] * 16,
        "tree_roots": [0, 3, 6, 9],
        "n_targets": 1,
    }
