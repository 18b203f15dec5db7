"""ONNX blocks: what may be done to parts of the input before the first layer takes them.

Shapes are not followed to the letter here: a graph that means something else than what was read shows
when its scores are compared.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts
from feta.errors import NetworkError
from feta.readers.onnx.state import GraphState, options_of
from feta.scorer.network.fold import BatchNorm
from feta.scorer.network.input_blocks import Signals, embedded

if TYPE_CHECKING:
    import onnx

COLUMN_AXES = (1, -1)

# ONNX's element types FLOAT and DOUBLE, and the largest number of each integer type and of BOOL.
FLOAT, FLOATS = 1, (1, 11)
LARGEST_INTEGERS = {
    2: 2**8 - 1,
    3: 2**7 - 1,
    4: 2**16 - 1,
    5: 2**15 - 1,
    6: 2**31 - 1,
    7: 2**63 - 1,
    9: 1,
    12: 2**32 - 1,
    13: 2**64 - 1,
}


def _same(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Take an operator that changes a shape or a type, or nothing."""
    if node.input[0] not in state.blocks:
        raise NetworkError(f"{where} must work on the value before it")
    return [state.blocks[node.input[0]]]


def _cast(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Convert a part of the input; integers may only be looked up, as far as the type holds them."""
    signals = _same(state, node, where)[0]
    to = options_of(node, {"to": 0, "saturate": 1})["to"]
    if to in LARGEST_INTEGERS:
        return [[one.cut_to_integers(where, LARGEST_INTEGERS[to]) for one in signals]]
    if to not in FLOATS:
        message = f"{where} must convert to float or double, or to integers before a lookup, got type {to}; export the model without it"
        raise NetworkError(message)
    if to == FLOAT:
        state.source = "float32"
    return [signals]


def _concat(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    axis = options_of(node, {"axis": 1})["axis"]
    if axis not in COLUMN_AXES:
        raise NetworkError(f"{where} must join columns (axis 1), got axis {axis}")
    for name in node.input:
        if name not in state.blocks:
            raise NetworkError(f"{where} must join parts of the input only, got {name!r}")
    return [[one for name in node.input for one in state.blocks[name]]]


def _gather(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Pick columns by stored numbers, or rows of a stored table by a column: an embedding."""
    axis = options_of(node, {"axis": 0})["axis"]
    data, indices = node.input[:2]
    if data in state.blocks:
        if axis not in COLUMN_AXES or indices in state.blocks:
            raise NetworkError(f"{where} must pick columns (axis 1) by stored numbers")
        chosen = np.ravel(state.stored(indices, where)).astype(np.int64)
        return [_picked(state.blocks[data], chosen, where)]
    table = state.numbers(data, where)
    if axis != 0 or table.ndim != 2:  # noqa: PLR2004 - a row a number
        raise NetworkError(f"{where} must look up rows of a stored table (axis 0)")
    return [embedded(state.blocks[indices], table, where)]


def _slice(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Cut out columns; limits are attributes before opset 10, inputs after it."""
    signals = _same(state, node, where)[0]
    told = options_of(node, {"starts": [], "ends": [], "axes": [], "steps": []})
    for key, name in zip(("starts", "ends", "axes", "steps"), node.input[1:], strict=False):
        if name:
            told[key] = np.ravel(state.stored(name, where)).tolist()
    indices = np.arange(len(signals), dtype=np.int64)
    axes = told["axes"] or list(range(len(told["starts"])))
    steps = told["steps"] or [1] * len(axes)
    lengths = {len(told["starts"]), len(told["ends"]), len(axes), len(steps)}
    if len(lengths) > 1 or 0 in steps:
        message = f"{where} must have a start, an end and a step other than 0 for each of its axes, got {told}; export it again"
        raise NetworkError(message)
    for start, end, axis, step in zip(told["starts"], told["ends"], axes, steps, strict=True):
        whole = (start, step) == (0, 1) and end >= LARGEST_ROWS
        if axis in COLUMN_AXES:
            indices = indices[int(start) : int(end) : int(step)]
        elif not whole:
            raise NetworkError(f"{where} must cut out columns (axis 1), got axis {axis}")
    return [_picked(signals, indices, where)]


def _split(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Cut columns apart; sizes are an attribute before opset 13, an input after it."""
    signals = _same(state, node, where)[0]
    told = options_of(node, {"axis": 0, "split": [], "num_outputs": 0})
    if told["axis"] not in COLUMN_AXES:
        raise NetworkError(f"{where} must cut columns apart (axis 1), got axis {told['axis']}")
    sizes = [int(one) for one in told["split"]]
    if len(node.input) > 1 and node.input[1]:
        sizes = np.ravel(state.stored(node.input[1], where)).astype(int).tolist()
    each = -(-len(signals) // len(node.output))
    sizes = sizes or [min(each, len(signals) - each * n) for n in range(len(node.output))]
    if sum(sizes) != len(signals) or len(sizes) != len(node.output) or min(sizes) < 1:
        raise NetworkError(f"{where} must cut {len(signals)} columns apart, got sizes {sizes}")
    ends = np.cumsum(sizes).tolist()
    return [signals[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _batch_norm(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    signals = _same(state, node, where)[0]
    norm = batch_norm_of(state, node, len(signals), where)
    shifts = [
        Fraction(float(norm.shift[index])) - Fraction(float(norm.mean[index])) * norm.factor(index)
        for index in range(len(signals))
    ]
    pairs = enumerate(zip(signals, shifts, strict=True))
    return [[one.scaled(norm.factor(index), shift) for index, (one, shift) in pairs]]


def _arithmetic(state: GraphState, node: "onnx.NodeProto", where: str) -> list[Signals]:
    """Take a sum, difference, product or quotient of a part of the input with a constant."""
    left = node.input[0] in state.blocks
    if len(node.input) != 2 or (left and node.input[1] in state.blocks):  # noqa: PLR2004 - a value and a constant
        raise NetworkError(f"{where} must combine a part of the input with a constant")
    name, other = (node.input[0], node.input[1]) if left else (node.input[1], node.input[0])
    signals = state.blocks[name]
    constant = state.vector(state.numbers(other, where), len(signals), where)
    if node.op_type == "Div" and (not left or (constant == 0).any()):
        raise NetworkError(f"{where} must divide the value by a constant that is not 0")
    exact = [Fraction(number) for number in constant.tolist()]
    match node.op_type:
        case "Add":
            pairs = [(Fraction(1), one) for one in exact]
        case "Sub":
            pairs = [(Fraction(1), -one) if left else (Fraction(-1), one) for one in exact]
        case "Mul":
            pairs = [(one, Fraction(0)) for one in exact]
        case _:
            pairs = [(1 / one, Fraction(0)) for one in exact]
    return [[one.scaled(*pair) for one, pair in zip(signals, pairs, strict=True)]]


def batch_norm_of(state: GraphState, node: "onnx.NodeProto", width: int, where: str) -> BatchNorm:
    """Read a batch norm's numbers."""
    options = options_of(
        node, {"epsilon": EPSILON, "training_mode": 0, "momentum": 0.9, "spatial": 1}
    )
    n_outputs = sum(bool(name) for name in node.output)
    if options["training_mode"] or len(node.input) != 5 or n_outputs != 1:  # noqa: PLR2004 - value, scale, shift, mean, variance
        raise NetworkError(f"{where} must be in inference mode, with four stored arrays")
    if options["spatial"] != 1:
        message = f"{where} must have statistics per column (spatial 1), got spatial {options['spatial']}; export it again with opset 9 or later"
        raise NetworkError(message)
    gain, shift, mean, variance = (
        state.vector(state.numbers(name, where), width, where) for name in node.input[1:]
    )
    return BatchNorm(mean, variance, gain, shift, options["epsilon"])


def _picked(signals: Signals, indices: Counts, where: str) -> Signals:
    if not indices.size or (np.abs(indices + 0.5) > len(signals)).any():
        raise NetworkError(
            f"{where} must pick among {len(signals)} columns, got {indices.tolist()}"
        )
    return [signals[int(index)] for index in indices]


# BatchNormalization's default; attributes are float32 numbers, and this one is not quite 1e-5.
EPSILON = float(np.float32(1e-5))

# A Slice of all rows ends at the largest whole number; no table of people has more rows than this.
LARGEST_ROWS = 2**31 - 1

BLOCK_OPERATORS: dict[str, Callable[[GraphState, "onnx.NodeProto", str], list[Signals]]] = {
    "Cast": _cast,
    "Concat": _concat,
    "Gather": _gather,
    "Slice": _slice,
    "Split": _split,
}

# These belong to a part of the input; where they work on all of it, a layer begins.
PART_OPERATORS: dict[str, Callable[[GraphState, "onnx.NodeProto", str], list[Signals]]] = {
    "Add": _arithmetic,
    "BatchNormalization": _batch_norm,
    "Div": _arithmetic,
    "Flatten": _same,
    "Identity": _same,
    "Mul": _arithmetic,
    "Reshape": _same,
    "Squeeze": _same,
    "Sub": _arithmetic,
    "Unsqueeze": _same,
}
