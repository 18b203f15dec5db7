"""Builder of `Trees` from the nodes of a library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from feta.arrays import Array, Counts, Matrix, Vector
from feta.errors import NetworkError
from feta.readers.trees.features import Feature, ListedFeature, NumberFeature
from feta.readers.trees.splits import Bands, Split
from feta.scorer.forest.trees import CUT, SET, Domain, Trees

# More nodes, or leaf values, are not a model that FETA could verify.
MAX_NODES = 2**23
MAX_VALUES = 2**26

NODE_TYPES = {
    "kind": np.int8,
    "source": np.int64,
    "cut": np.float64,
    "flag": np.int64,
    "missing_left": bool,
    "start": np.int64,
    "left": np.int64,
    "right": np.int64,
}


@dataclass(frozen=True, slots=True, eq=False)
class SourceTree:
    """One tree as a library stores it: node 0 is the root, children are nodes or −1."""

    name: str  # for messages
    left: Counts
    right: Counts
    feature: Counts
    values: Array  # of leaves: (nodes,), or (nodes, sums) if a leaf adds to every sum
    split: Callable[[int], Split]  # the test of an inner node
    category_features: frozenset[int] = frozenset()  # the features tested by categories

    def order(self) -> list[int]:
        """Return the nodes that the root reaches, each after its parent."""
        lefts, rights = self.left.tolist(), self.right.tolist()
        seen = [False] * len(lefts)
        seen[0] = True
        nodes = [0]
        for node in nodes:
            children = (lefts[node], rights[node])
            if children == (-1, -1):
                continue
            for child in children:
                if not 0 <= child < len(seen) or seen[child]:
                    raise NetworkError(
                        f"{self.name}, node {node}: invalid child: got {child}; expected one of "
                        f"{len(seen)} nodes that has no other parent"
                    )
                seen[child] = True
                nodes.append(child)
        return nodes


@dataclass
class TreesBuilder:
    """Collects trees; each adds its leaf values to one of the sums."""

    features: Sequence[Feature]
    sums: int
    roots: list[int] = field(default_factory=list)
    n_nodes: int = 0
    columns: dict[str, list[Array]] = field(default_factory=dict)
    values: list[Matrix] = field(default_factory=list)
    domains: list[Domain] = field(default_factory=list)
    members: list[bool] = field(default_factory=list)
    domain_ids: dict[int, int] = field(default_factory=dict)
    set_starts: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def add(self, tree: SourceTree, output: int = 0, *, factor: float = 1.0) -> None:
        """Append a tree; its leaf values are multiplied by the factor.

        If a leaf has one value, it is added to one of the sums, the output.
        """
        order = tree.order()
        tests = {node: self._tests(tree, node) for node in order if tree.left[node] >= 0}
        places, size = {}, self.n_nodes
        for node in order:
            places[node] = size
            size += len(tests.get(node, (None,)))
        self._check_size(size)
        rows: list[dict[str, Any]] = []
        values = np.zeros((size - self.n_nodes, self.sums))
        for node in order:
            if node in tests:
                children = places[int(tree.left[node])], places[int(tree.right[node])]
                rows += _linked(tests[node], places[node], children)
            else:
                rows.append({})
                _set_leaf(values[places[node] - self.n_nodes], tree, node, output)
        for name, kind in NODE_TYPES.items():
            default = -1 if name == "flag" else 0
            column = np.array([row.get(name, default) for row in rows], dtype=kind)
            self.columns.setdefault(name, []).append(column)
        self.roots.append(self.n_nodes)
        self.values.append(values * factor)
        self.n_nodes = size

    def add_constants(self, constants: Vector) -> None:
        """Append a tree of one leaf: numbers that the library adds after all trees so far."""
        nodes = np.array([-1])
        self.add(SourceTree("constant", nodes, nodes, nodes, constants[None, :], _no_split))

    def _check_size(self, n_nodes: int) -> None:
        if n_nodes > MAX_NODES or n_nodes * self.sums > MAX_VALUES:
            raise NetworkError(
                f"the ensemble is too large: got more than {n_nodes:,} nodes with {self.sums} "
                f"values each; expected at most {MAX_NODES:,} nodes and {MAX_VALUES:,} values"
            )

    def _tests(self, tree: SourceTree, node: int) -> list[dict[str, Any]]:
        """Return the nodes of FETA that replace one inner node, without their children."""
        index = int(tree.feature[node])
        if not 0 <= index < len(self.features):
            raise NetworkError(
                f"{tree.name}, node {node}: invalid feature: got {index}; expected one of "
                f"{len(self.features)} features"
            )
        feature, split = self.features[index], tree.split(node)
        if isinstance(feature, ListedFeature):
            return [self._set(index, feature, split)]
        if not isinstance(split, Bands):
            raise NetworkError(
                f"{tree.name}, node {node}: got a test of categories of the number "
                f"{feature.name!r}; declare the column as a category with its values"
            )
        return _cuts(feature, split.joined())

    def _set(self, index: int, feature: ListedFeature, split: Split) -> dict[str, Any]:
        if index not in self.domain_ids:
            self.domain_ids[index] = len(self.domains)
            self.domains.append(feature.domain)
        domain, left = self.domain_ids[index], split.goes_left(feature.numbers).astype(bool)
        key = (domain, left.tobytes())
        if key not in self.set_starts:
            self.set_starts[key] = len(self.members)
            self.members += left.tolist()
        return {"kind": SET, "source": domain, "start": self.set_starts[key], "sides": (0, 1)}

    def trees(self) -> Trees:
        """Return all trees."""
        if not self.roots:
            raise NetworkError("an ensemble needs at least one tree: got none; train it first")
        nodes = {name: np.concatenate(parts) for name, parts in self.columns.items()}
        return Trees(
            np.array(self.roots),
            **nodes,
            values=np.concatenate(self.values),
            members=np.array(self.members, dtype=bool),
            domains=tuple(self.domains),
        )


def _no_split(node: int) -> Split:
    raise AssertionError(f"a leaf has no test: {node}")


def _cuts(feature: NumberFeature, bands: Bands) -> list[dict[str, Any]]:
    """Return one cut per edge; 0 and 1 in `sides` are the children, None is the next cut."""
    node = {"kind": CUT, "source": feature.column, "flag": feature.flag}
    last = len(bands.edges) - 1
    cuts = []
    for index, edge in enumerate(bands.edges):
        below = 0 if bands.left[index] else 1
        above = (0 if bands.left[-1] else 1) if index == last else None
        missing_below = bands.left[index] == bands.missing_left
        cuts.append(
            node | {"cut": edge, "missing_left": missing_below, "sides": (below, above)},
        )
    return cuts


def _linked(
    tests: list[dict[str, Any]], place: int, children: tuple[int, int]
) -> list[dict[str, Any]]:
    """Return the nodes with their children; several cuts follow one another."""
    rows = []
    for index, test in enumerate(tests):
        left, right = test["sides"]
        after = place + index + 1 if right is None else children[right]
        rows.append(test | {"left": children[left], "right": after})
    return rows


def _set_leaf(row: Vector, tree: SourceTree, node: int, output: int) -> None:
    """Write the values of a leaf into the row of its sums."""
    values = tree.values[node]
    if not np.isfinite(values).all():
        raise NetworkError(
            f"{tree.name}, node {node}: invalid value of a leaf: got {values}; "
            "expected finite numbers"
        )
    if values.ndim:
        row[:] = values
    else:
        row[output] = values
