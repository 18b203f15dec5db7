"""Columns of numeric attributes.

A number takes one column, in raw units. If it may be missing, it takes a second column, which is 1
where it is missing. The first column then contains the lowest number of the domain.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.errors import DomainError, SchemaError
from feta.space.cell_values import missing_cells, plain_scalar, to_numbers

# Integral floats below this are shown without a fraction: float64 has all their digits.
LARGEST_SHORT_NUMBER = 1e15


class NumericAttribute(ABC):
    """What integers, levels and real numbers have in common."""

    __slots__ = ()
    name: str
    missing: bool

    @property
    @abstractmethod
    def lowest(self) -> float:
        """The lowest number."""

    @abstractmethod
    def valid(self, codes: Matrix) -> Flags:
        """Flag the rows that contain a value of this attribute."""

    @abstractmethod
    def domain(self) -> str:
        """Describe the valid values."""

    @property
    def width(self) -> int:
        """The number of columns."""
        return 2 if self.missing else 1

    def encode(self, values: Sequence[object]) -> Matrix:
        """Return the columns of these values, one row per value."""
        return encode_numbers(self, values, valid=self.valid)

    def decode(self, code: Vector) -> float | None:
        """Return the number that one person's columns represent; None if it is missing."""
        return None if is_absent(self, code) else float(code[0])


def encode_numbers(
    attribute: NumericAttribute, values: Sequence[object], *, valid: Callable[[Matrix], Flags]
) -> Matrix:
    """Return the columns of these values; raise for the first row that is not `valid`."""
    numbers = to_numbers(values)
    absent = missing_cells(values) if attribute.missing else np.zeros(len(numbers), dtype=bool)
    codes = number_codes(attribute, numbers, absent)
    bad = np.flatnonzero(~valid(codes))  # NaN, in place of a cell without a number, is never valid
    if bad.size:
        row = int(bad[0])
        got = plain_scalar(values[row])
        what = f"is invalid: got {got!r}; expected {attribute.domain()}"
        raise DomainError.at(attribute.name, row, what)
    return codes + 0.0  # turns -0.0 into 0.0


def number_codes(attribute: NumericAttribute, numbers: Vector, absent: Flags) -> Matrix:
    """Return the columns of these numbers; absent ones become the lowest number and a flag."""
    if not attribute.missing:
        return numbers[:, None]
    return np.stack([np.where(absent, attribute.lowest, numbers), absent], axis=1)


def is_absent(attribute: NumericAttribute, code: Vector) -> bool:
    """Return whether one person's columns represent a missing number."""
    return attribute.missing and bool(code[1] == 1.0)


def with_valid_flag(attribute: NumericAttribute, codes: Matrix, valid: Flags) -> Flags:
    """Flag the rows whose number is `valid` and whose missing flag fits the number."""
    if not attribute.missing:
        return np.asarray(valid)
    absent = (codes[:, 1] == 1.0) & (codes[:, 0] == attribute.lowest)
    return np.asarray(valid & ((codes[:, 1] == 0.0) | absent))


def check_order(name: str, low: float, high: float) -> None:
    """Raise unless the limits are in order; NaN is not."""
    if not low <= high:
        raise SchemaError(
            f"invalid limits for {name!r}: got {low!r} to {high!r}; "
            "expected the low limit at or below the high one"
        )


def short_number(number: float) -> str:
    """Return all digits of a number, without the fraction of an integral one."""
    integral = number == np.floor(number) and abs(number) < LARGEST_SHORT_NUMBER
    return str(int(number)) if integral else repr(number)
