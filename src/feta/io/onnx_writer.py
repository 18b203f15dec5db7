"""ONNX writer: any network as a graph of Gemm and activations, which `read_onnx` reads back.

What ONNX has no operator for is written with ReLU, by weights that are exact: the graph's real
function is the network's own, number for number.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError, one_of
from feta.io.part_file import written_whole
from feta.scorer.network.activation import Activation, identity, relu
from feta.scorer.network.network import Columns, Network

if TYPE_CHECKING:
    import onnx

Precision = Literal["float32", "float64"]

# The oldest versions that have every operator used here in float64; older runtimes read them too.
OPSET = 17
IR_VERSION = 8


class HasNetwork(Protocol):
    """A model, or whatever else holds a network."""

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
    network = model if isinstance(model, Network) else model.network
    if precision not in (None, "float32", "float64"):
        raise NetworkError(f"precision must be {one_of(precision, ('float32', 'float64'))}")
    chosen = precision or _precision(network)
    with written_whole(Path(path)) as part:
        part.write_bytes(_Writing(network).graph(chosen).SerializeToString())
    return chosen


class _Writing:
    """The layers as they are written: affine ones, and the activation after each."""

    def __init__(self, network: Network) -> None:
        self.width = network.width
        self.squash = network.sigmoid and ("Softmax" if network.outputs > 1 else "Sigmoid")
        self.affine: list[tuple[Matrix, Vector]] = []
        self.activations: list[Activation] = []
        self._first(network.first)
        for activation, layer in network.steps:
            self._activate(activation, len(self.affine[-1][1]))
            self._affine(layer.weight, layer.bias)

    def _first(self, first: Columns) -> None:
        """Write the first layer; a table becomes a bump of height 1 at each of its values.

        The bump at n is relu(d + 1) − 2·relu(d) + relu(d − 1) with d = (x − n) / g, where g is a
        power of two, at most the distance of two values: exactly 1 at n, exactly 0 at other values.
        """
        if not first.tables:
            self._affine(first.slopes, first.bias)
            return
        unit = np.eye(first.width)
        rows, shifts = [unit], [np.zeros(first.width)]
        for table in first.tables:
            gap = 2.0 ** np.floor(np.log2(np.diff(table.numbers).min(initial=1.0)))
            rows.append(np.repeat(unit[[table.column]] / gap, len(table.numbers), axis=0))
            shifts.append(-table.numbers / gap)
        self._affine(np.vstack(rows), np.concatenate(shifts))
        heights = np.vstack([table.rows for table in first.tables]).T
        n_bumps = heights.shape[1]
        copy = np.eye(first.width, first.width + n_bumps)
        bump = np.eye(n_bumps, first.width + n_bumps, first.width)
        ones = np.ones(n_bumps)
        shift = np.concatenate([np.zeros(2 * first.width), ones, 0 * ones, -ones])
        self._affine(np.vstack([copy, -copy, bump, bump, bump]), shift)
        self.activations.append(relu())
        weight = np.hstack([first.slopes, -first.slopes, heights, -2 * heights, heights])
        self._affine(weight, first.bias)

    def _affine(self, weight: Matrix, bias: Vector) -> None:
        """Append W·a + b."""
        if len(self.affine) > len(self.activations):
            self._keep_apart()
            self.activations.append(identity())
        missing = len(self.affine[-1][1]) - weight.shape[1] if self.affine else 0
        self.affine.append((np.pad(weight, ((0, 0), (0, missing))), np.array(bias)))

    def _keep_apart(self) -> None:
        """Add a neuron 0 to a layer that only scales, so that readers do not fold it."""
        weight, bias = self.affine[-1]
        if weight.shape[0] == weight.shape[1] and not (weight - np.diag(np.diag(weight))).any():
            self.affine[-1] = (np.vstack([weight, 0 * weight[:1]]), np.append(bias, 0.0))

    def _activate(self, activation: Activation, width: int) -> None:
        if activation.name == "identity" and activation.n_pieces == 1:
            return
        if _operator(activation) is not None:
            self.activations.append(activation)
            return
        expand, shift, contract, constant = _hinges(activation, width)
        self._affine(expand, shift)
        self.activations.append(relu())
        self._affine(contract, constant)

    def graph(self, precision: Precision) -> "onnx.ModelProto":
        """Make the graph, ended by the squashing that the source compares after."""
        from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - slow to import

        kind = TensorProto.FLOAT if precision == "float32" else TensorProto.DOUBLE
        nodes, stored, value = [], [], "people"

        def keep(name: str, array: Matrix | Vector) -> str:
            with np.errstate(over="ignore"):
                rounded = np.asarray(array, dtype=precision)
            if not np.isfinite(rounded).all():
                raise NetworkError("float32 cannot hold the weights; write the network in float64")
            stored.append(numpy_helper.from_array(rounded, name))
            return name

        for index, (weight, bias) in enumerate(self.affine, start=1):
            inputs = [value, keep(f"weight{index}", weight), keep(f"bias{index}", bias)]
            value = f"layer{index}"
            nodes.append(helper.make_node("Gemm", inputs, [value], transB=1))
            activation = self.activations[index - 1] if index <= len(self.activations) else None
            operator = activation and _operator(activation)
            if operator:
                name, limits = operator
                more = [
                    "" if one is None else keep(f"limit{index}_{n}", one)
                    for n, one in enumerate(limits)
                ]
                nodes.append(helper.make_node(name, [value, *more], [f"bent{index}"]))
                value = f"bent{index}"
        if self.squash:
            nodes.append(helper.make_node(self.squash, [value], ["squashed"]))
            value = "squashed"
        entry = helper.make_tensor_value_info("people", kind, ["rows", self.width])
        end = helper.make_tensor_value_info(value, kind, ["rows", len(self.affine[-1][1])])
        graph = helper.make_graph(nodes, "feta", [entry], [end], stored)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(
            graph, producer_name="feta", opset_imports=opset, ir_version=IR_VERSION
        )


def _precision(network: Network) -> Precision:
    """Return the smaller format that represents every number exactly."""
    arrays = [network.first.bias, network.first.slopes]
    arrays += [one for table in network.first.tables for one in (table.numbers, table.rows)]
    for activation, layer in network.steps:
        arrays += [activation.breaks, activation.slopes, activation.intercepts]
        arrays += [layer.weight, layer.bias]
    with np.errstate(over="ignore", under="ignore"):
        exact = all(np.array_equal(one.astype(np.float32), one) for one in arrays)
    return "float32" if exact else "float64"


def _operator(activation: Activation) -> tuple[str, list[Vector | None]] | None:
    """Name the operator that is this activation, and what it stores; None where there is none."""
    below = activation.slopes[0]
    if _is(activation, [[0.0]], [below, [1.0]], [[0.0], [0.0]]):
        named = {0.0: "Relu", -1.0: "Abs"}.get(float(below[0]))
        return (named, []) if named and len(set(below.tolist())) == 1 else ("PRelu", [below])
    ends = activation.breaks[[0, -1]] if len(activation.breaks) else np.zeros((2, 1))
    low, high = (np.array(float(one[0])) for one in ends)
    if _is(activation, [low], [[0.0], [1.0]], [low, [0.0]]):
        return "Clip", [low, None]
    if _is(activation, [high], [[1.0], [0.0]], [[0.0], high]):
        return "Clip", [None, high]
    if _is(activation, [low, high], [[0.0], [1.0], [0.0]], [low, [0.0], high]):
        return "Clip", [low, high]
    return None


def _is(activation: Activation, *pieces: Sequence[ArrayLike]) -> bool:
    """Return whether these are the activation's breaks, slopes and intercepts, for every neuron."""
    arrays = (activation.breaks, activation.slopes, activation.intercepts)
    return all(
        len(array) == len(wanted)
        and all((row == np.asarray(one)).all() for row, one in zip(array, wanted, strict=True))
        for array, wanted in zip(arrays, pieces, strict=True)
    )


def _hinges(activation: Activation, width: int) -> tuple[Matrix, Vector, Matrix, Vector]:
    """Write f(z) with ReLU: s₀·z + i₀ + Σ_k (s_{k+1} − s_k)·relu(z − b_k), without a difference.

    z is relu(z) − relu(−z), and each hinge comes twice, once for s_{k+1} and once for −s_k: every
    weight is then a stored number or its negative.
    """
    n_breaks = activation.n_pieces - 1
    unit = np.eye(width)
    slopes, intercepts, breaks = (
        np.broadcast_to(array, (len(array), width))
        for array in (activation.slopes, activation.intercepts, activation.breaks)
    )
    expand = np.vstack([unit, -unit, *[unit] * (2 * n_breaks)])
    shift = np.concatenate([np.zeros(2 * width), *(-one for one in breaks for _ in range(2))])
    parts = [unit * slopes[0], -unit * slopes[0]]
    for index in range(n_breaks):
        parts += [unit * slopes[index + 1], -unit * slopes[index]]
    return expand, shift, np.hstack(parts), np.array(intercepts[0])
