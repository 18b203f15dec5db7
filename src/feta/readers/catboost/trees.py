"""The trees of a CatBoost document: symmetric ones as lists of tests, others as nested nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Counts
from feta.errors import NetworkError
from feta.readers.trees.builder import MAX_NODES, SourceTree
from feta.readers.trees.document import Place
from feta.readers.trees.splits import Split

# CatBoost's own limit.
MAX_DEPTH = 16

# What a test stores, by its kind.
STORED = {"FloatFeature": "border", "OneHotFeature": "value", "OnlineCtr": "border"}


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """A test of one feature; trees refer to it by its index."""

    __test__ = False  # not a test of pytest

    feature: int
    split: Split
    stored: float  # the border, or the category


@dataclass(frozen=True, slots=True, eq=False)
class _NodeTests:
    """The tests of the inner nodes of one tree."""

    tests: Sequence[Test]
    indices: Counts  # (nodes,): −1 for leaves

    def split(self, node: int) -> Split:
        """Return the test of a node."""
        return self.tests[self.indices[node]].split

    def features(self) -> Counts:
        """Return the feature of each node; that of a leaf has no meaning."""
        features = np.array([test.feature for test in self.tests] or [0])
        return features[np.maximum(self.indices, 0)]


def read_trees(document: Place, tests: Sequence[Test], n_outputs: int) -> tuple[SourceTree, ...]:
    """Return all trees of a document."""
    if document.has("oblivious_trees"):
        places, read = document.member("oblivious_trees").items(), _symmetric
    else:
        places, read = document.member("trees").items(), _nested
    trees = []
    for index, place in enumerate(places):
        try:
            trees.append(read(place, tests, n_outputs, f"tree {index}"))
        except NetworkError as error:
            text = str(error)
            raise NetworkError(text if "tree" in text else f"tree {index}: {text}") from None
    return tuple(trees)


def _symmetric(place: Place, tests: Sequence[Test], n_outputs: int, name: str) -> SourceTree:
    """Return a symmetric tree: bit i of the index of a leaf is the result of test i."""
    splits = [] if place.member("splits").value is None else place.member("splits").items()
    depth = len(splits)
    if depth > MAX_DEPTH:
        raise NetworkError(f"{name} is too deep: got {depth} tests; expected at most {MAX_DEPTH}")
    leaves = place.member("leaf_values").doubles(2**depth * n_outputs).reshape(-1, n_outputs)
    levels = [_test_index(split, tests) for split in splits]
    first_leaf = 2**depth - 1
    left = np.full(first_leaf + 2**depth, -1)
    right, indices = left.copy(), left.copy()
    for level, index in enumerate(levels):
        # The place of a node in its level has the results of the tests before it as bits.
        start, count = 2**level - 1, 2**level
        here = slice(start, start + count)
        left[here] = start + count + np.arange(count)
        right[here] = left[here] + count
        indices[here] = index
    values = np.concatenate([np.zeros((first_leaf, n_outputs)), leaves])
    return _tree(name, (left, right), _NodeTests(tests, indices), values)


def _nested(place: Place, tests: Sequence[Test], n_outputs: int, name: str) -> SourceTree:
    """Return a tree of nested nodes, without recursion."""
    places = [place]
    left, right, indices = [], [], []
    values = []
    for node in places:
        if not node.has("split"):
            left.append(-1)
            right.append(-1)
            indices.append(-1)
            values.append(_leaf(node.member("value"), n_outputs))
            continue
        left.append(len(places))
        right.append(len(places) + 1)
        indices.append(_test_index(node.member("split"), tests))
        values.append(np.zeros(n_outputs))
        places += [
            Place(node.member("left").value, f"{name}, node {left[-1]}"),
            Place(node.member("right").value, f"{name}, node {right[-1]}"),
        ]
        if len(places) > MAX_NODES:
            raise NetworkError(f"{name} is too large: expected at most {MAX_NODES:,} nodes")
    children = np.array(left), np.array(right)
    return _tree(name, children, _NodeTests(tests, np.array(indices)), np.stack(values))


def _leaf(value: Place, n_outputs: int) -> Array:
    single = not isinstance(value.value, list)
    numbers = np.array([value.number()]) if single else value.doubles()
    if len(numbers) != n_outputs:
        raise value.error(f"{n_outputs} numbers")
    return numbers


def _tree(
    name: str, children: tuple[Counts, Counts], nodes: _NodeTests, values: Array
) -> SourceTree:
    return SourceTree(name, *children, nodes.features(), values, nodes.split)


def _test_index(place: Place, tests: Sequence[Test]) -> int:
    """Return the index of a test; the test also states its border or category, which must agree."""
    index = place.member("split_index").integer()
    if not 0 <= index < len(tests):
        raise place.member("split_index").error(f"one of {len(tests)} tests")
    kind = place.member("split_type").text()
    if kind not in STORED:
        raise place.member("split_type").error(f"one of {', '.join(STORED)}")
    stored = place.member(STORED[kind])
    number = stored.number()
    if kind != "OneHotFeature":
        with np.errstate(over="ignore"):
            number = float(np.float32(number))
    if number != tests[index].stored:
        raise stored.error(f"{tests[index].stored}, that of test {index} of the features")
    return index
