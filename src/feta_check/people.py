"""People: the columns of the schema, and their codes in an encoded row."""

from collections.abc import Sequence
from math import prod
from typing import Any

from feta_check.reading import Number, checkable, exact, holds, nearest, number_of, readable

LARGEST_INTEGER = 2**52
NUMERIC = {"sensitive", "missing", "strict"}
# By kind of column: the fields that it has, and its flags, which are false if they are missing.
FIELDS = {
    "category": ({"values"}, {"sensitive", "missing", "other"}),
    "integer": ({"low", "high"}, NUMERIC),
    "levels": ({"numbers"}, NUMERIC),
    "number": ({"low", "high"}, NUMERIC),
    "derived": ({"source", "bands"}, set[str]()),
}

# A number, or the index of a category; None: a missing number.
Value = Number | None
# The box of counterparts with indices from low to high, both included, on each axis.
Box = list[tuple[int, int]]


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
        self.is_number = self.kind in ("integer", "levels", "number")
        self.missing = self.is_number and "missing" in self.flags
        self.width, self.derived = 1 + self.missing, list[Column]()
        self.numbers: Sequence[Number] = ()  # all values of a finite column but a missing number
        if self.kind == "category":
            self.width = len(entry["values"]) + len(self.flags - {"sensitive"})
            self.numbers = range(self.width)
        elif self.kind == "derived":
            self.bands = [(number_of(low), number_of(high)) for _, low, high in entry["bands"]]
            self.source, self.width = entry["source"], len(self.bands)
        elif self.kind == "levels":
            self.numbers = list(map(number_of, entry["numbers"]))
            readable(self.numbers == sorted(set(self.numbers)), "levels must ascend")
            self.low, self.high = self.numbers[0], self.numbers[-1]
        else:
            self.low, self.high = number_of(entry["low"]), number_of(entry["high"])
            readable(self.low <= self.high, "limits must ascend")
            if self.kind == "integer":
                self.numbers = range(self.low, self.high + 1)  # type: ignore[arg-type]  # it checks
        self.count = len(self.numbers) + self.missing if self.numbers else 0  # 0: infinitely many

    def value(self, cell: Any) -> Value:
        """Return the value of a cell of a claim."""
        if self.missing and cell is None:
            return None
        value, accepted = cell, type(cell) is int and cell in self.numbers
        if self.is_number:
            value = exact(cell)
            inside = self.low <= value <= self.high
            listed = self.kind != "levels" or value in self.numbers
            whole = type(value) is int and abs(value) <= LARGEST_INTEGER
            accepted = listed if inside else not self.flags & {"sensitive", "strict"}
            accepted &= nearest(value) == value and (whole or self.kind != "integer")
        holds(accepted, f"column {self.name!r}: got another value than its domain has")
        return value

    def index(self, value: Value) -> int:
        """Return the place of a value in the order of values."""
        return len(self.numbers) if value is None else self.numbers.index(value)

    def at(self, index: int) -> Value:
        """Return the value at an index."""
        return self.numbers[index] if index < len(self.numbers) else None

    def codes(self, value: Value) -> list[tuple[int, Number]]:
        """Return the places in an encoded row, and the codes, of a value; also derived ones."""
        codes: list[Number] = [self.low, 1] if value is None else [value, 0][: self.width]
        if not self.is_number:
            codes = [int(number == value) for number in self.numbers]
        placed = list(enumerate(codes, self.start))
        for derived in self.derived:
            bands = [int(low <= codes[0] <= high) for low, high in derived.bands]
            holds(sum(bands) == 1, f"{self.name!r}: a value is not in one band")
            placed += enumerate(bands, derived.start)
        return placed


class Space:
    """All columns of a schema."""

    def __init__(self, entries: Any) -> None:
        columns, self.width = dict[str, Column](), 0
        for entry in entries:
            column = Column(entry, self.width)
            readable(column.name not in columns, "the model has a column twice")
            columns[column.name], self.width = column, self.width + column.width
        self.raw = [column for column in columns.values() if column.kind != "derived"]
        for column in columns.values():
            if column.kind == "derived":
                source = columns[column.source]
                known = source.is_number and not source.missing
                readable(known, "the model has a derived column without its source")
                source.derived.append(column)
        self.axes = [column for column in self.raw if "sensitive" in column.flags]
        counts = [axis.count for axis in self.axes]
        checkable(all(counts), "sensitive real values")
        self.size = prod(counts)
        # The id of a counterpart is strides · indices: the last axis counts fastest.
        self.strides = [prod(counts[place + 1 :]) for place in range(len(counts))]

    def values(self, columns: Sequence[Column], cells: Any) -> list[Value]:
        """Return the values of some columns."""
        fits = type(cells) is list and len(cells) == len(columns)
        holds(fits, "a person has another number of columns than the schema")
        return list(map(Column.value, columns, cells))
