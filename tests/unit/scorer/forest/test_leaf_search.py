"""Leaves from the compiled module, and sums in the order of a library, compared with loops."""

import pickle

import numpy as np
import pytest

from feta.scorer.forest.kernel import native
from feta.scorer.forest.leaf_search import LeafSearch
from feta.scorer.forest.summation import Format, Summation
from tests.forests import random_forest
from tests.unit.scorer.forest.test_forest import SPACE, people


@pytest.mark.skipif(native is None, reason="the kernel was not built")
@pytest.mark.parametrize("seed", range(30))
def test_leaves_are_those_of_the_readable_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, SPACE)
    rows = people(rng, 40)
    search = pickle.loads(pickle.dumps(LeafSearch(forest.trees, forest.width)))
    np.testing.assert_array_equal(search.leaves(rows), forest.trees.leaves(rows))
    assert search.leaves(rows[:0]).shape == (0, len(forest.trees.roots))
    rows[3] = np.nan  # sensitive columns may be unknown; both go right
    np.testing.assert_array_equal(search.leaves(rows), forest.trees.leaves(rows))


@pytest.mark.skipif(native is None, reason="the kernel was not built")
def test_trees_that_would_leave_their_arrays_are_refused() -> None:
    def built(**changes: object) -> object:
        links = np.array([[0, -1, 0, 1, 2], [0, -1, 0, 0, 0], [0, -1, 0, 0, 0]])
        arrays = {
            "roots": np.array([0]),
            "kind": np.array([1, 0, 0], dtype=np.uint8),
            "links": links,
        } | changes
        zeros = np.zeros(3, dtype=np.uint8)
        return native.ForestRows(
            2, 1, arrays["roots"], arrays["kind"], np.zeros(3), arrays["links"], zeros, zeros[:1]
        )

    rows = built()
    assert rows.leaves(np.zeros((1, 2)), np.zeros((1, 1), np.int64)).tolist() == [[1]]  # type: ignore[attr-defined]  # compiled
    for row in ([2, -1, 0, 1, 2], [0, -1, 0, 0, 2], [0, -1, 0, 1, 3], [0, 2, 0, 1, 2]):
        with pytest.raises(ValueError, match="invalid node"):
            built(links=np.array([row, [0, -1, 0, 0, 0], [0, -1, 0, 0, 0]]))
    with pytest.raises(ValueError, match="invalid root"):
        built(roots=np.array([3]))
    with pytest.raises(ValueError, match="invalid people"):
        rows.leaves(np.zeros((1, 3)), np.zeros((1, 1), np.int64))  # type: ignore[attr-defined]  # compiled
    sets = built(kind=np.array([2, 0, 0], dtype=np.uint8))
    with pytest.raises(ValueError, match="invalid value of a domain"):
        sets.leaves(np.zeros((1, 2)), np.ones((1, 1), np.int64))  # type: ignore[attr-defined]  # compiled


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
def test_sums_are_added_one_after_the_other(kind: Format, weighted: bool, outputs: int) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 70, outputs)).astype(np.float32).astype(np.float64)
    weights = rng.choice([0.0, 0.5, 1.0], 70) if weighted else None
    summation = Summation("a test", kind, np.array([0.1, -3.0])[:outputs], weights, divide=True)
    number = np.float32 if kind == "float32" else np.float64
    expected = np.zeros((50, outputs))
    for row in range(50):
        for output in range(outputs):
            total = number(summation.start[output])
            for tree in range(70):
                total = number(total + summation.term(
                    values[row : row + 1, tree], tree, summation.start.astype(number)
                )[0, output])  # fmt: skip
            expected[row, output] = float(total / number(7))
    assert summation.replay(values, 7).tolist() == expected.tolist()
