"""Attribute: a feature as people know it, its domain, and the columns it takes in a person's row.

An attribute knows nothing of the other attributes; `FeatureSpace` puts them in order. One that may be
`missing` has one more value, None: a category one more column, a number a second one that is 1 where it
is missing, beside the lowest number of its domain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.errors import DomainError, SchemaError, one_of

Value = str | int | float | bool | None
Kind = Literal["category", "integer", "levels", "number", "derived"]

# Whole numbers up to here are exact in float64, and so are their differences.
LARGEST_INTEGER = 2**52

# More levels than this are not a list that anybody wrote or reads.
MAX_NUMBERS = 10**6

# Lists longer than this are not spelled out in an error message.
SHOWN = 12

# What stands for every text that a category does not list, where it takes others.
OTHER = "(other)"


@dataclass(frozen=True, slots=True)
class Categorical:
    """One value out of a list; a column per value, exactly one of them 1.

    With `other` every text that is not listed counts as one more value, `OTHER`: a model whose
    encoder treats all unknown texts the same may be asked about such people.
    """

    kind: ClassVar[Kind] = "category"
    name: str
    values: tuple[str | int | bool, ...]
    sensitive: bool = False
    missing: bool = False
    other: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        _check_name(self.name)
        if not self.values or any(not isinstance(value, str | int | bool) for value in self.values):
            message = f"{self.name!r} needs a list of texts, whole numbers or booleans, got {self.values!r}"
            raise SchemaError(message)
        if len(set(self.values)) != len(self.values):
            raise SchemaError(f"{self.name!r} must not list a value twice, got {self.values!r}")
        if self.other:
            self._check_other()

    def _check_other(self) -> None:
        if self.sensitive:
            message = f"invalid column {self.name!r}: got sensitive and other = true; expected every value of a sensitive column in its list; list the values"
            raise SchemaError(message)
        if OTHER in self.values or not all(isinstance(value, str) for value in self.values):
            message = f"invalid column {self.name!r}: got other = true with the values {self.values!r}; expected texts, none of them {OTHER!r}"
            raise SchemaError(message)

    @property
    def all_values(self) -> tuple[str | int | bool | None, ...]:
        """The values, then `OTHER` and None where other texts and missing cells are taken."""
        others = (OTHER,) if self.other else ()
        return (*self.values, *others, *((None,) if self.missing else ()))

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.all_values)

    @property
    def n_values(self) -> int:
        """The number of values."""
        return len(self.all_values)

    def codes(self, indices: Counts) -> Matrix:
        """Give the columns of the values at these places, counted from 0."""
        rows = np.zeros((len(indices), self.width))
        rows[np.arange(len(indices)), indices] = 1.0
        return rows

    def indices(self, codes: Matrix) -> Counts:
        """Tell from the columns which values these are."""
        return np.argmax(codes, axis=1).astype(np.int64)

    def encode(self, values: Sequence[object]) -> Matrix:
        """Turn values into their columns."""
        indices: dict[object, int] = {value: index for index, value in enumerate(self.values)}
        found = np.fromiter((_place(indices, value) for value in values), np.int64, len(values))
        if self.missing:
            found[(found < 0) & missing_cells(values)] = self.n_values - 1
        if self.other:
            texts = np.fromiter((isinstance(one, str) for one in values), bool, len(values))
            found[(found < 0) & texts] = len(self.values)
        bad = np.flatnonzero(found < 0)
        if bad.size:
            got = _plain(values[int(bad[0])])
            what = f"must be {one_of(got, self.values)}"
            what += "; or leave the cell empty, as it may be missing" if self.missing else ""
            if isinstance(got, str | int) and "did you mean" not in what:
                what += "; if such people exist, add it to the column's values"
            raise DomainError.at(self.name, int(bad[0]), what)
        return self.codes(found)

    def decode(self, code: Vector) -> Value:
        """Turn one person's columns back into the value."""
        return self.all_values[int(np.argmax(code))]

    def valid(self, codes: Matrix) -> Flags:
        """Say which rows hold a value of this attribute."""
        bits = (codes == 0.0) | (codes == 1.0)
        return np.asarray(bits.all(axis=1) & (codes.sum(axis=1) == 1.0))

    def domain(self) -> str:
        """Say in words what is allowed."""
        shown = ", ".join(repr(value) for value in self.values[:SHOWN])
        more = (", …" if len(self.values) > SHOWN else "") + (" or another" if self.other else "")
        return f"one of {shown}{more}" + _or_missing(self)


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number from low to high, both included; one column, in people's own unit."""

    kind: ClassVar[Kind] = "integer"
    name: str
    low: int
    high: int
    sensitive: bool = False
    missing: bool = False
    strict: bool = False  # whether people outside the limits are refused

    def __post_init__(self) -> None:
        _check_name(self.name)
        for bound in (self.low, self.high):
            whole = np.isfinite(_number(bound)) and float(bound) == np.floor(float(bound))
            if not whole or abs(bound) > LARGEST_INTEGER:
                message = f"{self.name!r} needs whole-number limits within ±2^52, got {bound!r}"
                raise SchemaError(message)
        object.__setattr__(self, "low", int(self.low))
        object.__setattr__(self, "high", int(self.high))
        _check_order(self.name, self.low, self.high)

    @property
    def width(self) -> int:
        """The number of columns."""
        return 2 if self.missing else 1

    @property
    def n_values(self) -> int:
        """The number of values."""
        return self.high - self.low + 1 + self.missing

    @property
    def lowest(self) -> float:
        """The lowest number."""
        return float(self.low)

    def codes(self, indices: Counts) -> Matrix:
        """Give the columns of the values at these places, counted from 0; missing is the last."""
        numbers = (self.low + np.asarray(indices)).astype(np.float64)
        return flagged(self, numbers, np.asarray(indices) > self.high - self.low)

    def indices(self, codes: Matrix) -> Counts:
        """Tell from the columns which values these are."""
        indices = codes[:, 0].astype(np.int64) - self.low
        return np.where(codes[:, 1] == 1, self.n_values - 1, indices) if self.missing else indices

    def encode(self, values: Sequence[object]) -> Matrix:
        """Turn values into their column."""
        return _encode_numbers(self, values)

    def decode(self, code: Vector) -> Value:
        """Turn one person's column back into the number."""
        return None if _isflagged(self, code) else int(code[0])

    def valid(self, codes: Matrix) -> Flags:
        """Say which rows hold a value of this attribute."""
        column = codes[:, 0]
        whole = (column >= self.low) & (column <= self.high) & (column == np.floor(column))
        return _valid_flags(self, codes, whole)

    def domain(self) -> str:
        """Say in words what is allowed."""
        return f"a whole number from {self.low} to {self.high}" + _or_missing(self)


