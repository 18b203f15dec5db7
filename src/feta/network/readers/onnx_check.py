"""ONNX check: a graph run step by step in float64, beside the network that was read from it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.network.agreement import check_agreement
from feta.network.network import Network
from feta.network.readers.onnx_reading import Reading

if TYPE_CHECKING:
    import onnx

# Rows scored by both: enough to reach every neuron's two sides.
CHECKED_ROWS = 64

FLOAT, DOUBLE = 1, 11


def check_graph(model: "onnx.ModelProto", network: Network, reading: Reading) -> None:
    """Compare scores with those of ONNX's own reference evaluator, all numbers made float64."""
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - slow to import

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(max(CHECKED_ROWS, reading.rows), network.width))
    for table in network.first.tables:
        rows[:, table.column] = rng.choice(table.numbers, len(rows))
    if reading.rows > 1:
        rows = rows[: reading.rows]
    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(_in_double(model, reading))
            theirs = _outputs(evaluator, model, reading, rows)
    except Exception as error:  # whatever the evaluator raises: the graph does not run
        told = " ".join(str(error).split())[:200]
        message = f"the graph must run as it stands, but does not ({told}); export it again"
        raise NetworkError(message) from None
    check_agreement(network, rows, theirs, "the graph's own", squash=reading.squashed)


def _outputs(evaluator: Any, model: "onnx.ModelProto", reading: Reading, rows: Matrix) -> Matrix:  # noqa: ANN401 - onnx ships no types for it
    """Feed rows in the graph's own batches."""
    batch = 1 if reading.fixed_rows and reading.rows == 1 else len(rows)
    parts = []
    for start in range(0, len(rows), batch):
        some = rows[start : start + batch]
        feeds, column = {}, 0
        for entry, width in reading.entries.items():
            part = some[:, column : column + width]
            whole = _kind(model, entry) not in (FLOAT, DOUBLE)
            feeds[entry] = part.astype(np.int64) if whole else part
            column += width
        parts.append(np.asarray(evaluator.run(None, feeds)[0], np.float64).reshape(len(some), -1))
    return np.concatenate(parts)


def _kind(model: "onnx.ModelProto", name: str) -> int:
    (entry,) = (one for one in model.graph.input if one.name == name)
    return entry.type.tensor_type.elem_type


def _in_double(model: "onnx.ModelProto", reading: Reading) -> "onnx.ModelProto":
    """Copy a graph with every float32 number as float64, and its constants as they were read."""
    import onnx  # noqa: PLC0415 - slow to import
    from onnx import numpy_helper  # noqa: PLC0415 - slow to import

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.initializer[:], copy.graph.value_info[:], copy.metadata_props[:]
    nodes = [node for node in copy.graph.node if node.output[0] not in reading.constants]
    del copy.graph.node[:]
    for node in nodes:
        if node.op_type == "Cast":
            for attribute in node.attribute:
                attribute.i = (
                    DOUBLE if attribute.name == "to" and attribute.i == FLOAT else attribute.i
                )
    copy.graph.node.extend(nodes)
    for name, array in reading.constants.items():
        double = array.astype(np.float64) if array.dtype.kind == "f" else array
        copy.graph.initializer.append(numpy_helper.from_array(np.asarray(double, order="C"), name))
    for entry in [*copy.graph.input, *copy.graph.output]:
        if entry.type.tensor_type.elem_type == FLOAT:
            entry.type.tensor_type.elem_type = DOUBLE
    return copy
