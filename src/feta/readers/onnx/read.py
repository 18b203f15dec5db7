"""Reader of ONNX graphs of affine operators and activations.

Before its first layer, a graph may split its inputs into blocks, embed and join them. From there
on, a chain is read as it is; a graph in which values are read again is lowered to one. Nothing is
allocated before its size is known, and no other file is opened unless the caller allows it.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Array
from feta.errors import FetaError, NetworkError
from feta.readers.onnx.blocks import (
    BLOCK_OPERATORS,
    LARGEST_INTEGERS,
    read_on_blocks,
)
from feta.readers.onnx.branches import BranchReader
from feta.readers.onnx.check import check_graph
from feta.readers.onnx.fuse import fused
from feta.readers.onnx.load import decode
from feta.readers.onnx.operators import (
    MIN_INPUTS,
    OPERATORS,
    SHAPES,
    STANDARD,
    continue_after_sigmoid,
    unsupported_error,
)
from feta.readers.onnx.state import GraphState, options_of
from feta.readers.onnx.tensor_data import DOUBLE, FLOAT, FORMATS, INT32, INT64, read_tensor
from feta.scorer.network.agreement import with_log_softmax
from feta.scorer.network.branches import BranchesError
from feta.scorer.network.input_blocks import inputs
from feta.scorer.network.layers import Measured
from feta.scorer.network.network import Network

if TYPE_CHECKING:
    import onnx

# Before opset 7, Add and BatchNormalization were defined differently; runtimes reject such files.
OLDEST_OPSET = 7

INTEGERS = (INT32, INT64)

Reader = Callable[[GraphState, "onnx.NodeProto", list[str], str], None]

# No table of people has more columns; a graph that claims more is meant to exhaust memory.
MAX_COLUMNS = 2**16


def read_onnx(path: str | Path, *, external_data: bool = False) -> Network:
    """Read a network from an ONNX file.

    Supported are Gemm, MatMul, Add, Sub, Mul, Div, BatchNormalization; Relu, LeakyRelu, PRelu,
    Clip, Abs, HardSigmoid, Max and Min with a constant, and maxout (Reshape to groups, ReduceMax);
    operators that change only the shape or nothing (Identity, Constant, Cast, Flatten, Reshape,
    Squeeze, Unsqueeze, Dropout); smooth activations; sums, differences and Concat of several
    values; Gather (columns), Slice and Split; embeddings of the inputs, which the network reads as
    one row; and a last Sigmoid, Softmax or LogSoftmax, which is removed: scores are its inputs.
    Weights in other files are read only with `external_data`, from the model's folder. The
    network's scores are compared with those of ONNX's reference evaluator in float64.
    """
    try:
        # Numbers that overflow become infinite; they are rejected by name.
        with np.errstate(all="ignore"):
            model = _load(Path(path))
            folder = Path(path).parent if external_data else None
            state, graph = GraphState(folder), fused(model)
            try:
                network = _read_graph(graph, state, _read_on_chain)
            except BranchesError:
                state = GraphState(folder)
                reader = BranchReader(graph, state)
                network = _read_graph(graph, state, reader.read, reader.lower)
            check_graph(model, network, state)
            return network
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    except (FetaError, ImportError, OSError):
        raise
    except Exception as error:  # untrusted input may hold anything
        raise NetworkError(
            f"{path}: the graph cannot be read ({type(error).__name__}: {error}); "
            "export it again with another opset, and please report this model"
        ) from error


def _load(path: Path) -> "onnx.ModelProto":
    import onnx  # noqa: PLC0415 - slow to import

    model = decode(path)
    newest = onnx.defs.onnx_opset_version()
    opsets = [opset.version for opset in model.opset_import if opset.domain in STANDARD]
    if not opsets or not all(OLDEST_OPSET <= version <= newest for version in opsets):
        versions = ", ".join(map(str, opsets)) or "none"
        raise NetworkError(
            f"the opset is not supported: got {versions}; expected {OLDEST_OPSET} to {newest}; "
            "export with opset_version=17"
        )
    for function in model.functions:
        if function.domain in STANDARD:  # otherwise "Relu" could mean anything
            raise NetworkError(
                f"the file redefines the operator {function.name!r}; "
                "expected no functions in ONNX's own domain"
            )
    return model


def _read_graph(
    model: "onnx.ModelProto",
    state: GraphState,
    read: Reader,
    finish: Callable[[], None] | None = None,
) -> Network:
    """Read the whole graph; `read` reads an operator on values that depend on the input."""
    graph = model.graph
    if graph.sparse_initializer:
        raise NetworkError("the graph has sparse arrays; expected dense ones; export them dense")
    for tensor in graph.initializer:
        state.define_constant(tensor.name, _read_array(state, tensor))
    _read_inputs(model, state)
    for index, node in enumerate(graph.node):
        _read_operator(state, node, f"operator {(node.name or index)!r} ({node.op_type})", read)
    if finish is not None:
        finish()
    if state.group_size:
        raise NetworkError(
            f"the graph ends in the groups {state.value!r}; expected ReduceMax after them"
        )
    if not state.value and len(graph.output) and graph.output[0].name in state.blocks:
        state.enter_first_layer(graph.output[0].name)
    if [output.name for output in graph.output][:1] != [state.value]:
        names = ", ".join(repr(output.name) for output in graph.output)
        raise BranchesError(
            f"the graph's output is not its last value: got {names}; expected {state.value!r}"
        )
    if state.squash == "sigmoid" and state.width > 1:
        raise NetworkError(
            f"the last operator is a Sigmoid: got {state.width} outputs; expected one; several "
            "sigmoids are several labels, not classes"
        )
    probabilities = state.squash in ("sigmoid", "softmax")
    network = state.trunk.network(sigmoid=probabilities, source=state.source)
    if _uses_narrow_integers(model):
        network = replace(network, measured=Measured())
    return network if state.squash != "log_softmax" else with_log_softmax(network)


def _uses_narrow_integers(model: "onnx.ModelProto") -> bool:
    """Return whether a type wraps large numbers, so that no column may leave its limits."""
    wide = (FLOAT, INT64, DOUBLE)
    casts = [
        options_of(node, {"to": 0, "saturate": 1})["to"]
        for node in model.graph.node
        if node.op_type == "Cast"
    ]
    input_types = [entry.type.tensor_type.elem_type for entry in model.graph.input]
    return any(kind not in wide for kind in casts) or INT32 in input_types


def _read_inputs(model: "onnx.ModelProto", state: GraphState) -> None:
    """Read the inputs and their widths."""
    entries = [entry for entry in model.graph.input if entry.name not in state.constants]
    if not entries:
        raise NetworkError("the graph has no input; expected a table of numbers")
    for entry in entries:
        kind = entry.type.tensor_type
        sizes = [dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type not in (FLOAT, DOUBLE, *INTEGERS):
            raise NetworkError(
                f"the graph's input {entry.name!r} has an unsupported type: "
                f"got type {kind.elem_type}; expected float or double numbers"
            )
        if kind.elem_type == FLOAT:
            state.source = "float32"
        if kind.elem_type in INTEGERS:
            state.integers.add(entry.name)
        if len(sizes) != 2 or not 1 <= sizes[1] <= MAX_COLUMNS:  # noqa: PLR2004 - rows and columns
            raise NetworkError(
                f"the graph's input {entry.name!r} has an unsupported shape: got {sizes}; "
                f"expected (rows, columns) with 1 to {MAX_COLUMNS} columns, 0 being unknown"
            )
        state.blocks[entry.name] = inputs(sizes[1], state.n_columns)
        if kind.elem_type in INTEGERS:
            where = f"the input {entry.name!r} of integers"
            state.blocks[entry.name] = [
                signal.cut_to_integers(where, LARGEST_INTEGERS[kind.elem_type])
                for signal in state.blocks[entry.name]
            ]
        state.entries[entry.name] = sizes[1]
        state.n_columns += sizes[1]
        state.rows = max(state.rows, sizes[0])
        state.fixed_rows |= sizes[0] > 0


def _read_array(state: GraphState, tensor: "onnx.TensorProto") -> Array:
    array = read_tensor(tensor, state.folder)
    if array.dtype == np.float32:
        state.source = "float32"
    return array


def _read_operator(state: GraphState, node: "onnx.NodeProto", where: str, read: Reader) -> None:
    """Read one operator."""
    supported = node.op_type in OPERATORS or node.op_type in BLOCK_OPERATORS
    if node.domain not in STANDARD or not supported:
        raise unsupported_error(node, where)
    if len(node.output) < 1 or len(node.input) < MIN_INPUTS.get(node.op_type, 1):
        raise NetworkError(f"{where} lacks an input or an output; export it again")
    if node.op_type == "Constant":
        _read_constant(state, node, where)
        return
    operands = [name for name in node.input if name and name not in state.constants]
    if not operands:
        _fold_constant(state, node, where)
        return
    read(state, node, operands, where)


def _read_on_chain(
    state: GraphState, node: "onnx.NodeProto", operands: list[str], where: str
) -> None:
    """Read an operator on the value before it, or on blocks of the input."""
    if all(name in state.blocks for name in operands):
        if read_on_blocks(state, node, operands, where):
            return
        state.enter_first_layer(operands[0])
    _check_chain(state, operands, where)
    if node.op_type not in OPERATORS:
        raise BranchesError(
            f"{where} follows the first layer; expected it before, on parts of the input"
        )
    _check_squash(state, node, where)
    if state.group_size and node.op_type != "ReduceMax":
        raise NetworkError(f"{where} follows a Reshape to groups; expected ReduceMax there")
    OPERATORS[node.op_type](state, node, where)
    state.value = node.output[0]


def _check_squash(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Let an operator follow a sigmoid, which is an activation then, but no softmax."""
    if node.op_type in SHAPES:
        return
    if state.squash == "sigmoid":
        continue_after_sigmoid(state, where)
    if state.squash:
        raise NetworkError(f"{where} follows the last {state.squash}; expected the output there")


