"""The tree operator of an ONNX graph, and what comes before and after it.

Before it, a graph may convert, reshape, select and join columns. After it, it may rename, convert
and reshape results, or name the classes. Everything else is refused: the operator's name says why
the model is not read.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError
from feta.readers.onnx.tensor_data import DOUBLE, FLOAT, INT64, read_tensor

if TYPE_CHECKING:
    import onnx

ML = "ai.onnx.ml"
TREES = ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")
INPUT_TYPES = (FLOAT, DOUBLE, INT64)

# Operators that keep every result in its order.
AFTER = {"Cast", "Flatten", "Identity", "Reshape", "Squeeze"}
AFTER_CLASSIFIER = AFTER | {"ZipMap", "Normalizer"}

# No table of people has more columns; a graph that claims more is meant to exhaust memory.
MAX_COLUMNS = 2**16


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a value that trees read."""

    source: int  # its position among the inputs
    single: bool  # whether it was rounded to float32


@dataclass(frozen=True, slots=True)
class Block:
    """Columns of one element type."""

    columns: tuple[Column, ...]
    kind: int

    def cast(self, kind: int, where: str) -> "Block":
        """Return the columns in another type; only numbers of floating point are exact enough."""
        if kind == self.kind:
            return self
        if kind not in (FLOAT, DOUBLE):
            raise NetworkError(
                f"{where} converts columns to type {kind}: expected float or double numbers"
            )
        single = kind == FLOAT
        columns = tuple(replace(column, single=column.single or single) for column in self.columns)
        return Block(columns, kind)


@dataclass(frozen=True, slots=True, eq=False)
class TreeGraph:
    """The tree operator, the columns that it reads, and the inputs of the graph."""

    node: "onnx.NodeProto"
    read: Block
    names: tuple[str, ...]  # of the inputs, if each is one column; else empty
    integers: frozenset[int]  # the columns of inputs that are integers
    n_columns: int
    version: int  # of the operators for machine learning


def tree_operators(model: "onnx.ModelProto") -> "list[onnx.NodeProto]":
    """Return the operators of a graph that are tree ensembles."""
    return [node for node in model.graph.node if node.domain == ML and node.op_type in TREES]


def read_graph(model: "onnx.ModelProto") -> TreeGraph:
    """Return the only tree operator of a graph; refuse what FETA does not follow exactly."""
    found = tree_operators(model)
    if len(found) != 1:
        raise NetworkError(
            f"unsupported number of tree operators: got {len(found)}; expected 1 of "
            f"{', '.join(TREES)}; export one model per file"
        )
    if model.functions or model.graph.sparse_initializer:
        raise NetworkError("the file has functions or sparse arrays: expected a plain graph")
    versions = [opset.version for opset in model.opset_import if opset.domain == ML]
    if len(versions) != 1:
        raise NetworkError(f"unknown version of {ML}: got {versions}; expected one version")
    walk = _Walk(model)
    for index, node in enumerate(model.graph.node):
        walk.visit(node, f"operator {(node.name or index)!r} ({node.op_type})")
    if walk.read is None or walk.node is None:
        raise NetworkError("the trees do not read the inputs of the graph; export it again")
    used = {output.name for output in model.graph.output}
    if not used or not used <= walk.results:
        raise NetworkError(
            f"the outputs of the graph are not those of its trees: got {sorted(used)}; "
            f"expected some of {sorted(walk.results)}"
        )
    integers = frozenset(walk.integers)
    return TreeGraph(walk.node, walk.read, walk.names(), integers, walk.n_columns, versions[0])


