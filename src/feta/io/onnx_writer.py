"""ONNX files of any network: a graph of Gemm and activations, which `read_onnx` reads back.

Activations for which ONNX has no operator are written with ReLU and exact weights, so the graph
computes the same real function as the network.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError, unknown_choice
from feta.io.regular_file import atomic_write
from feta.scorer.network.activation import Activation, identity, relu
from feta.scorer.network.layers import Columns
from feta.scorer.network.network import Network, network_of

if TYPE_CHECKING:
    import onnx

Precision = Literal["float32", "float64"]

# The first versions with all operators used here in float64, so that older runtimes can read them.
OPSET = 17
IR_VERSION = 8


class HasNetwork(Protocol):
    """A model, or another object with a network."""

    @property
    def network(self) -> Network:
        """The network."""
        ...


def write_onnx(
    model: HasNetwork | Network, path: str | Path, *, precision: Precision | None = None
) -> Precision:
    """Write a network, or a model's network, as an ONNX file; its input is a person's row.

    The default precision is float32 if that is exact for every number, else float64. The precision
    that was used is returned. An existing file is replaced at once or not at all.
    """
    network = network_of(model if isinstance(model, Network) else model.network)
    if precision not in (None, "float32", "float64"):
        problem = unknown_choice(precision, ("float32", "float64"))
        raise NetworkError(f"invalid precision: {problem}")
    if network.inverse_link is not None:
        raise NetworkError(
            f"a network with a link cannot be written: got the link {network.inverse_link!r}; "
            "expected none; write dataclasses.replace(network, inverse_link=None), whose output "
            "is the score"
        )
    chosen = precision or _exact_precision(network)
    with atomic_write(Path(path)) as part:
        part.write_bytes(_Layers(network).graph(chosen).SerializeToString())
    return chosen


class _Nodes:
    """The operators of a graph and their stored arrays, in one precision."""

    def __init__(self, precision: Precision) -> None:
        self.precision = precision
        self.operators: list[Any] = []
        self.arrays: list[Any] = []

    def store(self, name: str, array: Matrix | Vector) -> str:
        """Store an array; return its name."""
        from onnx import numpy_helper  # noqa: PLC0415 - slow to import

        with np.errstate(over="ignore"):
            rounded = np.asarray(array, dtype=self.precision)
        if not np.isfinite(rounded).all():
            raise NetworkError("the weights exceed float32; write the network in float64")
        self.arrays.append(numpy_helper.from_array(rounded, name))
        return name

    def add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:  # noqa: ANN401 - passed on
        """Add an operator; return the name of its output."""
        from onnx import helper  # noqa: PLC0415 - slow to import

        self.operators.append(helper.make_node(operator, inputs, [output], **attributes))
        return output


class _Layers:
    """The layers as they are written: affine ones, and the activation after each."""

    def __init__(self, network: Network) -> None:
        self.width = network.width
        self.squash = network.sigmoid and ("Softmax" if network.outputs > 1 else "Sigmoid")
        self.affine: list[tuple[Matrix, Vector]] = []
        self.activations: list[Activation] = []
        self._add_first(network.first)
        for activation, layer in network.piecewise_steps:
            self._add_activation(activation, len(self.affine[-1][1]))
            self._add_affine(layer.weight, layer.bias)

    def _add_first(self, first: Columns) -> None:
        """Add the first layer; a table becomes one bump of height 1 per value.

        The bump at n is relu(d + 1) − 2·relu(d) + relu(d − 1) with d = (x − n) / g. Here g is a
        power of two, at most the distance of two values. The bump is exactly 1 at n and exactly 0
        at the other values.
        """
        if not first.tables:
            self._add_affine(first.slopes, first.bias)
            return
        unit = np.eye(first.width)
        rows, shifts = [unit], [np.zeros(first.width)]
        for table in first.tables:
            distance = 2.0 ** np.floor(np.log2(np.diff(table.numbers).min(initial=1.0)))
            rows.append(np.repeat(unit[[table.column]] / distance, len(table.numbers), axis=0))
            shifts.append(-table.numbers / distance)
        self._add_affine(np.vstack(rows), np.concatenate(shifts))
        heights = np.vstack([table.rows for table in first.tables]).T
        n_bumps = heights.shape[1]
        copy = np.eye(first.width, first.width + n_bumps)
        bump = np.eye(n_bumps, first.width + n_bumps, first.width)
        ones = np.ones(n_bumps)
        shift = np.concatenate([np.zeros(2 * first.width), ones, 0 * ones, -ones])
        self._add_affine(np.vstack([copy, -copy, bump, bump, bump]), shift)
        self.activations.append(relu())
        weight = np.hstack([first.slopes, -first.slopes, heights, -2 * heights, heights])
        self._add_affine(weight, first.bias)

    def _add_affine(self, weight: Matrix, bias: Vector) -> None:
        """Add the layer W·a + b."""
        if len(self.affine) > len(self.activations):
            self._prevent_folding()
            self.activations.append(identity())
        missing = len(self.affine[-1][1]) - weight.shape[1] if self.affine else 0
        self.affine.append((np.pad(weight, ((0, 0), (0, missing))), np.array(bias)))

    def _prevent_folding(self) -> None:
        """Add a neuron 0 to a layer that only scales, so that readers do not fold it."""
        weight, bias = self.affine[-1]
        if weight.shape[0] == weight.shape[1] and not (weight - np.diag(np.diag(weight))).any():
            self.affine[-1] = (np.vstack([weight, 0 * weight[:1]]), np.append(bias, 0.0))

    def _add_activation(self, activation: Activation, width: int) -> None:
        if activation.name == "identity" and activation.n_pieces == 1:
            return
        if _operator(activation) is not None:
            self.activations.append(activation)
            return
        expand, shift, contract, constant = _relu_form(activation, width)
        self._add_affine(expand, shift)
        self.activations.append(relu())
        self._add_affine(contract, constant)

    def graph(self, precision: Precision) -> "onnx.ModelProto":
        """Return the graph; it ends with the sigmoid or softmax of the source, if there is one."""
        from onnx import TensorProto, helper  # noqa: PLC0415 - slow to import

        nodes, value = _Nodes(precision), "people"
        for index, (weight, bias) in enumerate(self.affine, start=1):
            arrays = [nodes.store(f"weight{index}", weight), nodes.store(f"bias{index}", bias)]
            value = nodes.add("Gemm", [value, *arrays], f"layer{index}", transB=1)
            activation = self.activations[index - 1] if index <= len(self.activations) else None
            operator = activation and _operator(activation)
            if operator:
                name, parameters = operator
                more = [
                    "" if array is None else nodes.store(f"limit{index}_{n}", array)
                    for n, array in enumerate(parameters)
                ]
                value = nodes.add(name, [value, *more], f"activation{index}")
        if self.squash:
            value = nodes.add(self.squash, [value], "squashed")
        kind = TensorProto.FLOAT if precision == "float32" else TensorProto.DOUBLE
        entry = helper.make_tensor_value_info("people", kind, ["rows", self.width])
        end = helper.make_tensor_value_info(value, kind, ["rows", len(self.affine[-1][1])])
        graph = helper.make_graph(nodes.operators, "feta", [entry], [end], nodes.arrays)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(
            graph, producer_name="feta", opset_imports=opset, ir_version=IR_VERSION
        )


def _exact_precision(network: Network) -> Precision:
    """Return the smaller format that represents every number exactly."""
    arrays = [network.first.bias, network.first.slopes]
    arrays += [array for table in network.first.tables for array in (table.numbers, table.rows)]
    for activation, layer in network.steps:
        arrays += [activation.breaks, activation.slopes, activation.intercepts]
        arrays += [layer.weight, layer.bias]
    with np.errstate(over="ignore", under="ignore"):
        exact = all(np.array_equal(array.astype(np.float32), array) for array in arrays)
    return "float32" if exact else "float64"


def _operator(activation: Activation) -> tuple[str, list[Vector | None]] | None:
    """Return the ONNX operator for an activation and its parameters; None if there is none."""
    below = activation.slopes[0]
    if _has_pieces(activation, [[0.0]], [below, [1.0]], [[0.0], [0.0]]):
        name = {0.0: "Relu", -1.0: "Abs"}.get(float(below[0]))
        return (name, []) if name and len(set(below.tolist())) == 1 else ("PRelu", [below])
    ends = activation.breaks[[0, -1]] if len(activation.breaks) else np.zeros((2, 1))
    low, high = (np.array(float(end[0])) for end in ends)
    if _has_pieces(activation, [low], [[0.0], [1.0]], [low, [0.0]]):
        return "Clip", [low, None]
    if _has_pieces(activation, [high], [[1.0], [0.0]], [[0.0], high]):
        return "Clip", [None, high]
    if _has_pieces(activation, [low, high], [[0.0], [1.0], [0.0]], [low, [0.0], high]):
        return "Clip", [low, high]
    return None


def _has_pieces(activation: Activation, *pieces: Sequence[ArrayLike]) -> bool:
    """Return whether these are the activation's breaks, slopes and intercepts, for every neuron."""
    arrays = (activation.breaks, activation.slopes, activation.intercepts)
    return all(
        len(array) == len(rows)
        and all((row == np.asarray(other)).all() for row, other in zip(array, rows, strict=True))
        for array, rows in zip(arrays, pieces, strict=True)
    )


def _relu_form(activation: Activation, width: int) -> tuple[Matrix, Vector, Matrix, Vector]:
    """Return two affine layers that compute an activation with a ReLU between them.

    f(z) = s₀·z + i₀ + Σ_k (s_{k+1} − s_k)·relu(z − b_k), where z is relu(z) − relu(−z). A
    difference of slopes could be rounded. Each hinge is therefore written twice, once for s_{k+1}
    and once for −s_k, so that every weight is a stored number or its negative.
    """
    n_breaks = activation.n_pieces - 1
    unit = np.eye(width)
    slopes, intercepts, breaks = (
        np.broadcast_to(array, (len(array), width))
        for array in (activation.slopes, activation.intercepts, activation.breaks)
    )
    expand = np.vstack([unit, -unit, *[unit] * (2 * n_breaks)])
    shift = np.concatenate([np.zeros(2 * width), *(-point for point in breaks for _ in range(2))])
    parts = [unit * slopes[0], -unit * slopes[0]]
    for index in range(n_breaks):
        parts += [unit * slopes[index + 1], -unit * slopes[index]]
    return expand, shift, np.hstack(parts), np.array(intercepts[0])
