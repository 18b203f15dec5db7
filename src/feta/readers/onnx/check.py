"""Comparison of a network with its ONNX graph, evaluated in float64."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Array, Matrix
from feta.errors import NetworkError
from feta.readers.onnx.state import GraphState
from feta.readers.onnx.tensor_data import DOUBLE, FLOAT
from feta.scorer.network.agreement import check_agreement
from feta.scorer.network.network import Network

if TYPE_CHECKING:
    import onnx

# Rows on which both are scored: enough to reach both sides of every neuron.
CHECKED_ROWS = 64

# Standard deviations of these rows: scaled inputs, years, amounts. The largest reveals clipping.
SCALES = (1.0, 10.0, 1e3)


def check_graph(model: "onnx.ModelProto", network: Network, state: GraphState) -> None:
    """Compare scores with those of ONNX's reference evaluator, with all numbers in float64."""
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - slow to import

    double = _convert_to_double(model, state)
    rng, squashes = np.random.default_rng(0), state.squash is not None
    for scale in SCALES:
        rows = scale * rng.normal(size=(max(CHECKED_ROWS, state.rows), network.width))
        for table in network.first.tables:
            rows[:, table.column] = rng.choice(table.numbers, len(rows))
        if state.rows > 1:
            rows = rows[: state.rows]
        squash = state.squash if scale == 1 else None
        if squash is None and squashes:
            _remove_squash(double)  # it would hide differences between large scores
            squashes = False
        try:
            with np.errstate(all="ignore"):
                evaluator = ReferenceEvaluator(double, new_ops=_operators())
                scores = _evaluate(evaluator, model, state, rows)
        except Exception as error:  # the evaluator may raise anything
            reason = " ".join(str(error).split())[:200]
            raise NetworkError(
                f"the graph cannot be evaluated: got {reason}; expected a graph that runs; "
                "export it again"
            ) from None
        compared = network if scale == 1 else replace(network, source="float64")
        # At large scales, terms that cancel in an inner layer may cause larger rounding errors than
        # the last layer's terms show.
        check_agreement(compared, rows, scores, "the graph's own", squash=squash, rounded=scale > 1)


def _remove_squash(model: "onnx.ModelProto") -> None:
    """Replace a last Sigmoid or Softmax by the identity."""
    for node in reversed(model.graph.node):
        if node.op_type in ("Sigmoid", "Softmax", "LogSoftmax"):
            node.op_type = "Identity"
            del node.attribute[:]
            return


def _operators() -> list[type]:
    """Return operators that the reference evaluator computes differently, or in float32 only."""
    from onnx.reference.op_run import OpRun  # noqa: PLC0415 - slow to import

    class Gelu(OpRun):
        op_domain = ""

        def _run(self, x: Array, *, approximate: str = "none", **_: object) -> tuple[Array]:
            if approximate == "tanh":
                inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
                return (np.asarray(x * (1 + np.tanh(inner)) / 2),)
            return (np.asarray(x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2),)

    class HardSwish(OpRun):
        op_domain = ""

        def _run(self, x: Array, **_: object) -> tuple[Array]:
            return (np.asarray(x * np.clip(x / 6 + 0.5, 0, 1)),)

    class Erf(OpRun):
        op_domain = ""

        def _run(self, x: Array, **_: object) -> tuple[Array]:
            return (np.asarray(np.vectorize(math.erf)(x)),)

    return [_batch_norm_operator(), Gelu, HardSwish, Erf]


def _batch_norm_operator() -> type:
    """Return an operator that normalizes by the stored statistics.

    Before opset 14, the reference evaluator mixes in the statistics of the rows, as in training.
    With one output and without `training_mode`, the stored ones are meant in all opsets.
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
                raise NetworkError(f"statistics that do not fit the shape {x.shape}")
            shape = (-1, *(1 for _ in x.shape[2:]))
            scale, bias, mean, var = (array.reshape(shape) for array in (scale, bias, mean, var))
            return (np.asarray((x - mean) * (scale / np.sqrt(var + epsilon)) + bias),)

    return BatchNormalization


def _evaluate(evaluator: Any, model: "onnx.ModelProto", state: GraphState, rows: Matrix) -> Matrix:  # noqa: ANN401 - onnx ships no types for it
    """Evaluate the graph on rows, in batches of its own size."""
    batch_size = 1 if state.fixed_rows and state.rows == 1 else len(rows)
    parts = []
    for start in range(0, len(rows), batch_size):
        batch = rows[start : start + batch_size]
        feeds, column = {}, 0
        for entry, width in state.entries.items():
            part = batch[:, column : column + width]
            integers = _element_type(model, entry) not in (FLOAT, DOUBLE)
            feeds[entry] = part.astype(np.int64) if integers else part
            column += width
        outputs = np.asarray(evaluator.run(None, feeds)[0], np.float64)
        parts.append(outputs.reshape(len(batch), -1))
    return np.concatenate(parts)


def _element_type(model: "onnx.ModelProto", name: str) -> int:
    (entry,) = (entry for entry in model.graph.input if entry.name == name)
    return entry.type.tensor_type.elem_type


def _convert_to_double(model: "onnx.ModelProto", state: GraphState) -> "onnx.ModelProto":
    """Copy a graph with all float32 numbers as float64, and with the constants that were read."""
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
