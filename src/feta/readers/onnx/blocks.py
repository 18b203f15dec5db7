"""ONNX operators on parts of the input, before the first layer.

Shapes are followed only in part here: a graph that computes something else than the network fails
the comparison of scores.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts
from feta.errors import NetworkError
from feta.readers.onnx.state import GraphState, duplicate_error, options_of, vector_of
from feta.readers.onnx.tensor_data import DOUBLE, FLOAT, INT32, INT64
from feta.scorer.network.branches import BranchesError
from feta.scorer.network.fold import BatchNorm
from feta.scorer.network.input_blocks import Signals, embedded

if TYPE_CHECKING:
    import onnx

COLUMN_AXES = (1, -1)

# The largest number of each of ONNX's integer types and of BOOL.
LARGEST_INTEGERS = {
    2: 2**8 - 1,
    3: 2**7 - 1,
    4: 2**16 - 1,
    5: 2**15 - 1,
    INT32: 2**31 - 1,
    INT64: 2**63 - 1,
    9: 1,
    12: 2**32 - 1,
    13: 2**64 - 1,
}

# BatchNormalization's default; attributes are float32 numbers, and this one is not exactly 1e-5.
EPSILON = float(np.float32(1e-5))

# A Slice of all rows ends at the largest integer; no table of people has more rows than this.
LARGEST_ROWS = 2**31 - 1


def _pass_through(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Read an operator that only changes a shape or a type."""
    if node.input[0] not in state.blocks:
        raise NetworkError(f"{where} does not read the value before it")
    return [state.blocks[node.input[0]]]