@dataclass(frozen=True, slots=True)
class Levels:
    """A number out of a finite list; one column, in people's own unit."""

    kind: ClassVar[Kind] = "levels"
    name: str
    numbers: tuple[float, ...]
    sensitive: bool = False
    missing: bool = False
    strict: bool = False  # whether people outside the limits are refused

    def __post_init__(self) -> None:
        _check_name(self.name)
        numbers = tuple(_number(number) + 0.0 for number in self.numbers)
        if not numbers or not all(np.isfinite(numbers)):
            raise SchemaError(f"{self.name!r} needs a list of finite numbers, got {self.numbers!r}")
        if list(numbers) != sorted(set(numbers)):
            raise SchemaError(f"{self.name!r} must list its numbers in ascending order, each once")
        object.__setattr__(self, "numbers", numbers)

    @classmethod
    def spaced(
        cls,
        name: str,
        low: float,
        high: float,
        *,
        step: float,
        sensitive: bool = False,
        missing: bool = False,
        strict: bool = False,
    ) -> "Levels":
        """Make low, low + step, … up to high: a real number made finite."""
        if not np.isfinite([_number(low), _number(high), _number(step)]).all() or not step > 0:
            message = f"{name!r} needs finite limits and a step above 0, got {low!r} to {high!r} by {step!r}"
            raise SchemaError(message)
        _check_order(name, low, high)
        # In decimal, as people mean it: 0 + 3 · 0.1 is 0.3, not 0.30000000000000004.
        first, last, by = (Fraction(repr(float(number))) for number in (low, high, step))
        n_steps = int((last - first) / by)
        if n_steps >= MAX_NUMBERS:
            raise SchemaError(f"{name!r} must have fewer than {MAX_NUMBERS} steps, got {n_steps}")
        numbers = tuple(float(first + by * n) for n in range(n_steps + 1))
        return cls(name, numbers, sensitive, missing, strict)

    @property
    def width(self) -> int:
        """The number of columns."""
        return 2 if self.missing else 1

    @property
    def n_values(self) -> int:
        """The number of values."""
        return len(self.numbers) + self.missing

    @property
    def lowest(self) -> float:
        """The lowest number."""
        return self.numbers[0]

    def codes(self, indices: Counts) -> Matrix:
        """Give the columns of the values at these places, counted from 0; missing is the last."""
        numbers = np.array([*self.numbers, self.numbers[0]])
        return flagged(self, numbers[indices], np.asarray(indices) == len(self.numbers))

    def indices(self, codes: Matrix) -> Counts:
        """Tell from the columns which values these are."""
        indices = np.searchsorted(np.array(self.numbers), codes[:, 0]).astype(np.int64)
        return np.where(codes[:, 1] == 1, len(self.numbers), indices) if self.missing else indices

    def encode(self, values: Sequence[object]) -> Matrix:
        """Turn values into their column."""
        return _encode_numbers(self, values)

    def decode(self, code: Vector) -> Value:
        """Turn one person's column back into the number."""
        return None if _isflagged(self, code) else float(code[0])

    def valid(self, codes: Matrix) -> Flags:
        """Say which rows hold a value of this attribute."""
        return _valid_flags(self, codes, np.isin(codes[:, 0], np.array(self.numbers)))

    def domain(self) -> str:
        """Say in words what is allowed."""
        shown = ", ".join(_told(number) for number in self.numbers[:SHOWN])
        return f"one of {shown}" + (", …" if len(self.numbers) > SHOWN else "") + _or_missing(self)


