"""Evaluation of people by a tree ensemble: float64 with an error bound, or exact."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.dyadic import Dyadic
from feta.rounding import FLOAT64, Arithmetic, upward
from feta.scorer.exact_scores import ExactScores
from feta.scorer.forest.trees import Trees
from feta.scorer.protocol import Enclosure

if TYPE_CHECKING:
    from feta.scorer.forest.forest import Forest

# Sums of numbers below this fit in int64, whatever their order.
LARGEST_SUM = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class ExactLeaves:
    """Leaf values and base as integers times one power of two."""

    values: Dyadic  # (nodes, sums)
    base: Dyadic  # (sums,), with the same exponent
    small: Counts | None  # the values as int64, if no sum of them can overflow

    @classmethod
    def of(cls, trees: Trees, base: Vector) -> "ExactLeaves":
        """Convert exactly."""
        both = Dyadic.of(np.vstack([trees.values, base]))
        numerators = both.numerators
        largest = sum(abs(int(number)) for number in numerators.ravel())
        small = numerators[:-1].astype(np.int64) if largest < LARGEST_SUM else None
        values = Dyadic(numerators[:-1], both.exponent)
        return cls(values, Dyadic(numerators[-1], both.exponent), small)

    def sums(self, leaves: Counts) -> Dyadic:
        """Add the base and the values of leaves, (people, trees) → (people, sums)."""
        if self.small is not None:
            totals = self.small[leaves].sum(axis=1).astype(object)
        else:
            totals = self.values.numerators[leaves].sum(axis=1)
        return Dyadic(np.asarray(totals, dtype=object), self.values.exponent) + self.base


@dataclass(frozen=True, eq=False)
class ForestRows:
    """People, one per row."""

    forest: "Forest"
    people: Matrix

    def __len__(self) -> int:
        return len(self.people)

    @cached_property
    def leaves(self) -> Counts:
        """The leaf that each person reaches in each tree."""
        return self.forest.leaf_search.leaves(self.people)

    def replayed(self, chosen: Counts | None = None) -> Matrix:
        """Compute the scores in the library's own order and format."""
        forest = self.forest
        leaves = self.leaves if chosen is None else self.leaves[chosen]
        sums = forest.summation.replay(forest.trees.values[leaves], forest.denominator)
        if not forest.summation.divide:
            sums = sums / forest.denominator
        return np.asarray(sums @ forest.directions.T)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the library's own sum.

        The library's sum is replayed, so its actual error counts, not a bound on it.
        """
        forest = self.forest
        leaves = self.leaves if chosen is None else self.leaves[chosen]
        values = forest.trees.values[leaves]
        sums = values.sum(axis=1) + forest.base
        sizes = np.abs(values).sum(axis=1) + np.abs(forest.base)
        # One sum of the values, one combination of sums, one division: the bound covers any order.
        n_terms = values.shape[1] + forest.trees.sums + 4
        absolute = np.abs(forest.directions).T
        scores = sums @ forest.directions.T / forest.denominator
        errors = (FLOAT64.gamma(n_terms) * sizes) @ absolute / forest.denominator
        errors = errors * upward(n_terms) + FLOAT64.tiny * n_terms
        if arithmetic is not FLOAT64:
            errors = (errors + np.abs(self.replayed(chosen) - scores)) * upward(4)
        return Enclosure(scores, errors)

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Compute exact scores, (points, outputs)."""
        forest = self.forest
        sums = ExactScores(forest.exact_leaves.sums(self.leaves[chosen]))
        return sums.combined(forest.directions).over(forest.denominator)
