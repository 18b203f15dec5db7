"""Construction of trees node by node."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Flags, Vector
from feta.errors import NetworkError
from feta.scorer.forest.trees import CUT, LEAF, SET, Domain, Numbers, OneHot, Trees


@dataclass(frozen=True, slots=True)
class CutTest:
    """A number goes left if it is at most the cut; `flag` is the column of its missing flag."""

    column: int
    cut: float
    flag: int = -1
    missing_left: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SetTest:
    """The values of a domain with a True entry go left."""

    domain: Domain
    members: Flags


NodeTest = CutTest | SetTest


class TreesBuilder:
    """Appends nodes; equal sets and domains are stored once.

    Add a node before its children, then link them. A root is the first node of its tree.
    """

    def __init__(self, sums: int) -> None:
        self._sums = sums
        self._roots: list[int] = []
        self._columns: dict[str, list[float]] = {
            name: [] for name in ("kind", "source", "cut", "flag", "missing_left", "start")
        }
        self._children: list[list[int]] = []
        self._values: list[Vector] = []
        self._domains: dict[tuple[object, ...], tuple[int, Domain]] = {}
        self._members: list[Flags] = []
        self._n_members = 0
        self._starts: dict[bytes, int] = {}

    def root(self, node: int) -> None:
        """Start a tree at a node."""
        self._roots.append(node)

    def leaf(self, values: Sequence[float] | Vector) -> int:
        """Append a leaf; return its index."""
        return self._append(LEAF, values=np.asarray(values, dtype=np.float64))

    def inner(self, test: NodeTest) -> int:
        """Append a node with a test; return its index."""
        if isinstance(test, CutTest):
            return self._append(
                CUT,
                source=test.column,
                cut=test.cut,
                flag=test.flag,
                missing_left=test.missing_left,
            )
        if len(test.members) != len(test.domain):
            raise NetworkError(
                f"invalid set of a tree: got {len(test.members)} entries; "
                f"expected {len(test.domain)}, one per value"
            )
        source = self._domain(test.domain)
        return self._append(SET, source=source, start=self._start(test.members))

    def link(self, node: int, *, left: int, right: int) -> None:
        """Set the children of a node."""
        self._children[node] = [left, right]

    def build(self) -> Trees:
        """Return all trees."""
        n_nodes = len(self._children)
        children = np.array(self._children, dtype=np.int64).reshape(n_nodes, 2)
        return Trees(
            np.array(self._roots, dtype=np.int64),
            self._column("kind", np.int8),
            self._column("source", np.int64),
            self._column("cut", np.float64),
            self._column("flag", np.int64),
            self._column("missing_left", np.bool_),
            self._column("start", np.int64),
            children[:, 0],
            children[:, 1],
            np.array(self._values, dtype=np.float64).reshape(n_nodes, self._sums),
            np.concatenate([*self._members, np.zeros(0, dtype=bool)]),
            tuple(domain for _, domain in self._domains.values()),
        )

    def _append(
        self,
        kind: int,
        *,
        values: Vector | None = None,
        source: int = 0,
        cut: float = 0.0,
        flag: int = -1,
        missing_left: bool = False,
        start: int = 0,
    ) -> int:
        row = (kind, source, cut, flag, missing_left, start)
        for column, entry in zip(self._columns.values(), row, strict=True):
            column.append(entry)
        self._children.append([0, 0])
        self._values.append(np.zeros(self._sums) if values is None else values)
        return len(self._children) - 1

    def _column(self, name: str, kind: type[np.generic]) -> Array:
        return np.array(self._columns[name]).astype(kind)

    def _domain(self, domain: Domain) -> int:
        key: tuple[object, ...]
        match domain:
            case OneHot(first=first, width=width):
                key = (first, width)
            case Numbers(column=column, numbers=numbers, flag=flag):
                key = (column, flag, numbers.tobytes())
        index, _ = self._domains.setdefault(key, (len(self._domains), domain))
        return index

    def _start(self, members: Flags) -> int:
        key = np.asarray(members, dtype=bool).tobytes()
        if key not in self._starts:
            self._starts[key] = self._n_members
            self._members.append(np.asarray(members, dtype=bool))
            self._n_members += len(members)
        return self._starts[key]
