"""ONNX reading: how far a graph is read, and what its operators ask for."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.arrays import Array, Vector
from feta.errors import NetworkError
from feta.scorer.network.agreement import Squash
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.input_blocks import Signals, refuse_cut

if TYPE_CHECKING:
    import onnx


@dataclass
class GraphState:
    """One pass over a graph.

    `blocks` are parts of the input, until the first layer takes one of them; from there on `value`
    names the one value that is not a constant.
    """

    folder: Path | None  # where external data may be read from
    builder: NetworkBuilder = field(default_factory=NetworkBuilder)
    constants: dict[str, Array] = field(default_factory=dict)
    blocks: dict[str, Signals] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)  # the inputs and their columns
    integers: set[str] = field(default_factory=set)  # inputs that may only be looked up or cast
    n_columns: int = 0  # of all inputs
    value: str = ""
    width: int = 0
    rows: int = 1  # the graph's own number of rows, where that is fixed
    fixed_rows: bool = False
    pool: int = 0  # values a group, between a Reshape to groups and the ReduceMax over them
    squashed: Squash | None = None
    source: Literal["float32", "float64"] = "float64"

    def is_whole(self, name: str) -> bool:
        """Say whether a block is the input as it is."""
        signals = self.blocks[name]
        return len(signals) == self.n_columns and all(
            one.plain and one.column == index for index, one in enumerate(signals)
        )

    def begin(self, name: str) -> None:
        """Let the first layer take a block of the input; the others must not be used any more."""
        if name in self.integers:
            raise NetworkError("the graph's input must be float or double numbers")
        refuse_cut(self.blocks[name])
        self.value, self.width = name, len(self.blocks[name])
        self.builder.enter(self.blocks[name], self.n_columns)
        self.blocks.clear()

    def other(self, node: "onnx.NodeProto", where: str) -> Array:
        """Give the constant of an operator with two inputs."""
        if len(node.input) != 2:  # noqa: PLR2004 - a value and a constant
            raise NetworkError(f"{where} must have two inputs, got {len(node.input)}")
        names = [name for name in node.input if name != self.value]
        if len(names) != 1:
            raise NetworkError(f"{where} must combine the value before it with one constant")
        return self.numbers(names[0], where)

    def scalar(self, numbers: Array, where: str) -> float:
        """Give a constant that must be one number."""
        if numbers.size != 1 or numbers.ndim > 2:  # noqa: PLR2004 - rows and columns
            message = f"{where} must have one number as its limit, got the shape {numbers.shape}"
            raise NetworkError(message)
        return float(np.ravel(numbers)[0])

    def stored(self, name: str, where: str) -> Array:
        """Give a stored constant."""
        if name not in self.constants:
            raise NetworkError(f"{where} must take {name!r} from the stored constants")
        return self.constants[name]

    def numbers(self, name: str, where: str) -> Array:
        """Give a stored constant as finite numbers."""
        numbers = np.asarray(self.stored(name, where), dtype=np.float64)
        bad = np.argwhere(~np.isfinite(numbers))
        if len(bad):
            index = tuple(bad[0].tolist())
            message = f"{where}: the stored array {name!r} must be finite, got {float(numbers[index])!r} at {index}; train the network again"
            raise NetworkError(message)
        return numbers

    def vector(self, numbers: Array, width: int, where: str) -> Vector:
        """Spread a constant over the columns as ONNX would."""
        flat = np.ravel(numbers)
        if numbers.shape[:-1] not in ((), (1,)) or flat.size not in (1, width):
            raise NetworkError(
                f"{where} must have a constant for {width} columns, got the shape {numbers.shape}"
            )
        return np.broadcast_to(flat, (width,)).astype(np.float64)


def options_of(node: "onnx.NodeProto", defaults: dict[str, Any]) -> dict[str, Any]:
    """Read an operator's attributes, numbers only; unknown ones are refused, since they may matter."""
    options = dict(defaults)
    for attribute in node.attribute:
        if attribute.name not in defaults:
            raise NetworkError(
                f"operator {node.op_type} has an attribute {attribute.name!r} that FETA does not know"
            )
        if isinstance(defaults[attribute.name], list):
            options[attribute.name] = list(attribute.ints)
        else:
            number = attribute.f if attribute.type == attribute.FLOAT else attribute.i
            options[attribute.name] = number
    return options
