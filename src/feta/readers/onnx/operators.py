"""ONNX operators on the single value that the layers so far compute."""

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Array, Matrix, Vector
from feta.errors import NetworkError
from feta.readers.onnx.blocks import BLOCK_OPERATORS, batch_norm_of
from feta.readers.onnx.smooth import SMOOTH_READERS
from feta.readers.onnx.state import GraphState, options_of, scalar_of, vector_of
from feta.readers.onnx.tensor_data import DOUBLE, FLOAT
from feta.readers.onnx.trees_graph import ML, TREES
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
from feta.scorer.network.layers import Affine
from feta.scorer.network.smooth.activation import Smooth

if TYPE_CHECKING:
    import onnx

# Names of ONNX's own domain.
STANDARD = ("", "ai.onnx")

# Defaults of LeakyRelu and HardSigmoid; attributes are float32 numbers.
LEAK = float(np.float32(0.01))
HARD_SIGMOID = {"alpha": float(np.float32(0.2)), "beta": 0.5}

# Old opsets write a Clip without limit as the largest float32 number, which never clips in float32.
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)

# Operators that are not piecewise-linear.
SMOOTH_OPERATORS = {*SMOOTH, "hardswish"}

# What to do about operators that exporters write without need.
REMEDIES = {
    "Shape": "; write -1 for the number of rows where the network reshapes",
    "ArgMax": "; export the scores without it",
}


