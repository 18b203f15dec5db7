"""People: the columns of the schema, and their codes in an encoded row."""

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from operator import mul
from typing import Any

from feta_check.reading import Number, checkable, exact, holds, nearest, readable

LARGEST_INTEGER = 2**52
NUMERIC = {"sensitive", "missing", "strict"}
FIELDS = {
    "category": ({"values"}, {"sensitive", "missing", "other"}),
    "integer": ({"low", "high"}, NUMERIC),
    "levels": ({"numbers"}, NUMERIC),
    "number": ({"low", "high"}, NUMERIC),
    "derived": ({"source", "bands"}, set[str]()),
}

# An index of a category, a number, or None: a missing number.
Value = Number | None


class Column:
    """A column of the schema, and the first of its columns in an encoded row."""

    def __init__(self, entry: dict[str, Any], start: int) -> None:
        self.name, self.kind, self.start = entry["name"], entry["kind"], start
        checkable(self.kind in FIELDS, f"columns of the kind {self.kind!r}")
        required, optional = FIELDS[self.kind]
        self.flags = {name for name in optional if entry.get(name, False)}
        fields = required <= entry.keys() - {"kind", "name"} <= required | optional
        types = all(type(entry.get(name, False)) is bool for name in optional)
        readable(fields and types and type(self.name) is str, "invalid fields")
        self.missing, self.sensitive = "missing" in self.flags, "sensitive" in self.flags
        self.numbers: Sequence[Number] = ()  # of a finite column, ascending
        self.width = 1 + self.missing
        if self.kind == "category":
            self.width = len(entry["values"]) + len(self.flags & {"missing", "other"})
        elif self.kind == "derived":
            self.bands = [(_number(low), _number(high)) for _, low, high in entry["bands"]]
            self.source, self.width = entry["source"], len(self.bands)
        elif self.kind == "levels":
            self.numbers = [_number(number) for number in entry["numbers"]]
            readable(self.numbers == sorted(set(self.numbers)), "levels must ascend")
            self.low, self.high = self.numbers[0], self.numbers[-1]
        else:
            self.low, self.high = _number(entry["low"]), _number(entry["high"])
            whole = type(self.low) is type(self.high) is int
            readable(self.low <= self.high and (whole or self.kind == "number"), "invalid limits")
            if self.kind == "integer":
                self.numbers = range(int(self.low), int(self.high) + 1)
        # The number of values, 0 if there are infinitely many.
        finite = bool(self.numbers) * (len(self.numbers) + self.missing)
        self.count = self.width if self.kind == "category" else finite

    def value(self, cell: Any) -> Value:
        """Return the value of a cell of a claim."""
        words = f"column {self.name!r}: got another value than its domain has"
        if self.kind == "category":
            holds(type(cell) is int and 0 <= cell < self.width, words)
            return int(cell)
        if cell is None and self.missing:
            return None
        number = exact(cell)
        whole = number.denominator == 1 and abs(number) <= LARGEST_INTEGER
        inside = self.low <= number <= self.high
        listed = self.kind != "levels" or number in self.numbers
        accepted = listed if inside else not self.flags & {"sensitive", "strict"}
        accepted &= nearest(number) == number and (whole or self.kind != "integer")
        holds(accepted, words)
        return _reduced(number)

    def index(self, value: Value) -> int:
        """Return the place of a value in the order of values."""
        if self.kind == "category":
            return int(value or 0)
        return len(self.numbers) if value is None else self.numbers.index(value)

    def at(self, index: int) -> Value:
        """Return the value at an index."""
        if self.kind == "category":
            return index
        return self.numbers[index] if index < len(self.numbers) else None

    def codes(self, value: Value) -> Sequence[Number]:
        """Return the codes of a value in the columns of an encoded row."""
        if self.kind == "category":
            return [int(index == value) for index in range(self.width)]
        codes = (self.low, 1) if value is None else (value, 0)
        return codes[: self.width]


class Space:
    """All columns of a schema."""

    def __init__(self, entries: Any) -> None:
        self.columns: list[Column] = []
        self.width = 0
        for entry in entries:
            self.columns.append(Column(entry, self.width))
            self.width += self.columns[-1].width
        self.raw = [column for column in self.columns if column.kind != "derived"]
        self.derived = [column for column in self.columns if column.kind == "derived"]
        self.axes = [column for column in self.raw if column.sensitive]
        names = {column.name for column in self.columns}
        readable(len(names) == len(self.columns), "the model has a column twice")
        sources = {c.name for c in self.raw if c.kind != "category" and not c.missing}
        known = all(column.source in sources for column in self.derived)
        readable(known, "the model has a derived column without its source")
        checkable(all(axis.count for axis in self.axes), "sensitive real values")
        counts = [axis.count for axis in self.axes]
        self.size = prod(counts)
        self.strides = [prod(counts[place + 1 :]) for place in range(len(counts))]
        ends = [self.codes_at(axis, 0) for axis in self.axes]
        self.moved = {place: axis for axis, codes in enumerate(ends) for place, _ in codes}

    def id(self, indices: Sequence[int]) -> int:
        """Return the id of a counterpart; the last axis counts fastest."""
        return sum(map(mul, indices, self.strides))

    def codes_at(self, axis: Column, index: int) -> list[tuple[int, Number]]:
        """Return the places and codes of the value of an axis at an index."""
        return self.codes(axis, axis.at(index))

    def codes(self, column: Column, value: Value) -> list[tuple[int, Number]]:
        """Return the places and codes of a value, also in derived columns."""
        codes = list(enumerate(column.codes(value), column.start))
        for derived in self.derived:
            if derived.source == column.name and value is not None:
                bands = [int(low <= value <= high) for low, high in derived.bands]
                holds(sum(bands) == 1, f"{column.name!r}: a value is not in one band")
                codes += enumerate(bands, derived.start)
        return codes

    def values(self, columns: Sequence[Column], cells: Any) -> list[Value]:
        """Return the values of some columns."""
        fits = type(cells) is list and len(cells) == len(columns)
        holds(fits, "a person has another number of columns than the schema")
        return [column.value(cell) for column, cell in zip(columns, cells, strict=True)]


def _number(value: Any) -> Number:
    return int(value) if type(value) is int else _reduced(exact(value))


def _reduced(number: Fraction) -> Number:
    return number.numerator if number.denominator == 1 else number
