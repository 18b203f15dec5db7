"""Graphs of layers with branches, built step by step as the readers read them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.scorer.network import lowering
from feta.scorer.network.activation import Activation, Maxout, Scaled, Step
from feta.scorer.network.builder import NetworkBuilder, pairwise_maximum, relu_or_identity
from feta.scorer.network.fold import BatchNorm, fold_after, fold_batch_norm
from feta.scorer.network.input_blocks import Signal, Signals, refuse_cut
from feta.scorer.network.layers import Affine
from feta.scorer.network.lowering import Lowering, Node, too_wide
from feta.scorer.network.smooth.activation import Smooth


class BranchesError(NetworkError):
    """A graph is no chain; it may be one that can be lowered to a chain."""


@dataclass
class BranchBuilder:
    """Builds a graph step by step, then lowers it to a chain."""

    n_columns: int
    nodes: list[Node] = field(default_factory=list)
    signals: Signals = field(default_factory=list)

    def entry(self, signals: Signals) -> "Branch":
        """Return a block of the inputs."""
        refuse_cut(signals)
        places = []
        for signal in signals:
            known = [place for place, other in enumerate(self.signals) if _same(signal, other)]
            places.append(known[0] if known else len(self.signals))
            if not known:
                self.signals.append(signal)
        return self.add(Node("entry", (), len(signals), signals=tuple(places)))

    def add(self, node: Node) -> "Branch":
        """Append a node."""
        if node.width > lowering.MAX_WIDTH:
            raise too_wide(node.width)
        self.nodes.append(node)
        return Branch(self, len(self.nodes) - 1)

    def join(self, branches: Sequence["Branch"]) -> "Branch":
        """Concatenate values."""
        width = sum(branch.width for branch in branches)
        return self.add(Node("join", tuple(branch.node for branch in branches), width))

    def total(self, first: "Branch", second: "Branch", where: str) -> "Branch":
        """Add two values, one of which may be a single number per person."""
        width = max(first.width, second.width)
        parts = []
        for branch in (first, second):
            if branch.width not in (1, width):
                raise NetworkError(
                    f"{where} adds values of different widths: got {first.width} and "
                    f"{second.width}; expected equal widths"
                )
            parts.append(branch.repeated(width) if branch.width < width else branch)
        return self.add(Node("sum", tuple(branch.node for branch in parts), width))

    def lower(self, output: "Branch") -> NetworkBuilder:
        """Return a chain that computes a value."""
        return Lowering(self.nodes, self.signals, self.n_columns, output.node).run()


@dataclass
class Branch:
    """One value of a graph; the readers append steps to it as to a `NetworkBuilder`."""

    graph: BranchBuilder
    node: int

    @property
    def width(self) -> int:
        """The number of values."""
        return self.graph.nodes[self.node].width

    def repeated(self, width: int) -> "Branch":
        """Return a single number, repeated."""
        branch = Branch(self.graph, self.node)
        branch.linear(np.ones((width, 1)), np.zeros(width))
        return branch

    def linear(self, weight: Matrix, bias: Vector) -> None:
        """Append W·a + b."""
        layer = Affine(weight, bias)
        if layer.weight.shape[1] != self.width:
            raise NetworkError(
                f"wrong number of inputs of a layer: got {layer.weight.shape[1]}; expected "
                f"{self.width}"
            )
        self._append(Node("linear", (self.node,), len(layer.bias), layer=layer))

    def activate(self, step: Step, name: str) -> None:
        """Append an activation."""
        match step:
            case Activation() | Smooth():
                if step.width not in (1, self.width):
                    raise NetworkError(
                        f"wrong width of {name}: got {step.width} neurons; expected 1 or "
                        f"{self.width}"
                    )
                self._append(Node("activate", (self.node,), self.width, step=step))
            case Scaled():
                factor, shift = step.factor, step.shift
                self.fold(lambda layer: fold_after(layer, factor, shift), self.width)
                self.activate(step.activation, name)
            case Maxout():
                self._maxout(step.pool, name)

    def _maxout(self, pool: int, name: str) -> None:
        if pool < 2 or self.width % pool:  # noqa: PLR2004 - a group has at least two
            raise NetworkError(
                f"invalid groups of {name}: got {self.width} values and groups of {pool}; expected "
                "groups of 2 or more that divide the values evenly"
            )
        while pool > 1:
            difference, is_relu, total = pairwise_maximum(self.width // pool, pool)
            self.linear(difference, np.zeros(len(difference)))
            self.activate(relu_or_identity(is_relu), name)
            self.linear(total, np.zeros(len(total)))
            pool = (pool + 1) // 2

    def batch_norm(self, norm: BatchNorm, name: str = "the batch norm") -> None:
        """Append a batch norm."""
        if len(norm.mean) != self.width:
            raise NetworkError(
                f"wrong width of {name}: got {len(norm.mean)} values; expected {self.width}"
            )
        self.fold(lambda layer: fold_batch_norm(layer, norm), self.width)

    def scale(self, factor: Vector, shift: Vector, width: int) -> None:
        """Append an elementwise factor·z + shift."""

        def change(last: Affine) -> Affine:
            before = np.abs(last.bias) + last.cancelled_magnitude
            sizes = 2 * (np.abs(factor) * before + np.abs(shift))
            return Affine(last.weight * factor[:, None], last.bias * factor + shift, sizes)

        self.fold(change, width)

    def fold(
        self, change: Callable[[Affine], Affine], width: int, factors: Vector | None = None
    ) -> None:
        """Append a change of the affine function that computes the value."""
        del factors  # tables enter a chain after all changes
        if width != self.width:
            raise NetworkError(f"wrong width of a step: got {width}; expected {self.width}")
        self._append(Node("fold", (self.node,), self.width, fold=change))

    def _append(self, node: Node) -> None:
        self.node = self.graph.add(node).node


def _same(signal: Signal, other: Signal) -> bool:
    return signal is other or (
        signal.plain and other.plain and signal.column == other.column and signal.cut == other.cut
    )