@dataclass(frozen=True, slots=True)
class Real:
    """Any number from low to high, both included; one column, in people's own unit."""

    kind: ClassVar[Kind] = "number"
    name: str
    low: float
    high: float
    sensitive: bool = False
    missing: bool = False
    strict: bool = False  # whether people outside the limits are refused

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.sensitive and self.missing:
            message = f"{self.name!r} is sensitive and may be missing, so it must be finite: declare it integer, or give a step"
            raise SchemaError(message)
        if not np.isfinite([self.low, self.high]).all():
            raise SchemaError(
                f"{self.name!r} needs finite limits, got {self.low!r} and {self.high!r}"
            )
        object.__setattr__(self, "low", float(self.low) + 0.0)
        object.__setattr__(self, "high", float(self.high) + 0.0)
        _check_order(self.name, self.low, self.high)

    @property
    def width(self) -> int:
        """The number of columns."""
        return 2 if self.missing else 1

    @property
    def lowest(self) -> float:
        """The lowest number."""
        return self.low

    def encode(self, values: Sequence[object]) -> Matrix:
        """Turn values into their column."""
        return _encode_numbers(self, values)

    def decode(self, code: Vector) -> Value:
        """Turn one person's column back into the number."""
        return None if _isflagged(self, code) else float(code[0])

    def valid(self, codes: Matrix) -> Flags:
        """Say which rows hold a value of this attribute."""
        inside = (codes[:, 0] >= self.low) & (codes[:, 0] <= self.high)
        return _valid_flags(self, codes, np.asarray(inside))

    def domain(self) -> str:
        """Say in words what is allowed."""
        return f"a number from {_told(self.low)} to {_told(self.high)}" + _or_missing(self)


@dataclass(frozen=True, slots=True)
class Derived:
    """Bands of another attribute, one column a band; it moves with its source, never on its own."""

    kind: ClassVar[Kind] = "derived"
    name: str
    source: str
    bands: tuple[tuple[str, float, float], ...]  # label, lowest and highest source value

    def __post_init__(self) -> None:
        _check_name(self.name)
        bands = self.bands
        if isinstance(bands, Mapping):
            bands = tuple((label, low, high) for label, (low, high) in bands.items())
        if any(len(band) != 3 for band in bands):  # noqa: PLR2004 - label, low, high
            raise SchemaError(f"{self.name!r} needs bands of (label, low, high), got {bands!r}")
        bands = tuple((label, _number(low), _number(high)) for label, low, high in bands)
        object.__setattr__(self, "bands", bands)
        if not bands or len({label for label, _, _ in bands}) != len(bands):
            raise SchemaError(f"{self.name!r} needs bands with different names, got {bands!r}")
        for label, low, high in bands:
            _check_order(f"{self.name}: {label}", low, high)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.bands)

    def derive(self, source: Vector) -> Matrix:
        """Give the columns that go with these source values; all zero where no band fits."""
        lows = np.array([low for _, low, _ in self.bands])
        highs = np.array([high for _, _, high in self.bands])
        inside = (source[:, None] >= lows) & (source[:, None] <= highs)
        return inside.astype(np.float64)

    def decode(self, code: Vector) -> Value:
        """Turn one person's columns back into the band's name."""
        return self.bands[int(np.argmax(code))][0]

    def domain(self) -> str:
        """Say in words what is allowed."""
        return f"the band that {self.source!r} falls into"


