"""ONNX graphs that are counted: their own outputs in onnxruntime, on encoded rows."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feta.errors import MissingExtra, NetworkError
from feta.readers.network_function import End, NetworkFunction
from feta.readers.onnx.load import decode
from feta.readers.onnx.runtime import onnx_scores
from feta.readers.onnx.tensor_data import DOUBLE, read_tensor

if TYPE_CHECKING:
    import onnx

# The last operators of a graph.
ENDS: dict[str, End] = {
    "Gemm": "scores",
    "MatMul": "scores",
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
}
# Operators whose results may be far larger than the file.
GROWING = frozenset({"ConstantOfShape", "Expand", "Loop", "Range", "Scan", "Tile"})

# The domains of operators that onnxruntime itself defines.
DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml"})

SHAPES = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def onnx_function(path: Path) -> NetworkFunction:
    """Return the first output of a graph as a function of encoded rows.

    Raises
    ------
    MissingExtra
        If onnxruntime is not installed.
    NetworkError
        If onnxruntime cannot run the graph on rows of numbers.
    """
    try:
        import onnxruntime  # noqa: F401, PLC0415 - an extra
    except ImportError:
        raise MissingExtra("onnxruntime", "onnxruntime") from None
    _check_content(path)
    outputs = onnx_scores(path)
    if outputs is None:
        raise NetworkError(
            f"{path}: onnxruntime cannot run the graph on rows of numbers; expected inputs of "
            "(rows, columns)"
        )
    graph = decode(path).graph
    if len(graph.output) > 1:
        raise NetworkError(
            f"{path}: the graph has several outputs: got {len(graph.output)}; expected one, of "
            "scores or probabilities"
        )
    single = graph.output[0].type.tensor_type.elem_type != DOUBLE
    return NetworkFunction(f"the graph {path.name} in onnxruntime", outputs, _end(graph), single)


def _check_content(path: Path) -> None:
    """Reject what a file must not contain, whoever evaluates it."""
    model = decode(path)
    nodes = model.graph.node
    growing = sorted({node.op_type for node in nodes} & GROWING)
    domains = sorted({node.domain for node in nodes} - DOMAINS)
    if model.functions or growing or domains:
        names = [function.name for function in model.functions] + growing + domains
        raise NetworkError(
            f"{path}: the graph is not evaluated: got {names[0]!r}; expected operators of ONNX "
            "whose results are not much larger than their inputs"
        )
    attributes = [attribute for node in nodes for attribute in node.attribute]
    tensors = [attribute.t for attribute in attributes if attribute.HasField("t")]
    for tensor in [*model.graph.initializer, *tensors]:
        values = read_tensor(tensor, None)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise NetworkError(f"{path}: the stored array {tensor.name!r} is not finite")


def _end(graph: "onnx.GraphProto") -> End:
    """Return what the first output is, by the last operator that computes."""
    makers = {name: node for node in graph.node for name in node.output}
    node = makers.get(graph.output[0].name)
    while node is not None and node.op_type in SHAPES:
        node = makers.get(node.input[0])
    if node is None:
        return "unknown"
    if node.op_type == "Add":  # a bias after a MatMul
        kinds = [makers[name].op_type for name in node.input if name in makers]
        return "scores" if kinds == ["MatMul"] else "unknown"
    return ENDS.get(node.op_type, "unknown")
