"""Trees built node by node."""

import numpy as np
import pytest

from feta.errors import NetworkError
from feta.scorer.forest.builder import CutTest, SetTest, TreesBuilder
from feta.scorer.forest.trees import CUT, LEAF, SET, Numbers, OneHot

TOWNS = OneHot(2, 3)
ROOMS = Numbers(5, np.array([1.0, 2.0]), flag=6)


def test_trees_send_people_where_their_tests_say() -> None:
    builder = TreesBuilder(1)
    root = builder.inner(CutTest(0, 2.5, flag=1, missing_left=True))
    builder.root(root)
    inner = builder.inner(SetTest(TOWNS, np.array([True, False, True])))
    leaves = [builder.leaf([value]) for value in (1.0, 2.0, 3.0)]
    builder.link(root, left=leaves[0], right=inner)
    builder.link(inner, left=leaves[1], right=leaves[2])
    trees = builder.build()
    assert trees.kind.tolist() == [CUT, SET, LEAF, LEAF, LEAF]
    people = np.array(
        [
            [2.5, 0, 0, 1, 0],
            [0, 1, 0, 1, 0],
            [2.6, 0, 1, 0, 0],
            [2.6, 0, 0, 1, 0],
            [9, 0, 0, 0, 1],
        ],
        dtype=np.float64,
    )
    assert trees.values[trees.leaves(people)[:, 0], 0].tolist() == [1, 1, 2, 3, 2]


def test_equal_domains_and_sets_are_stored_once() -> None:
    builder = TreesBuilder(1)
    for domain, members in (
        (TOWNS, [True, False, True]),
        (ROOMS, [True, False, True]),
        (OneHot(2, 3), [False, False, True]),
        (Numbers(5, np.array([1.0, 2.0]), flag=6), [True, False, True]),
    ):
        node = builder.inner(SetTest(domain, np.array(members)))
        builder.root(node)
        builder.link(node, left=builder.leaf([0.0]), right=builder.leaf([1.0]))
    trees = builder.build()
    tested = trees.kind == SET
    assert len(trees.domains) == 2
    assert trees.source[tested].tolist() == [0, 1, 0, 1]
    assert trees.start[tested].tolist() == [0, 0, 3, 0]
    assert len(trees.members) == 6


def test_a_set_needs_an_entry_per_value() -> None:
    with pytest.raises(NetworkError, match="invalid set of a tree: got 2 entries; expected 3"):
        TreesBuilder(1).inner(SetTest(TOWNS, np.array([True, False])))
