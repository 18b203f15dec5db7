"""Attributes: features in raw units, their domains, and the columns they take in a person's row.

An attribute does not know the other attributes; `FeatureSpace` orders them. An attribute that may
be `missing` has one more value, None, and one more column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.errors import DomainError, SchemaError, unknown_choice
from feta.space.cell_values import missing_cells, plain_scalar, to_number
from feta.space.level_grid import spaced_numbers
from feta.space.numeric import (
    NumericAttribute,
    check_order,
    is_absent,
    number_codes,
    short_number,
    with_valid_flag,
)

Value = str | int | float | bool | None
Kind = Literal["category", "integer", "levels", "number", "derived"]

# Integers up to here are exact in float64, and so are their differences.
LARGEST_INTEGER = 2**52

# Values that a message lists.
MAX_SHOWN = 12

# The value of every text that a category does not list, if it accepts other texts.
OTHER = "(other)"


@dataclass(frozen=True, slots=True)
class Categorical:
    """One value out of a list; one column per value, exactly one of which is 1.

    With `other`, every text that is not listed counts as one more value, `OTHER`. This suits models
    whose encoder treats all unknown texts the same.
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
            raise SchemaError(
                f"invalid values for {self.name!r}: got {self.values!r}; "
                "expected a list of texts, integers or booleans"
            )
        if len(set(self.values)) != len(self.values):
            raise SchemaError(
                f"repeated value for {self.name!r}: got {self.values!r}; expected each value once"
            )
        if self.other:
            self._check_other()

    def _check_other(self) -> None:
        if self.sensitive:
            raise SchemaError(
                f"invalid column {self.name!r}: got sensitive and other = true; "
                "expected every value of a sensitive column in its list; list the values"
            )
        if OTHER in self.values or not all(isinstance(value, str) for value in self.values):
            raise SchemaError(
                f"invalid column {self.name!r}: got other = true with the values {self.values!r}; "
                f"expected texts, none of them {OTHER!r}"
            )

    @property
    def all_values(self) -> tuple[str | int | bool | None, ...]:
        """The values, followed by `OTHER` and None if other texts and missing cells are valid."""
        others = (OTHER,) if self.other else ()
        return (*self.values, *others, *((None,) if self.missing else ()))

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.n_values

    @property
    def n_values(self) -> int:
        """The number of values."""
        return len(self.values) + self.other + self.missing

    def codes(self, indices: Counts) -> Matrix:
        """Return the columns of the values at these indices."""
        rows = np.zeros((len(indices), self.width))
        rows[np.arange(len(indices)), indices] = 1.0
        return rows

    def indices(self, codes: Matrix) -> Counts:
        """Return the index of each row's value."""
        return np.argmax(codes, axis=1).astype(np.int64)

    def encode(self, values: Sequence[object]) -> Matrix:
        """Return the columns of these values, one row per value."""
        known: dict[object, int] = {value: index for index, value in enumerate(self.values)}
        indices = np.fromiter((_find(known, value) for value in values), np.int64, len(values))
        if self.missing:
            indices[(indices < 0) & missing_cells(values)] = self.n_values - 1
        if self.other:
            texts = np.fromiter((isinstance(value, str) for value in values), bool, len(values))
            indices[(indices < 0) & texts] = len(self.values)
        bad = np.flatnonzero(indices < 0)
        if bad.size:
            row = int(bad[0])
            raise DomainError.at(self.name, row, self._invalid(plain_scalar(values[row])))
        return self.codes(indices)

    def _invalid(self, got: object) -> str:
        """Return the message about a value that is not in the list."""
        message = f"is invalid: {unknown_choice(got, self.values)}"
        if self.missing:
            message += "; leave the cell empty if the value is missing"
        if isinstance(got, str | int) and "did you mean" not in message:
            message += "; if such people exist, add the value to the column's values"
        return message

    def decode(self, code: Vector) -> Value:
        """Return the value that one person's columns represent."""
        return self.all_values[int(code.argmax())]

    def valid(self, codes: Matrix) -> Flags:
        """Flag the rows that contain a value of this attribute."""
        bits = (codes == 0.0) | (codes == 1.0)
        return np.asarray(bits.all(axis=1) & (codes.sum(axis=1) == 1.0))

    def domain(self) -> str:
        """Describe the valid values."""
        shown = ", ".join(repr(value) for value in self.values[:MAX_SHOWN])
        more = ", …" if len(self.values) > MAX_SHOWN else ""
        other = " or another" if self.other else ""
        return f"one of {shown}{more}{other}" + _or_missing(self)


