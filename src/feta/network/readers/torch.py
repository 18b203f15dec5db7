"""Torch: a module read into a Network by tracing its forward.

What a module does before its first layer may cut the input into blocks, embed and join them; from
there on every step must work on the one before it.
"""

import copy
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import MissingExtra, NetworkError
from feta.network.activation import SMOOTH, refuse_smooth
from feta.network.agreement import Squash, check_agreement, with_log_softmax
from feta.network.builder import NetworkBuilder
from feta.network.entry import Signals, embedded, inputs
from feta.network.fold import BatchNorm
from feta.network.network import Network
from feta.network.readers.torch_steps import (
    READ,
    activation_of,
    array,
    batch_norm_of,
    called_activation,
)

if TYPE_CHECKING:
    from torch import nn

# Rows scored by both, to see that the reading is right: enough to reach every neuron's two sides.
CHECKED_ROWS = 256

# Input columns that are tried where a module does not say how many it takes.
MOST_COLUMNS = 1024

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


def read_torch(module: "nn.Module", *, columns: int | Sequence[int] | None = None) -> Network:
    """Read a trained torch module whose steps are piecewise-linear.

    Its forward is traced: Linear, the activations, BatchNorm1d, Embedding (by the numbers in a
    column), slices and `cat` of the input before the first layer, Dropout, shapes. A last Sigmoid,
    Softmax or LogSoftmax is taken off: scores are what goes into it. `columns` says how many columns
    each argument takes, where that does not follow from the layers; arguments stand side by side.
    The reading is checked against the module's own forward pass in float64.
    """
    if not _installed():
        raise MissingExtra("torch", "torch")
    source = _source(module)
    graph = _traced(module)
    widths = _widths(module, graph, columns)
    reading = _Reading(graph, widths)
    network = reading.network(source)
    double = torch_outputs(copy.deepcopy(module).double(), widths)
    _check(network, double, reading.squashed)
    return network


def torch_outputs(
    module: "nn.Module", widths: Sequence[int] | None = None
) -> Callable[[Matrix], Matrix]:
    """Give a function that runs the module itself, in evaluation mode, on rows of its inputs."""
    import torch  # noqa: PLC0415 - torch is an extra

    still = copy.deepcopy(module).cpu().eval()
    held = [*still.parameters(), *still.buffers()]
    kinds = {tensor.dtype for tensor in held if tensor.is_floating_point()}
    kind = torch.float64 if kinds == {torch.float64} else torch.float32

    def outputs(rows: Matrix) -> Matrix:
        entry = torch.from_numpy(np.ascontiguousarray(rows)).to(kind)
        parts = (
            [entry] if widths is None or len(widths) == 1 else torch.split(entry, list(widths), 1)
        )
        with torch.no_grad():
            return np.asarray(still(*parts).double().numpy().reshape(len(rows), -1))

    return outputs


def _installed() -> bool:
    try:
        import torch  # noqa: F401, PLC0415 - torch is an extra
    except ImportError:
        return False
    return True


def _source(module: "nn.Module") -> Literal["float32", "float64"]:
    """Tell what the module computes with."""
    import torch  # noqa: PLC0415 - torch is an extra

    kinds = {parameter.dtype for parameter in module.parameters()}
    if kinds == {torch.float64}:
        return "float64"
    if kinds <= {torch.float32, torch.float64}:
        return "float32"
    shown = ", ".join(sorted(str(kind) for kind in kinds))
    raise NetworkError(
        f"the module must compute in float32 or float64, got {shown}; use module.float()"
    )


def _traced(module: "nn.Module") -> Graph:
    from torch import fx  # noqa: PLC0415 - torch is an extra

    still = copy.deepcopy(module).cpu().eval()
    try:
        return fx.symbolic_trace(still)
    except Exception as error:  # whatever a user's forward raises
        told = " ".join(str(error).split())[:200]
        message = f"the module's forward must run the same way for every row, without if or for on its values, but cannot be traced ({told}); export it as ONNX and read that"
        raise NetworkError(message) from None