Finite = Categorical | Integer | Levels
Attribute = Finite | Real | Derived


def _encode_numbers(attribute: Integer | Levels | Real, values: Sequence[object]) -> Matrix:
    column = numbers_of(values)
    absent = missing_cells(values) if attribute.missing else np.zeros(len(column), dtype=bool)
    codes = flagged(attribute, column, absent)
    bad = np.flatnonzero(~attribute.valid(codes))  # NaN, where there is no number, is never valid
    if bad.size:
        got = _plain(values[int(bad[0])])
        message = f"must be {attribute.domain()}, got {got!r}"
        raise DomainError.at(attribute.name, int(bad[0]), message)
    return codes + 0.0


def flagged(attribute: Integer | Levels | Real, numbers: Vector, absent: Flags) -> Matrix:
    """Put numbers into columns; the missing ones become the lowest number and a flag."""
    if not attribute.missing:
        return numbers[:, None]
    return np.stack([np.where(absent, attribute.lowest, numbers), absent], axis=1)


def _isflagged(attribute: Integer | Levels | Real, code: Vector) -> bool:
    return attribute.missing and bool(code[1] == 1.0)


def _valid_flags(attribute: Integer | Levels | Real, codes: Matrix, valid: Flags) -> Flags:
    """Say of rows whose numbers are valid whether their flags are, too."""
    if not attribute.missing:
        return np.asarray(valid)
    absent = (codes[:, 1] == 1.0) & (codes[:, 0] == attribute.lowest)
    return np.asarray(valid & ((codes[:, 1] == 0.0) | absent))


def missing_cells(values: Sequence[object]) -> Flags:
    """Tell the cells that hold nothing."""
    return np.fromiter((is_missing(value) for value in values), bool, len(values))


def is_missing(value: object) -> bool:
    """Return whether a cell holds nothing: None, NaN or pandas' NA. An empty text is a text."""
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124 - only NaN differs from itself
    except (TypeError, ValueError):  # pandas' NA has no truth, and an array is no cell
        return type(value).__name__ == "NAType"


def _or_missing(attribute: Categorical | Integer | Levels | Real) -> str:
    return " or missing" if attribute.missing else ""


def numbers_of(values: Sequence[object]) -> NDArray[np.float64]:
    """Read numbers as float64, NaN where a value is not a number; text is never a number here."""
    array = _array(values)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    return np.fromiter((_number(value) for value in values), np.float64, len(values))


def _array(values: Sequence[object]) -> NDArray[Any]:
    given: object = values
    if not isinstance(given, np.ndarray) and any(isinstance(one, bool | str) for one in values):
        return np.empty(0, dtype=object)  # cell by cell, then
    try:
        array = np.asarray(values)
        return array if array.ndim == 1 else np.empty(0, dtype=object)
    except ValueError:  # ragged cells
        return np.empty(0, dtype=object)


def _number(value: Any) -> float:  # noqa: ANN401 - any cell of a table
    if isinstance(value, bool | np.bool_ | str | bytes) or value is None:
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _told(number: float) -> str:
    """Show a number with all the digits it needs, and no more."""
    return str(int(number)) if number == np.floor(number) and abs(number) < 1e15 else repr(number)  # noqa: PLR2004 - digits


def _place(indices: dict[object, int], value: object) -> int:
    try:
        return indices.get(value, -1)
    except TypeError:  # an unhashable cell, such as a list
        return -1


def _plain(value: object) -> object:
    """Show numpy's scalars as the numbers they are."""
    return value.item() if isinstance(value, np.generic) else value


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"an attribute's name must be a text that is not empty, got {name!r}")


def _check_order(name: str, low: float, high: float) -> None:
    if not low <= high:
        raise SchemaError(
            f"{name!r} must have its low limit at or below its high one, got {low!r} to {high!r}"
        )
