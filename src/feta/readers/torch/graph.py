"""One pass over the traced forward of a torch module whose layers are a chain.

Before its first layer, a module may split the input into blocks, embed and join them. From there
on, every step must read the output of the one before it; `branches.py` reads other modules.
"""

import operator
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeVar

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.readers.torch.operands import ARITHMETIC, TRUNK, Node, is_value, number_of, read_affine
from feta.readers.torch.precision import check_dtypes
from feta.readers.torch.steps import (
    DROPOUTS,
    SUPPORTED,
    activation_of,
    batch_norm_of,
    called_activation,
    dropout_is_on,
    kind_of,
    to_array,
    truncates_to_integers,
)
from feta.scorer.network.activation import SMOOTH, refuse_smooth
from feta.scorer.network.agreement import Squash, with_log_softmax
from feta.scorer.network.branches import Branch, BranchesError
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.fold import BatchNorm
from feta.scorer.network.input_blocks import Signals, embedded, inputs, refuse_cut
from feta.scorer.network.layers import Affine, Measured
from feta.scorer.network.network import Network
from feta.scorer.network.smooth.activation import Smooth

# Calls that only change a shape or a type, or that do nothing in evaluation mode.
NO_OPS = {
    "alpha_dropout",
    "contiguous",
    "double",
    "dropout",
    "flatten",
    "float",
    "int",
    "long",
    "reshape",
    "squeeze",
    "to",
    "unsqueeze",
    "view",
}
NO_OP_MODULES = ("Dropout", "AlphaDropout", "Identity", "Flatten", "Unflatten")
SQUASHES: dict[str, Squash] = {
    "sigmoid": "sigmoid",
    "softmax": "softmax",
    "logsoftmax": "log_softmax",
}

# Why these steps are no sums and activations of single values.
PRODUCT = ": it multiplies values that depend on the input"
QUOTIENT = ": it divides values by their own spread"
WHY = {
    "GroupNorm": QUOTIENT,
    "LayerNorm": QUOTIENT,
    "MultiheadAttention": PRODUCT,
    "RMSNorm": QUOTIENT,
    "bmm": PRODUCT,
    "layer_norm": QUOTIENT,
    "matmul": PRODUCT,
    "scaled_dot_product_attention": PRODUCT,
}

Graph = Any  # a GraphModule of torch.fx
T = TypeVar("T")
Module = Any  # a torch module, or None for a call in the forward


