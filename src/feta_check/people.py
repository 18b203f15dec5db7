"""People: columns of the schema, encoded rows, and the values of sensitive columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from feta_check.reading import Refuted, Unchecked, Unreadable, exact, nearest

LARGEST_INTEGER = 2**52
FIELDS = {
    "category": ({"values"}, {"sensitive", "missing", "other"}),
    "integer": ({"low", "high"}, {"sensitive", "missing", "strict"}),
    "levels": ({"numbers"}, {"sensitive", "missing", "strict"}),
    "number": ({"low", "high"}, {"sensitive", "missing", "strict"}),
    "derived": ({"source", "bands"}, set()),
}


@dataclass(frozen=True)
class Column:
    """A column of the schema, and the first of its columns in an encoded row."""

    name: str
    kind: str
    start: int
    width: int
    sensitive: bool = False
    missing: bool = False
    strict: bool = False
    numbers: Sequence[Fraction | int] = ()  # of a finite number, ascending
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(0)
    source: str = ""
    bands: tuple[tuple[Fraction, Fraction], ...] = ()

    @property
    def count(self) -> int:
        """The number of values; 0 if there are infinitely many."""
        if self.kind == "category":
            return self.width
        return len(self.numbers) + self.missing if self.numbers else 0

    def codes(self, cell: object) -> list[Fraction]:
        """Return the columns of a cell of a claim."""
        if self.kind == "category":
            if type(cell) is not int or not 0 <= cell < self.width:
                raise Refuted(f"column {self.name!r}: got {cell!r}; expected the index of a value")
            return [Fraction(index == cell) for index in range(self.width)]
        if cell is None and self.missing:
            return [self.low, Fraction(1)]
        number = exact(cell)
        if nearest(number) != number or not self.accepts(number):
            raise Refuted(f"column {self.name!r}: got a number outside the domain")
        return [number, Fraction(0)][: self.width]

    def accepts(self, number: Fraction) -> bool:
        """Return whether a number is in the domain, or in a domain with open limits."""
        integral = number.denominator == 1 and abs(number) <= LARGEST_INTEGER
        if self.low <= number <= self.high:
            listed = self.kind != "levels" or number in self.numbers
            return listed and (integral or self.kind != "integer")
        return not (self.sensitive or self.strict) and (integral or self.kind != "integer")


@dataclass(frozen=True)
class Axis:
    """A sensitive column, and the columns derived from it."""

    column: Column
    derived: list[Column] = field(default_factory=list)

    @property
    def whole(self) -> tuple[int, int]:
        """The first and the last index of a value."""
        return 0, self.column.count - 1

    @property
    def moved(self) -> set[int]:
        """The columns of an encoded row that change."""
        places: set[int] = set()
        for column in (self.column, *self.derived):
            places |= set(range(column.start, column.start + column.width))
        return places

    def codes(self, value: int) -> list[tuple[int, Fraction]]:
        """Return the columns, with their numbers, of the value at an index."""
        column = self.column
        if column.kind == "category":
            return [(column.start + n, Fraction(n == value)) for n in range(column.width)]
        absent = value >= len(column.numbers)
        number = Fraction(column.low if absent else column.numbers[value])
        codes = [(column.start, number)]
        if column.missing:
            codes.append((column.start + 1, Fraction(absent)))
        for derived in self.derived:
            codes += list(enumerate(_bands(derived, number), derived.start))
        return codes

    def value(self, cell: Any) -> int:
        """Return the index of a cell of a claim."""
        number = self.column.codes(cell)[0]
        if self.column.kind == "category":
            return int(cell)
        if cell is None:
            return self.column.count - 1
        integral = number.denominator == 1
        return self.column.numbers.index(number.numerator if integral else number)


def _bands(derived: Column, number: Fraction) -> list[Fraction]:
    return [Fraction(low <= number <= high) for low, high in derived.bands]


class Space:
    """All columns of a schema."""

    def __init__(self, entries: Any) -> None:
        if type(entries) is not list:
            raise Unreadable("the model has no columns")
        self.columns: list[Column] = []
        self.width = 0
        for entry in entries:
            try:
                column = _column(entry, self.width)
            except (Refuted, TypeError, KeyError, ValueError) as error:
                raise Unreadable(f"the model has an invalid column: {error}") from None
            self.columns.append(column)
            self.width += column.width
        self.by_name = {column.name: column for column in self.columns}
        self.raw = [column for column in self.columns if column.kind != "derived"]
        self.derived = [column for column in self.columns if column.kind == "derived"]
        sources = [self.by_name.get(column.source) for column in self.derived]
        if len(self.by_name) != len(self.columns) or not all(
            source is not None and source.kind in FIELDS and not source.missing
            for source in sources
        ):
            raise Unreadable("the model has a column twice, or a derived one without its source")
        self.axes = [
            Axis(column, [other for other in self.derived if other.source == column.name])
            for column in self.raw
            if column.sensitive
        ]
        if any(axis.column.count == 0 for axis in self.axes):
            raise Unchecked("not checkable by this program: sensitive columns with real values")

    @property
    def size(self) -> int:
        """The number of counterparts."""
        size = 1
        for axis in self.axes:
            size *= axis.column.count
        return size

    def row(self, cells: object) -> list[Fraction]:
        """Encode a person."""
        if type(cells) is not list or len(cells) != len(self.raw):
            raise Refuted("the person has another number of columns than the schema")
        row = [Fraction(0)] * self.width
        for column, cell in zip(self.raw, cells, strict=True):
            row[column.start : column.start + column.width] = column.codes(cell)
        for derived in self.derived:
            bands = _bands(derived, row[self.by_name[derived.source].start])
            if sum(bands) != 1:
                raise Refuted(f"column {derived.name!r}: the person is in {sum(bands)} bands")
            row[derived.start : derived.start + derived.width] = bands
        return row

    def values(self, cells: object) -> list[int]:
        """Return the values of a counterpart on all axes."""
        if type(cells) is not list or len(cells) != len(self.axes):
            raise Refuted("a counterpart has another number of sensitive columns than the schema")
        return [axis.value(cell) for axis, cell in zip(self.axes, cells, strict=True)]


def _column(entry: Any, start: int) -> Column:
    kind, name = entry["kind"], entry["name"]
    if kind not in FIELDS:
        raise Unchecked(f"not checkable by this program: columns of the kind {kind!r}")
    required, optional = FIELDS[kind]
    fields = entry.keys() - {"kind", "name"}
    flags = {key: entry[key] for key in fields & optional}
    if type(name) is not str or not required <= fields <= required | optional:
        raise ValueError(f"fields of {str(name)[:40]!r}")
    if not all(type(flag) is bool for flag in flags.values()):
        raise ValueError(f"flags of {name[:40]!r}")
    other = flags.pop("other", False)
    if kind == "derived":
        bands = tuple((_number(low), _number(high)) for _, low, high in entry["bands"])
        return Column(name, kind, start, len(bands), source=entry["source"], bands=bands)
    if kind == "category":
        width = len(entry["values"]) + other + flags.get("missing", False)
        return Column(name, kind, start, width, **flags)
    width = 1 + flags.get("missing", False)
    if kind == "levels":
        numbers = [_number(number) for number in entry["numbers"]]
        if not numbers or numbers != sorted(set(numbers)):
            raise ValueError(f"numbers of {name[:40]!r}")
        ends = numbers[0], numbers[-1]
        return Column(name, kind, start, width, **flags, numbers=numbers, low=ends[0], high=ends[1])
    low, high = _number(entry["low"]), _number(entry["high"])
    integers = range(int(low), int(high) + 1) if kind == "integer" else ()
    if low > high or (kind == "integer" and (low.denominator, high.denominator) != (1, 1)):
        raise ValueError(f"limits of {name[:40]!r}")
    return Column(name, kind, start, width, **flags, numbers=integers, low=low, high=high)


def _number(value: object) -> Fraction:
    return Fraction(value) if type(value) is int else exact(value)