def _cast(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Convert a part of the input; integers may only be looked up, up to the type's largest."""
    signals = _pass_through(state, node, where)[0]
    to = options_of(node, {"to": 0, "saturate": 1})["to"]
    if to in LARGEST_INTEGERS:
        return [[signal.cut_to_integers(where, LARGEST_INTEGERS[to]) for signal in signals]]
    if to not in (FLOAT, DOUBLE):
        raise NetworkError(
            f"{where} converts to an unsupported type: got type {to}; expected float or double, "
            "or integers before a lookup; export the model without it"
        )
    if to == FLOAT:
        state.source = "float32"
    return [signals]


def _concat(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    axis = options_of(node, {"axis": 1})["axis"]
    if axis not in COLUMN_AXES:
        raise NetworkError(
            f"{where} joins the wrong axis: got axis {axis}; expected columns (axis 1)"
        )
    for name in node.input:
        if name not in state.blocks:
            raise NetworkError(
                f"{where} joins an unsupported value: got {name!r}; expected parts of the input"
            )
    return [[signal for name in node.input for signal in state.blocks[name]]]


def _gather(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Select columns by stored indices, or rows of a stored table by a column: an embedding."""
    axis = options_of(node, {"axis": 0})["axis"]
    data, indices = node.input[:2]
    if data in state.blocks:
        if axis not in COLUMN_AXES or indices in state.blocks:
            raise NetworkError(f"{where} does not select columns (axis 1) by stored indices")
        stored = np.ravel(state.constant(indices, where)).astype(np.int64)
        return [_select_columns(state.blocks[data], stored, where)]
    table = state.finite_constant(data, where)
    if axis != 0 or table.ndim != 2:  # noqa: PLR2004 - one row per index
        raise NetworkError(f"{where} does not look up rows of a stored table (axis 0)")
    return [embedded(state.blocks[indices], table, where)]


def _slice(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Select columns; limits are attributes before opset 10, inputs from then on."""
    signals = _pass_through(state, node, where)[0]
    options = options_of(node, {"starts": [], "ends": [], "axes": [], "steps": []})
    for key, name in zip(("starts", "ends", "axes", "steps"), node.input[1:], strict=False):
        if name:
            options[key] = np.ravel(state.constant(name, where)).tolist()
    indices = np.arange(len(signals), dtype=np.int64)
    axes = options["axes"] or list(range(len(options["starts"])))
    steps = options["steps"] or [1] * len(axes)
    lengths = {len(options["starts"]), len(options["ends"]), len(axes), len(steps)}
    if len(lengths) > 1 or 0 in steps:
        raise NetworkError(
            f"{where} has invalid limits: got {options}; expected one start, one end and one "
            "step other than 0 per axis; export it again"
        )
    for start, end, axis, step in zip(options["starts"], options["ends"], axes, steps, strict=True):
        all_rows = (start, step) == (0, 1) and end >= LARGEST_ROWS
        if axis in COLUMN_AXES:
            indices = indices[int(start) : int(end) : int(step)]
        elif not all_rows:
            raise NetworkError(
                f"{where} selects along the wrong axis: got axis {axis}; expected columns (axis 1)"
            )
    return [_select_columns(signals, indices, where)]


def _split(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Split columns; sizes are an attribute before opset 13, an input from then on."""
    signals = _pass_through(state, node, where)[0]
    options = options_of(node, {"axis": 0, "split": [], "num_outputs": 0})
    if options["axis"] not in COLUMN_AXES:
        raise NetworkError(
            f"{where} splits the wrong axis: got axis {options['axis']}; expected columns (axis 1)"
        )
    sizes = [int(size) for size in options["split"]]
    if len(node.input) > 1 and node.input[1]:
        sizes = np.ravel(state.constant(node.input[1], where)).astype(int).tolist()
    equal = -(-len(signals) // len(node.output))
    sizes = sizes or [min(equal, len(signals) - equal * n) for n in range(len(node.output))]
    if sum(sizes) != len(signals) or len(sizes) != len(node.output) or min(sizes) < 1:
        raise NetworkError(
            f"{where} has invalid sizes: got {sizes}; "
            f"expected {len(node.output)} sizes of {len(signals)} columns in all"
        )
    ends = np.cumsum(sizes).tolist()
    return [signals[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _batch_norm(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    signals = _pass_through(state, node, where)[0]
    norm = batch_norm_of(state, node, len(signals), where)
    shifts = [
        Fraction(float(norm.shift[index])) - Fraction(float(norm.mean[index])) * norm.factor(index)
        for index in range(len(signals))
    ]
    pairs = enumerate(zip(signals, shifts, strict=True))
    return [[signal.scaled(norm.factor(index), shift) for index, (signal, shift) in pairs]]


def _arithmetic(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Combine a part of the input with a constant: sum, difference, product or quotient."""
    left = node.input[0] in state.blocks
    if len(node.input) != 2 or (left and node.input[1] in state.blocks):  # noqa: PLR2004 - a value and a constant
        raise BranchesError(f"{where} does not combine a part of the input with a constant")
    name, other = (node.input[0], node.input[1]) if left else (node.input[1], node.input[0])
    signals = state.blocks[name]
    constant = vector_of(state.finite_constant(other, where), len(signals), where)
    if node.op_type == "Div" and (not left or (constant == 0).any()):
        raise NetworkError(f"{where} does not divide the value by a constant other than 0")
    exact = [Fraction(number) for number in constant.tolist()]
    match node.op_type:
        case "Add":
            pairs = [(Fraction(1), number) for number in exact]
        case "Sub":
            pairs = [(Fraction(1), -number) if left else (Fraction(-1), number) for number in exact]
        case "Mul":
            pairs = [(number, Fraction(0)) for number in exact]
        case _:
            pairs = [(1 / number, Fraction(0)) for number in exact]
    return [[signal.scaled(*pair) for signal, pair in zip(signals, pairs, strict=True)]]


def batch_norm_of(state: GraphState, node: "onnx.NodeProto", width: int, where: str) -> BatchNorm:
    """Read a batch norm."""
    options = options_of(
        node, {"epsilon": EPSILON, "training_mode": 0, "momentum": 0.9, "spatial": 1}
    )
    n_outputs = sum(bool(name) for name in node.output)
    if options["training_mode"] or len(node.input) != 5 or n_outputs != 1:  # noqa: PLR2004 - value, scale, shift, mean, variance
        raise NetworkError(
            f"{where} is not in inference mode; expected one output, four stored arrays and no "
            "training_mode; export after module.eval()"
        )
    if options["spatial"] != 1:
        raise NetworkError(
            f"{where} has unsupported statistics: got spatial {options['spatial']}; expected "
            "statistics per column (spatial 1); export it again with opset 9 or later"
        )
    gain, shift, mean, variance = (
        vector_of(state.finite_constant(name, where), width, where) for name in node.input[1:]
    )
    return BatchNorm(mean, variance, gain, shift, options["epsilon"])


def _select_columns(signals: Signals, indices: Counts, where: str) -> Signals:
    if not indices.size or (np.abs(indices + 0.5) > len(signals)).any():
        raise NetworkError(
            f"{where} selects invalid columns: got {indices.tolist()}; "
            f"expected indices of {len(signals)} columns"
        )
    return [signals[int(index)] for index in indices]


BLOCK_OPERATORS: dict[str, Callable[[GraphState, "onnx.NodeProto", str], list[Signals]]] = {
    "Cast": _cast,
    "Concat": _concat,
    "Gather": _gather,
    "Slice": _slice,
    "Split": _split,
}

# These apply to a part of the input; on the whole input, they begin a layer.
PART_OPERATORS: dict[str, Callable[[GraphState, "onnx.NodeProto", str], list[Signals]]] = {
    "Add": _arithmetic,
    "BatchNormalization": _batch_norm,
    "Div": _arithmetic,
    "Flatten": _pass_through,
    "Identity": _pass_through,
    "Mul": _arithmetic,
    "Reshape": _pass_through,
    "Squeeze": _pass_through,
    "Sub": _arithmetic,
    "Unsqueeze": _pass_through,
}


def read_on_blocks(
    state: GraphState, node: "onnx.NodeProto", operands: list[str], where: str
) -> bool:
    """Read an operator on parts of the input; return False if a layer begins."""
    operator = BLOCK_OPERATORS.get(node.op_type)
    if operator is None and not state.is_input(operands[0]):
        operator = PART_OPERATORS.get(node.op_type)
    if operator is None:
        return False
    if node.op_type == "Cast" and state.is_input(operands[0]) and len(state.entries) == 1:
        return False  # a conversion of the whole input is read as part of a layer
    for name, signals in zip(node.output, operator(state, node, where), strict=False):
        if name in state.constants or name in state.blocks:
            raise duplicate_error(name)
        state.blocks[name] = signals
    return True
