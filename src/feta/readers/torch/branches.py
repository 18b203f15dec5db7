"""Torch modules whose forward is no chain: skip connections, towers, shared and joined layers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from feta.errors import NetworkError
from feta.readers.torch.graph import (
    NO_OP_MODULES,
    NO_OPS,
    Module,
    TorchGraphReader,
    name_of,
    select_columns,
)
from feta.readers.torch.operands import Node, is_value, operands_of
from feta.readers.torch.steps import kind_of, truncates_to_integers
from feta.scorer.network.activation import refuse_smooth
from feta.scorer.network.agreement import Squash
from feta.scorer.network.branches import Branch, BranchBuilder
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.input_blocks import Signals
from feta.scorer.network.smooth.activation import Smooth

SUMS = {"add", "iadd", "sub", "isub", "rsub"}


@dataclass
class TorchBranchReader(TorchGraphReader):
    """The state of one pass over a traced graph with branches.

    `values` also has branches, which any later step may read.
    """

    steps: BranchBuilder = field(init=False)
    current: Branch | None = None  # what the next step is appended to
    node: Node = None  # the step that is read
    result: Branch | None = None

    def __post_init__(self) -> None:
        self.steps = BranchBuilder(sum(self.widths))

    @property
    def builder(self) -> NetworkBuilder | Branch:
        """What the next step is appended to."""
        return self.current or self.trunk

    def chain(self) -> NetworkBuilder:
        """Return the layers, when all steps are read."""
        if self.result is None:
            raise NetworkError("the module has no output; expected one table of scores")
        return self.steps.lower(self.result)

    def _read_output(self, node: Node) -> None:
        if not is_value(node.args[0], self.values):
            raise NetworkError(
                f"the module returns no single table of scores: got {node.args[0]}; expected one "
                "value that depends on the input"
            )
        self.result = self._branch(node.args[0])

    def _branch(self, argument: Node) -> Branch:
        value = self.values[argument]
        if isinstance(value, list):
            return self.steps.entry(value)
        return Branch(self.steps, value.node)

    def _join_blocks(self, node: Node, where: str) -> Signals | Branch:  # type: ignore[override]  # also branches
        parts = node.args[0] if node.args else node.kwargs.get("tensors", ())
        if all(isinstance(self.values.get(part), list) for part in parts):
            return super()._join_blocks(node, where)
        dimension = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else 0)
        if dimension not in (1, -1) or not all(is_value(part, self.values) for part in parts):
            raise NetworkError(
                f"{where} does not join columns of values: got dim={dimension}; expected dim=1 and "
                "values that depend on the input"
            )
        return self.steps.join([self._branch(part) for part in parts])

    def _read_on_block(
        self, node: Node, step: Module, name: str, value: Signals, where: str
    ) -> bool:
        if len(_sources(node, self.values)) > 1:
            return False  # a sum of two values
        if _is_in_place(node, step):
            raise NetworkError(
                f"{where} changes the input in place; expected a copy; use inplace=False"
            )
        return super()._read_on_block(node, step, name, value, where)

    def _read_on_trunk(self, node: Node, step: Module, name: str, where: str) -> None:
        sources = _sources(node, self.values)
        if truncates_to_integers(node, name):
            raise NetworkError(
                f"{where} truncates values to integers, which is not supported; remove it"
            )
        if _is_in_place(node, step):
            self._check_fresh(sources[0], where)
        if len(sources) == 2 and step is None and name in SUMS:  # noqa: PLR2004 - a sum of two
            self.values[node] = self._sum(node, name, where)
            return
        if len(sources) != 1 or name in ("iadd", "isub"):
            raise NetworkError(
                f"{where} combines {len(sources)} values that depend on the input; of two values, "
                "only sums, differences and cat are supported"
            )
        self.node, self.current = node, self._branch(sources[0])
        if name == "getitem":
            places = select_columns(list(range(self.current.width)), node.args[1], where)
            self.current.linear(np.eye(self.current.width)[places], np.zeros(len(places)))
        else:
            self._add_step(node, step, name, where)
        self.values[node] = self.current

    def _sum(self, node: Node, name: str, where: str) -> Branch:
        first, second = (self._branch(operand) for operand in operands_of(node, where))
        negative = {"sub": second, "isub": second, "rsub": first}.get(name)
        if negative is not None:
            negative.scale(np.full(negative.width, -1.0), np.zeros(negative.width), negative.width)
        return self.steps.total(first, second, where)

    def _check_fresh(self, source: Node, where: str) -> None:
        """Reject a change in place of a value that anything else may read."""
        step = self.graph.get_submodule(source.target) if source.op == "call_module" else None
        copies = source.op in ("call_module", "call_function", "call_method")
        kind, name = kind_of(step) if step is not None else "", name_of(source)
        if kind in NO_OP_MODULES or name in (*NO_OPS, "getitem"):
            copies = False  # a view of the same memory
        if not copies or len(source.users) > 1:
            raise NetworkError(
                f"{where} changes a value in place that other steps read; expected a copy; use "
                "inplace=False"
            )

    def _continue_after_squash(self) -> None:
        """Do nothing: only a sigmoid or softmax that leads to the output is recorded."""

    def _set_squash(self, kind: Squash, where: str) -> None:
        if self._leads_to_output(self.node):
            super()._set_squash(kind, where)
        elif kind == "sigmoid":
            self.builder.activate(Smooth("sigmoid"), where)
            self.hidden += 1
        else:
            raise refuse_smooth(kind, where)

    def _leads_to_output(self, node: Node) -> bool:
        while len(node.users) == 1:
            (node,) = node.users
            if node.op == "output":
                return True
            step = self.graph.get_submodule(node.target) if node.op == "call_module" else None
            if (kind_of(step) if step is not None else "") not in NO_OP_MODULES and name_of(
                node
            ) not in NO_OPS:
                return False
        return False


def _sources(node: Node, values: dict[Any, Any]) -> list[Node]:
    arguments = [*node.args, *node.kwargs.values()]
    return [argument for argument in arguments if is_value(argument, values)]


def _is_in_place(node: Node, step: Module) -> bool:
    if step is not None:
        return bool(getattr(step, "inplace", False))
    name = str(getattr(node.target, "__name__", node.target))
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place or name in ("iadd", "isub") or bool(node.kwargs.get("inplace"))
