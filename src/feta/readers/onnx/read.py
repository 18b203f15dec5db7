"""ONNX: a graph of affine operators and activations read into a Network, without running it.

Before its first layer a graph may cut its inputs into blocks, embed and join them; from there on only
a chain is read: every operator must work on the value before it and on stored constants. Nothing is
allocated before its size is known, and no other file is opened unless asked for.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Array
from feta.errors import FetaError, NetworkError
from feta.io.read_bytes import read_bytes
from feta.readers.onnx.blocks import (
    BLOCK_OPERATORS,
    LARGEST_INTEGERS,
    PART_OPERATORS,
)
from feta.readers.onnx.check import check_graph
from feta.readers.onnx.operators import (
    MIN_INPUTS,
    OPERATORS,
    SHAPES,
    STANDARD,
    refusal,
)
from feta.readers.onnx.state import GraphState, options_of
from feta.readers.onnx.stored import KINDS, stored_array
from feta.scorer.network.agreement import with_log_softmax
from feta.scorer.network.input_blocks import inputs
from feta.scorer.network.network import Measured, Network

if TYPE_CHECKING:
    import onnx

# Before opset 7 Add and BatchNormalization meant other things; runtimes refuse those files too.
OLDEST_OPSET = 7

# ONNX's element types that an input may have: FLOAT, INT32, INT64, DOUBLE.
FLOAT, INT32, INT64, DOUBLE = 1, 6, 7, 11
INTEGERS = (INT32, INT64)


def read_onnx(path: str | Path, *, external_data: bool = False) -> Network:
    """Read a network from an ONNX file.

    Understood are Gemm, MatMul, Add, Sub, Mul, Div, BatchNormalization; Relu, LeakyRelu, PRelu, Clip,
    Abs, HardSigmoid, Max and Min with a constant, and maxout (Reshape to groups, ReduceMax); what
    changes only the shape or nothing (Identity, Constant, Cast, Flatten, Reshape, Squeeze, Unsqueeze,
    Dropout); before the first layer Concat, Gather (columns, or an embedding), Slice and Split of the
    inputs, which stand side by side; and a last Sigmoid, Softmax or LogSoftmax, which are taken off:
    scores are what goes into them. Weights in other files are read only with `external_data`, from the
    model's own folder. The reading is checked against ONNX's own reference evaluator in float64.
    """
    try:
        # Numbers that overflow become infinite, and those are refused by name.
        with np.errstate(all="ignore"):
            model = _load(Path(path))
            state = GraphState(Path(path).parent if external_data else None)
            network = _network(model, state)
            check_graph(model, network, state)
            return network
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    except (FetaError, ImportError, OSError):
        raise
    except Exception as error:  # what a file of unknown making says may be anything
        message = f"{path}: the graph cannot be read ({type(error).__name__}: {error}); export it again with another opset, and please report this model"
        raise NetworkError(message) from error


def _load(path: Path) -> "onnx.ModelProto":
    import onnx  # noqa: PLC0415 - slow to import
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - comes with onnx

    content = read_bytes(path)
    try:
        model = onnx.load_model_from_string(content)
    except (DecodeError, ValueError, RecursionError):
        raise NetworkError(
            "the file must be an ONNX model, but cannot be decoded; export it again"
        ) from None
    if not model.graph.node:
        raise NetworkError(
            "the file must be an ONNX model with operators, but has none; export it again"
        )
    newest = onnx.defs.onnx_opset_version()
    opsets = [one.version for one in model.opset_import if one.domain in STANDARD]
    if not opsets or not all(OLDEST_OPSET <= one <= newest for one in opsets):
        got = ", ".join(map(str, opsets)) or "none"
        message = f"the opset must be from {OLDEST_OPSET} to {newest}, got {got}; export with opset_version=17"
        raise NetworkError(message)
    for function in model.functions:
        if function.domain in STANDARD:  # else "Relu" could mean anything
            raise NetworkError(f"the file must not define the operator {function.name!r} anew")
    return model


def _network(model: "onnx.ModelProto", state: GraphState) -> Network:
    """Read the whole graph."""
    graph = model.graph
    if graph.sparse_initializer:
        raise NetworkError("the graph's arrays must not be sparse; export them dense")
    for tensor in graph.initializer:
        _keep(state, tensor.name, _array(state, tensor))
    _enter(model, state)
    for index, node in enumerate(graph.node):
        _step(state, node, f"operator {(node.name or index)!r} ({node.op_type})")
    if state.pool:
        raise NetworkError(f"the value {state.value!r} must be reduced by ReduceMax, got the end")
    if not state.value and len(graph.output) and graph.output[0].name in state.blocks:
        state.begin(graph.output[0].name)
    if [output.name for output in graph.output][:1] != [state.value]:
        got = ", ".join(repr(output.name) for output in graph.output)
        raise NetworkError(f"the graph's output must be its last value {state.value!r}, got {got}")
    squashed = state.squashed in ("sigmoid", "softmax")
    network = state.builder.network(sigmoid=squashed, source=state.source)
    if _narrow(model):
        network = replace(network, measured=Measured())
    return network if state.squashed != "log_softmax" else with_log_softmax(network)


def _narrow(model: "onnx.ModelProto") -> bool:
    """Say whether numbers pass a type that wraps large ones, so that no column may leave its limits."""
    wide = (FLOAT, INT64, DOUBLE)
    casts = [
        options_of(node, {"to": 0, "saturate": 1})["to"]
        for node in model.graph.node
        if node.op_type == "Cast"
    ]
    inputs_ = [entry.type.tensor_type.elem_type for entry in model.graph.input]
    return any(kind not in wide for kind in casts) or INT32 in inputs_


def _enter(model: "onnx.ModelProto", state: GraphState) -> None:
    """Find the inputs and their widths."""
    found = [one for one in model.graph.input if one.name not in state.constants]
    if not found:
        raise NetworkError("the graph must have an input, a table of numbers, got none")
    for entry in found:
        kind = entry.type.tensor_type
        sizes = [dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type not in (FLOAT, DOUBLE, *INTEGERS):
            raise NetworkError("the graph's input must be float or double numbers")
        if kind.elem_type == FLOAT:
            state.source = "float32"
        if kind.elem_type in INTEGERS:
            state.integers.add(entry.name)
        if len(sizes) != 2 or not 1 <= sizes[1] <= MAX_COLUMNS:  # noqa: PLR2004 - rows and columns
            raise NetworkError(
                f"the graph's input must be (rows, columns) with the columns fixed, got {sizes}"
            )
        state.blocks[entry.name] = inputs(sizes[1], state.n_columns)
        if kind.elem_type in INTEGERS:
            where = f"the input {entry.name!r} of integers"
            state.blocks[entry.name] = [
                one.cut_to_integers(where, LARGEST_INTEGERS[kind.elem_type])
                for one in state.blocks[entry.name]
            ]
        state.entries[entry.name] = sizes[1]
        state.n_columns += sizes[1]
        state.rows = max(state.rows, sizes[0])
        state.fixed_rows |= sizes[0] > 0


# No table about people has more columns; a graph that says so was made to exhaust memory.
MAX_COLUMNS = 2**16


def _array(state: GraphState, tensor: "onnx.TensorProto") -> Array:
    array = stored_array(tensor, state.folder)
    if array.dtype == np.float32:
        state.source = "float32"
    return array


def _step(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Take one operator."""
    known = node.op_type in OPERATORS or node.op_type in BLOCK_OPERATORS
    if node.domain not in STANDARD or not known:
        raise refusal(node, where)
    if len(node.output) < 1 or len(node.input) < MIN_INPUTS.get(node.op_type, 1):
        raise NetworkError(f"{where} must have all its inputs and an output; export it again")
    if node.op_type == "Constant":
        _constant(state, node, where)
        return
    live = [name for name in node.input if name and name not in state.constants]
    if not live:
        _fold_constant(state, node, where)
        return
    if all(name in state.blocks for name in live):
        if _on_blocks(state, node, live, where):
            return
        state.begin(live[0])
    _check_chain(state, live, where)
    if node.op_type not in OPERATORS:
        raise NetworkError(f"{where} must stand before the first layer, on parts of the input")
    if state.squashed and node.op_type not in SHAPES:
        raise NetworkError(f"{where} must not follow the last {state.squashed}")
    if state.pool and node.op_type != "ReduceMax":
        raise NetworkError(f"{where} must not follow a Reshape to groups; ReduceMax must")
    OPERATORS[node.op_type](state, node, where)
    state.value = node.output[0]