def _widths(module: "nn.Module", graph: Graph, told: int | Sequence[int] | None) -> tuple[int, ...]:
    """Tell how many columns each argument takes: as told, or the fewest with which it runs."""
    entries = [node for node in graph.graph.nodes if node.op == "placeholder"]
    if told is not None:
        widths = (told,) if isinstance(told, int) else tuple(told)
        if len(widths) != len(entries):
            message = f"columns must give a number for each of {len(entries)} arguments, got {told}"
            raise NetworkError(message)
        return widths
    if len(entries) != 1:
        names = ", ".join(repr(node.name) for node in entries)
        message = f"the module takes {len(entries)} arguments ({names}), so say how many columns each has: read_torch(module, columns=(…))"
        raise NetworkError(message)
    first = _first_width(graph)
    if first:
        return (first,)  # where it does not run, the layer that is wrong is told
    outputs = torch_outputs(module)
    width = next((one for one in range(1, MOST_COLUMNS + 1) if _runs(outputs, one)), None)
    if width is None:
        raise NetworkError(
            f"the module must take rows of up to {MOST_COLUMNS} columns, but runs with none; say how many: read_torch(module, columns=…)"
        )
    return (width if width > 1 else _unless_spread(outputs),)


def _unless_spread(outputs: Callable[[Matrix], Matrix]) -> int:
    """Tell a module of one column from one that spreads one column over constants for several.

    The latter runs with just those several, too; one that only cuts out its column runs with any.
    """
    several = next((one for one in range(2, MOST_COLUMNS + 1) if _runs(outputs, one)), None)
    return 1 if several is None or _runs(outputs, several + 1) else several


def _first_width(graph: Graph) -> int | None:
    """Tell how many values the first layer takes, if nothing stands before it."""
    entry, *rest = graph.graph.nodes
    for node in rest:
        if node.op == "call_module" and node.args[:1] == (entry,):
            step = graph.get_submodule(node.target)
            width = getattr(step, "in_features", None) or getattr(step, "num_features", None)
            if width or type(step).__name__ not in SAME_MODULES:
                return width
            entry = node
        else:
            return None
    return None


def _runs(outputs: Callable[[Matrix], Matrix], width: int) -> bool:
    try:
        outputs(np.zeros((2, width)))
    except Exception:  # torch's errors share no other class
        return False
    return True


