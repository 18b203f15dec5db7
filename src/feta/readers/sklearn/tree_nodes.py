"""Nodes of scikit-learn's trees, in one form for all kinds of estimators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.absorb.tree_tests import RawTest, Splits
from feta.arrays import Counts, Flags, Matrix, Vector
from feta.scorer.forest.builder import TreesBuilder
from feta.scorer.forest.trees import Trees

# The codes that a category of HistGradientBoosting can have.
N_CODES = 256


@dataclass(frozen=True, slots=True, eq=False)
class SourceTree:
    """One tree; −1 marks the children of a leaf."""

    left: Counts
    right: Counts
    feature: Counts
    threshold: Vector
    missing_left: Flags
    values: Matrix  # (nodes, sums): of leaves
    category: Counts  # the row of `categories`, or −1
    categories: Flags  # (rows, codes): the codes that go left


def read_tree(tree: Any, values: Matrix) -> SourceTree:  # noqa: ANN401 - scikit-learn ships no types
    """Read the `tree_` of a decision tree; `values` has a row per node."""
    n_nodes = int(tree.node_count)
    return SourceTree(
        np.asarray(tree.children_left, dtype=np.int64),
        np.asarray(tree.children_right, dtype=np.int64),
        np.asarray(tree.feature, dtype=np.int64),
        np.asarray(tree.threshold, dtype=np.float64),
        np.asarray(tree.missing_go_to_left).astype(bool),
        values,
        np.full(n_nodes, -1),
        np.zeros((0, N_CODES), dtype=bool),
    )


def read_predictor(
    predictor: Any,  # noqa: ANN401 - scikit-learn ships no types
    values: Matrix,
    known: Flags,
) -> SourceTree:
    """Read a tree of HistGradientBoosting; `known` flags the codes of each feature."""
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    coded = np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf)
    category = np.full(len(nodes), -1)
    category[coded] = np.arange(len(coded))
    listed = _bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][coded]])
    missing_left = nodes["missing_go_to_left"].astype(bool)
    # An unknown code counts as missing.
    unknown = ~known[nodes["feature_idx"][coded]] & missing_left[coded, None]
    return SourceTree(
        np.where(leaf, -1, nodes["left"].astype(np.int64)),
        np.where(leaf, -1, nodes["right"].astype(np.int64)),
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"].astype(np.float64),
        missing_left,
        values,
        category,
        listed | unknown,
    )


def known_codes(bin_mapper: Any, n_features: int) -> Flags:  # noqa: ANN401 - scikit-learn ships no types
    """Return the codes that HistGradientBoosting knows, (features, codes)."""
    bitsets, rows = bin_mapper.make_known_categories_bitsets()
    known = np.zeros((n_features, N_CODES), dtype=bool)
    flags = np.asarray(bin_mapper.is_categorical_, dtype=bool)
    known[flags] = _bits(bitsets[rows[flags]])
    return known


def _bits(bitsets: Any) -> Flags:  # noqa: ANN401 - an array of integers
    """Unpack bitsets of 8 integers with 32 bits each."""
    words = np.asarray(bitsets, dtype=np.uint32).reshape(-1, N_CODES // 32)
    bits = (words[:, :, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return np.asarray(bits.reshape(-1, N_CODES), dtype=bool)


def all_splits(trees: Sequence[SourceTree], *, single: bool) -> Splits:
    """Return the inner nodes of all trees, one tree after the other."""
    inner = [tree.left >= 0 for tree in trees]
    pairs = list(zip(trees, inner, strict=True))
    offsets = np.cumsum([0, *(len(tree.categories) for tree in trees)])
    category = [
        np.where(tree.category[at] >= 0, tree.category[at] + offset, -1)
        for (tree, at), offset in zip(pairs, offsets.tolist(), strict=False)
    ]
    return Splits(
        np.concatenate([tree.feature[at] for tree, at in pairs]),
        np.concatenate([tree.threshold[at] for tree, at in pairs]),
        np.concatenate([tree.missing_left[at] for tree, at in pairs]),
        np.concatenate(category),
        np.concatenate([tree.categories for tree in trees]),
        single,
    )


def build_trees(trees: Sequence[SourceTree], tests: Sequence[RawTest]) -> Trees:
    """Return trees with raw tests, which are in the order of `all_splits`."""
    builder = TreesBuilder(trees[0].values.shape[1])
    first = 0
    for tree in trees:
        inner = tree.left >= 0
        of_inner = iter(tests[first : first + int(inner.sum())])
        _add_tree(builder, tree, [next(of_inner) if flag else False for flag in inner.tolist()])
        first += int(inner.sum())
    return builder.build()


def _add_tree(builder: TreesBuilder, tree: SourceTree, tests: Sequence[RawTest]) -> None:
    """Append a tree, without the nodes at which everybody goes to the same side."""
    left, right = tree.left.tolist(), tree.right.tolist()

    def settled(node: int) -> int:
        while left[node] >= 0:
            test = tests[node]
            if not isinstance(test, bool):
                break
            node = left[node] if test else right[node]
        return node

    def add(node: int) -> int:
        test = tests[node]
        if left[node] < 0 or isinstance(test, bool):
            return builder.leaf(tree.values[node])
        return builder.inner(test)

    root = settled(0)
    index = add(root)
    builder.root(index)
    rest = [(root, index)]
    while rest:
        node, index = rest.pop()
        if left[node] < 0:
            continue
        children = [settled(left[node]), settled(right[node])]
        indices = [add(child) for child in children]
        builder.link(index, left=indices[0], right=indices[1])
        rest += zip(children, indices, strict=True)
