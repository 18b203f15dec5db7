"""Sections of a LightGBM model file, and typed access to their fields."""

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Array, Counts
from feta.errors import NetworkError

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-?inf", re.ASCII)
INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)

# The names of the last section, with the categories of pandas columns as JSON.
CATEGORIES = "pandas_categorical:"


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """Fields `name=value`, and single words, of one part of a file."""

    name: str  # for messages
    fields: dict[str, str]

    def error(self, field: str, expected: str) -> NetworkError:
        """Return the error for an invalid field."""
        got = self.fields.get(field)
        shown = "nothing" if got is None else repr(got if len(got) <= 60 else f"{got[:60]}…")  # noqa: PLR2004 - one line
        return NetworkError(
            f"{self.name}: invalid {field}: got {shown}; expected {expected}; save the model again"
        )

    def words(self, field: str) -> list[str]:
        """Return the words of a field."""
        if field not in self.fields:
            raise self.error(field, "a value")
        return self.fields[field].split()

    def integer(self, field: str) -> int:
        """Return an integer."""
        numbers = self.integers(field, 1)
        return int(numbers[0])

    def integers(self, field: str, count: int) -> Counts:
        """Return a number of integers."""
        words = self._words(field, count, INTEGER, "integers")
        return np.array([int(word) for word in words], dtype=np.int64)

    def numbers(self, field: str, count: int) -> Array:
        """Return a number of numbers, which may be infinite."""
        words = self._words(field, count, NUMBER, "numbers")
        return np.array([float(word) for word in words], dtype=np.float64)

    def _words(self, field: str, count: int, form: re.Pattern[str], what: str) -> list[str]:
        words = self.words(field)
        if len(words) != count or not all(map(form.fullmatch, words)):
            raise self.error(field, f"{count} {what}")
        return words


@dataclass(frozen=True, slots=True, eq=False)
class ModelText:
    """The sections of a file."""

    header: Section
    trees: tuple[Section, ...]
    categories: list[list[Any]]  # of pandas columns, in order


def parse_text(content: bytes) -> ModelText:
    """Split a file into its sections."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        raise NetworkError("the file is not a text in UTF-8; save the model again") from None
    if not lines or lines[0].strip() != "tree":
        first = lines[0][:40] if lines else ""
        raise NetworkError(
            f"the file is not a model of LightGBM: got the first line {first!r}; expected 'tree'"
        )
    if "end of trees" not in lines:
        raise NetworkError("the file is not complete: 'end of trees' is missing; save it again")
    end = lines.index("end of trees")
    starts = [index for index in range(end) if lines[index].startswith("Tree=")]
    header = _section("the header", lines[1 : starts[0] if starts else end])
    trees = []
    for number, (start, stop) in enumerate(zip(starts, [*starts[1:], end], strict=True)):
        if lines[start].strip() != f"Tree={number}":
            raise NetworkError(
                f"the trees are not in order: got {lines[start][:40]!r}; expected 'Tree={number}'"
            )
        trees.append(_section(f"tree {number}", lines[start + 1 : stop]))
    return ModelText(header, tuple(trees), _categories(lines[end:]))


def _section(name: str, lines: list[str]) -> Section:
    fields: dict[str, str] = {}
    for line in lines:
        field, _, value = line.partition("=")
        if field in fields and field:
            raise NetworkError(f"{name}: got {field[:40]!r} twice; save the model again")
        fields[field] = value
    return Section(name, fields)


def _categories(lines: list[str]) -> list[list[Any]]:
    """Return the categories of pandas columns; none if the file has none."""
    found = [line for line in lines if line.startswith(CATEGORIES)]
    if not found:
        return []
    try:
        lists = json.loads(found[-1].removeprefix(CATEGORIES)) or []
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"invalid {CATEGORIES} {error}; save the model again") from None
    if not isinstance(lists, list) or not all(isinstance(values, list) for values in lists):
        raise NetworkError(f"invalid {CATEGORIES} expected lists; save the model again")
    for value in (value for values in lists for value in values):
        if not isinstance(value, str | int | float):
            raise NetworkError(f"unsupported category: got {value!r}; expected a text or a number")
    return lists