@dataclass
class _Reading:
    """One pass over a traced graph."""

    graph: Graph
    widths: tuple[int, ...]
    builder: NetworkBuilder = field(default_factory=NetworkBuilder)
    values: dict[Any, Any] = field(default_factory=dict)
    squashed: Squash | None = None
    squashed_at: str = ""
    entered: bool = False

    def network(self, source: Literal["float32", "float64"]) -> Network:
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
            sigmoid=self.squashed in ("sigmoid", "softmax"), source=source
        )
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
        self.builder.enter(signals, sum(self.widths))
        self.entered = True

    def _step(self, node: Node) -> None:
        step = self.graph.get_submodule(node.target) if node.op == "call_module" else None
        name = _name(node)
        where = (
            f"module {node.target!r} ({type(step).__name__})"
            if step is not None
            else f"{name}() in the forward"
        )
        taken = [one for one in node.args if self._is_value(one)]
        value = self.values[taken[0]] if taken else None
        if self.squashed and not (name in SAME or type(step).__name__ in SAME_MODULES):
            raise refuse_smooth(self.squashed, self.squashed_at)
        if name == "cat":
            self.values[node] = self._joined(node, where)
        elif isinstance(value, list) and self._on_block(node, step, name, value, where):
            pass
        elif value is None and name not in ARITHMETIC:
            raise NetworkError(f"{where} must work on the value before it")
        else:
            self._on_trunk(node, step, name, where)

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
            and all(one.plain and one.column == place for place, one in enumerate(value))
        )
        kind = type(step).__name__ if step is not None else ""
        if name == "getitem":
            self.values[node] = _selected(value, node.args[1], where)
        elif kind == "Embedding":
            if step.max_norm is not None:
                raise NetworkError(f"{where} must have no max_norm, which changes it as it is read")
            self.values[node] = embedded(value, array(step.weight), where)
        elif name in SAME or kind in SAME_MODULES:
            self.values[node] = value
        elif kind == "BatchNorm1d" and not whole:
            norm = batch_norm_of(step, where)
            self.values[node] = [
                one.scaled(norm.factor(place), _shift_of(norm, place))
                for place, one in enumerate(value)
            ]
        elif name in ARITHMETIC and not whole and step is None:
            self.values[node] = self._scaled(node, name, value, where)
        else:
            return False
        return True

    def _scaled(self, node: Node, name: str, value: Signals, where: str) -> Signals:
        factor, shift = self._affine(node, name, len(value), where)
        return [
            one.scaled(Fraction(float(factor[place])), Fraction(float(shift[place])))
            for place, one in enumerate(value)
        ]

    def _affine(self, node: Node, name: str, width: int, where: str) -> tuple[Matrix, Matrix]:
        """Read value + c, c − value, value · c and so on as a factor and a shift a column."""
        if name == "neg":
            return np.full(width, -1.0), np.zeros(width)
        first, second = node.args[:2]
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
        self._take(node, step, name, where)
        for one in node.args:
            if self._is_value(one):
                self.values[one] = None  # nothing may come back to it
        self.values[node] = TRUNK

    def _is_last(self, node: Node) -> bool:
        live = [key for key, value in self.values.items() if value is TRUNK]
        return any(one in live for one in node.args)

    def _take(self, node: Node, step: Module, name: str, where: str) -> None:
        kind = type(step).__name__ if step is not None else name
        step_activation = activation_of(step) if step is not None else called_activation(name, node)
        if step_activation is not None:
            self.builder.activate(step_activation, where)
        elif kind == "Linear":
            weight = array(step.weight)
            bias = np.zeros(len(weight)) if step.bias is None else array(step.bias)
            self.builder.linear(weight, bias)
        elif kind == "linear":
            told = dict(zip(("weight", "bias"), node.args[1:], strict=False)) | node.kwargs
            matrix, shift = (self.values.get(told.get(one)) for one in ("weight", "bias"))
            if matrix is None:
                raise NetworkError(f"{where} must take its weights from the module")
            self.builder.linear(matrix, np.zeros(len(matrix)) if shift is None else shift)
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

    def _squash(self, kind: Squash, where: str) -> None:
        """Note a last sigmoid or softmax; the scores are what goes into it."""
        width = self.builder.width or sum(self.widths)
        if kind == "sigmoid" and width > 1:
            raise refuse_smooth("sigmoid", where)
        if kind != "sigmoid" and width == 1:
            raise NetworkError(f"{where} must stand over two or more outputs, got 1")
        self.squashed, self.squashed_at = kind, where


def _shift_of(norm: BatchNorm, place: int) -> Fraction:
    mean, shift = Fraction(float(norm.mean[place])), Fraction(float(norm.shift[place]))
    return shift - mean * norm.factor(place)


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
    places = columns[list(chosen)] if isinstance(chosen, list | tuple) else columns[chosen]
    places = np.atleast_1d(places)
    return [signals[place] for place in places]


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


def _check(network: Network, theirs: Callable[[Matrix], Matrix], squashed: Squash | None) -> None:
    """Compare scores on random rows; numbers to look up are drawn from their table."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(CHECKED_ROWS, network.width))
    for table in network.first.tables:
        rows[:, table.column] = rng.choice(table.numbers, CHECKED_ROWS)
    try:
        given = theirs(rows)
    except Exception as error:  # torch's errors share no other class
        told = " ".join(str(error).split())[:200]
        raise NetworkError(
            f"the module must run on rows of {network.width} columns: {told}"
        ) from None
    check_agreement(network, rows, given, "the module's own", squash=squashed)