@dataclass(frozen=True, slots=True)
class Integer(NumericAttribute):
    """An integer from low to high, both inclusive; one column, in raw units."""

    kind: ClassVar[Kind] = "integer"
    name: str
    low: int
    high: int
    sensitive: bool = False
    missing: bool = False
    strict: bool = False  # people outside the limits are rejected

    def __post_init__(self) -> None:
        _check_name(self.name)
        for limit in (self.low, self.high):
            integral = np.isfinite(to_number(limit)) and float(limit) == np.floor(float(limit))
            if not integral or abs(limit) > LARGEST_INTEGER:
                raise SchemaError(
                    f"invalid limit for {self.name!r}: got {limit!r}; "
                    "expected an integer within ±2^52"
                )
        object.__setattr__(self, "low", int(self.low))
        object.__setattr__(self, "high", int(self.high))
        check_order(self.name, self.low, self.high)

    @property
    def n_values(self) -> int:
        """The number of values."""
        return self.high - self.low + 1 + self.missing

    @property
    def lowest(self) -> float:
        """The lowest number."""
        return float(self.low)

    def codes(self, indices: Counts) -> Matrix:
        """Return the columns of the values at these indices; the last index means missing."""
        numbers = (self.low + np.asarray(indices)).astype(np.float64)
        return number_codes(self, numbers, np.asarray(indices) > self.high - self.low)

    def indices(self, codes: Matrix) -> Counts:
        """Return the index of each row's value."""
        indices = codes[:, 0].astype(np.int64) - self.low
        return np.where(codes[:, 1] == 1, self.n_values - 1, indices) if self.missing else indices

    def decode(self, code: Vector) -> int | None:
        """Return the integer that one person's columns represent; None if it is missing."""
        return None if is_absent(self, code) else int(code[0])

    def valid(self, codes: Matrix) -> Flags:
        """Flag the rows that contain a value of this attribute."""
        numbers = codes[:, 0]
        inside = (numbers >= self.low) & (numbers <= self.high)
        return with_valid_flag(self, codes, inside & (numbers == np.floor(numbers)))

    def domain(self) -> str:
        """Describe the valid values."""
        return f"an integer from {self.low} to {self.high}" + _or_missing(self)


@dataclass(frozen=True, slots=True)
class Levels(NumericAttribute):
    """A number out of a finite list; one column, in raw units."""

    kind: ClassVar[Kind] = "levels"
    name: str
    numbers: tuple[float, ...]
    sensitive: bool = False
    missing: bool = False
    strict: bool = False  # people outside the limits are rejected

    def __post_init__(self) -> None:
        _check_name(self.name)
        numbers = tuple(to_number(number) + 0.0 for number in self.numbers)
        if not numbers or not all(np.isfinite(numbers)):
            raise SchemaError(
                f"invalid numbers for {self.name!r}: got {self.numbers!r}; "
                "expected a list of finite numbers"
            )
        if list(numbers) != sorted(set(numbers)):
            raise SchemaError(
                f"invalid order of numbers for {self.name!r}: got {numbers!r}; "
                "expected ascending order, each number once"
            )
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
        """Return the levels low, low + step, … up to high: a finite version of a real number."""
        numbers = spaced_numbers(name, low, high, step=step)
        return cls(name, numbers, sensitive, missing, strict)

    @property
    def n_values(self) -> int:
        """The number of values."""
        return len(self.numbers) + self.missing

    @property
    def lowest(self) -> float:
        """The lowest number."""
        return self.numbers[0]

    def codes(self, indices: Counts) -> Matrix:
        """Return the columns of the values at these indices; the last index means missing."""
        numbers = np.array([*self.numbers, self.numbers[0]])
        return number_codes(self, numbers[indices], np.asarray(indices) == len(self.numbers))

    def indices(self, codes: Matrix) -> Counts:
        """Return the index of each row's value."""
        indices = np.searchsorted(np.array(self.numbers), codes[:, 0]).astype(np.int64)
        return np.where(codes[:, 1] == 1, len(self.numbers), indices) if self.missing else indices

    def valid(self, codes: Matrix) -> Flags:
        """Flag the rows that contain a value of this attribute."""
        return with_valid_flag(self, codes, np.isin(codes[:, 0], np.array(self.numbers)))

    def domain(self) -> str:
        """Describe the valid values."""
        shown = ", ".join(short_number(number) for number in self.numbers[:MAX_SHOWN])
        more = ", …" if len(self.numbers) > MAX_SHOWN else ""
        return f"one of {shown}{more}" + _or_missing(self)