@dataclass
class _Walk:
    """The values of a graph up to the current operator."""

    model: "onnx.ModelProto"
    constants: dict[str, Array] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)  # of the inputs
    integers: set[int] = field(default_factory=set)  # columns of inputs
    results: set[str] = field(default_factory=set)  # values that follow the trees
    scores: set[str] = field(default_factory=set)  # those that are no labels
    node: "onnx.NodeProto | None" = None
    read: Block | None = None
    n_columns: int = 0

    def __post_init__(self) -> None:
        graph = self.model.graph
        for tensor in graph.initializer:
            self.constants[tensor.name] = read_tensor(tensor, None)
        for entry in graph.input:
            if entry.name not in self.constants:
                self._add_input(entry)

    def _add_input(self, entry: "onnx.ValueInfoProto") -> None:
        kind = entry.type.tensor_type
        sizes = [dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type not in INPUT_TYPES:
            raise NetworkError(
                f"the graph's input {entry.name!r} has an unsupported type: got type "
                f"{kind.elem_type}; expected numbers; texts are encoded by preprocessing"
            )
        if len(sizes) != 2 or not 1 <= sizes[1] <= MAX_COLUMNS or sizes[0] > 1:  # noqa: PLR2004 - rows, columns
            raise NetworkError(
                f"the graph's input {entry.name!r} has an unsupported shape: got {sizes}; "
                f"expected (rows, columns) with 1 to {MAX_COLUMNS} columns, 0 being unknown"
            )
        columns = tuple(
            Column(self.n_columns + index, kind.elem_type == FLOAT) for index in range(sizes[1])
        )
        self.blocks[entry.name] = Block(columns, kind.elem_type)
        if kind.elem_type == INT64:
            self.integers |= {column.source for column in columns}
        self.widths[entry.name] = sizes[1]
        self.n_columns += sizes[1]
        if self.n_columns > MAX_COLUMNS:
            raise NetworkError(f"the graph has too many inputs: expected at most {MAX_COLUMNS}")

    def names(self) -> tuple[str, ...]:
        """Return the names of the inputs, if each is one column."""
        single = len(self.widths) > 1 and set(self.widths.values()) == {1}
        return tuple(self.widths) if single else ()

    def visit(self, node: "onnx.NodeProto", where: str) -> None:
        """Follow one operator."""
        if not node.output or any(self._is_known(name) for name in node.output):
            raise NetworkError(f"{where} defines no value, or one that exists; export it again")
        if node.domain == ML and node.op_type in TREES:
            self._read_trees(node, where)
        elif any(name in self.results for name in node.input):
            self._follow(node, where)
        elif node.op_type == "Constant" and node.domain == "":
            self.constants[node.output[0]] = _constant(node, where)
        else:
            if not node.input or node.input[0] not in self.blocks or node.op_type not in BEFORE:
                raise NetworkError(
                    f"{where} comes before the trees: expected only {', '.join(sorted(BEFORE))} "
                    "there; FETA does not follow other preprocessing in a graph"
                )
            self.blocks[node.output[0]] = BEFORE[node.op_type](self, node, where)

    def _is_known(self, name: str) -> bool:
        return any(name in known for known in (self.constants, self.blocks, self.results))

    def _read_trees(self, node: "onnx.NodeProto", where: str) -> None:
        if len(node.input) != 1 or node.input[0] not in self.blocks:
            raise NetworkError(f"{where} does not read the inputs of the graph")
        self.node, self.read = node, self.blocks[node.input[0]]
        self.results |= {name for name in node.output if name}
        first = 1 if node.op_type == "TreeEnsembleClassifier" else 0  # after the labels
        self.scores |= {name for name in node.output[first:] if name}

    def _follow(self, node: "onnx.NodeProto", where: str) -> None:
        """Accept an operator after the trees that changes no decision."""
        assert self.node is not None
        classifier = self.node.op_type == "TreeEnsembleClassifier"
        allowed = AFTER_CLASSIFIER if classifier else AFTER
        harmless = node.op_type in allowed and node.input[0] in self.results
        if node.op_type == "Mul":  # some exporters multiply by 1
            factors = [self.constants[name] for name in node.input if name in self.constants]
            harmless = len(factors) == 1 and bool((factors[0] == 1).all())
        elif node.op_type == "ArrayFeatureExtractor" and classifier:  # a list of labels
            labels = self.constants.get(node.input[0])
            harmless = labels is not None and len(np.unique(labels)) == labels.size
        if self.scores & set(node.input):
            self._check_cast(node, where)
            self.scores |= set(node.output)
        if not harmless:
            raise NetworkError(
                f"{where} follows the trees: expected only {', '.join(sorted(allowed))} there"
            )
        self.results |= set(node.output)

    def _check_cast(self, node: "onnx.NodeProto", where: str) -> None:
        """Reject a conversion of scores to other numbers, such as integers."""
        kind = _target(node)
        if node.op_type == "Cast" and kind not in (FLOAT, DOUBLE):
            raise NetworkError(
                f"{where} converts the scores of the trees to type {kind}: expected float or "
                "double numbers; other types change them"
            )


def _constant(node: "onnx.NodeProto", where: str) -> Array:
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            return read_tensor(attribute.t, None)
        if attribute.name in ("value_int", "value_ints"):
            return np.array(list(attribute.ints) or [attribute.i])
    raise NetworkError(f"{where} holds no array of numbers")


def _same(walk: _Walk, node: "onnx.NodeProto", where: str) -> Block:
    del where
    return walk.blocks[node.input[0]]


def _cast(walk: _Walk, node: "onnx.NodeProto", where: str) -> Block:
    return walk.blocks[node.input[0]].cast(_target(node), where)


def _target(node: "onnx.NodeProto") -> int:
    """Return the type to which a Cast converts; 0 if it states none."""
    kinds = [attribute.i for attribute in node.attribute if attribute.name == "to"]
    return kinds[0] if kinds else 0


def _concat(walk: _Walk, node: "onnx.NodeProto", where: str) -> Block:
    blocks = [walk.blocks.get(name) for name in node.input]
    axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
    parts = [block for block in blocks if block is not None]
    if len(parts) != len(blocks) or axes not in ([1], [-1]):
        raise NetworkError(f"{where} does not join columns of the inputs: expected axis 1")
    if len({block.kind for block in parts}) != 1:
        raise NetworkError(f"{where} joins columns of different types: expected one type")
    columns = tuple(column for block in parts for column in block.columns)
    if len(columns) > MAX_COLUMNS:
        raise NetworkError(f"{where} joins too many columns: expected at most {MAX_COLUMNS}")
    return Block(columns, parts[0].kind)


def _reshape(walk: _Walk, node: "onnx.NodeProto", where: str) -> Block:
    block = walk.blocks[node.input[0]]
    shape = walk.constants.get(node.input[1]) if len(node.input) > 1 else None
    if shape is None or shape.tolist() not in ([-1, len(block.columns)], [0, -1]):
        raise NetworkError(
            f"{where} changes the shape of rows: expected (-1, {len(block.columns)})"
        )
    return block


def _select(walk: _Walk, node: "onnx.NodeProto", where: str) -> Block:
    """Return some columns; the axis must be that of columns."""
    block = walk.blocks[node.input[0]]
    indices = walk.constants.get(node.input[1]) if len(node.input) > 1 else None
    axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
    wrong_axis = node.op_type == "Gather" and axes not in ([1], [-1])
    width = len(block.columns)
    if indices is None or wrong_axis or indices.dtype.kind != "i":
        raise NetworkError(f"{where} does not select columns by stored numbers")
    flat: list[Any] = indices.ravel().tolist()
    if not flat or len(flat) > MAX_COLUMNS or not all(0 <= index < width for index in flat):
        raise NetworkError(f"{where} selects unknown columns: expected 0 to {width - 1}")
    if node.op_type == "Gather" and indices.ndim != 1:
        raise NetworkError(f"{where} changes the shape of rows: expected a list of columns")
    return Block(tuple(block.columns[index] for index in flat), block.kind)


BEFORE: dict[str, Callable[[_Walk, "onnx.NodeProto", str], Block]] = {
    "ArrayFeatureExtractor": _select,
    "Cast": _cast,
    "Concat": _concat,
    "Flatten": _same,
    "Gather": _select,
    "Identity": _same,
    "Reshape": _reshape,
}
