"""ONNX graphs that are no chain: skip connections, towers, shared and joined layers."""

from typing import TYPE_CHECKING

import numpy as np

from feta.errors import NetworkError
from feta.readers.onnx.blocks import BLOCK_OPERATORS, read_on_blocks
from feta.readers.onnx.operators import OPERATORS, SHAPES
from feta.readers.onnx.state import GraphState, duplicate_error, options_of
from feta.scorer.network.branches import Branch, BranchBuilder
from feta.scorer.network.input_blocks import inputs
from feta.scorer.network.smooth.activation import Smooth

if TYPE_CHECKING:
    import onnx

SELECTIONS = ("Gather", "Slice", "Split")
SQUASHES = ("Sigmoid", "Softmax", "LogSoftmax")


class BranchReader:
    """Reads operators on values that several later operators may read."""

    def __init__(self, model: "onnx.ModelProto", state: GraphState) -> None:
        self.model, self.state = model, state
        self.steps: BranchBuilder | None = None
        self.branches: dict[str, Branch] = {}
        self.groups: dict[str, int] = {}  # values per group, of values that form groups

    def read(
        self, state: GraphState, node: "onnx.NodeProto", operands: list[str], where: str
    ) -> None:
        """Read an operator; `operands` are its inputs that are no constants."""
        for name in operands:
            if name not in state.blocks and name not in self.branches:
                raise NetworkError(f"{where} reads {name!r}, which no operator before it defines")
        in_blocks = all(name in state.blocks for name in operands)
        is_sum = node.op_type in ("Add", "Sub") and len(operands) > 1
        if in_blocks and not is_sum and read_on_blocks(state, node, operands, where):
            return
        for output in node.output:
            if output in state.constants or output in state.blocks or output in self.branches:
                raise duplicate_error(output)
        output = node.output[0]
        if node.op_type in SELECTIONS:
            self._select(node, operands, where)
        elif node.op_type == "Concat":
            self.branches[output] = self._join(node, operands, where)
        elif is_sum:
            self.branches[output] = self._sum(node, where)
        else:
            self.branches[output] = self._step(node, operands, where)

    def lower(self) -> None:
        """Lower the graph's output to a chain."""
        state, output = self.state, self.model.graph.output[0].name
        if output not in self.branches and output not in state.blocks:
            raise NetworkError(f"no operator computes the graph's output {output!r}")
        branch = self._branch(output)
        state.branch, state.group_size = None, self.groups.get(output, 0)
        state.trunk = branch.graph.lower(branch)
        state.value, state.width = output, branch.width

    def _branch(self, name: str) -> Branch:
        if self.steps is None:  # the inputs are all known by now
            self.steps = BranchBuilder(self.state.n_columns)
        if name in self.state.blocks:
            self.state.check_numbers(name)
            return self.steps.entry(self.state.blocks[name])
        if self.groups.get(name):
            raise NetworkError(f"the groups {name!r} are read; expected ReduceMax of them first")
        return Branch(self.steps, self.branches[name].node)

    def _join(self, node: "onnx.NodeProto", operands: list[str], where: str) -> Branch:
        axis = options_of(node, {"axis": 1})["axis"]
        if axis not in (1, -1) or len(operands) != len(node.input):
            raise NetworkError(
                f"{where} does not join columns of values: got axis {axis}; expected axis 1 and "
                "no constants"
            )
        branches = [self._branch(name) for name in operands]
        return branches[0].graph.join(branches)

    def _sum(self, node: "onnx.NodeProto", where: str) -> Branch:
        first, second = (self._branch(name) for name in node.input)
        if node.op_type == "Sub":
            second.scale(np.full(second.width, -1.0), np.zeros(second.width), second.width)
        return first.graph.total(first, second, where)

    def _select(self, node: "onnx.NodeProto", operands: list[str], where: str) -> None:
        """Read the selection of some values."""
        if operands != [node.input[0]]:
            raise NetworkError(f"{where} looks up a value; expected columns of the inputs there")
        (name,), blocks = operands, self.state.blocks
        width = self._branch(name).width
        blocks[name] = inputs(width)
        selected = BLOCK_OPERATORS[node.op_type](self.state, node, where)
        del blocks[name]
        for output, signals in zip(node.output, selected, strict=False):
            branch = self._branch(name)
            columns = [signal.column for signal in signals]
            branch.linear(np.eye(width)[columns], np.zeros(len(columns)))
            self.branches[output] = branch

    def _step(self, node: "onnx.NodeProto", operands: list[str], where: str) -> Branch:
        """Read an operator on one value."""
        state = self.state
        if len(operands) != 1:
            raise NetworkError(
                f"{where} combines {len(operands)} values that depend on the input; of two values, "
                "only sums, differences and Concat are supported"
            )
        (name,) = operands
        group = self.groups.get(name, 0)
        if group and node.op_type != "ReduceMax":
            raise NetworkError(f"{where} follows a Reshape to groups; expected ReduceMax there")
        branch = Branch(self.branches[name].graph, self.branches[name].node) if group else None
        state.branch = branch or self._branch(name)
        state.value, state.width, state.group_size = name, state.branch.width, group
        if node.op_type == "Sigmoid" and not self._leads_to_output(node):
            state.branch.activate(Smooth("sigmoid"), where)
        elif node.op_type in SQUASHES and not self._leads_to_output(node):
            raise NetworkError(f"{where} is followed by a layer; expected the output after it")
        else:
            OPERATORS[node.op_type](state, node, where)
        if state.group_size:
            self.groups[node.output[0]] = state.group_size
        state.group_size = 0
        return state.branch

    def _leads_to_output(self, node: "onnx.NodeProto") -> bool:
        graph = self.model.graph
        while True:
            name = node.output[0]
            readers = [reader for reader in graph.node if name in reader.input]
            if name == graph.output[0].name:
                return not readers
            if len(readers) != 1 or readers[0].op_type not in SHAPES:
                return False
            (node,) = readers