def _fold_constant(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Take what exporters do to constants alone: nothing, or a change of their type."""
    kind = (
        KINDS.get(options_of(node, {"to": 0, "saturate": 1})["to"])
        if node.op_type == "Cast"
        else None
    )
    if node.op_type not in ("Cast", "Identity") or (node.op_type == "Cast" and kind is None):
        raise NetworkError(f"{where} works on constants only; export with constant folding")
    array = state.constants[node.input[0]]
    _keep(state, node.output[0], array if kind is None else array.astype(np.dtype(kind)))


def _check_chain(state: GraphState, live: list[str], where: str) -> None:
    """Refuse what does not work on the one value that is read so far."""
    due = state.value or next(iter(state.blocks))
    for name in live:
        if name not in (state.value, *state.blocks):
            message = f"{where} must work on the value before it, {due!r}, got {name!r}; branches and skip connections are not read, only blocks of the input before the first layer"
            raise NetworkError(message)


def _on_blocks(state: GraphState, node: "onnx.NodeProto", live: list[str], where: str) -> bool:
    """Take what may be done to parts of the input; False where a layer begins."""
    operator = BLOCK_OPERATORS.get(node.op_type)
    if operator is None and not state.is_whole(live[0]):
        operator = PART_OPERATORS.get(node.op_type)
    if operator is None:
        return False
    if node.op_type == "Cast" and state.is_whole(live[0]) and len(state.entries) == 1:
        return False  # to float, which a layer takes
    for name, signals in zip(node.output, operator(state, node, where), strict=False):
        if name in state.constants or name in state.blocks:
            raise NetworkError(f"the graph must define {name!r} once, got it twice")
        state.blocks[name] = signals
    return True


def _keep(state: GraphState, name: str, array: Array) -> None:
    if name in state.constants:
        raise NetworkError(f"the graph must define {name!r} once, got it twice")
    state.constants[name] = array


def _constant(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            array = _array(state, attribute.t)
        elif attribute.name in ("value_float", "value_floats"):
            state.source = "float32"
            array = np.array(list(attribute.floats) or attribute.f)
        elif attribute.name in ("value_int", "value_ints"):
            array = np.array(list(attribute.ints) or attribute.i)
        else:
            continue
        _keep(state, node.output[0], array)
        return
    raise NetworkError(f"{where} must hold an array or a number")
