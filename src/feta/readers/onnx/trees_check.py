"""Comparison of a forest with onnxruntime: sums bit for bit, and labels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Array, Matrix
from feta.errors import NetworkError
from feta.readers.onnx.trees_graph import ML, TreeGraph
from feta.readers.trees.features import Feature
from feta.readers.trees.source_table import CHECKED_ROWS, SourceTable, check_bits
from feta.scorer.forest.forest import Forest
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

if TYPE_CHECKING:
    import onnx

# The attributes of a classifier, and their names in a regressor.
RENAMED = {
    "class_ids": "target_ids",
    "class_nodeids": "target_nodeids",
    "class_treeids": "target_treeids",
    "class_weights": "target_weights",
    "class_weights_as_tensor": "target_weights_as_tensor",
}
LABELS = ("classlabels_int64s", "classlabels_strings")


def check_runtime(
    model: "onnx.ModelProto",
    graph: TreeGraph,
    forest: Forest,
    columns: Sequence[Feature],
    space: FeatureSpace,
) -> None:
    """Compare a forest with onnxruntime on random people, if it is installed."""
    try:
        import onnxruntime  # noqa: PLC0415 - an extra
    except ImportError:
        return
    people = draw_people(space, np.random.default_rng(0), CHECKED_ROWS)
    numbers = SourceTable((), (), columns, ()).matrix(people)
    library = f"onnxruntime {onnxruntime.__version__}"
    sums = run_sums(model, graph, numbers)
    scores = forest(people)
    # Of two classes with opposite scores, or with 1 − s and s, one side has only one sum. Sums in
    # float64 are returned in float32.
    shared = min(scores.shape[1], sums.shape[1])
    own, given = scores[:, -shared:], sums[:, -shared:]
    expected = np.array(scores)
    expected[:, -shared:] = np.where(own.astype(given.dtype) == given, own, given)
    check_bits(forest, people, expected, library)
    if graph.node.op_type == "TreeEnsembleClassifier":
        _check_labels(model, graph, scores, numbers)


def run_sums(model: "onnx.ModelProto", graph: TreeGraph, numbers: Matrix) -> Array:
    """Return the sums of weights that onnxruntime computes, before transformations."""
    import onnx  # noqa: PLC0415 - slow to import

    node = onnx.NodeProto()
    node.CopyFrom(graph.node)
    del node.attribute[:], node.output[:]
    node.output.append("sums")
    classifier = graph.node.op_type == "TreeEnsembleClassifier"
    attributes = {attribute.name: attribute for attribute in graph.node.attribute}
    n_labels = max(
        (len(attributes[n].ints) or len(attributes[n].strings) for n in LABELS if n in attributes),
        default=0,
    )
    one_set = n_labels == 2 and len(set(attributes["class_ids"].ints)) == 1  # noqa: PLR2004 - binary
    for name, attribute in attributes.items():
        if name in LABELS or name == "post_transform":
            continue
        copy = node.attribute.add()
        copy.CopyFrom(attribute)
        copy.name = RENAMED.get(name, name) if classifier else name
        if one_set and name == "class_ids":
            del copy.ints[:]
            copy.ints.extend([0] * len(attribute.ints))
    if classifier:
        node.op_type = "TreeEnsembleRegressor"
        node.attribute.append(onnx.helper.make_attribute("n_targets", 1 if one_set else n_labels))
    return _run(model, graph, node, numbers)[0]


def _check_labels(
    model: "onnx.ModelProto", graph: TreeGraph, scores: Matrix, numbers: Matrix
) -> None:
    """Compare the label of each person with the decision by the replayed scores."""
    labels: list[Any] = []
    for attribute in graph.node.attribute:
        if attribute.name == "classlabels_int64s" and attribute.ints:
            labels = list(attribute.ints)
        elif attribute.name == "classlabels_strings" and attribute.strings:
            labels = [text.decode(errors="replace") for text in attribute.strings]
    chosen = np.argmax(scores, axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    found = _run(model, graph, graph.node, numbers)[0].ravel().tolist()
    wrong = [row for row, label in enumerate(found) if label != labels[int(chosen[row])]]
    if wrong:
        raise NetworkError(
            f"the labels are not those of onnxruntime: got {labels[int(chosen[wrong[0]])]!r} for "
            f"random row {wrong[0]}; expected {found[wrong[0]]!r}; {len(wrong)} of {len(found)} "
            "rows differ; FETA does not read this model exactly"
        )


def _run(
    model: "onnx.ModelProto", graph: TreeGraph, node: "onnx.NodeProto", numbers: Matrix
) -> list[Array]:
    """Evaluate the graph up to its trees, with this operator in their place."""
    import onnx  # noqa: PLC0415 - slow to import
    import onnxruntime  # noqa: PLC0415 - the caller has it

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    place = next(
        index
        for index, other in enumerate(model.graph.node)
        if other.domain == ML and other.op_type == graph.node.op_type
    )
    before = list(model.graph.node)[:place]
    del copy.graph.node[:], copy.graph.output[:], copy.graph.value_info[:]
    copy.graph.node.extend([*before, node])
    copy.graph.output.add().name = node.output[0]
    feeds, column = {}, 0
    constants = {tensor.name for tensor in model.graph.initializer}
    for entry in copy.graph.input:
        if entry.name in constants:
            continue
        shape = entry.type.tensor_type.shape
        shape.dim[0].dim_param = "rows"
        width = shape.dim[1].dim_value
        dtype = onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type)
        feeds[entry.name] = numbers[:, column : column + width].astype(dtype)
        column += width
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # its log messages are not for the user
    try:
        session = onnxruntime.InferenceSession(
            copy.SerializeToString(), options, ["CPUExecutionProvider"]
        )
        return [np.asarray(output) for output in session.run(None, feeds)]
    except Exception as error:  # onnxruntime's errors share no other class
        reason = " ".join(str(error).split())[:200]
        raise NetworkError(f"onnxruntime rejects the trees: {reason}; export them again") from None
