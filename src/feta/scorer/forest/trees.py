"""Trees as flat arrays of nodes.

An inner node tests one attribute of an encoded person and goes left or right. A number goes left if
it is at most the cut. Cuts are in raw units: a reader has already applied the casts and the
comparison of its library. Any other test is a set of values that go left.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Counts, Flags, Matrix, Vector, frozen
from feta.errors import NetworkError

# Kinds of nodes.
LEAF, CUT, SET = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class OneHot:
    """The values of a category: the index of the column that is 1."""

    first: int
    width: int

    def __len__(self) -> int:
        return self.width

    def indices(self, people: Matrix) -> Counts:
        """Return the index of each person's value."""
        return np.argmax(people[:, self.first : self.first + self.width], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The values of a finite number, ascending; a missing number is one more value."""

    column: int
    numbers: Vector
    flag: int = -1  # the column that is 1 where the number is missing; −1 if it never is

    def __len__(self) -> int:
        return len(self.numbers) + (self.flag >= 0)

    def indices(self, people: Matrix) -> Counts:
        """Return the index of each person's value; an unlisted number counts as the next one."""
        indices = np.searchsorted(self.numbers, people[:, self.column])
        indices = np.minimum(indices, len(self.numbers) - 1)
        if self.flag < 0:
            return indices
        return np.where(people[:, self.flag] == 1, len(self.numbers), indices)


Domain = OneHot | Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """All nodes of an ensemble; the children of a node come after it."""

    roots: Counts  # (trees,)
    kind: Array  # (nodes,): LEAF, CUT or SET
    source: Counts  # CUT: the column of the number; SET: the index of the domain
    cut: Vector  # CUT: the largest number that goes left
    flag: Counts  # CUT: the column that is 1 where the number is missing, or −1
    missing_left: Flags  # CUT: where a missing number goes
    start: Counts  # SET: the first of its entries in `members`
    left: Counts
    right: Counts
    values: Matrix  # (nodes, sums): of leaves; 0 elsewhere
    members: Flags  # whether a value goes left, for all sets one after the other
    domains: tuple[Domain, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))
        n_nodes = len(self.kind)
        names = ("source", "cut", "flag", "missing_left", "start", "left", "right", "values")
        lengths = {name: len(getattr(self, name)) for name in names}
        if any(length != n_nodes for length in lengths.values()):
            raise NetworkError(
                f"invalid arrays of trees: got the lengths {lengths}; expected {n_nodes} nodes each"
            )
        if not len(self.roots) or not n_nodes:
            raise NetworkError("an ensemble needs at least one tree: got none")
        self._check_nodes()

    def _check_nodes(self) -> None:
        n_nodes, inner = len(self.kind), self.kind != LEAF
        at = np.arange(n_nodes)
        for children in (self.left, self.right):
            if (inner & ~((children > at) & (children < n_nodes))).any():
                raise NetworkError(
                    "invalid tree: got a child before its parent, or none; expected every inner "
                    "node to have two children after it"
                )
        if not ((self.roots >= 0) & (self.roots < n_nodes)).all():
            raise NetworkError(f"invalid roots of trees: got {self.roots}; expected nodes")
        if np.isnan(self.cut[self.kind == CUT]).any() or not np.isfinite(self.values).all():
            raise NetworkError("invalid numbers of a tree: got NaN or infinity; expected numbers")
        for node in np.flatnonzero(self.kind == SET).tolist():
            stop = self.start[node] + len(self.domains[self.source[node]])
            if not 0 <= self.start[node] <= stop <= len(self.members):
                raise NetworkError("invalid set of a tree: got entries beyond the stored ones")

    @property
    def sums(self) -> int:
        """The number of values of a leaf."""
        return int(self.values.shape[1])

    def leaves(self, people: Matrix) -> Counts:
        """Return the leaf that each person reaches in each tree, (people, trees)."""
        indices = np.stack(
            [domain.indices(people) for domain in self.domains]
            or [np.zeros(len(people), dtype=np.int64)],
            axis=1,
        )
        nodes = np.repeat(self.roots[None, :], len(people), axis=0)
        rows = np.repeat(np.arange(len(people))[:, None], len(self.roots), axis=1)
        active = np.ones(nodes.shape, dtype=bool)
        while True:
            active &= self.kind[nodes] != LEAF
            if not active.any():
                return nodes
            at, who = nodes[active], rows[active]
            nodes[active] = np.where(
                self._goes_left(at, who, people, indices), self.left[at], self.right[at]
            )

    def _goes_left(self, nodes: Counts, rows: Counts, people: Matrix, indices: Counts) -> Flags:
        cuts = self.kind[nodes] == CUT
        source = self.source[nodes]
        left = np.zeros(len(nodes), dtype=bool)
        at = np.flatnonzero(cuts)
        left[at] = people[rows[at], source[at]] <= self.cut[nodes[at]]
        flags = self.flag[nodes[at]]
        missing = (flags >= 0) & (people[rows[at], flags] == 1)
        left[at] = np.where(missing, self.missing_left[nodes[at]], left[at])
        at = np.flatnonzero(~cuts)
        entries = self.start[nodes[at]] + indices[rows[at], source[at]]
        left[at] = self.members[entries] if len(at) else left[at]
        return left

    def columns(self) -> set[int]:
        """Return all columns that some test reads."""
        read = set(self.source[self.kind == CUT].tolist())
        read |= {flag for flag in self.flag[self.kind == CUT].tolist() if flag >= 0}
        for index in set(self.source[self.kind == SET].tolist()):
            domain = self.domains[index]
            if isinstance(domain, OneHot):
                read |= set(range(domain.first, domain.first + domain.width))
            else:
                read |= {domain.column} | ({domain.flag} if domain.flag >= 0 else set())
        return read
