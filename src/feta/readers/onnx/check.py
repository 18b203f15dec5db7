"""ONNX check: a graph run step by step in float64, beside the network that was read from it."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Array, Matrix
from feta.errors import NetworkError
from feta.readers.onnx.state import GraphState
from feta.scorer.network.agreement import check_agreement
from feta.scorer.network.network import Network

if TYPE_CHECKING:
    import onnx

# Rows scored by both: enough to reach every neuron's two sides.
CHECKED_ROWS = 64

# How far from 0 they are drawn: scaled inputs, years, and amounts; what is cut off far out shows there.
SCALES = (1.0, 10.0, 1e3)

FLOAT, DOUBLE = 1, 11


def check_graph(model: "onnx.ModelProto", network: Network, state: GraphState) -> None:
    """Compare scores with those of ONNX's own reference evaluator, all numbers made float64."""
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - slow to import

    double = _in_double(model, state)
    rng = np.random.default_rng(0)
    for scale in SCALES:
        rows = scale * rng.normal(size=(max(CHECKED_ROWS, state.rows), network.width))
        for table in network.first.tables:
            rows[:, table.column] = rng.choice(table.numbers, len(rows))
        if state.rows > 1:
            rows = rows[: state.rows]
        squash = state.squashed if scale == 1 else None
        if squash is None:
            _without_squash(double)  # it would hide differences between large scores
        try:
            with np.errstate(all="ignore"):
                evaluator = ReferenceEvaluator(double, new_ops=[_batch_norm()])
                theirs = _outputs(evaluator, model, state, rows)
        except Exception as error:  # whatever the evaluator raises: the graph does not run
            told = " ".join(str(error).split())[:200]
            message = f"the graph must run as it stands, but does not ({told}); export it again"
            raise NetworkError(message) from None
        compared = network if scale == 1 else replace(network, source="float64")
        # Far out, what cancels in an inner layer may round by more than the last one's terms say.
        check_agreement(compared, rows, theirs, "the graph's own", squash=squash, rounded=scale > 1)


def _without_squash(model: "onnx.ModelProto") -> None:
    """Take off a last Sigmoid or Softmax."""
    for node in model.graph.node:
        if node.op_type in ("Sigmoid", "Softmax", "LogSoftmax"):
            node.op_type = "Identity"
            del node.attribute[:]


def _batch_norm() -> type:
    """Make an operator that normalizes by the stored statistics.

    Before opset 14 the reference evaluator mixes the rows' own statistics in, as in training; with
    one output and without `training_mode`, all opsets mean the stored ones.
    """
    from onnx.reference.op_run import OpRun  # noqa: PLC0415 - slow to import

    class BatchNormalization(OpRun):
        op_domain = ""

        def _run(
            self,
            x: Array,
            scale: Array,
            bias: Array,
            mean: Array,
            var: Array,
            *,
            epsilon: float = 1e-5,
            **_: object,
        ) -> tuple[Array]:
            if not {scale.size, bias.size, mean.size, var.size} == {x.shape[1]}:
                raise NetworkError(f"got statistics that do not fit the shape {x.shape}")
            shape = (-1, *(1 for _ in x.shape[2:]))
            scale, bias, mean, var = (one.reshape(shape) for one in (scale, bias, mean, var))
            return (np.asarray((x - mean) * (scale / np.sqrt(var + epsilon)) + bias),)

    return BatchNormalization


def _outputs(evaluator: Any, model: "onnx.ModelProto", state: GraphState, rows: Matrix) -> Matrix:  # noqa: ANN401 - onnx ships no types for it
    """Feed rows in the graph's own batches."""
    batch = 1 if state.fixed_rows and state.rows == 1 else len(rows)
    parts = []
    for start in range(0, len(rows), batch):
        some = rows[start : start + batch]
        feeds, column = {}, 0
        for entry, width in state.entries.items():
            part = some[:, column : column + width]
            whole = _kind(model, entry) not in (FLOAT, DOUBLE)
            feeds[entry] = part.astype(np.int64) if whole else part
            column += width
        parts.append(np.asarray(evaluator.run(None, feeds)[0], np.float64).reshape(len(some), -1))
    return np.concatenate(parts)


def _kind(model: "onnx.ModelProto", name: str) -> int:
    (entry,) = (one for one in model.graph.input if one.name == name)
    return entry.type.tensor_type.elem_type


def _in_double(model: "onnx.ModelProto", state: GraphState) -> "onnx.ModelProto":
    """Copy a graph with every float32 number as float64, and its constants as they were read."""
    import onnx  # noqa: PLC0415 - slow to import
    from onnx import numpy_helper  # noqa: PLC0415 - slow to import

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.initializer[:], copy.graph.value_info[:], copy.metadata_props[:]
    nodes = [node for node in copy.graph.node if node.output[0] not in state.constants]
    del copy.graph.node[:]
    for node in nodes:
        if node.op_type == "Cast":
            for attribute in node.attribute:
                attribute.i = (
                    DOUBLE if attribute.name == "to" and attribute.i == FLOAT else attribute.i
                )
    copy.graph.node.extend(nodes)
    for name, array in state.constants.items():
        double = array.astype(np.float64) if array.dtype.kind == "f" else array
        copy.graph.initializer.append(numpy_helper.from_array(np.asarray(double, order="C"), name))
    for entry in [*copy.graph.input, *copy.graph.output]:
        if entry.type.tensor_type.elem_type == FLOAT:
            entry.type.tensor_type.elem_type = DOUBLE
    return copy
