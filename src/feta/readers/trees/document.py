"""Typed access to the members of a document in JSON; every error names the place."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Array, Counts
from feta.errors import NetworkError

# A digit more would not be an integer that any field of a model needs.
MAX_DIGITS = 18

# Longer values are abbreviated in messages.
MAX_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Place:
    """A value of a document, and where it is."""

    value: Any
    where: str

    def error(self, expected: str) -> NetworkError:
        """Return the error for a value of another type."""
        container = isinstance(self.value, list | dict | np.ndarray)
        shown = f"{len(self.value)} values" if container else repr(self.value)
        shown = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
        return NetworkError(
            f"invalid {self.where}: got {shown}; expected {expected}; save the model again"
        )

    def has(self, name: str) -> bool:
        """Return whether an object has a member."""
        return isinstance(self.value, dict) and name in self.value

    def member(self, name: str) -> "Place":
        """Return a member of an object."""
        if not isinstance(self.value, dict):
            raise self.error("an object")
        where = f"{self.where}.{name}" if self.where else name
        if name not in self.value:
            raise NetworkError(f"missing {where}: the file is not a complete model")
        return Place(self.value[name], where)

    def items(self) -> "list[Place]":
        """Return the elements of a list."""
        if not isinstance(self.value, list):
            raise self.error("a list")
        return [Place(item, f"{self.where}[{index}]") for index, item in enumerate(self.value)]

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.value, str):
            raise self.error("a text")
        return self.value

    def texts(self) -> list[str]:
        """Return a list of texts."""
        if isinstance(self.value, np.ndarray) and not self.value.size:
            return []
        return [item.text() for item in self.items()]

    def integer(self) -> int:
        """Return an integer, which some libraries also write as a text."""
        value = self.value
        if isinstance(value, str) and value.isdecimal() and len(value) <= MAX_DIGITS:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 10**MAX_DIGITS:
            raise self.error("an integer")
        return value

    def integers(self, count: int | None = None) -> Counts:
        """Return a list of integers."""
        if isinstance(self.value, np.ndarray) and self.value.dtype.kind in "iu":
            numbers = self.value.astype(np.int64)
        elif isinstance(self.value, list) and set(map(type, self.value)) <= {int}:
            numbers = self._array(np.int64)
        else:
            numbers = np.array([item.integer() for item in self.items()], dtype=np.int64)
        return self._counted(numbers, count)

    def flags(self, count: int | None = None) -> Array:
        """Return a list of booleans, also written as 0 and 1."""
        value = self.value
        if isinstance(value, list):
            value = [int(item) if isinstance(item, bool) else item for item in value]
        numbers = Place(value, self.where).integers(count)
        if not np.isin(numbers, (0, 1)).all():
            raise self.error("0 or 1 each")
        return numbers == 1

    def number(self) -> float:
        """Return a number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.error("a number")
        try:
            return float(self.value)
        except OverflowError:
            raise self.error("a number of 64 bits") from None

    def floats(self, count: int | None = None) -> Array:
        """Return a list of numbers in float32."""
        with np.errstate(over="ignore"):
            return self.doubles(count).astype(np.float32)

    def doubles(self, count: int | None = None) -> Array:
        """Return a list of numbers in float64."""
        if isinstance(self.value, np.ndarray) and self.value.dtype.kind in "iuf":
            numbers = self.value.astype(np.float64)
        elif isinstance(self.value, list) and set(map(type, self.value)) <= {int, float}:
            numbers = self._array(np.float64)
        else:
            numbers = np.array([item.number() for item in self.items()], dtype=np.float64)
        return self._counted(numbers, count)

    def _array(self, kind: type[np.number[Any]]) -> Array:
        """Return a list of Python numbers as an array."""
        try:
            return np.array(self.value, dtype=kind)
        except OverflowError:
            raise self.error("numbers of 64 bits") from None

    def _counted(self, numbers: Array, count: int | None) -> Array:
        if numbers.ndim != 1 or (count is not None and len(numbers) != count):
            raise NetworkError(
                f"wrong length of {self.where}: got {numbers.size}; expected {count}; "
                "save the model again"
            )
        return numbers


def parse_json(content: bytes) -> Place:
    """Parse a document in JSON."""
    try:
        return Place(json.loads(content), "")
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"the file is not valid JSON: {error}; save the model again") from None
