"""Torch reading: one pass over a module's traced forward.

What a module does before its first layer may cut the input into blocks, embed and join them; from
there on every step must work on the one before it.
"""

import operator
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.readers.torch.precision import refuse_dtypes
from feta.readers.torch.steps import (
    DROPOUTS,
    READ,
    activation_of,
    array,
    batch_norm_of,
    called_activation,
    cuts_to_integers,
    dropout_is_on,
    kind_of,
)
from feta.scorer.network.activation import SMOOTH, refuse_smooth
from feta.scorer.network.agreement import Squash, with_log_softmax
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.fold import BatchNorm
from feta.scorer.network.input_blocks import Signals, embedded, inputs, refuse_cut
from feta.scorer.network.network import Affine, Measured, Network

# Calls that only change a shape or a type, or nothing at all when a trained network decides.
SAME = {
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
SAME_MODULES = ("Dropout", "AlphaDropout", "Identity", "Flatten", "Unflatten")
SQUASHES: dict[str, Squash] = {
    "sigmoid": "sigmoid",
    "softmax": "softmax",
    "logsoftmax": "log_softmax",
}
ARITHMETIC = {"add", "sub", "mul", "truediv", "div", "neg", "rsub"}


@dataclass(frozen=True)
class _Trunk:
    """The one value that the layers so far give."""


TRUNK = _Trunk()

Graph = Any  # a GraphModule of torch.fx
Node = Any  # a node of it, or a number among a call's arguments
Module = Any  # a module of torch, or None for a call in the forward


@dataclass
class TorchGraphReader:
    """One pass over a traced graph."""

    graph: Graph
    widths: tuple[int, ...]
    source: Literal["float32", "float64"]
    builder: NetworkBuilder = field(default_factory=NetworkBuilder)
    values: dict[Any, Any] = field(default_factory=dict)
    squashed: Squash | None = None
    squashed_at: str = ""
    entered: bool = False

    def network(self) -> Network:
        """Take every step in turn."""
        start = 0
        entries = iter(self.widths)
        for node in self.graph.graph.nodes:
            if node.op == "placeholder":
                width = next(entries)
                self.values[node] = inputs(width, start)
                start += width
            elif node.op == "get_attr":
                self.values[node] = _attribute(self.graph, node.target)
            elif node.op == "output":
                self._end(node)
            else:
                self._step(node)
        network = self.builder.network(
            sigmoid=self.squashed in ("sigmoid", "softmax"), source=self.source
        )
        # These may cast to a type that wraps large numbers, so no column may leave its limits.
        if any(_name(node) in ("int", "to") for node in self.graph.graph.nodes):
            network = replace(network, measured=Measured())
        return network if self.squashed != "log_softmax" else with_log_softmax(network)

    def _end(self, node: Node) -> None:
        result = (
            self.values.get(node.args[0])
            if not isinstance(node.args[0], tuple | list | dict)
            else None
        )
        if isinstance(result, list):
            self._enter(result)
        elif result is not TRUNK:
            raise NetworkError("the module must give one table of scores, its last value")

    def _enter(self, signals: Signals) -> None:
        if self.entered:
            raise NetworkError("branches and skip connections are not read")
        refuse_cut(signals)
        self.builder.enter(signals, sum(self.widths))
        self.entered = True

    def _step(self, node: Node) -> None:
        step = self.graph.get_submodule(node.target) if node.op == "call_module" else None
        name = _name(node)
        where = (
            f"module {node.target!r} ({kind_of(step)})"
            if step is not None
            else f"{name}() in the forward"
        )
        taken = [one for one in node.args if self._is_value(one)]
        value = self.values[taken[0]] if taken else None
        if self.squashed and not (name in SAME or kind_of(step) in SAME_MODULES):
            raise refuse_smooth(self.squashed, self.squashed_at)
        if name == "float" and self.source == "float64":
            raise NetworkError(
                f"{where} rounds to float32, but the module computes in float64; use module.float(), or leave it out"
            )
        self._check_call(node, name, where)
        if name == "cat":
            self.values[node] = self._joined(node, where)
        elif isinstance(value, list) and self._on_block(node, step, name, value, where):
            pass
        elif value is None and name not in ARITHMETIC:
            raise NetworkError(f"{where} must work on the value before it")
        else:
            self._on_trunk(node, step, name, where)

    def _check_call(self, node: Node, name: str, where: str) -> None:
        """Refuse what a call does besides its step: fewer digits, or a dropout that is always on."""
        given = [*node.args[1:], *node.kwargs.values()]
        refuse_dtypes(given, self.source, where)
        if name == "to" and any(one in self.values for one in given if isinstance(one, Hashable)):
            raise NetworkError(
                f"{where} must convert to a fixed format, got that of another tensor; name the format"
            )
        if name in DROPOUTS and dropout_is_on(node, name):
            raise NetworkError(
                f"{where} is active in evaluation mode, too; pass training=self.training, or leave it out"
            )

    def _joined(self, node: Node, where: str) -> Signals:
        parts = node.args[0] if node.args else node.kwargs.get("tensors", ())
        dimension = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else 0)
        if dimension not in (1, -1):
            raise NetworkError(f"{where} must join columns (dim=1), got dim={dimension}")
        signals: Signals = []
        for part in parts:
            value = self.values.get(part)
            if not isinstance(value, list):
                raise NetworkError(
                    f"{where} joins values behind a layer; branches and skip connections are not read, only blocks of the input"
                )
            signals += value
        return signals

    def _on_block(self, node: Node, step: Module, name: str, value: Signals, where: str) -> bool:
        """Take what may be done to a block of the input; False where a layer begins."""
        whole = (
            not self.entered
            and len(value) == sum(self.widths)
            and all(one.plain and one.column == index for index, one in enumerate(value))
        )
        kind = kind_of(step) if step is not None else ""
        if name == "getitem":
            self.values[node] = _selected(value, node.args[1], where)
        elif kind == "Embedding":
            if step.max_norm is not None:
                raise NetworkError(f"{where} must have no max_norm, which changes it as it is read")
            self.values[node] = embedded(value, array(step.weight), where)
        elif cuts_to_integers(node, name):
            self.values[node] = [one.cut_to_integers(where) for one in value]
        elif name in SAME or kind in SAME_MODULES:
            self.values[node] = value
        elif kind == "BatchNorm1d" and not whole:
            norm = batch_norm_of(step, where)
            self.values[node] = [
                one.scaled(norm.factor(index), _shift_of(norm, index))
                for index, one in enumerate(value)
            ]
        elif name in ARITHMETIC and not whole and step is None:
            self.values[node] = self._scaled(node, name, value, where)
        else:
            return False
        return True

    def _scaled(self, node: Node, name: str, value: Signals, where: str) -> Signals:
        factor, shift = self._affine(node, name, len(value), where)
        return [
            one.scaled(Fraction(float(factor[index])), Fraction(float(shift[index])))
            for index, one in enumerate(value)
        ]

    def _affine(self, node: Node, name: str, width: int, where: str) -> tuple[Matrix, Matrix]:
        """Read value + c, c − value, value · c and so on as a factor and a shift a column."""
        if name == "neg":
            return np.full(width, -1.0), np.zeros(width)
        first, second = self._operands(node, where)
        swapped = self._is_value(second)
        if (name in ("truediv", "div") and swapped) or (swapped and self._is_value(first)):
            raise NetworkError(
                f"{where} must combine the value before it with a constant; branches and skip connections are not read"
            )
        constant = self._constant(first if swapped else second, width, where)
        ones = np.ones(width)
        match name:
            case "add":
                return ones, constant
            case "sub":
                return (-ones, constant) if swapped else (ones, -constant)
            case "rsub":
                return -ones, constant
            case "mul":
                return constant, 0 * ones
            case _:
                if (constant == 0).any():
                    raise NetworkError(f"{where} must not divide by 0")
                return 1 / constant, 0 * ones

    def _operands(self, node: Node, where: str) -> tuple[Node, Node]:
        told = dict(zip(("input", "other"), node.args, strict=False)) | node.kwargs
        if set(told) != {"input", "other"}:
            raise NetworkError(
                f"{where} must combine two values and nothing else, got {', '.join(told)}"
            )
        return told["input"], told["other"]

    def _number(self, one: Node, where: str) -> float:
        """Give an argument that is a number, or a tensor of the module that holds one."""
        number = one if isinstance(one, int | float) else self.values.get(one)
        if number is None or number is TRUNK or np.size(number) != 1:
            raise NetworkError(f"{where} must take one fixed number, got {one}")
        return float(np.ravel(number)[0])

    def _is_value(self, one: object) -> bool:
        if isinstance(one, int | float | slice | str | tuple | list):
            return False
        kept = self.values.get(one)
        return kept is TRUNK or isinstance(kept, list)

    def _constant(self, one: Node, width: int, where: str) -> Matrix:
        number = one if isinstance(one, int | float) else self.values.get(one)
        if number is None or number is TRUNK or isinstance(number, list):
            raise NetworkError(
                f"{where} must combine the value before it with a constant; branches and skip connections are not read"
            )
        flat = np.ravel(np.asarray(number, dtype=np.float64))
        if flat.size not in (1, width):
            raise NetworkError(f"{where} must have a constant for {width} values, got {flat.size}")
        if not np.isfinite(flat).all():
            raise NetworkError(f"{where} must have finite constants, got {flat.tolist()}")
        return np.broadcast_to(flat, (width,)).astype(np.float64)

    def _on_trunk(self, node: Node, step: Module, name: str, where: str) -> None:
        """Take a step on the one value that the layers so far give."""
        values = [self.values[one] for one in node.args if self._is_value(one)]
        if len(values) == 1 and isinstance(values[0], list):
            self._enter(values[0])
        elif values[:1] != [TRUNK] or len(values) > 1 or not self._is_last(node):
            raise NetworkError(
                f"{where} must work on the value before it; branches and skip connections are not read"
            )
        if cuts_to_integers(node, name):
            raise NetworkError(f"{where} cuts values to integers, which is not read; leave it out")
        self._take(node, step, name, where)
        for one in node.args:
            if self._is_value(one):
                self.values[one] = None  # nothing may come back to it
        self.values[node] = TRUNK

    def _is_last(self, node: Node) -> bool:
        live = [key for key, value in self.values.items() if value is TRUNK]
        return any(one in live for one in node.args)

    def _take(self, node: Node, step: Module, name: str, where: str) -> None:
        kind = kind_of(step) if step is not None else name
        step_activation = (
            activation_of(step)
            if step is not None
            else called_activation(name, node, lambda one: self._number(one, where))
        )
        if step_activation is not None:
            self.builder.activate(step_activation, where)
        elif kind == "Linear":
            self._linear(array(step.weight), None if step.bias is None else array(step.bias))
        elif kind == "linear":
            told = dict(zip(("weight", "bias"), node.args[1:], strict=False)) | node.kwargs
            matrix, shift = (self.values.get(told.get(one)) for one in ("weight", "bias"))
            if matrix is None:
                raise NetworkError(f"{where} must take its weights from the module")
            self._linear(matrix, shift)
        elif kind == "BatchNorm1d":
            self.builder.batch_norm(batch_norm_of(step, where), where)
        elif kind.lower() in ("sigmoid", "softmax", "logsoftmax", "log_softmax"):
            self._squash(SQUASHES[kind.lower().replace("_", "")], where)
        elif name in ARITHMETIC and step is None:
            width = self.builder.width or sum(self.widths)
            factor, shift = self._affine(node, name, width, where)
            self.builder.scale(factor, shift, width)
        elif name in SAME or kind in SAME_MODULES:
            pass
        elif kind.lower().replace("_", "") in SMOOTH:
            raise refuse_smooth(kind, where)
        else:
            raise NetworkError(f"{where} is not one that FETA reads; it reads {READ}")

    def _linear(self, weight: Matrix, bias: Vector | None) -> None:
        layer = Affine(
            weight, np.zeros(len(weight)) if bias is None else bias
        )  # finite, or refused
        self.builder.linear(layer.weight, layer.bias)

    def _squash(self, kind: Squash, where: str) -> None:
        """Note a last sigmoid or softmax; the scores are what goes into it."""
        width = self.builder.width or sum(self.widths)
        if kind == "sigmoid" and width > 1:
            raise refuse_smooth("sigmoid", where)
        if kind != "sigmoid" and width == 1:
            raise NetworkError(f"{where} must stand over two or more outputs, got 1")
        self.squashed, self.squashed_at = kind, where


