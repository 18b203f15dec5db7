"""Exact numbers: integers of any size times one power of two.

Every float64 is such a number, and so are sums and products of such numbers. Scores are therefore
computed without rounding, and without the cost of reducing fractions. A mean of n numbers has the
denominator n, one for all numbers of an array.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from feta.arrays import BigIntegers


@dataclass(frozen=True, slots=True, eq=False)
class Dyadic:
    """An array of numbers: numerators · 2^exponent / denominator."""

    numerators: BigIntegers  # Python integers in an object array
    exponent: int
    denominator: int = 1  # positive

    @classmethod
    def of(cls, values: ArrayLike) -> Self:
        """Convert float64 numbers exactly."""
        number: object = values
        if isinstance(number, float) and isfinite(number):
            numerator, denominator = number.as_integer_ratio()
            return cls(np.array(numerator, dtype=object), 1 - denominator.bit_length())
        array = np.asarray(values, dtype=np.float64)
        mantissas, exponents = np.frexp(array)
        integers = (mantissas * 2.0**53).astype(np.int64)  # exact: a mantissa has 53 bits
        nonzero = integers != 0
        smallest = int(exponents[nonzero].min()) if nonzero.any() else 0
        shifts = np.where(nonzero, exponents - smallest, 0)
        numerators = np.asarray(integers.astype(object) << shifts.astype(object), dtype=object)
        return cls(numerators, smallest - 53)

    def at(self, exponent: int) -> BigIntegers:
        """Return the numerators for an exponent that is not larger."""
        shift = self.exponent - exponent
        return self.numerators if shift == 0 else self.numerators * (1 << shift)

    def __getitem__(self, index: Any) -> "Dyadic":  # noqa: ANN401 - any index that numpy accepts
        numerators = np.asarray(self.numerators[index], dtype=object)
        return Dyadic(numerators, self.exponent, self.denominator)

    def over(self, denominator: int) -> "Dyadic":
        """Divide by a positive integer."""
        return Dyadic(self.numerators, self.exponent, self.denominator * denominator)

    def _with(self, other: "Dyadic") -> tuple[BigIntegers, BigIntegers, int, int]:
        """Return both numerators for one exponent and one denominator, and these two."""
        exponent = min(self.exponent, other.exponent)
        left, right = self.at(exponent), other.at(exponent)
        if self.denominator == other.denominator:
            return left, right, exponent, self.denominator
        left, right = left * other.denominator, right * self.denominator
        return left, right, exponent, self.denominator * other.denominator

    def __add__(self, other: "Dyadic") -> "Dyadic":
        left, right, exponent, denominator = self._with(other)
        return Dyadic(np.asarray(left + right, dtype=object), exponent, denominator)

    def __sub__(self, other: "Dyadic") -> "Dyadic":
        return self + -other

    def __neg__(self) -> "Dyadic":
        numerators = np.asarray(-self.numerators, dtype=object)
        return Dyadic(numerators, self.exponent, self.denominator)

    def __mul__(self, other: "Dyadic") -> "Dyadic":
        product = np.asarray(self.numerators * other.numerators, dtype=object)
        return Dyadic(product, self.exponent + other.exponent, self.denominator * other.denominator)

    def __matmul__(self, other: "Dyadic") -> "Dyadic":
        product = np.asarray(self.numerators @ other.numerators, dtype=object)
        return Dyadic(product, self.exponent + other.exponent, self.denominator * other.denominator)

    @property
    def mT(self) -> "Dyadic":  # noqa: N802 - the name that numpy uses
        """The transposed matrix."""
        return Dyadic(self.numerators.T, self.exponent, self.denominator)

    def compare(self, other: "Dyadic") -> NDArray[np.int8]:
        """Return −1, 0 or 1 where a number is less than, equal to or greater than the other."""
        left, right, _, _ = self._with(other)
        above = np.asarray(left > right, dtype=np.int8)
        return above - np.asarray(left < right, dtype=np.int8)

    def fractions(self) -> list[Fraction]:
        """Return the numbers as a flat list."""
        scale = Fraction(2) ** self.exponent / self.denominator
        return [int(numerator) * scale for numerator in self.numerators.ravel()]

    def floats(self) -> NDArray[np.float64]:
        """Round each number once, to the nearest float64."""
        # Python rounds the quotient of two integers once, however long they are.
        factor, divisor = 1 << max(0, self.exponent), self.denominator << max(0, -self.exponent)
        numerators = self.numerators.ravel().tolist()
        nearest = [int(numerator) * factor / divisor for numerator in numerators]
        return np.array(nearest, dtype=np.float64).reshape(self.numerators.shape)


def join_rows(parts: Sequence[tuple[NDArray[np.int64], Dyadic]], shape: tuple[int, ...]) -> Dyadic:
    """Combine rows that were computed in groups into one array with one exponent."""
    exponent = min((part.exponent for _, part in parts), default=0)
    numerators = np.zeros(shape, dtype=object)
    for rows, part in parts:
        numerators[rows] = part.at(exponent)
    return Dyadic(numerators, exponent)
