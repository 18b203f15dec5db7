"""Exact numbers: integers of any size times one power of two.

Every float64 is such a number, and so are sums and products of such numbers. Scores are therefore
computed without rounding, and without the cost of reducing fractions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from feta.arrays import BigIntegers


@dataclass(frozen=True, slots=True, eq=False)
class Dyadic:
    """An array of numbers: numerators · 2^exponent."""

    numerators: BigIntegers  # Python integers in an object array
    exponent: int

    @classmethod
    def of(cls, values: ArrayLike) -> Self:
        """Convert float64 numbers exactly."""
        array = np.asarray(values, dtype=np.float64)
        mantissas, exponents = np.frexp(array)
        integers = (mantissas * 2.0**53).astype(np.int64)  # exact: a mantissa has 53 bits
        nonzero = integers != 0
        smallest = int(exponents[nonzero].min()) if nonzero.any() else 0
        shifts = np.where(nonzero, exponents - smallest, 0)
        numerators = np.empty(array.shape, dtype=object)
        for index in np.ndindex(array.shape):
            numerators[index] = int(integers[index]) << int(shifts[index])
        return cls(numerators, smallest - 53)

    def at(self, exponent: int) -> BigIntegers:
        """Return the numerators for an exponent that is not larger."""
        shift = self.exponent - exponent
        return self.numerators if shift == 0 else self.numerators * (1 << shift)

    def __getitem__(self, index: Any) -> "Dyadic":  # noqa: ANN401 - any index that numpy accepts
        return Dyadic(np.asarray(self.numerators[index], dtype=object), self.exponent)

    def __add__(self, other: "Dyadic") -> "Dyadic":
        exponent = min(self.exponent, other.exponent)
        return Dyadic(np.asarray(self.at(exponent) + other.at(exponent), dtype=object), exponent)

    def __sub__(self, other: "Dyadic") -> "Dyadic":
        return self + -other

    def __neg__(self) -> "Dyadic":
        return Dyadic(np.asarray(-self.numerators, dtype=object), self.exponent)

    def __mul__(self, other: "Dyadic") -> "Dyadic":
        product = np.asarray(self.numerators * other.numerators, dtype=object)
        return Dyadic(product, self.exponent + other.exponent)

    def __matmul__(self, other: "Dyadic") -> "Dyadic":
        product = np.asarray(self.numerators @ other.numerators, dtype=object)
        return Dyadic(product, self.exponent + other.exponent)

    @property
    def mT(self) -> "Dyadic":  # noqa: N802 - the name that numpy uses
        """The transposed matrix."""
        return Dyadic(self.numerators.T, self.exponent)

    def compare(self, other: "Dyadic") -> NDArray[np.int8]:
        """Return −1, 0 or 1 where a number is less than, equal to or greater than the other."""
        exponent = min(self.exponent, other.exponent)
        left, right = self.at(exponent), other.at(exponent)
        above = np.asarray(left > right, dtype=np.int8)
        return above - np.asarray(left < right, dtype=np.int8)

    def fractions(self) -> list[Fraction]:
        """Return the numbers as a flat list."""
        scale = Fraction(2) ** self.exponent
        return [int(numerator) * scale for numerator in self.numerators.ravel()]

    def floats(self) -> NDArray[np.float64]:
        """Round each number once, to the nearest float64."""
        nearest = [float(number) for number in self.fractions()]
        return np.array(nearest, dtype=np.float64).reshape(self.numerators.shape)


def join_rows(parts: Sequence[tuple[NDArray[np.int64], Dyadic]], shape: tuple[int, ...]) -> Dyadic:
    """Combine rows that were computed in groups into one array with one exponent."""
    exponent = min((part.exponent for _, part in parts), default=0)
    numerators = np.zeros(shape, dtype=object)
    for rows, part in parts:
        numerators[rows] = part.at(exponent)
    return Dyadic(numerators, exponent)
