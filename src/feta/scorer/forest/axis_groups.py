"""Sensitive attributes as an ensemble reads them: values it never distinguishes are one group."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Counts, Flags, Matrix
from feta.scorer.forest.trees import CUT, SET, Domain, Numbers, OneHot, Trees
from feta.space.axis import Axis

# Entries of the table of values by nodes of one axis, one byte each.
MAX_ENTRIES = 2**26


@dataclass(frozen=True, slots=True, eq=False)
class AxisGroups:
    """The groups of one axis, in the order of their lowest values, and the masks of its nodes."""

    group: Counts  # by value
    sizes: Counts  # by group: the number of its values
    first: Counts  # by group: the index of its lowest value
    masks: Flags  # (masks, groups): the groups that go left
    ordered: bool  # whether the values are numbers


@dataclass(frozen=True, slots=True, eq=False)
class SensitiveNodes:
    """The axis and the mask of each node; −1 for nodes that read shared columns."""

    axis: Counts
    mask: Counts
    groups: tuple[AxisGroups, ...]

    @classmethod
    def of(cls, trees: Trees, axes: Sequence[Axis], width: int) -> "SensitiveNodes | None":
        """Return them, or None if a node reads two attributes, or an axis is too long."""
        owner = np.full(width + 1, -1)  # the last entry is that of the column −1
        for index, axis in enumerate(axes):
            owner[list(axis.columns)] = index
        node_axes = _axis_of_nodes(trees, owner)
        if node_axes is None:
            return None
        mask, groups = np.full(len(trees.kind), -1), []
        for index, axis in enumerate(axes):
            nodes = np.flatnonzero(node_axes == index)
            if len(nodes) * len(axis) > MAX_ENTRIES or len(axis) * width > MAX_ENTRIES:
                return None
            lefts = _lefts(trees, nodes, axis, width)
            found, mask[nodes] = _groups(lefts, ordered=axis.attribute.kind != "category")
            groups.append(found)
        return cls(node_axes, mask, tuple(groups))


def columns_of(domain: Domain) -> list[int]:
    """Return the columns that a domain reads."""
    match domain:
        case OneHot(first=first, width=width):
            return list(range(first, first + width))
        case Numbers(column=column, flag=flag):
            return [column, flag] if flag >= 0 else [column]


def _axis_of_nodes(trees: Trees, owner: Array) -> Counts | None:
    """Return the axis that each node reads, or −1; None if a node reads several attributes."""
    axes = np.full(len(trees.kind), -1)
    cuts = trees.kind == CUT
    axes[cuts] = owner[trees.source[cuts]]
    flagged = cuts & (trees.flag >= 0)
    if (owner[trees.flag[flagged]] != axes[flagged]).any():
        return None
    of_domain = np.full(len(trees.domains), -1)
    for index in np.unique(trees.source[trees.kind == SET]).tolist():
        owners = {int(owner[column]) for column in columns_of(trees.domains[index])}
        if len(owners) > 1:
            return None
        of_domain[index] = owners.pop()
    sets = trees.kind == SET
    axes[sets] = of_domain[trees.source[sets]]
    return axes


def _lefts(trees: Trees, nodes: Counts, axis: Axis, width: int) -> Flags:
    """Return whether each value goes left at each node, (nodes, values)."""
    rows = np.zeros((len(axis), width))
    rows[:, list(axis.columns)] = axis.codes(np.arange(len(axis)))
    lefts = np.zeros((len(nodes), len(axis)), dtype=bool)
    for index, node in enumerate(nodes.tolist()):
        lefts[index] = _goes_left(trees, node, rows)
    return lefts


def _goes_left(trees: Trees, node: int, rows: Matrix) -> Flags:
    source = int(trees.source[node])
    if trees.kind[node] == SET:
        return trees.members[trees.start[node] + trees.domains[source].indices(rows)]
    left = rows[:, source] <= trees.cut[node]
    flag = int(trees.flag[node])
    if flag < 0:
        return np.asarray(left)
    return np.where(rows[:, flag] == 1, trees.missing_left[node], left)


def _groups(lefts: Flags, *, ordered: bool) -> tuple[AxisGroups, Counts]:
    """Group the values by the nodes; return also the mask of each node."""
    if not len(lefts):
        zeros = np.zeros(lefts.shape[1], dtype=np.int64)
        one = np.array([lefts.shape[1]])
        return AxisGroups(zeros, one, zeros[:1], np.zeros((0, 1), dtype=bool), ordered), zeros[:0]
    masks, mask = np.unique(lefts, axis=0, return_inverse=True)
    _, first, group = np.unique(masks, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    group = ranks[group.ravel()]
    found = AxisGroups(
        group, np.bincount(group), first[order], masks[:, first[order]], ordered=ordered
    )
    return found, mask.ravel()
