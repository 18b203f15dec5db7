"""The leaves that people reach, from the compiled module, or by `Trees.leaves` without it."""

from functools import cached_property
from typing import Any

import numpy as np

from feta.arrays import Counts, Matrix
from feta.scorer.forest.kernel import native
from feta.scorer.forest.trees import SET, Trees


class LeafSearch:
    """The trees in the compiled module; it is built at first use."""

    def __init__(self, trees: Trees, width: int) -> None:
        self.trees, self.width = trees, width

    def __reduce__(self) -> "tuple[type[LeafSearch], tuple[Trees, int]]":
        """Leave out the compiled object, which a copy builds again."""
        return LeafSearch, (self.trees, self.width)

    @cached_property
    def _rows(self) -> Any:  # noqa: ANN401 - compiled
        trees = self.trees
        columns = (trees.source, trees.flag, trees.start, trees.left, trees.right)
        return native.ForestRows(
            self.width,
            len(trees.domains),
            np.ascontiguousarray(trees.roots, dtype=np.int64),
            np.ascontiguousarray(trees.kind, dtype=np.uint8),
            np.ascontiguousarray(trees.cut, dtype=np.float64),
            np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int64),
            np.ascontiguousarray(trees.missing_left, dtype=np.uint8),
            np.ascontiguousarray(trees.members, dtype=np.uint8),
        )

    def leaves(self, people: Matrix) -> Counts:
        """Return the leaf that each person reaches in each tree, (people, trees)."""
        if native is None:
            return self.trees.leaves(people)
        used = np.unique(self.trees.source[self.trees.kind == SET]).tolist()
        indices = np.zeros((len(people), len(self.trees.domains)), dtype=np.int64)
        for domain in used:
            indices[:, domain] = self.trees.domains[domain].indices(people)
        people = np.ascontiguousarray(people, dtype=np.float64)
        leaves: Counts = self._rows.leaves(people, indices)
        return leaves