def _fold_constant(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Evaluate the operators that exporters apply to constants: identity and type conversion."""
    dtype = (
        FORMATS.get(options_of(node, {"to": 0, "saturate": 1})["to"])
        if node.op_type == "Cast"
        else None
    )
    if node.op_type not in ("Cast", "Identity") or (node.op_type == "Cast" and dtype is None):
        raise NetworkError(f"{where} reads constants only; export with constant folding")
    array = state.constants[node.input[0]]
    converted = array if dtype is None else array.astype(np.dtype(dtype))
    state.define_constant(node.output[0], converted)


def _check_chain(state: GraphState, operands: list[str], where: str) -> None:
    """Reject operands other than the last value."""
    expected = state.value or next(iter(state.blocks))
    for name in operands:
        if name not in (state.value, *state.blocks):
            raise BranchesError(
                f"{where} does not read the value before it: got {name!r}; expected {expected!r}"
            )


def _read_constant(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            array = _read_array(state, attribute.t)
        elif attribute.name in ("value_float", "value_floats"):
            state.source = "float32"
            array = np.array(list(attribute.floats) or attribute.f)
        elif attribute.name in ("value_int", "value_ints"):
            array = np.array(list(attribute.ints) or attribute.i)
        else:
            continue
        state.define_constant(node.output[0], array)
        return
    raise NetworkError(f"{where} holds no array and no number")
