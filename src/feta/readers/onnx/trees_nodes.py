"""The nodes of ONNX's tree operators as trees.

Versions 1 to 3 list nodes with their tree and their number in it, and weights of leaves apart.
Version 5 lists inner nodes and leaves apart.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Array, Counts, Flags, Matrix, Vector
from feta.errors import NetworkError
from feta.readers.onnx.tensor_data import read_tensor
from feta.readers.onnx.trees_tests import MODES, NodeTests
from feta.readers.trees.builder import SourceTree
from feta.readers.trees.splits import Split

if TYPE_CHECKING:
    import onnx

# The numbers of modes, transformations and aggregates in version 5.
MODE_NUMBERS = (*MODES, "BRANCH_MEMBER")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The attributes of an operator."""

    values: dict[str, Any]

    @classmethod
    def of(cls, node: "onnx.NodeProto") -> "Options":
        """Read all attributes."""
        values: dict[str, Any] = {}
        for attribute in node.attribute:
            kinds: dict[int, Any] = {
                attribute.INT: attribute.i,
                attribute.STRING: attribute.s,
                attribute.INTS: attribute.ints,
                attribute.FLOATS: attribute.floats,
                attribute.STRINGS: attribute.strings,
                attribute.TENSOR: attribute.t,
            }
            if attribute.type not in kinds or attribute.name in values:
                raise NetworkError(f"invalid attribute {attribute.name!r} of the trees")
            values[attribute.name] = kinds[attribute.type]
        return cls(values)

    def integers(self, name: str, count: int | None = None) -> Counts:
        """Return a list of integers; empty if it is missing."""
        return self._checked(name, np.array(self.values.get(name, ()), dtype=np.int64), count)

    def numbers(self, name: str, count: int | None = None) -> Vector:
        """Return a list of float32 numbers, or a stored array that may be in float64."""
        tensor = self.values.get(f"{name}_as_tensor")
        if tensor is None:
            listed = np.array(self.values.get(name, ()), dtype=np.float32)
            return self._checked(name, listed.astype(np.float64), count)
        if name in self.values:
            raise NetworkError(f"the trees store {name} twice; expected it once")
        return self._checked(name, read_tensor(tensor, None).astype(np.float64), count)

    def tensor(self, name: str, count: int | None = None) -> Array:
        """Return a stored array of numbers."""
        array = read_tensor(self.values[name], None) if name in self.values else np.zeros(0)
        return self._checked(name, array, count)

    def small_integers(self, name: str, count: int | None = None) -> Counts:
        """Return a stored array of bytes."""
        tensor = self.values.get(name)
        if tensor is None:
            return self._checked(name, np.zeros(0, dtype=np.int64), count)
        stored = tensor.raw_data or bytes(np.array(tensor.int32_data, dtype=np.uint8))
        return self._checked(name, np.frombuffer(stored, np.uint8).astype(np.int64), count)

    def texts(self, name: str, count: int | None = None) -> list[str]:
        """Return a list of texts."""
        texts = [text.decode(errors="replace") for text in self.values.get(name, ())]
        self._checked(name, np.zeros(len(texts)), count)
        return texts

    def choice(self, name: str, default: str, numbered: tuple[str, ...]) -> str:
        """Return a choice, which version 5 stores as a number."""
        value = self.values.get(name, default)
        if isinstance(value, int):
            return numbered[value] if 0 <= value < len(numbered) else str(value)
        return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

    def _checked(self, name: str, array: Array, count: int | None) -> Array:
        if array.ndim != 1 or (count is not None and len(array) != count):
            raise NetworkError(
                f"wrong length of {name}: got the shape {array.shape}; expected {count} numbers; "
                "export the model again"
            )
        return array


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The weights of leaves: one row per weight."""

    tree: Counts
    node: Counts  # its place in the tree
    target: Counts
    weight: Vector


@dataclass(frozen=True, slots=True, eq=False)
class StoredTree:
    """One tree without the values of its leaves: true goes left."""

    name: str
    left: Counts
    right: Counts
    feature: Counts
    tests: NodeTests

    def with_values(self, values: Matrix, singles: Flags) -> SourceTree:
        """Return the tree; `singles` states which features are rounded to float32."""
        n_features = len(singles)

        def split(node: int) -> Split:
            feature = int(self.feature[node])
            single = 0 <= feature < n_features and bool(singles[feature])
            return self.tests.bands(node, single=single)

        return SourceTree(self.name, self.left, self.right, self.feature, values, split)


@dataclass(frozen=True, slots=True, eq=False)
class StoredTrees:
    """All trees, and the weights of their leaves."""

    trees: tuple[StoredTree, ...]
    weights: Weights

    def integer_features(self) -> set[int]:
        """Return the features that must be integers, because onnxruntime removes fractions."""
        return {int(tree.feature[node]) for tree in self.trees for node in tree.tests.large_sets()}

    def with_values(self, weights: Weights, *, n_sums: int, singles: Flags) -> list[SourceTree]:
        """Return the trees with these weights; their targets are sums."""
        order = np.argsort(weights.tree, kind="stable")
        starts = np.searchsorted(weights.tree[order], np.arange(len(self.trees) + 1))
        result = []
        for index, tree in enumerate(self.trees):
            own = order[starts[index] : starts[index + 1]]
            values = np.zeros((len(tree.left), n_sums))
            values[weights.node[own], weights.target[own]] = weights.weight[own]
            result.append(tree.with_values(values, singles))
        return result


def read_listed(options: Options, prefix: str) -> StoredTrees:
    """Return the trees of versions 1 to 3; `prefix` is "class" or "target"."""
    tree_ids = options.integers("nodes_treeids")
    count = len(tree_ids)
    if not count:
        raise NetworkError("the trees have no nodes; export the model again")
    node_ids = options.integers("nodes_nodeids", count)
    modes = options.texts("nodes_modes", count)
    unknown = sorted(set(modes) - {*MODES, "LEAF"})
    if unknown:
        raise NetworkError(f"unknown mode of a node: got {unknown[0]!r}; expected {MODES}")
    tests = NodeTests(
        np.array([MODES.index(mode) if mode != "LEAF" else -1 for mode in modes]),
        options.numbers("nodes_values", count),
        _tracks(options, count),
    )
    children = [
        options.integers(name, count) for name in ("nodes_truenodeids", "nodes_falsenodeids")
    ]
    features = options.integers("nodes_featureids", count)
    starts = [0, *(np.flatnonzero(np.diff(tree_ids)) + 1).tolist(), count]
    if len(set(tree_ids[starts[:-1]].tolist())) != len(starts) - 1:
        raise NetworkError("the nodes of a tree are not stored together; export the model again")
    places: dict[tuple[int, int], tuple[int, int]] = {}
    trees = []
    for index, (start, stop) in enumerate(pairwise(starts)):
        ids = node_ids[start:stop].tolist()
        local = {node: at for at, node in enumerate(ids)}
        if len(local) != len(ids):
            raise NetworkError(f"tree {index}: a node is stored twice; export the model again")
        places |= {(int(tree_ids[start]), node): (index, at) for node, at in local.items()}
        own = tests.part(start, stop)
        left, right = (
            np.array(
                [
                    -1 if leaf else local.get(child, -2)
                    for child, leaf in zip(ends[start:stop].tolist(), own.leaf, strict=True)
                ]
            )
            for ends in children
        )
        trees.append(StoredTree(f"tree {index}", left, right, features[start:stop], own))
    return StoredTrees(tuple(trees), _listed_weights(options, prefix, places, trees))


def _tracks(options: Options, count: int) -> Flags:
    tracks = options.integers("nodes_missing_value_tracks_true")
    if len(tracks) not in (0, count):
        options.integers("nodes_missing_value_tracks_true", count)
    return (tracks == 1) if len(tracks) else np.zeros(count, dtype=bool)


def _listed_weights(
    options: Options,
    prefix: str,
    places: dict[tuple[int, int], tuple[int, int]],
    trees: list[StoredTree],
) -> Weights:
    """Return the weights of leaves; runtimes ignore those of inner nodes."""
    tree_ids = options.integers(f"{prefix}_treeids")
    count = len(tree_ids)
    node_ids = options.integers(f"{prefix}_nodeids", count)
    targets = options.integers(f"{prefix}_ids", count)
    weights = options.numbers(f"{prefix}_weights", count)
    keys = list(zip(tree_ids.tolist(), node_ids.tolist(), strict=True))
    unknown = [key for key in keys if key not in places]
    if unknown:
        raise NetworkError(f"a weight has no node: got {unknown[0]}; export the model again")
    tree = np.array([places[key][0] for key in keys], dtype=np.int64)
    node = np.array([places[key][1] for key in keys], dtype=np.int64)
    leaf = np.array([trees[t].left[n] == -1 for t, n in zip(tree, node, strict=True)], dtype=bool)
    return _checked_weights(Weights(tree[leaf], node[leaf], targets[leaf], weights[leaf]), trees)


def _checked_weights(weights: Weights, trees: list[StoredTree]) -> Weights:
    rows = np.stack([weights.tree, weights.node, weights.target], axis=1)
    if len(np.unique(rows, axis=0)) != len(rows):
        raise NetworkError("a leaf has two weights for one target; expected one each")
    n_leaves = sum(int((tree.left == -1).sum()) for tree in trees)
    if len(np.unique(rows[:, :2], axis=0)) != n_leaves:
        raise NetworkError("a leaf has no weight; export the model again")
    return weights


@dataclass
class _Version5:
    """The arrays of version 5."""

    options: Options
    tests: NodeTests = field(init=False)
    children: tuple[Counts, Counts] = field(init=False)
    leaves: tuple[Counts, Counts] = field(init=False)  # whether a child is a leaf
    features: Counts = field(init=False)
    n_leaves: int = field(init=False)

    def __post_init__(self) -> None:
        options = self.options
        modes = options.small_integers("nodes_modes")
        count = len(modes)
        if not count or ((modes < 0) | (modes >= len(MODE_NUMBERS))).any():
            raise NetworkError(f"unknown modes of nodes: expected 0 to {len(MODE_NUMBERS) - 1}")
        splits = options.tensor("nodes_splits", count).astype(np.float64)
        self.tests = NodeTests(modes, splits, _tracks(options, count), self._members(modes))
        names = ("nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs")
        ends = [options.integers(name, count) for name in names]
        self.children, self.leaves = (ends[0], ends[1]), (ends[2], ends[3])
        self.features = options.integers("nodes_featureids", count)
        self.n_leaves = len(options.integers("leaf_targetids"))

    def _members(self, modes: Counts) -> dict[int, Vector]:
        """Return the members of each set; NaN separates them."""
        stored = self.options.tensor("membership_values").astype(np.float64)
        nodes = np.flatnonzero(modes == len(MODES)).tolist()
        stops = np.flatnonzero(np.isnan(stored)).tolist()
        if len(stops) < len(nodes):
            stops.append(len(stored))
        if len(stops) != len(nodes):
            raise NetworkError(f"wrong number of sets: got {len(stops)}; expected {len(nodes)}")
        starts = [0, *(stop + 1 for stop in stops)]
        sets = {
            node: stored[start:stop]
            for node, start, stop in zip(nodes, starts, stops, strict=False)
        }
        if any(not len(members) for members in sets.values()):
            raise NetworkError("a set of the trees is empty; expected one member or more")
        return sets

    def tree(self, root: int, name: str) -> tuple[StoredTree, list[int], list[int]]:
        """Return a tree, and the place and the number of each of its leaves."""
        entries = [(root, False)]
        left, right, nodes = [], [], []
        for node, is_leaf in entries:
            nodes.append(-1 if is_leaf else node)
            limit = self.n_leaves if is_leaf else len(self.features)
            if not 0 <= node < limit or len(entries) > 2 * len(self.features) + 1:
                raise NetworkError(f"{name}: invalid node: got {node}; expected one of {limit}")
            if is_leaf:
                left.append(-1)
                right.append(-1)
                continue
            left.append(len(entries))
            right.append(len(entries) + 1)
            for ends, leafs in zip(self.children, self.leaves, strict=True):
                entries.append((int(ends[node]), bool(leafs[node])))
        at = [place for place, entry in enumerate(entries) if entry[1]]
        own = self.tests.chosen(np.array(nodes))
        features = self.features[np.maximum(nodes, 0)]
        tree = StoredTree(name, np.array(left), np.array(right), features, own)
        return tree, at, [entries[place][0] for place in at]


def read_version5(options: Options) -> StoredTrees:
    """Return the trees of version 5; every leaf has one target."""
    stored = _Version5(options)
    targets = options.integers("leaf_targetids")
    weights = options.tensor("leaf_weights", len(targets)).astype(np.float64)
    roots = options.integers("tree_roots").tolist()
    trees, tree, node, leaf = [], [], [], []
    seen: set[int] = set()
    for index, root in enumerate(roots):
        _check_root(stored, root, f"tree {index}")
        source, places, leaves = stored.tree(root, f"tree {index}")
        if seen & set(leaves) or len(set(leaves)) != len(leaves):
            raise NetworkError(f"tree {index}: a leaf has two parents; export the model again")
        seen |= set(leaves)
        trees.append(source)
        tree += [index] * len(leaves)
        node += places
        leaf += leaves
    rows = np.array(leaf, dtype=np.int64)
    listed = Weights(np.array(tree), np.array(node), targets[rows], weights[rows])
    return StoredTrees(tuple(trees), listed)


def _check_root(stored: _Version5, root: int, name: str) -> None:
    """Refuse a tree of one leaf: onnxruntime reads another leaf than the file states."""
    if not 0 <= root < len(stored.features):
        raise NetworkError(f"{name}: invalid root: got {root}; expected a node")
    ends, leafs = stored.children, stored.leaves
    if ends[0][root] == ends[1][root] and leafs[0][root] and leafs[1][root]:
        raise NetworkError(f"{name} has only one leaf: got equal children; expected two leaves")