@dataclass
class TorchGraphReader:
    """The state of one pass over a traced graph."""

    graph: Graph
    widths: tuple[int, ...]
    source: Literal["float32", "float64"]
    trunk: NetworkBuilder = field(default_factory=NetworkBuilder)
    values: dict[Any, Any] = field(default_factory=dict)
    squash: Squash | None = None
    squashed_at: str = ""
    entered: bool = False  # whether the input blocks have entered the first layer
    hidden: int = 0  # sigmoids that are activations

    def network(self) -> Network:
        """Read all steps in order."""
        start = 0
        widths = iter(self.widths)
        for node in self.graph.graph.nodes:
            if node.op == "placeholder":
                width = next(widths)
                self.values[node] = inputs(width, start)
                start += width
            elif node.op == "get_attr":
                self.values[node] = _attribute(self.graph, node.target)
            elif node.op == "output":
                self._read_output(node)
            else:
                self._read_step(node)
        builder = self.chain()
        if self.squash == "sigmoid" and (builder.width or 1) > 1:
            raise NetworkError(
                f"{self.squashed_at} is the last step: got {builder.width} outputs; expected "
                "one; several sigmoids are several labels, not classes"
            )
        network = builder.network(sigmoid=self.squash in ("sigmoid", "softmax"), source=self.source)
        # These may cast to a type that wraps large numbers, so no column may leave its limits.
        if any(name_of(node) in ("int", "to") for node in self.graph.graph.nodes):
            network = replace(network, measured=Measured())
        return network if self.squash != "log_softmax" else with_log_softmax(network)

    @property
    def builder(self) -> NetworkBuilder | Branch:
        """What the next step is appended to."""
        return self.trunk

    def chain(self) -> NetworkBuilder:
        """Return the layers, when all steps are read."""
        return self.trunk

    def _read_output(self, node: Node) -> None:
        result = (
            self.values.get(node.args[0])
            if not isinstance(node.args[0], tuple | list | dict)
            else None
        )
        if isinstance(result, list):
            self._enter(result)
        elif result is not TRUNK:
            raise BranchesError(
                "the module's output is not its last value; expected one table of scores"
            )

    def _enter(self, signals: Signals) -> None:
        if self.entered:
            raise BranchesError("the input is read again after the first layer")
        refuse_cut(signals)
        self.trunk.enter(signals, sum(self.widths))
        self.entered = True

    def _read_step(self, node: Node) -> None:
        step = self.graph.get_submodule(node.target) if node.op == "call_module" else None
        name = name_of(node)
        where = (
            f"module {node.target!r} ({kind_of(step)})"
            if step is not None
            else f"{name}() in the forward"
        )
        arguments = [argument for argument in node.args if is_value(argument, self.values)]
        value = self.values[arguments[0]] if arguments else None
        if self.squash and not (name in NO_OPS or kind_of(step) in NO_OP_MODULES):
            self._continue_after_squash()
        if name == "float" and self.source == "float64":
            raise NetworkError(
                f"{where} rounds to float32, but the module computes in float64; "
                "use module.float(), or remove the conversion"
            )
        self._check_call(node, name, where)
        if name == "cat":
            self.values[node] = self._join_blocks(node, where)
        elif isinstance(value, list) and self._read_on_block(node, step, name, value, where):
            pass
        elif value is None and name not in ARITHMETIC:
            raise BranchesError(f"{where} does not read the value before it")
        else:
            self._read_on_trunk(node, step, name, where)

    def _check_call(self, node: Node, name: str, where: str) -> None:
        """Reject side effects of a call: reduced precision, or a dropout that is always on."""
        options = [*node.args[1:], *node.kwargs.values()]
        check_dtypes(options, self.source, where)
        if name == "to" and any(
            option in self.values for option in options if isinstance(option, Hashable)
        ):
            raise NetworkError(
                f"{where} converts to the format of another tensor; "
                "expected a fixed format; name the format"
            )
        if name in DROPOUTS and dropout_is_on(node, name):
            raise NetworkError(
                f"{where} is active in evaluation mode; pass training=self.training, or remove it"
            )

    def _join_blocks(self, node: Node, where: str) -> Signals:
        parts = node.args[0] if node.args else node.kwargs.get("tensors", ())
        dimension = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else 0)
        if dimension not in (1, -1):
            raise NetworkError(
                f"{where} joins the wrong dimension: got dim={dimension}; expected columns (dim=1)"
            )
        signals: Signals = []
        for part in parts:
            value = self.values.get(part)
            if not isinstance(value, list):
                raise BranchesError(
                    f"{where} joins outputs of a layer; expected blocks of the input"
                )
            signals += value
        return signals

    def _read_on_block(
        self, node: Node, step: Module, name: str, value: Signals, where: str
    ) -> bool:
        """Read a step on a block of the input; return False if a layer begins."""
        is_input = (
            not self.entered
            and len(value) == sum(self.widths)
            and all(signal.plain and signal.column == index for index, signal in enumerate(value))
        )
        kind = kind_of(step) if step is not None else ""
        if name == "getitem":
            self.values[node] = select_columns(value, node.args[1], where)
        elif kind == "Embedding":
            if step.max_norm is not None:
                raise NetworkError(
                    f"{where} has a max_norm, which changes its weights at each lookup; "
                    "expected none; train it without max_norm"
                )
            self.values[node] = embedded(value, to_array(step.weight), where)
        elif truncates_to_integers(node, name):
            self.values[node] = [signal.cut_to_integers(where) for signal in value]
        elif name in NO_OPS or kind in NO_OP_MODULES:
            self.values[node] = value
        elif kind == "BatchNorm1d" and not is_input:
            norm = batch_norm_of(step, where)
            self.values[node] = [
                signal.scaled(norm.factor(index), _shift_of(norm, index))
                for index, signal in enumerate(value)
            ]
        elif name in ARITHMETIC and not is_input and step is None:
            factors, shifts = read_affine(
                node, name, values=self.values, width=len(value), where=where
            )
            self.values[node] = [
                signal.scaled(Fraction(float(factors[index])), Fraction(float(shifts[index])))
                for index, signal in enumerate(value)
            ]
        else:
            return False
        return True

    def _read_on_trunk(self, node: Node, step: Module, name: str, where: str) -> None:
        """Read a step on the output of the layers so far."""
        arguments = [argument for argument in node.args if is_value(argument, self.values)]
        values = [self.values[argument] for argument in arguments]
        if len(values) == 1 and isinstance(values[0], list):
            self._enter(values[0])
        elif values[:1] != [TRUNK] or len(values) > 1 or not self._reads_trunk(node):
            raise BranchesError(f"{where} does not read the value before it")
        if truncates_to_integers(node, name):
            raise NetworkError(
                f"{where} truncates values to integers, which is not supported; remove it"
            )
        self._add_step(node, step, name, where)
        for argument in node.args:
            if is_value(argument, self.values):
                self.values[argument] = None  # no later step may read it
        self.values[node] = TRUNK

    def _reads_trunk(self, node: Node) -> bool:
        trunks = [key for key, value in self.values.items() if value is TRUNK]
        return any(argument in trunks for argument in node.args)

    def _add_step(self, node: Node, step: Module, name: str, where: str) -> None:
        """Add a step to the network."""
        kind = kind_of(step) if step is not None else name
        activation = (
            activation_of(step)
            if step is not None
            else called_activation(
                name, node, lambda argument: number_of(argument, self.values, where)
            )
        )
        if activation is not None:
            self.builder.activate(activation, where)
        elif kind == "Linear":
            self._add_linear(
                to_array(step.weight), None if step.bias is None else to_array(step.bias)
            )
        elif kind == "linear":
            options = dict(zip(("weight", "bias"), node.args[1:], strict=False)) | node.kwargs
            weight, bias = (self.values.get(options.get(key)) for key in ("weight", "bias"))
            if weight is None:
                raise NetworkError(f"{where} does not take its weights from the module")
            self._add_linear(weight, bias)
        elif kind == "BatchNorm1d":
            self.builder.batch_norm(batch_norm_of(step, where), where)
        elif kind.lower() in ("sigmoid", "softmax", "logsoftmax", "log_softmax"):
            self._set_squash(SQUASHES[kind.lower().replace("_", "")], where)
        elif name in ARITHMETIC and step is None:
            width = self.builder.width or sum(self.widths)
            factors, shifts = read_affine(node, name, values=self.values, width=width, where=where)
            self.builder.scale(factors, shifts, width)
        elif name in NO_OPS or kind in NO_OP_MODULES:
            pass
        elif kind.lower().replace("_", "") in SMOOTH:
            raise refuse_smooth(kind, where)
        else:
            raise NetworkError(f"{where} is not supported{WHY.get(kind, '')}; expected {SUPPORTED}")

    def _add_linear(self, weight: Matrix, bias: Vector | None) -> None:
        # Affine raises an error if a number is not finite.
        layer = Affine(weight, np.zeros(len(weight)) if bias is None else bias)
        self.builder.linear(layer.weight, layer.bias)

    def _continue_after_squash(self) -> None:
        """Add a sigmoid that is not the last step as an activation; raise for a softmax."""
        if self.squash != "sigmoid":
            raise refuse_smooth(str(self.squash), self.squashed_at)
        self.builder.activate(Smooth("sigmoid"), self.squashed_at)
        self.squash = None
        self.hidden += 1

    def _set_squash(self, kind: Squash, where: str) -> None:
        """Record a last sigmoid or softmax; the scores are its inputs."""
        width = self.builder.width or sum(self.widths)
        if kind != "sigmoid" and width == 1:
            raise NetworkError(f"{where} has too few outputs: got 1; expected two or more")
        self.squash, self.squashed_at = kind, where