@dataclass(frozen=True, slots=True)
class Real(NumericAttribute):
    """Any number from low to high, both inclusive; one column, in raw units."""

    kind: ClassVar[Kind] = "number"
    name: str
    low: float
    high: float
    sensitive: bool = False
    missing: bool = False
    strict: bool = False  # people outside the limits are rejected

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.sensitive and self.missing:
            raise SchemaError(
                f"invalid column {self.name!r}: got a real number that is sensitive and may be "
                "missing; expected finitely many values; declare it integer, or give a step"
            )
        if not np.isfinite([self.low, self.high]).all():
            raise SchemaError(
                f"invalid limits for {self.name!r}: got {self.low!r} and {self.high!r}; "
                "expected finite limits"
            )
        object.__setattr__(self, "low", float(self.low) + 0.0)
        object.__setattr__(self, "high", float(self.high) + 0.0)
        check_order(self.name, self.low, self.high)

    @property
    def lowest(self) -> float:
        """The lowest number."""
        return self.low

    def valid(self, codes: Matrix) -> Flags:
        """Flag the rows that contain a value of this attribute."""
        inside = (codes[:, 0] >= self.low) & (codes[:, 0] <= self.high)
        return with_valid_flag(self, codes, np.asarray(inside))

    def domain(self) -> str:
        """Describe the valid values."""
        low, high = short_number(self.low), short_number(self.high)
        return f"a number from {low} to {high}" + _or_missing(self)


@dataclass(frozen=True, slots=True)
class Derived:
    """Bands of another attribute, one column per band; the value follows from its source."""

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
            raise SchemaError(
                f"invalid bands for {self.name!r}: got {bands!r}; expected (label, low, high) each"
            )
        bands = tuple((label, to_number(low), to_number(high)) for label, low, high in bands)
        object.__setattr__(self, "bands", bands)
        if not bands or len({label for label, _, _ in bands}) != len(bands):
            raise SchemaError(
                f"invalid bands for {self.name!r}: got {bands!r}; "
                "expected one or more bands with different labels"
            )
        for label, low, high in bands:
            check_order(f"{self.name}: {label}", low, high)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.bands)

    def derive(self, source: Vector) -> Matrix:
        """Return the columns for these source values; all zero where no band fits."""
        lows = np.array([low for _, low, _ in self.bands])
        highs = np.array([high for _, _, high in self.bands])
        inside = (source[:, None] >= lows) & (source[:, None] <= highs)
        return inside.astype(np.float64)

    def decode(self, code: Vector) -> Value:
        """Return the label of the band that one person's columns represent."""
        return self.bands[int(np.argmax(code))][0]

    def domain(self) -> str:
        """Describe the valid values."""
        return f"the band that {self.source!r} falls into"


Finite = Categorical | Integer | Levels
Attribute = Finite | Real | Derived


def _or_missing(attribute: Categorical | Integer | Levels | Real) -> str:
    return " or missing" if attribute.missing else ""


def _find(known: dict[object, int], value: object) -> int:
    """Return the index of a value, or -1."""
    try:
        return known.get(value, -1)
    except TypeError:  # an unhashable cell, such as a list
        return -1


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"invalid attribute name: got {name!r}; expected a text, not empty")
