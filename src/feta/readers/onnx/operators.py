"""ONNX operators: what each of them does to the value that is read so far."""

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Array, Matrix, Vector
from feta.errors import NetworkError
from feta.readers.onnx.blocks import BLOCK_OPERATORS, batch_norm_of
from feta.readers.onnx.state import GraphState, options_of
from feta.scorer.network.activation import (
    SMOOTH,
    Maxout,
    absolute,
    clip,
    hardsigmoid,
    leaky_relu,
    prelu,
    refuse_smooth,
    relu,
)
from feta.scorer.network.network import Affine

if TYPE_CHECKING:
    import onnx

# Names of ONNX's own domain.
STANDARD = ("", "ai.onnx")

# Defaults of LeakyRelu and HardSigmoid; attributes are float32 numbers.
LEAK = float(np.float32(0.01))
HARD_SIGMOID = {"alpha": float(np.float32(0.2)), "beta": 0.5}

# Old opsets write "no limit" of a Clip as the largest number of float32, which is none there.
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)

# Operators that are not piecewise-linear and have no name among activations.
BENT = {*SMOOTH, "hardswish"}

# What to do about operators that exporters write without need.
REMEDIES = {
    "Shape": "; write -1 for the number of rows where the network reshapes",
    "ArgMax": "; export the scores without it",
}


