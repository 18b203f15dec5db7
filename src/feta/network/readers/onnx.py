"""ONNX: a graph of affine operators and activations read into a Network, without running it.

Only a chain is read: every operator must work on the value before it and on stored constants.
Nothing is allocated before its size is known, and no other file is opened unless asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.network.activation import (
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
from feta.network.builder import NetworkBuilder
from feta.network.fold import BatchNorm
from feta.network.network import Affine, Network
from feta.network.readers.stored import Array, read_bytes, stored_array

if TYPE_CHECKING:
    import onnx

# Names of ONNX's own domain.
STANDARD = ("", "ai.onnx")

# Before opset 7 Add and BatchNormalization meant other things; runtimes refuse those files too.
OLDEST_OPSET = 7

# BatchNormalization's default; attributes are float32 numbers, and this one is not quite 1e-5.
EPSILON = float(np.float32(1e-5))

# Defaults of LeakyRelu and HardSigmoid, as float32 numbers too.
LEAK = float(np.float32(0.01))
HARD_SIGMOID = {"alpha": float(np.float32(0.2)), "beta": 0.5}

# Old opsets write "no limit" of a Clip as the largest number of float32, which is none there.
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)

# Operators that are not piecewise-linear and have no name among activations.
BENT = {*SMOOTH, "hardswish", "logsoftmax"}

# What to do about operators that exporters write without need.
REMEDIES = {
    "Shape": "; write -1 for the number of rows where the network reshapes",
    "ArgMax": "; export the scores without it",
}


def read_onnx(path: str | Path, *, external_data: bool = False) -> Network:
    """Read a network from an ONNX file.

    Understood are Gemm, MatMul, Add, Sub, Mul, Div, BatchNormalization; Relu, LeakyRelu, PRelu, Clip,
    Abs, HardSigmoid, Max and Min with a constant, and maxout (Reshape to groups, ReduceMax); what
    changes only the shape or nothing (Identity, Constant, Cast, Flatten, Reshape, Squeeze, Unsqueeze,
    Dropout); and a last Sigmoid or Softmax, which are taken off: scores are what goes into them.
    Weights in other files are read only with `external_data`, from the model's own folder.
    """
    try:
        # Numbers that overflow become infinite, and those are refused by name.
        with np.errstate(all="ignore"):
            reading = _Reading(_load(Path(path)), Path(path).parent if external_data else None)
            return reading.network()
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None


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


@dataclass
class _Reading:
    """One pass over a graph; `value` names the one value that is not a constant."""

    model: "onnx.ModelProto"
    folder: Path | None  # where external data may be read from
    builder: NetworkBuilder = field(default_factory=NetworkBuilder)
    constants: dict[str, Array] = field(default_factory=dict)
    value: str = ""
    width: int = 0
    rows: int = 1  # the graph's own number of rows, where that is fixed
    pool: int = 0  # values a group, between a Reshape to groups and the ReduceMax over them
    squashed: Literal["sigmoid", "softmax"] | None = None
    source: Literal["float32", "float64"] = "float64"

    def network(self) -> Network:
        """Read the whole graph."""
        graph = self.model.graph
        if graph.sparse_initializer:
            raise NetworkError("the graph's arrays must not be sparse; export them dense")
        for tensor in graph.initializer:
            self._keep(tensor.name, self._array(tensor))
        self._enter()
        for place, node in enumerate(graph.node):
            self._step(node, f"operator {(node.name or place)!r} ({node.op_type})")
        if self.pool:
            raise NetworkError(
                f"the value {self.value!r} must be reduced by ReduceMax, got the end"
            )
        if [output.name for output in graph.output][:1] != [self.value]:
            got = ", ".join(repr(output.name) for output in graph.output)
            raise NetworkError(
                f"the graph's output must be its last value {self.value!r}, got {got}"
            )
        return self.builder.network(sigmoid=self.squashed is not None, source=self.source)

    def _enter(self) -> None:
        """Find the one input and its width."""
        inputs = [one for one in self.model.graph.input if one.name not in self.constants]
        if len(inputs) != 1:
            message = f"the graph must have one input, a table of numbers, got {len(inputs)}; concatenate them before the model"
            raise NetworkError(message)
        kind = inputs[0].type.tensor_type
        sizes = [dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type not in (1, 11):  # FLOAT and DOUBLE
            raise NetworkError("the graph's input must be float or double numbers")
        if kind.elem_type == 1:
            self.source = "float32"
        if len(sizes) != 2 or sizes[1] < 1:  # noqa: PLR2004 - rows and columns
            raise NetworkError(
                f"the graph's input must be (rows, columns) with the columns fixed, got {sizes}"
            )
        self.value, self.width, self.rows = inputs[0].name, sizes[1], max(1, sizes[0])

    def _array(self, tensor: "onnx.TensorProto") -> Array:
        array = stored_array(tensor, self.folder)
        if array.dtype == np.float32:
            self.source = "float32"
        return array

    def _step(self, node: "onnx.NodeProto", where: str) -> None:
        """Take one operator."""
        if node.domain not in STANDARD or node.op_type not in OPERATORS:
            raise _refusal(node, where)
        if len(node.output) < 1 or len(node.input) < FEWEST_INPUTS.get(node.op_type, 1):
            raise NetworkError(f"{where} must have all its inputs and an output; export it again")
        if node.op_type == "Constant":
            self._constant(node, where)
            return
        live = [name for name in node.input if name and name not in self.constants]
        if not live:
            raise NetworkError(f"{where} works on constants only; export with constant folding")
        for name in live:
            if name != self.value:
                message = f"{where} must work on the value before it, {self.value!r}, got {name!r}; branches and skip connections are not read"
                raise NetworkError(message)
        if self.squashed and node.op_type not in SHAPES:
            raise NetworkError(f"{where} must not follow the last {self.squashed}")
        if self.pool and node.op_type != "ReduceMax":
            raise NetworkError(f"{where} must not follow a Reshape to groups; ReduceMax must")
        OPERATORS[node.op_type](self, node, where)
        self.value = node.output[0]

    def _keep(self, name: str, array: Array) -> None:
        if name in self.constants:
            raise NetworkError(f"the graph must define {name!r} once, got it twice")
        self.constants[name] = array

    def _constant(self, node: "onnx.NodeProto", where: str) -> None:
        for attribute in node.attribute:
            if attribute.name == "value" and attribute.HasField("t"):
                array = self._array(attribute.t)
            elif attribute.name in ("value_float", "value_floats"):
                self.source = "float32"
                array = np.array(list(attribute.floats) or attribute.f)
            elif attribute.name in ("value_int", "value_ints"):
                array = np.array(list(attribute.ints) or attribute.i)
            else:
                continue
            self._keep(node.output[0], array)
            return
        raise NetworkError(f"{where} must hold an array or a number")

    # Operators, in the order of the table below.

    def gemm(self, node: "onnx.NodeProto", where: str) -> None:
        options = _options(node, {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0})
        if options["transA"] or node.input[0] != self.value:
            raise NetworkError(f"{where} must have the value before it on the left, not transposed")
        if options["alpha"] != 1.0 or options["beta"] != 1.0:
            raise NetworkError(f"{where} must have alpha and beta 1, got {options}")
        matrix = self._numbers(node.input[1], where)
        weight = matrix if options["transB"] else matrix.T
        has_bias = len(node.input) > 2 and node.input[2]  # noqa: PLR2004 - the third is optional
        bias = self._numbers(node.input[2], where) if has_bias else np.zeros(1)
        self._linear(weight, bias, where)

    def matmul(self, node: "onnx.NodeProto", where: str) -> None:
        if node.input[0] != self.value:
            raise NetworkError(f"{where} must have the value before it on the left")
        self._linear(self._numbers(node.input[1], where).T, np.zeros(1), where)

    def _linear(self, weight: Matrix, bias: Vector, where: str) -> None:
        if weight.ndim != 2 or weight.shape[1] != self.width:  # noqa: PLR2004 - a matrix
            raise NetworkError(
                f"{where} must take {self.width} inputs, got a matrix of {weight.shape[::-1]}"
            )
        self.builder.linear(weight, self._vector(bias, len(weight), where))
        self.width = len(weight)

    def add(self, node: "onnx.NodeProto", where: str) -> None:
        self._shift(self._other(node, where), 1.0, where)

    def sub(self, node: "onnx.NodeProto", where: str) -> None:
        if node.input[0] != self.value:  # constant − value
            self._scale(np.array(-1.0), where)
            self._shift(self._other(node, where), 1.0, where)
        else:
            self._shift(self._other(node, where), -1.0, where)

    def mul(self, node: "onnx.NodeProto", where: str) -> None:
        self._scale(self._other(node, where), where)

    def div(self, node: "onnx.NodeProto", where: str) -> None:
        if node.input[0] != self.value:
            raise NetworkError(
                f"{where} must divide the value by a constant, not the other way round"
            )
        divisor = self._other(node, where)
        if (divisor == 0).any():
            raise NetworkError(f"{where} must not divide by 0")
        self._scale(divisor, where, divide=True)

    def _shift(self, constant: Array, sign: float, where: str) -> None:
        last = self.builder.open_layer(self.width)
        shift = sign * self._vector(constant, self.width, where)
        folded = np.abs(last.bias) + np.abs(shift) + last.folded
        self.builder.affine[-1] = Affine(last.weight, last.bias + shift, folded)

    def _scale(self, constant: Array, where: str, *, divide: bool = False) -> None:
        last = self.builder.open_layer(self.width)
        factor = self._vector(constant, self.width, where)
        bend = np.divide if divide else np.multiply
        folded = bend(np.abs(last.bias) + last.folded, np.abs(factor))
        self.builder.affine[-1] = Affine(
            bend(last.weight, factor[:, None]), bend(last.bias, factor), folded
        )

    def relu(self, node: "onnx.NodeProto", where: str) -> None:
        del node
        self.builder.activate(relu(), where)

    def leaky_relu(self, node: "onnx.NodeProto", where: str) -> None:
        self.builder.activate(leaky_relu(_options(node, {"alpha": LEAK})["alpha"]), where)

    def prelu(self, node: "onnx.NodeProto", where: str) -> None:
        self.same(node, where)
        slopes = self._numbers(node.input[1], where)
        self._vector(slopes, self.width, where)
        self.builder.activate(prelu(np.ravel(slopes)), where)

    def absolute(self, node: "onnx.NodeProto", where: str) -> None:
        del node
        self.builder.activate(absolute(), where)

    def hard_sigmoid(self, node: "onnx.NodeProto", where: str) -> None:
        told = _options(node, HARD_SIGMOID)
        if not np.isfinite([told["alpha"], told["beta"]]).all():
            raise NetworkError(f"{where} must have a finite alpha and beta, got {told}")
        step = hardsigmoid(Fraction(told["alpha"]), Fraction(told["beta"]))
        self.builder.activate(step, where)

    def clip(self, node: "onnx.NodeProto", where: str) -> None:
        """Take a Clip: limits are attributes before opset 11, inputs after it."""
        self.same(node, where)
        told = _options(node, {"min": -np.inf, "max": np.inf})
        for name, key in zip(node.input[1:], ("min", "max"), strict=False):
            if name:
                told[key] = self._scalar(self._stored(name, where), where)
        self._clip(told["min"], told["max"], where)

    def maximum(self, node: "onnx.NodeProto", where: str) -> None:
        self._clip(self._scalar(self._other(node, where), where), np.inf, where)

    def minimum(self, node: "onnx.NodeProto", where: str) -> None:
        self._clip(-np.inf, self._scalar(self._other(node, where), where), where)

    def _clip(self, low: float, high: float, where: str) -> None:
        if not low < high:
            raise NetworkError(f"{where} must have its min below its max, got {low} and {high}")
        if self.source == "float32":
            low = -np.inf if low <= -LARGEST_FLOAT32 else low
            high = np.inf if high >= LARGEST_FLOAT32 else high
        self.builder.activate(clip(low, high), where)

    def reduce_max(self, node: "onnx.NodeProto", where: str) -> None:
        """Take the largest of each group."""
        told = _options(node, {"axes": [], "keepdims": 1, "noop_with_empty_axes": 0})
        axes = np.ravel(self._stored(node.input[1], where)) if len(node.input) > 1 else told["axes"]
        if not self.pool or told["keepdims"] or list(axes) not in ([-1], [2]):
            message = f"{where} must follow a Reshape to (rows, groups, values) and reduce the values (axes -1, keepdims 0)"
            raise NetworkError(message)
        if self.pool > 1:
            self.builder.activate(Maxout(self.pool), where)
        self.width, self.pool = self.width // self.pool, 0

    def batch_norm(self, node: "onnx.NodeProto", where: str) -> None:
        options = _options(
            node, {"epsilon": EPSILON, "training_mode": 0, "momentum": 0.9, "spatial": 1}
        )
        n_outputs = sum(bool(name) for name in node.output)
        if options["training_mode"] or len(node.input) != 5 or n_outputs != 1:  # noqa: PLR2004 - value, scale, shift, mean, variance
            raise NetworkError(f"{where} must be in inference mode, with four stored arrays")
        gain, shift, mean, variance = (
            self._vector(self._numbers(name, where), self.width, where) for name in node.input[1:]
        )
        self.builder.batch_norm(BatchNorm(mean, variance, gain, shift, options["epsilon"]))

    def same(self, node: "onnx.NodeProto", where: str) -> None:
        """Take an operator that changes nothing when a trained network decides."""
        if node.input[0] != self.value:
            raise NetworkError(f"{where} must work on the value before it")

    def dropout(self, node: "onnx.NodeProto", where: str) -> None:
        self.same(node, where)
        training = node.input[2] if len(node.input) > 2 else ""  # noqa: PLR2004 - value, ratio, mode
        if training and np.any(self._stored(training, where)):
            raise NetworkError(f"{where} must be in inference mode; export after module.eval()")

    def cast(self, node: "onnx.NodeProto", where: str) -> None:
        to = _options(node, {"to": 0, "saturate": 1})["to"]
        if to not in (1, 11):  # FLOAT and DOUBLE
            raise NetworkError(f"{where} must cast to float or double, got type {to}")
        if to == 1:
            self.source = "float32"

    def reshape(self, node: "onnx.NodeProto", where: str) -> None:
        shape = [int(size) for size in np.ravel(self._stored(node.input[1], where))]
        if _options(node, {"allowzero": 0})["allowzero"] and 0 in shape:
            raise NetworkError(f"{where} must keep the rows, got {shape} with allowzero")
        if len(shape) == 3:  # noqa: PLR2004 - rows, groups and the values of a group
            self._group(shape, where)
            return
        keeps = shape in ([-1, self.width], [0, self.width], [0, -1], [self.rows, self.width])
        if not keeps and not (self.width == 1 and shape == [-1]):
            raise NetworkError(f"{where} must keep (rows, {self.width}), got {shape}")

    def _group(self, shape: list[int], where: str) -> None:
        """Note a Reshape to (rows, groups, values), which maxout begins with."""
        rows, groups, values = shape
        if groups == -1 and values > 0 and rows != -1:
            groups = self.width // values
        if values == -1 and groups > 0 and rows != -1:
            values = self.width // groups
        if rows not in (-1, 0, self.rows) or groups < 1 or groups * values != self.width:
            message = f"{where} must cut {self.width} values into equal groups (rows, groups, values), got {shape}"
            raise NetworkError(message)
        self.pool = values

    def squeeze(self, node: "onnx.NodeProto", where: str) -> None:
        if self.width != 1:
            raise NetworkError(f"{where} must work on a single score, got {self.width} values")
        self.same(node, where)

    def flatten(self, node: "onnx.NodeProto", where: str) -> None:
        if _options(node, {"axis": 1})["axis"] != 1:
            raise NetworkError(f"{where} must keep the rows apart (axis 1)")

    def sigmoid(self, node: "onnx.NodeProto", where: str) -> None:
        del node
        if self.width != 1:  # a last one stands behind a single score
            raise refuse_smooth("sigmoid", where)
        self.squashed = "sigmoid"

    def softmax(self, node: "onnx.NodeProto", where: str) -> None:
        if _options(node, {"axis": -1})["axis"] not in (-1, 1) or self.width < 2:  # noqa: PLR2004 - a choice
            message = (
                f"{where} must stand last, over two or more outputs of a row, got {self.width}"
            )
            raise NetworkError(message)
        self.squashed = "softmax"

    def _other(self, node: "onnx.NodeProto", where: str) -> Array:
        """Give the constant of an operator with two inputs."""
        if len(node.input) != 2:  # noqa: PLR2004 - a value and a constant
            raise NetworkError(f"{where} must have two inputs, got {len(node.input)}")
        names = [name for name in node.input if name != self.value]
        if len(names) != 1:
            raise NetworkError(f"{where} must combine the value before it with one constant")
        return self._numbers(names[0], where)

    def _scalar(self, numbers: Array, where: str) -> float:
        if numbers.size != 1 or numbers.ndim > 2:  # noqa: PLR2004 - rows and columns
            message = f"{where} must have one number as its limit, got the shape {numbers.shape}"
            raise NetworkError(message)
        return float(np.ravel(numbers)[0])

    def _stored(self, name: str, where: str) -> Array:
        if name not in self.constants:
            raise NetworkError(f"{where} must take {name!r} from the stored constants")
        return self.constants[name]

    def _numbers(self, name: str, where: str) -> Array:
        numbers = np.asarray(self._stored(name, where), dtype=np.float64)
        bad = np.argwhere(~np.isfinite(numbers))
        if len(bad):
            place = tuple(bad[0].tolist())
            message = f"{where}: the stored array {name!r} must be finite, got {float(numbers[place])!r} at {place}; train the network again"
            raise NetworkError(message)
        return numbers

    def _vector(self, numbers: Array, width: int, where: str) -> Vector:
        """Spread a constant over the columns as ONNX would."""
        flat = np.ravel(numbers)
        if numbers.shape[:-1] not in ((), (1,)) or flat.size not in (1, width):
            raise NetworkError(
                f"{where} must have a constant for {width} columns, got the shape {numbers.shape}"
            )
        return np.broadcast_to(flat, (width,)).astype(np.float64)


OPERATORS: dict[str, Callable[[_Reading, Any, str], None]] = {
    "Abs": _Reading.absolute,
    "Add": _Reading.add,
    "BatchNormalization": _Reading.batch_norm,
    "Cast": _Reading.cast,
    "Clip": _Reading.clip,
    "Constant": _Reading.same,
    "Div": _Reading.div,
    "Dropout": _Reading.dropout,
    "Flatten": _Reading.flatten,
    "Gemm": _Reading.gemm,
    "HardSigmoid": _Reading.hard_sigmoid,
    "Identity": _Reading.same,
    "LeakyRelu": _Reading.leaky_relu,
    "MatMul": _Reading.matmul,
    "Max": _Reading.maximum,
    "Min": _Reading.minimum,
    "Mul": _Reading.mul,
    "PRelu": _Reading.prelu,
    "ReduceMax": _Reading.reduce_max,
    "Relu": _Reading.relu,
    "Reshape": _Reading.reshape,
    "Sigmoid": _Reading.sigmoid,
    "Softmax": _Reading.softmax,
    "Squeeze": _Reading.squeeze,
    "Sub": _Reading.sub,
    "Unsqueeze": _Reading.squeeze,
}

# Inputs an operator cannot do without, where that is not one.
FEWEST_INPUTS = {"Constant": 0, "Gemm": 2, "MatMul": 2, "PRelu": 2, "Reshape": 2}

# What may still follow a last Sigmoid or Softmax.
SHAPES = {"Cast", "Constant", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}


def _refusal(node: "onnx.NodeProto", where: str) -> NetworkError:
    """Say why an operator is not read, and what to do."""
    if node.domain in STANDARD and node.op_type.lower() in BENT:
        return refuse_smooth(node.op_type, where)
    known = ", ".join(sorted(OPERATORS))
    custom = "" if node.domain in STANDARD else f" of the domain {node.domain!r}"
    remedy = REMEDIES.get(node.op_type, "")
    return NetworkError(f"{where}{custom} is not one that FETA reads; it reads {known}{remedy}")


def _options(node: "onnx.NodeProto", defaults: dict[str, Any]) -> dict[str, Any]:
    """Read an operator's attributes, numbers only; unknown ones are refused, since they may matter."""
    options = dict(defaults)
    for attribute in node.attribute:
        if attribute.name not in defaults:
            raise NetworkError(
                f"operator {node.op_type} has an attribute {attribute.name!r} that FETA does not know"
            )
        if isinstance(defaults[attribute.name], list):
            options[attribute.name] = list(attribute.ints)
        else:
            number = attribute.f if attribute.type == attribute.FLOAT else attribute.i
            options[attribute.name] = number
    return options
