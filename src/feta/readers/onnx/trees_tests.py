"""The tests of ONNX's tree nodes: true goes left."""

from dataclasses import dataclass, field

import numpy as np

from feta.arrays import Array, Counts, Flags, Vector
from feta.errors import NetworkError
from feta.readers.trees.float32_cut import float32_cuts
from feta.readers.trees.splits import Bands

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
EQUAL, NOT_EQUAL, MEMBER = 4, 5, 6

# onnxruntime compares numbers with the members of other sets after it removes their fraction.
SMALL_SET_SIZE, LARGEST_SMALL_MEMBER = 30, 30


def comparison(mode: int, numbers: Vector, *, missing_left: bool, single: bool) -> Bands:
    """Return the test of a raw number, which is first rounded to float32 if `single`."""
    below, up_to = _cuts_below(numbers, single), _cuts_up_to(numbers, single)
    if mode < EQUAL:  # ≤, <, ≥, >
        edge = (up_to if mode in (0, 3) else below)[0]
        low_left = mode < 2  # noqa: PLR2004 - small numbers satisfy the first two
        return Bands((edge,), (low_left, not low_left), missing_left)
    edges = [edge for pair in zip(below, up_to, strict=True) for edge in pair]
    equal_left = mode != NOT_EQUAL
    sides = tuple(equal_left == bool(index % 2) for index in range(len(edges) + 1))
    return Bands(tuple(edges), sides, missing_left)


def _cuts_up_to(numbers: Vector, single: bool) -> list[float]:
    """Return the largest number that is at most t, for each t."""
    if not single:
        return [float(number) for number in numbers]
    with np.errstate(over="ignore"):
        rounded = numbers.astype(np.float32)
        rounded = np.where(rounded > numbers, np.nextafter(rounded, -_INFINITE), rounded)
        above = np.nextafter(rounded, _INFINITE)
    cuts = np.where(np.isposinf(numbers), np.inf, float32_cuts(above))
    return [float(cut) for cut in cuts]


def _cuts_below(numbers: Vector, single: bool) -> list[float]:
    """Return the largest number that is less than t, for each t."""
    if not single:
        return [float(number) for number in np.nextafter(numbers, -np.inf)]
    with np.errstate(over="ignore"):
        rounded = numbers.astype(np.float32)
        rounded = np.where(rounded < numbers, np.nextafter(rounded, _INFINITE), rounded)
    return [float(cut) for cut in float32_cuts(rounded)]


_INFINITE = np.float32(np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class NodeTests:
    """The tests of some nodes."""

    modes: Array  # −1 for leaves
    thresholds: Vector
    tracks_true: Flags  # whether a missing number goes to the true branch
    members: dict[int, Vector] = field(default_factory=dict)  # of sets, by node

    @property
    def leaf(self) -> list[bool]:
        """Whether each node is a leaf."""
        return [bool(mode < 0) for mode in self.modes]

    def part(self, start: int, stop: int) -> "NodeTests":
        """Return the tests of consecutive nodes."""
        own = slice(start, stop)
        return NodeTests(self.modes[own], self.thresholds[own], self.tracks_true[own])

    def chosen(self, nodes: Counts) -> "NodeTests":
        """Return the tests of these nodes; −1 stands for a leaf."""
        at = np.maximum(nodes, 0)
        modes = np.where(nodes < 0, -1, self.modes[at])
        members = {
            index: self.members[node]
            for index, node in enumerate(nodes.tolist())
            if node in self.members
        }
        return NodeTests(modes, self.thresholds[at], self.tracks_true[at], members)

    def large_sets(self) -> list[int]:
        """Return the nodes whose sets are compared with integers only; check their members."""
        nodes = []
        for node, members in self.members.items():
            small = members.min() >= 0 and members.max() <= LARGEST_SMALL_MEMBER
            if small and len(members) <= SMALL_SET_SIZE:
                continue
            if not (np.abs(members) < 2**31).all() or (members != np.round(members)).any():
                raise NetworkError(
                    f"node {node}: invalid member of a set: got a fraction or a large number; "
                    "expected integers, which onnxruntime supports"
                )
            nodes.append(node)
        return nodes

    def bands(self, node: int, *, single: bool) -> Bands:
        """Return the test of a node on a raw number, which is rounded to float32 if `single`."""
        mode = int(self.modes[node])
        numbers = self.members.get(node, self.thresholds[node : node + 1])
        if np.isnan(numbers).any():
            raise NetworkError(f"node {node}: invalid threshold: got NaN; expected a number")
        # NaN differs from every number.
        missing_left = bool(self.tracks_true[node]) or mode == NOT_EQUAL
        return comparison(mode, np.unique(numbers), missing_left=missing_left, single=single)
