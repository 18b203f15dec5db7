"""State of one pass over an ONNX graph, and access to an operator's constants."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.arrays import Array, Vector
from feta.errors import NetworkError
from feta.scorer.network.agreement import Squash
from feta.scorer.network.branches import Branch, BranchesError
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.input_blocks import Signals, refuse_cut

if TYPE_CHECKING:
    import onnx


@dataclass
class GraphState:
    """The state of one pass over a graph.

    `blocks` are parts of the input, until the first layer reads one of them. From there on, `value`
    names the only value that is not a constant.
    """

    folder: Path | None  # where external data may be read
    trunk: NetworkBuilder = field(default_factory=NetworkBuilder)
    branch: Branch | None = None  # what the next operator is appended to, in a graph with branches
    constants: dict[str, Array] = field(default_factory=dict)
    blocks: dict[str, Signals] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)  # the inputs and their columns
    integers: set[str] = field(default_factory=set)  # inputs that may only be looked up or cast
    n_columns: int = 0  # of all inputs
    value: str = ""
    width: int = 0
    rows: int = 1  # the graph's number of rows, if it is fixed
    fixed_rows: bool = False
    group_size: int = 0  # values per group, between a Reshape to groups and its ReduceMax
    squash: Squash | None = None
    source: Literal["float32", "float64"] = "float64"

    @property
    def builder(self) -> NetworkBuilder | Branch:
        """What the next operator is appended to."""
        return self.branch or self.trunk

    def is_input(self, name: str) -> bool:
        """Return whether a block is the whole input, unchanged."""
        signals = self.blocks[name]
        return len(signals) == self.n_columns and all(
            signal.plain and signal.column == index for index, signal in enumerate(signals)
        )

    def enter_first_layer(self, name: str) -> None:
        """Pass a block of the input to the first layer; no other block may be used afterwards."""
        self.check_numbers(name)
        self.value, self.width = name, len(self.blocks[name])
        self.trunk.enter(self.blocks[name], self.n_columns)
        self.blocks.clear()

    def check_numbers(self, name: str) -> None:
        """Reject a block that no layer may read as numbers."""
        if name in self.integers:
            raise NetworkError(
                f"the first layer reads the input {name!r} of integers; "
                "expected float or double numbers"
            )
        refuse_cut(self.blocks[name])

    def define_constant(self, name: str, array: Array) -> None:
        """Store a constant under a new name."""
        if name in self.constants:
            raise duplicate_error(name)
        self.constants[name] = array

    def constant_operand(self, node: "onnx.NodeProto", where: str) -> Array:
        """Return the constant of an operator with two inputs."""
        if len(node.input) != 2:  # noqa: PLR2004 - a value and a constant
            raise NetworkError(
                f"{where} has an unsupported number of inputs: got {len(node.input)}; expected 2"
            )
        names = [name for name in node.input if name != self.value]
        if len(names) != 1:
            raise BranchesError(f"{where} does not combine the value before it with one constant")
        return self.finite_constant(names[0], where)

    def constant(self, name: str, where: str) -> Array:
        """Return a stored constant."""
        if name not in self.constants:
            raise NetworkError(f"{where} reads {name!r}; expected a stored constant")
        return self.constants[name]

    def finite_constant(self, name: str, where: str) -> Array:
        """Return a stored constant as finite numbers."""
        numbers = np.asarray(self.constant(name, where), dtype=np.float64)
        bad = np.argwhere(~np.isfinite(numbers))
        if len(bad):
            index = tuple(bad[0].tolist())
            raise NetworkError(
                f"{where}: the stored array {name!r} is not finite: "
                f"got {float(numbers[index])!r} at {index}; expected finite numbers; "
                "train the network again"
            )
        return numbers


def duplicate_error(name: str) -> NetworkError:
    """Return the error for a name that is defined twice."""
    return NetworkError(f"the graph defines {name!r} twice; expected one definition per name")


def scalar_of(numbers: Array, where: str) -> float:
    """Return a constant that must be one number."""
    if numbers.size != 1 or numbers.ndim > 2:  # noqa: PLR2004 - rows and columns
        raise NetworkError(
            f"{where} has an unsupported limit: got the shape {numbers.shape}; expected one number"
        )
    return float(np.ravel(numbers)[0])


def vector_of(numbers: Array, width: int, where: str) -> Vector:
    """Broadcast a constant to the columns as ONNX does."""
    flat = np.ravel(numbers)
    if numbers.shape[:-1] not in ((), (1,)) or flat.size not in (1, width):
        raise NetworkError(
            f"{where} has a constant of the wrong shape: got {numbers.shape}; "
            f"expected one number, or one for each of {width} columns"
        )
    return np.broadcast_to(flat, (width,)).astype(np.float64)


def options_of(node: "onnx.NodeProto", defaults: dict[str, Any]) -> dict[str, Any]:
    """Read an operator's numeric attributes; reject unknown ones, since they may matter."""
    options = dict(defaults)
    for attribute in node.attribute:
        if attribute.name not in defaults:
            raise NetworkError(
                f"operator {node.op_type} has an unsupported attribute: got {attribute.name!r}; "
                f"expected only {', '.join(map(repr, defaults))}"
            )
        if isinstance(defaults[attribute.name], list):
            options[attribute.name] = list(attribute.ints)
        else:
            number = attribute.f if attribute.type == attribute.FLOAT else attribute.i
            options[attribute.name] = number
    return options
