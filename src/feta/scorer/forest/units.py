"""Scores of an ensemble as integers: multiples of one unit, so that sums are exact."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Array, BigIntegers, Counts, Matrix, Vector
from feta.rounding import FLOAT64, upward
from feta.scorer.forest.trees import LEAF

if TYPE_CHECKING:
    from feta.scorer.forest.forest import Forest

# Sums of this many bits; twice the bound of a score leaves room for differences.
NARROW, WIDE = 62, 126

# Units below this are not used: they are near the smallest float64 numbers.
SMALLEST_EXPONENT = -900


@dataclass(frozen=True, eq=False)
class Units:
    """The leaf values of each output in units of 2^exponent / denominator."""

    forest: "Forest"

    @cached_property
    def leaves(self) -> Counts:
        """The nodes that are leaves."""
        return np.flatnonzero(self.forest.trees.kind == LEAF)

    @cached_property
    def _numbers(self) -> tuple[BigIntegers, int]:
        """The outputs of leaves, then of the base, and their exponent, as large as possible."""
        exact = self.forest.exact_leaves
        both = np.vstack([exact.values.numerators[self.leaves], exact.base.numerators])
        directions = np.array(self.forest.directions.astype(np.int64).tolist(), dtype=object)
        outputs = both @ directions.T
        common = int(np.bitwise_or.reduce(outputs.ravel()))
        zeros = (common & -common).bit_length() - 1 if common else 0
        return np.asarray(outputs >> zeros, dtype=object), exact.values.exponent + zeros

    @property
    def values(self) -> BigIntegers:
        """The outputs of leaves, (leaves, outputs)."""
        return np.asarray(self._numbers[0][:-1])

    @property
    def base(self) -> BigIntegers:
        """The outputs of the base."""
        return np.asarray(self._numbers[0][-1])

    @property
    def exponent(self) -> int:
        """The exponent of the unit."""
        return self._numbers[1]

    @cached_property
    def sizes(self) -> Vector:
        """The largest possible sum of absolute leaf values and base, by sum."""
        forest = self.forest
        return self._largest(forest.trees.values[self.leaves]) + np.abs(forest.base)

    @cached_property
    def owners(self) -> Counts:
        """The tree of each leaf."""
        trees = self.forest.trees
        owners = np.zeros(len(trees.kind), dtype=np.int64)
        nodes, of = trees.roots, np.arange(len(trees.roots))
        while len(nodes):
            owners[nodes] = of
            inner = trees.kind[nodes] != LEAF
            nodes, of = nodes[inner], of[inner]
            nodes = np.concatenate([trees.left[nodes], trees.right[nodes]])
            of = np.concatenate([of, of])
        return owners[self.leaves]

    def _largest(self, values: Matrix) -> Vector:
        """Return the sum over all trees of the largest absolute value of a leaf."""
        largest = np.zeros((len(self.forest.trees.roots), values.shape[1]))
        np.maximum.at(largest, self.owners, np.abs(values))
        return np.asarray(largest.sum(axis=0))

    @cached_property
    def terms(self) -> Matrix:
        """What the library adds for each leaf, (leaves, sums)."""
        summation, values = self.forest.summation, self.forest.trees.values[self.leaves]
        start = summation.start.astype(np.dtype(summation.format))
        terms = np.zeros(values.shape)
        for tree in np.unique(self.owners).tolist():
            own = self.owners == tree
            terms[own] = summation.term(values[own], tree, start)
        return terms

    @cached_property
    def bits(self) -> int:
        """The bits of integers for all sums and their combinations; 0 if there are too many."""
        forest = self.forest
        whole = np.array_equal(forest.directions, np.round(forest.directions))
        if not whole or self.exponent < SMALLEST_EXPONENT:
            return 0
        largest = float((np.abs(forest.directions) @ self.sizes).max(initial=0.0)) * upward(10**6)
        bound = Fraction(largest) / Fraction(2) ** self.exponent * 4 * (forest.outputs + 1)
        return next((bits for bits in (NARROW, WIDE) if bound < 2**bits), 0)

    def of(self, score: float | Fraction) -> Fraction:
        """Return a score in units."""
        return Fraction(score) * self.forest.denominator / Fraction(2) ** self.exponent

    @cached_property
    def radius(self) -> float:
        """A bound on the rounding error of the library's scores; infinite if there is none."""
        forest = self.forest
        summation, arithmetic, n_terms = forest.summation, forest.arithmetic, self.n_terms
        shift = np.abs(summation.start - forest.base)
        shift += self._largest(self.terms - forest.trees.values[self.leaves])
        # Twice the error of float64: that of the score and that of its difference to the library's.
        relative = arithmetic.gamma(n_terms) + 2 * FLOAT64.gamma(n_terms)
        errors = relative * (self.sizes + shift) + shift + n_terms * arithmetic.tiny
        largest = float((np.abs(forest.directions) @ errors).max()) / forest.denominator
        return largest * upward(n_terms)

    @property
    def n_terms(self) -> int:
        """The terms of a score: one per tree and sum, the base, and a division."""
        return len(self.forest.trees.roots) + self.forest.trees.sums + 4

    def pairs(self, numbers: Array | list[int]) -> Array:
        """Return integers as rows of two int64, the high and the low bits, for the kernel."""
        flat = np.asarray(numbers, dtype=object).ravel().tolist()
        limit = 1 << self.bits
        data = b"".join(
            (number & (1 << 128) - 1).to_bytes(16, "little")
            for number in (max(-limit, min(limit, int(number))) for number in flat)
        )
        return np.ascontiguousarray(np.frombuffer(data, dtype="<i8").reshape(-1, 2)[:, ::-1])