def _gemm(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    options = options_of(node, {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0})
    if options["transA"] or node.input[0] != state.value:
        raise NetworkError(
            f"{where} has an unsupported left operand; expected the value before it, not transposed"
        )
    if options["alpha"] != 1.0 or options["beta"] != 1.0:
        raise NetworkError(
            f"{where} has unsupported factors: got {options}; expected alpha and beta 1"
        )
    matrix = state.finite_constant(node.input[1], where)
    weight = matrix if options["transB"] else matrix.T
    has_bias = len(node.input) > 2 and node.input[2]  # noqa: PLR2004 - the third is optional
    bias = state.finite_constant(node.input[2], where) if has_bias else np.zeros(1)
    _add_linear(state, weight, bias, where)


def _matmul(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    if node.input[0] != state.value:
        raise NetworkError(f"{where} has an unsupported left operand; expected the value before it")
    _add_linear(state, state.finite_constant(node.input[1], where).T, np.zeros(1), where)


def _add_linear(state: GraphState, weight: Matrix, bias: Vector, where: str) -> None:
    if weight.ndim != 2 or weight.shape[1] != state.width:  # noqa: PLR2004 - a matrix
        raise NetworkError(
            f"{where} has a matrix of the wrong shape: got {weight.shape[::-1]}; "
            f"expected {state.width} inputs"
        )
    state.builder.linear(weight, vector_of(bias, len(weight), where))
    state.width = len(weight)


def _add(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _shift(state, state.constant_operand(node, where), 1.0, where)


def _sub(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    if node.input[0] != state.value:  # constant − value
        _scale(state, np.array(-1.0), where)
        _shift(state, state.constant_operand(node, where), 1.0, where)
    else:
        _shift(state, state.constant_operand(node, where), -1.0, where)


def _mul(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _scale(state, state.constant_operand(node, where), where)


def _neg(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    del node
    _scale(state, np.array(-1.0), where)


def _div(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    if node.input[0] != state.value:
        raise NetworkError(
            f"{where} divides a constant by the value; expected the value divided by a constant"
        )
    divisor = state.constant_operand(node, where)
    if (divisor == 0).any():
        raise NetworkError(f"{where} divides by 0")
    _scale(state, divisor, where, divide=True)


def _shift(state: GraphState, constant: Array, sign: float, where: str) -> None:
    shift = sign * vector_of(constant, state.width, where)

    def change(last: Affine) -> Affine:
        cancelled = np.abs(last.bias) + np.abs(shift) + last.cancelled_magnitude
        return Affine(last.weight, last.bias + shift, cancelled)

    state.builder.fold(change, state.width)


def _scale(state: GraphState, constant: Array, where: str, *, divide: bool = False) -> None:
    factor = vector_of(constant, state.width, where)
    apply = np.divide if divide else np.multiply

    def change(last: Affine) -> Affine:
        cancelled = apply(np.abs(last.bias) + last.cancelled_magnitude, np.abs(factor))
        return Affine(apply(last.weight, factor[:, None]), apply(last.bias, factor), cancelled)

    state.builder.fold(change, state.width, apply(np.ones(state.width), factor))


def _relu(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    del node
    state.builder.activate(relu(), where)


def _leaky_relu(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    state.builder.activate(leaky_relu(options_of(node, {"alpha": LEAK})["alpha"]), where)


def _prelu(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _pass_through(state, node, where)
    slopes = state.finite_constant(node.input[1], where)
    vector_of(slopes, state.width, where)
    state.builder.activate(prelu(np.ravel(slopes)), where)


def _absolute(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    del node
    state.builder.activate(absolute(), where)


def _hard_sigmoid(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    options = options_of(node, HARD_SIGMOID)
    if not np.isfinite([options["alpha"], options["beta"]]).all():
        raise NetworkError(
            f"{where} has parameters that are not finite: got {options}; "
            "expected a finite alpha and beta"
        )
    step = hardsigmoid(Fraction(options["alpha"]), Fraction(options["beta"]))
    state.builder.activate(step, where)


def _clip(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Read a Clip; limits are attributes before opset 11, inputs from then on."""
    _pass_through(state, node, where)
    options = options_of(node, {"min": -np.inf, "max": np.inf})
    for name, key in zip(node.input[1:], ("min", "max"), strict=False):
        if name:
            options[key] = scalar_of(state.constant(name, where), where)
    _add_clip(state, options["min"], options["max"], where)


def _maximum(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _add_clip(state, scalar_of(state.constant_operand(node, where), where), np.inf, where)


def _minimum(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _add_clip(state, -np.inf, scalar_of(state.constant_operand(node, where), where), where)


def _add_clip(state: GraphState, low: float, high: float, where: str) -> None:
    if not low < high:
        raise NetworkError(
            f"{where} has invalid limits: got min {low} and max {high}; expected min below max"
        )
    if state.source == "float32":
        low = -np.inf if low <= -LARGEST_FLOAT32 else low
        high = np.inf if high >= LARGEST_FLOAT32 else high
    state.builder.activate(clip(low, high), where)


def _reduce_max(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Read the maximum of each group."""
    options = options_of(node, {"axes": [], "keepdims": 1, "noop_with_empty_axes": 0})
    axes = (
        np.ravel(state.constant(node.input[1], where)) if len(node.input) > 1 else options["axes"]
    )
    if not state.group_size or options["keepdims"] or list(axes) not in ([-1], [2]):
        raise NetworkError(
            f"{where} is not a maximum over groups; expected a Reshape to (rows, groups, values) "
            "before it, axes -1 and keepdims 0"
        )
    if state.group_size > 1:
        state.builder.activate(Maxout(state.group_size), where)
    state.width, state.group_size = state.width // state.group_size, 0


def _batch_norm(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    state.builder.batch_norm(batch_norm_of(state, node, state.width, where))


def _pass_through(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Read an operator that changes nothing in evaluation mode."""
    if node.input[0] != state.value:
        raise NetworkError(f"{where} does not read the value before it")


def _dropout(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _pass_through(state, node, where)
    training = node.input[2] if len(node.input) > 2 else ""  # noqa: PLR2004 - value, ratio, mode
    if training and np.any(state.constant(training, where)):
        raise NetworkError(f"{where} is not in inference mode; export after module.eval()")


def _cast(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    to = options_of(node, {"to": 0, "saturate": 1})["to"]
    if to not in (FLOAT, DOUBLE):
        raise NetworkError(
            f"{where} converts to an unsupported type: got type {to}; expected float or double"
        )
    if to == FLOAT:
        state.source = "float32"


def _reshape(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    shape = [int(size) for size in np.ravel(state.constant(node.input[1], where))]
    if options_of(node, {"allowzero": 0})["allowzero"] and 0 in shape:
        raise NetworkError(
            f"{where} does not keep the rows: got {shape} with allowzero; expected no 0"
        )
    if len(shape) == 3:  # noqa: PLR2004 - rows, groups and the values of a group
        _begin_groups(state, shape, where)
        return
    keeps_shape = shape in (
        [-1, state.width],
        [0, state.width],
        [0, -1],
        [state.rows, state.width],
    )
    if not keeps_shape and not (state.width == 1 and shape == [-1]):
        raise NetworkError(
            f"{where} changes the shape: got {shape}; expected (rows, {state.width})"
        )


def _begin_groups(state: GraphState, shape: list[int], where: str) -> None:
    """Record a Reshape to (rows, groups, values), the beginning of maxout."""
    rows, groups, values = shape
    if groups == -1 and values > 0 and rows != -1:
        groups = state.width // values
    if values == -1 and groups > 0 and rows != -1:
        values = state.width // groups
    if rows not in (-1, 0, state.rows) or groups < 1 or groups * values != state.width:
        raise NetworkError(
            f"{where} does not form equal groups: got {shape}; "
            f"expected (rows, groups, values) with {state.width} values per row"
        )
    state.group_size = values


def _squeeze(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    if state.width != 1:
        raise NetworkError(f"{where} reads several values: got {state.width}; expected one score")
    _pass_through(state, node, where)


def _flatten(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    _pass_through(state, node, where)
    axis = options_of(node, {"axis": 1})["axis"]
    if axis != 1:
        raise NetworkError(f"{where} merges rows: got axis {axis}; expected axis 1")


def _sigmoid(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    """Record a sigmoid: the last step if nothing follows, else an activation."""
    del where, node
    state.squash = "sigmoid"


def continue_after_sigmoid(state: GraphState, where: str) -> None:
    """Add a sigmoid that is not the last step as an activation."""
    state.builder.activate(Smooth("sigmoid"), f"the Sigmoid before {where}")
    state.squash = None


def _softmax(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    axis = options_of(node, {"axis": -1})["axis"]
    if axis not in (-1, 1) or state.width < 2:  # noqa: PLR2004 - a choice
        raise NetworkError(
            f"{where} is not over a row's outputs: got axis {axis} and {state.width} output(s); "
            "expected axis 1, two or more outputs, and no operator after it"
        )
    state.squash = "log_softmax" if node.op_type == "LogSoftmax" else "softmax"


OPERATORS: dict[str, Callable[[GraphState, "onnx.NodeProto", str], None]] = {
    "Abs": _absolute,
    "Add": _add,
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Clip": _clip,
    "Constant": _pass_through,
    "Div": _div,
    "Dropout": _dropout,
    "Flatten": _flatten,
    "Gemm": _gemm,
    "HardSigmoid": _hard_sigmoid,
    "Identity": _pass_through,
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
    **SMOOTH_READERS,
}

# Required inputs of an operator, if not one.
MIN_INPUTS = {"Constant": 0, "Gather": 2, "Gemm": 2, "MatMul": 2, "PRelu": 2, "Reshape": 2}

# Operators that may follow a last Sigmoid or Softmax.
SHAPES = {"Cast", "Constant", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}


def unsupported_error(node: "onnx.NodeProto", where: str) -> NetworkError:
    """Return the error for an operator that is not supported, with what to do."""
    if node.domain in STANDARD and node.op_type.lower() in SMOOTH_OPERATORS:
        return refuse_smooth(node.op_type, where)
    if node.domain == ML and node.op_type in TREES:
        return NetworkError(
            f"{where} is an ensemble of trees: expected a network; read it with read_onnx_trees, "
            "which needs the columns of the schema"
        )
    supported = ", ".join(sorted({*OPERATORS, *BLOCK_OPERATORS}))
    domain = "" if node.domain in STANDARD else f" of the domain {node.domain!r}"
    remedy = REMEDIES.get(node.op_type, "")
    return NetworkError(f"{where}{domain} is not supported; expected {supported}{remedy}")
