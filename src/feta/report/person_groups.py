"""Groups of the people of a certificate: the categories of a column of its schema."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from feta.io.canonical_json import exact_number

Json = dict[str, Any]

OTHER = "other"
N_QUARTERS = 4


@dataclass(frozen=True, slots=True)
class PersonGroups:
    """The category of each person in one column; None is unknown."""

    column: str
    categories: tuple[str, ...]
    members: tuple[str | None, ...]


def groups_of(
    schema: Json, column: Json, cells: Sequence[Any], unknown: Collection[str]
) -> PersonGroups:
    """Return the categories of a column; numbers have the schema's bands, or quarters."""
    if column["kind"] == "category":
        names = [str(value) for value in column["values"]]
        names += [OTHER] * bool(column.get("other"))
        members = [None if cell is None or cell >= len(names) else names[cell] for cell in cells]
        return texts(column["name"], members, unknown, names)
    numbers = [None if cell is None else exact_number(cell) for cell in cells]
    bands = _bands(schema, column["name"]) or _quarters(numbers)
    return PersonGroups(
        column["name"],
        tuple(name for name, _, _ in bands),
        tuple(_band(bands, number) for number in numbers),
    )


def texts(
    column: str, members: Sequence[str | None], unknown: Collection[str], known: Sequence[str] = ()
) -> PersonGroups:
    """Return the categories of texts; those in `unknown` and empty ones are unknown."""
    known = known or sorted({member for member in members if member})
    named = [member if member and member not in unknown else None for member in members]
    return PersonGroups(column, tuple(name for name in known if name not in unknown), tuple(named))


Band = tuple[str, Fraction, Fraction]


def _bands(schema: Json, name: str) -> list[Band]:
    """Return the bands that the schema declares for a number."""
    for column in schema["columns"]:
        if column["kind"] == "derived" and column["source"] == name:
            bands = [(band, _number(low), _number(high)) for band, low, high in column["bands"]]
            return sorted(bands, key=lambda band: band[1])
    return []


def _number(value: int | str) -> Fraction:
    return exact_number(value) if isinstance(value, str) else Fraction(value)


def _quarters(numbers: Sequence[Fraction | None]) -> list[Band]:
    """Return quarters of the people; equal numbers are in the same one."""
    known = sorted(number for number in numbers if number is not None)
    values = sorted(set(known))
    starts = values
    if len(values) > N_QUARTERS:
        cuts = [known[-(-len(known) * part // N_QUARTERS)] for part in range(1, N_QUARTERS)]
        starts = sorted({values[0], *cuts})
    ends = [values[values.index(start) - 1] for start in starts[1:]] + values[-1:]
    names = [_text(a) if a == b else f"{_text(a)} to {_text(b)}"
             for a, b in zip(starts, ends, strict=True)]  # fmt: skip
    return list(zip(names, starts, ends, strict=True))


def _text(number: Fraction) -> str:
    return str(float(number)).removesuffix(".0")  # texts of different numbers differ


def _band(bands: Sequence[Band], number: Fraction | None) -> str | None:
    if number is None:
        return None
    index = bisect_right([low for _, low, _ in bands], number) - 1
    return bands[index][0] if index >= 0 and number <= bands[index][2] else None