def _shift_of(norm: BatchNorm, index: int) -> Fraction:
    mean, shift = Fraction(float(norm.mean[index])), Fraction(float(norm.shift[index]))
    return shift - mean * norm.factor(index)


def _selected(signals: Signals, index: Node, where: str) -> Signals:
    """Cut columns out of a block: x[:, 2:5], x[:, 3], x[..., [0, 4]]."""
    parts = index if isinstance(index, tuple) else (index,)
    rows, *rest = parts
    if (rows != slice(None) and rows is not Ellipsis) or len(rest) != 1:
        raise NetworkError(f"{where} must cut out columns, as in x[:, 2:5], got {index}")
    chosen = rest[0]
    fixed = chosen if isinstance(chosen, list | tuple) else [chosen]
    if not all(isinstance(one, int | slice) for one in fixed):
        raise NetworkError(f"{where} must cut out columns by fixed numbers, got {chosen}")
    columns = np.arange(len(signals))
    picked = columns[list(chosen)] if isinstance(chosen, list | tuple) else columns[chosen]
    return [signals[column] for column in np.atleast_1d(picked)]


def _name(node: Node) -> str:
    if node.op == "call_module":
        return ""
    if node.op == "call_method":
        return str(node.target)
    if node.target is operator.getitem:
        return "getitem"
    return str(getattr(node.target, "__name__", node.target)).strip("_")


def _attribute(graph: Graph, path: str) -> Matrix:
    found = graph
    for part in path.split("."):
        found = getattr(found, part)
    return array(found)
