"""Lowering of a graph of layers to a chain of wider layers, level by level.

A layer of the chain computes one kind of activation of all values that are ready for it. Values
that later steps still need pass through it unchanged. No two terms of one neuron are merged, so
that error bounds see every term.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.scorer.network.activation import Activation, identity
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.input_blocks import Signals, first_layer
from feta.scorer.network.layers import Affine
from feta.scorer.network.smooth.activation import Smooth

# Larger chains would be searched for too long.
MAX_WIDTH = 1024
MAX_LAYERS = 200

# Error bounds allow eight extra roundings per term; a scaling takes two, a sum one.
MAX_ROUNDINGS = 4

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A value of a graph, and what it reads."""

    operation: str  # "entry", "linear", "fold", "join", "sum" or "activate"
    of: tuple[int, ...]
    width: int
    layer: Affine | None = None
    fold: Callable[[Affine], Affine] | None = None
    step: Activation | Smooth | None = None
    signals: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A value as an affine function of the current layer.

    `chosen` are the neurons that it copies, if it does nothing else and copies none twice.
    """

    affine: Affine
    chosen: Indices | None
    roundings: int = 0


class Lowering:
    """One pass over the layers of the chain; `nodes` come after what they read."""

    def __init__(
        self, nodes: Sequence[Node], signals: Signals, n_columns: int, output: int
    ) -> None:
        self.nodes, self.signals, self.n_columns, self.output = nodes, signals, n_columns, output
        self.waiting = sorted(_ancestors(nodes, output))
        self.forms: dict[int, Form] = {}
        self.width = len(signals)
        self.chain = NetworkBuilder()
        columns = [signal.column for signal in signals if signal.looked_up is None]
        # Terms of one column would merge in the first layer, so that layer only copies then.
        self.copy_first = len(set(columns)) < len(columns)

    def run(self) -> NetworkBuilder:
        """Return the chain."""
        self._compute(["entry"] if self.copy_first else None)
        while self.output not in self.forms:
            self._append_layer()
            self._compute(None)
        self._append(self.forms[self.output].affine)
        return self.chain

    def _compute(self, only: list[str] | None) -> None:
        """Compute all values that are affine in the current layer."""
        for index in list(self.waiting):  # in order, so one pass is enough
            node = self.nodes[index]
            if only is not None and node.operation not in only:
                continue
            if all(source in self.forms for source in node.of):
                form = self._form(node, [self.forms[source] for source in node.of])
                if form is not None:
                    self.forms[index] = form
                    self.waiting.remove(index)

    def _form(self, node: Node, sources: list[Form]) -> Form | None:
        """Return a value as a function of the current layer; None if it needs another layer."""
        if node.layer is not None:
            return self._linear(node.layer, sources[0])
        if node.fold is not None:
            if sources[0].roundings >= MAX_ROUNDINGS:
                return None
            return Form(node.fold(sources[0].affine), None, sources[0].roundings + 2)
        match node.operation:
            case "entry":
                return self._copy(np.array(node.signals))
            case "join":
                return _joined(sources)
            case "sum":
                return _summed(*sources)
            case _:  # an activation begins a layer
                return None

    def _copy(self, chosen: Indices) -> Form:
        weight = np.zeros((len(chosen), self.width))
        weight[np.arange(len(chosen)), chosen] = 1.0
        distinct = len(np.unique(chosen)) == len(chosen)
        return Form(Affine(weight, np.zeros(len(chosen))), chosen if distinct else None)

    def _linear(self, layer: Affine, source: Form) -> Form | None:
        if source.chosen is None:
            return None
        weight = np.zeros((len(layer.bias), self.width))
        weight[:, source.chosen] = layer.weight
        return Form(Affine(weight, layer.bias), None)

    def _append_layer(self) -> None:
        """Append a layer: one kind of activation, and the values that pass through it."""
        ready = [
            index
            for index in self.waiting
            if self.nodes[index].operation == "activate" and self.nodes[index].of[0] in self.forms
        ]
        group = [index for index in ready if self._kind(index) == self._kind(ready[0])]
        passing = [index for index in self.forms if self._is_needed(index, group)]
        rows = [self.forms[self.nodes[index].of[0]] for index in group]
        rows += [self.forms[index] for index in passing]
        affine = _stacked([row.affine for row in rows])
        widths = [self.nodes[index].width for index in (*group, *passing)]
        if sum(widths) > MAX_WIDTH:
            raise too_wide(sum(widths))
        if len(self.chain.affine) >= MAX_LAYERS:
            raise NetworkError(
                f"the network's branches need too many layers: got more than {MAX_LAYERS} in one "
                "chain; expected fewer steps"
            )
        self._append(affine)
        steps = [self.nodes[index].step for index in group]
        self.chain.activations[-1] = _mixed(steps, widths[: len(group)], sum(widths))
        self.width = sum(widths)
        self.forms, start = {}, 0
        for index, width in zip((*group, *passing), widths, strict=True):
            self.forms[index] = self._copy(np.arange(start, start + width))
            start += width
        self.waiting = [index for index in self.waiting if index not in group]

    def _kind(self, index: int) -> object:
        step = self.nodes[index].step
        return (step.name, step.parameter) if isinstance(step, Smooth) else None

    def _is_needed(self, index: int, group: Sequence[int]) -> bool:
        """Return whether a step after the next layer reads a value."""
        return any(index in self.nodes[later].of for later in self.waiting if later not in group)

    def _append(self, affine: Affine) -> None:
        chain = self.chain
        if not chain.affine:
            signals, columns = self.signals, self.n_columns
            parts = first_layer(signals, affine.weight, affine.bias, columns)
            magnitude = parts.affine.cancelled_magnitude + affine.cancelled_magnitude
            affine = Affine(parts.affine.weight, parts.affine.bias, magnitude)
            chain.tables = parts.tables
        chain.affine.append(affine)
        chain.activations.append(None)


def _joined(sources: Sequence[Form]) -> Form:
    chosen = None
    if all(source.chosen is not None for source in sources):
        together = np.concatenate(
            [source.chosen for source in sources if source.chosen is not None]
        )
        chosen = together if len(np.unique(together)) == len(together) else None
    affine = _stacked([source.affine for source in sources])
    return Form(affine, chosen, max(source.roundings for source in sources))


def _summed(first: Form, second: Form) -> Form | None:
    a, b = first.affine, second.affine
    roundings = 1 + max(first.roundings, second.roundings)
    merged = (a.weight != 0) & (b.weight != 0)
    doubled = first.chosen is not None and second.chosen is not None and merged.any()
    if roundings > MAX_ROUNDINGS or (merged.any() and not doubled):
        return None
    sizes = np.abs(a.bias) + np.abs(b.bias) + a.cancelled_magnitude + b.cancelled_magnitude
    return Form(Affine(a.weight + b.weight, a.bias + b.bias, sizes), None, roundings)


def _stacked(layers: Sequence[Affine]) -> Affine:
    sizes = [np.broadcast_to(part.cancelled_magnitude, part.bias.shape) for part in layers]
    return Affine(
        np.vstack([part.weight for part in layers]),
        np.concatenate([part.bias for part in layers]),
        np.concatenate(sizes),
    )


def _mixed(
    steps: Sequence[Activation | Smooth | None], widths: Sequence[int], total: int
) -> Activation | Smooth:
    """Return one activation for groups of neurons; the neurons after them pass through."""
    if not steps:
        return identity()
    first, active = steps[0], sum(widths)
    if isinstance(first, Smooth):
        on = (np.arange(total) < active).astype(np.float64)
        return first if active == total else Smooth(first.name, first.parameter, on)
    pieces = [step for step in steps if isinstance(step, Activation)]
    if active == total and all(step.is_relu for step in pieces):
        return pieces[0]
    parts = [*zip(pieces, widths, strict=True)]
    parts += [(identity(), total - active)] if total > active else []
    most = max(step.n_pieces for step, _ in parts)
    arrays = [_padded(step, width, most) for step, width in parts]
    breaks, slopes, intercepts = (np.hstack([array[n] for array in arrays]) for n in range(3))
    return Activation("mixed", breaks, slopes, intercepts)


def _padded(step: Activation, width: int, most: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return an activation's arrays for several neurons, its last piece cut into more pieces."""
    ones = np.ones((1, width))
    breaks = [row * ones for row in step.breaks[:, None, :]]
    slopes = [row * ones for row in step.slopes[:, None, :]]
    intercepts = [row * ones for row in step.intercepts[:, None, :]]
    while len(slopes) < most:
        breaks.append(breaks[-1] + np.maximum(np.abs(breaks[-1]), 1.0) if breaks else 0 * ones)
        slopes.append(slopes[-1])
        intercepts.append(intercepts[-1])
    empty = np.zeros((0, width))
    return np.vstack([empty, *breaks]), np.vstack(slopes), np.vstack(intercepts)


def _ancestors(nodes: Sequence[Node], output: int) -> set[int]:
    needed, pending = set[int](), [output]
    while pending:
        index = pending.pop()
        if index not in needed:
            needed.add(index)
            pending += nodes[index].of
    return needed


def too_wide(width: int) -> NetworkError:
    """Return the error for a layer that is too wide."""
    return NetworkError(
        f"the network's branches need a layer of too many values: got {width}; expected at most "
        f"{MAX_WIDTH} values that one layer computes or passes on"
    )