def _gemm(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    options = options_of(node, {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0})
    if options["transA"] or node.input[0] != state.value:
        raise NetworkError(f"{where} must have the value before it on the left, not transposed")
    if options["alpha"] != 1.0 or options["beta"] != 1.0:
        raise NetworkError(f"{where} must have alpha and beta 1, got {options}")
    matrix = state.numbers(node.input[1], where)
    weight = matrix if options["transB"] else matrix.T
    has_bias = len(node.input) > 2 and node.input[2]  # noqa: PLR2004 - the third is optional
    bias = state.numbers(node.input[2], where) if has_bias else np.zeros(1)
    _linear(state, weight, bias, where)


def _matmul(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    if node.input[0] != state.value:
        raise NetworkError(f"{where} must have the value before it on the left")
    _linear(state, state.numbers(node.input[1], where).T, np.zeros(1), where)


def _linear(state: GraphState, weight: Matrix, bias: Vector, where: str) -> None:
    if weight.ndim != 2 or weight.shape[1] != state.width:  # noqa: PLR2004 - a matrix
        raise NetworkError(
            f"{where} must take {state.width} inputs, got a matrix of {weight.shape[::-1]}"
        )
    state.builder.linear(weight, state.vector(bias, len(weight), where))
    state.width = len(weight)


def _add(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _shift(state, state.other(node, where), 1.0, where)


def _sub(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    if node.input[0] != state.value:  # constant − value
        _scale(state, np.array(-1.0), where)
        _shift(state, state.other(node, where), 1.0, where)
    else:
        _shift(state, state.other(node, where), -1.0, where)


def _mul(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _scale(state, state.other(node, where), where)


def _neg(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    del node
    _scale(state, np.array(-1.0), where)


def _div(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    if node.input[0] != state.value:
        raise NetworkError(f"{where} must divide the value by a constant, not the other way round")
    divisor = state.other(node, where)
    if (divisor == 0).any():
        raise NetworkError(f"{where} must not divide by 0")
    _scale(state, divisor, where, divide=True)


def _shift(state: GraphState, constant: Array, sign: float, where: str) -> None:
    last = state.builder.open_layer(state.width)
    shift = sign * state.vector(constant, state.width, where)
    folded = np.abs(last.bias) + np.abs(shift) + last.cancelled_magnitude
    state.builder.affine[-1] = Affine(last.weight, last.bias + shift, folded)


def _scale(state: GraphState, constant: Array, where: str, *, divide: bool = False) -> None:
    last = state.builder.open_layer(state.width)
    factor = state.vector(constant, state.width, where)
    bend = np.divide if divide else np.multiply
    folded = bend(np.abs(last.bias) + last.cancelled_magnitude, np.abs(factor))
    state.builder.scale_tables(bend(np.ones(state.width), factor).tolist())
    state.builder.affine[-1] = Affine(
        bend(last.weight, factor[:, None]), bend(last.bias, factor), folded
    )


def _relu(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    del node
    state.builder.activate(relu(), where)


def _leaky_relu(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    state.builder.activate(leaky_relu(options_of(node, {"alpha": LEAK})["alpha"]), where)


def _prelu(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _same(state, node, where)
    slopes = state.numbers(node.input[1], where)
    state.vector(slopes, state.width, where)
    state.builder.activate(prelu(np.ravel(slopes)), where)


def _absolute(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    del node
    state.builder.activate(absolute(), where)


def _hard_sigmoid(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    told = options_of(node, HARD_SIGMOID)
    if not np.isfinite([told["alpha"], told["beta"]]).all():
        raise NetworkError(f"{where} must have a finite alpha and beta, got {told}")
    step = hardsigmoid(Fraction(told["alpha"]), Fraction(told["beta"]))
    state.builder.activate(step, where)


def _clip(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Take a Clip: limits are attributes before opset 11, inputs after it."""
    _same(state, node, where)
    told = options_of(node, {"min": -np.inf, "max": np.inf})
    for name, key in zip(node.input[1:], ("min", "max"), strict=False):
        if name:
            told[key] = state.scalar(state.stored(name, where), where)
    _cut_off(state, told["min"], told["max"], where)


def _maximum(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _cut_off(state, state.scalar(state.other(node, where), where), np.inf, where)


def _minimum(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _cut_off(state, -np.inf, state.scalar(state.other(node, where), where), where)


def _cut_off(state: GraphState, low: float, high: float, where: str) -> None:
    if not low < high:
        raise NetworkError(f"{where} must have its min below its max, got {low} and {high}")
    if state.source == "float32":
        low = -np.inf if low <= -LARGEST_FLOAT32 else low
        high = np.inf if high >= LARGEST_FLOAT32 else high
    state.builder.activate(clip(low, high), where)


def _reduce_max(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Take the largest of each group."""
    told = options_of(node, {"axes": [], "keepdims": 1, "noop_with_empty_axes": 0})
    axes = np.ravel(state.stored(node.input[1], where)) if len(node.input) > 1 else told["axes"]
    if not state.pool or told["keepdims"] or list(axes) not in ([-1], [2]):
        message = f"{where} must follow a Reshape to (rows, groups, values) and reduce the values (axes -1, keepdims 0)"
        raise NetworkError(message)
    if state.pool > 1:
        state.builder.activate(Maxout(state.pool), where)
    state.width, state.pool = state.width // state.pool, 0


def _batch_norm(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    state.builder.batch_norm(batch_norm_of(state, node, state.width, where))


def _same(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Take an operator that changes nothing when a trained network decides."""
    if node.input[0] != state.value:
        raise NetworkError(f"{where} must work on the value before it")


def _dropout(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _same(state, node, where)
    training = node.input[2] if len(node.input) > 2 else ""  # noqa: PLR2004 - value, ratio, mode
    if training and np.any(state.stored(training, where)):
        raise NetworkError(f"{where} must be in inference mode; export after module.eval()")


def _cast(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    to = options_of(node, {"to": 0, "saturate": 1})["to"]
    if to not in (1, 11):  # FLOAT and DOUBLE
        raise NetworkError(f"{where} must cast to float or double, got type {to}")
    if to == 1:
        state.source = "float32"


def _reshape(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    shape = [int(size) for size in np.ravel(state.stored(node.input[1], where))]
    if options_of(node, {"allowzero": 0})["allowzero"] and 0 in shape:
        raise NetworkError(f"{where} must keep the rows, got {shape} with allowzero")
    if len(shape) == 3:  # noqa: PLR2004 - rows, groups and the values of a group
        _group(state, shape, where)
        return
    keeps = shape in (
        [-1, state.width],
        [0, state.width],
        [0, -1],
        [state.rows, state.width],
    )
    if not keeps and not (state.width == 1 and shape == [-1]):
        raise NetworkError(f"{where} must keep (rows, {state.width}), got {shape}")


def _group(state: GraphState, shape: list[int], where: str) -> None:
    """Note a Reshape to (rows, groups, values), which maxout begins with."""
    rows, groups, values = shape
    if groups == -1 and values > 0 and rows != -1:
        groups = state.width // values
    if values == -1 and groups > 0 and rows != -1:
        values = state.width // groups
    if rows not in (-1, 0, state.rows) or groups < 1 or groups * values != state.width:
        message = f"{where} must cut {state.width} values into equal groups (rows, groups, values), got {shape}"
        raise NetworkError(message)
    state.pool = values


def _squeeze(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    if state.width != 1:
        raise NetworkError(f"{where} must work on a single score, got {state.width} values")
    _same(state, node, where)


def _flatten(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _same(state, node, where)
    if options_of(node, {"axis": 1})["axis"] != 1:
        raise NetworkError(f"{where} must keep the rows apart (axis 1)")


def _sigmoid(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    del node
    if state.width != 1:  # a last one stands behind a single score
        raise refuse_smooth("sigmoid", where)
    state.squashed = "sigmoid"


def _softmax(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    if options_of(node, {"axis": -1})["axis"] not in (-1, 1) or state.width < 2:  # noqa: PLR2004 - a choice
        message = f"{where} must stand last, over two or more outputs of a row, got {state.width}"
        raise NetworkError(message)
    state.squashed = "log_softmax" if node.op_type == "LogSoftmax" else "softmax"


OPERATORS: dict[str, Callable[[GraphState, "onnx.NodeProto", str], None]] = {
    "Abs": _absolute,
    "Add": _add,
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Clip": _clip,
    "Constant": _same,
    "Div": _div,
    "Dropout": _dropout,
    "Flatten": _flatten,
    "Gemm": _gemm,
    "HardSigmoid": _hard_sigmoid,
    "Identity": _same,
    "LeakyRelu": _leaky_relu,
    "LogSoftmax": _softmax,
    "MatMul": _matmul,
    "Max": _maximum,
    "Min": _minimum,
    "Mul": _mul,
    "Neg": _neg,
    "PRelu": _prelu,
    "ReduceMax": _reduce_max,
    "Relu": _relu,
    "Reshape": _reshape,
    "Sigmoid": _sigmoid,
    "Softmax": _softmax,
    "Squeeze": _squeeze,
    "Sub": _sub,
    "Unsqueeze": _squeeze,
}

# Inputs an operator cannot do without, where that is not one.
MIN_INPUTS = {"Constant": 0, "Gather": 2, "Gemm": 2, "MatMul": 2, "PRelu": 2, "Reshape": 2}

# What may still follow a last Sigmoid or Softmax.
SHAPES = {"Cast", "Constant", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}


def refusal(node: "onnx.NodeProto", where: str) -> NetworkError:
    """Say why an operator is not read, and what to do."""
    if node.domain in STANDARD and node.op_type.lower() in BENT:
        return refuse_smooth(node.op_type, where)
    known = ", ".join(sorted({*OPERATORS, *BLOCK_OPERATORS}))
    custom = "" if node.domain in STANDARD else f" of the domain {node.domain!r}"
    remedy = REMEDIES.get(node.op_type, "")
    return NetworkError(f"{where}{custom} is not one that FETA reads; it reads {known}{remedy}")