def _shift_of(norm: BatchNorm, index: int) -> Fraction:
    mean, shift = Fraction(float(norm.mean[index])), Fraction(float(norm.shift[index]))
    return shift - mean * norm.factor(index)


def select_columns(signals: list[T], index: Node, where: str) -> list[T]:
    """Select columns of a block: x[:, 2:5], x[:, 3], x[..., [0, 4]]."""
    parts = index if isinstance(index, tuple) else (index,)
    rows, *rest = parts
    if (rows != slice(None) and rows is not Ellipsis) or len(rest) != 1:
        raise NetworkError(
            f"{where} does not select columns: got {index}; expected an index such as x[:, 2:5]"
        )
    selection = rest[0]
    items = selection if isinstance(selection, list | tuple) else [selection]
    if not all(isinstance(item, int | slice) for item in items):
        raise NetworkError(
            f"{where} does not select fixed columns: got {selection}; expected fixed numbers"
        )
    columns = np.arange(len(signals))
    selected = (
        columns[list(selection)] if isinstance(selection, list | tuple) else columns[selection]
    )
    return [signals[column] for column in np.atleast_1d(selected)]


def name_of(node: Node) -> str:
    """Return the name of a call, without underscores at its ends; empty for a module."""
    if node.op == "call_module":
        return ""
    if node.op == "call_method":
        return str(node.target)
    if node.target is operator.getitem:
        return "getitem"
    return str(getattr(node.target, "__name__", node.target)).strip("_")


def _attribute(graph: Graph, path: str) -> Matrix:
    value = graph
    for part in path.split("."):
        value = getattr(value, part)
    return to_array(value)
