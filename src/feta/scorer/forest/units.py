"""Scores of an ensemble as integers: multiples of one unit, so that sums are exact."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Array, BigIntegers, Counts, Matrix, Vector
from feta.rounding import upward
from feta.scorer.forest.trees import LEAF, Trees

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
        return largest_leaves(forest.trees).sum(axis=0) + np.abs(forest.base)

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
        summation, arithmetic = forest.summation, forest.arithmetic
        if summation.weights is not None:
            return math.inf
        n_terms = len(forest.trees.roots) + forest.trees.sums + 4
        shift = np.abs(summation.start - forest.base)
        errors = arithmetic.gamma(n_terms) * (self.sizes + shift) + shift + arithmetic.tiny
        largest = float((np.abs(forest.directions) @ errors).max()) / forest.denominator
        return largest * upward(n_terms)

    def pairs(self, numbers: Array | list[int]) -> Array:
        """Return integers as rows of two int64, the high and the low bits, for the kernel."""
        flat = np.asarray(numbers, dtype=object).ravel().tolist()
        limit = 1 << self.bits
        data = b"".join(
            (number & (1 << 128) - 1).to_bytes(16, "little")
            for number in (max(-limit, min(limit, int(number))) for number in flat)
        )
        return np.ascontiguousarray(np.frombuffer(data, dtype="<i8").reshape(-1, 2)[:, ::-1])


def largest_leaves(trees: Trees) -> Matrix:
    """Return the largest absolute leaf value of each tree, (trees, sums)."""
    largest = np.zeros((len(trees.roots), trees.sums))
    nodes, owners = trees.roots, np.arange(len(trees.roots))
    while len(nodes):
        ends = trees.kind[nodes] == LEAF
        np.maximum.at(largest, owners[ends], np.abs(trees.values[nodes[ends]]))
        inner, owners = nodes[~ends], owners[~ends]
        nodes = np.concatenate([trees.left[inner], trees.right[inner]])
        owners = np.concatenate([owners, owners])
    return largest
