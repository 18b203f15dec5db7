"""Warnings about columns that look wrong, for `feta init` to show before a schema is used."""

import re
from collections import defaultdict
from collections.abc import Collection

from feta.io.sanitize import visible
from feta.space.attribute import Attribute, Categorical, Integer, Levels, Real

# Words in the names of columns whose numbers cannot be negative.
COUNT_WORDS = frozenset(
    [
        "age",
        "ages",
        "child",
        "children",
        "count",
        "counts",
        "day",
        "days",
        "dependents",
        "duration",
        "hour",
        "hours",
        "month",
        "months",
        "people",
        "persons",
        "tenure",
        "week",
        "weeks",
        "year",
        "years",
    ]
)

# Numbers that often mean "unknown" in tables.
LOW_CODES = frozenset((-1.0, -9.0, -99.0, -999.0))
HIGH_CODES = frozenset((99.0, 999.0, 9999.0, 99999.0))

# Groups of similar values that are listed, and values listed per group.
MAX_GROUPS = 5
MAX_VALUES = 4


def oddities(attribute: Attribute, numbers: Collection[float] = ()) -> list[str]:
    """Return one warning per oddity of a column.

    Parameters
    ----------
    attribute
        The attribute inferred from the column; its limits are those of the table.
    numbers
        The distinct numbers of the column; empty if there were too many to store.
    """
    match attribute:
        case Categorical():
            return [
                *_check_constant(attribute),
                *_check_similar(attribute),
                *_check_blanks(attribute),
            ]
        case Integer() | Levels() | Real():
            return [
                *_check_constant(attribute),
                *_check_negative(attribute, numbers),
                *_check_codes(attribute, numbers),
            ]
        case _:
            return []


def _check_constant(attribute: Categorical | Integer | Levels | Real) -> list[str]:
    values = _extreme_values(attribute)
    if len(values) != 1 or attribute.missing:
        return []
    constant = f"{attribute.name!r} is constant: every row has {_quote(values[0])}"
    if attribute.sensitive:
        return [
            f"{constant}, so nobody has a counterpart with another value; "
            "add the values that may occur"
        ]
    return [f"{constant}; add the values that may occur, or omit the column (--leave-out)"]


def _extreme_values(attribute: Categorical | Integer | Levels | Real) -> list[object]:
    """Return the distinct values of a category or of levels, or the limits of other numbers."""
    match attribute:
        case Categorical(values=values):
            return list(values)
        case Levels(numbers=numbers):
            return list(numbers)
        case _:
            return list(dict.fromkeys((attribute.low, attribute.high)))


def _check_similar(attribute: Categorical) -> list[str]:
    """Find values that differ only in blanks or case."""
    groups = [group for group in _group_similar(attribute) if len(group) > 1]
    warnings = [_describe_group(attribute, group) for group in groups[:MAX_GROUPS]]
    more = len(groups) - MAX_GROUPS
    if more > 0:
        warnings.append(
            f"{attribute.name!r}: {more:,} more groups of values differ only in blanks or case"
        )
    return warnings


def _group_similar(attribute: Categorical) -> list[list[str]]:
    """Group texts that are equal except for blanks and case."""
    groups: dict[str, list[str]] = defaultdict(list)
    for value in attribute.values:
        if isinstance(value, str):
            groups[" ".join(value.split()).casefold()].append(value)
    return list(groups.values())


def _describe_group(attribute: Categorical, group: list[str]) -> str:
    cases = {value.casefold() for value in group}
    blanks = {" ".join(value.split()) for value in group}
    what = "case" if len(cases) == 1 else "blanks" if len(blanks) == 1 else "blanks or case"
    shown = ", ".join(_quote(value) for value in group[:MAX_VALUES])
    role = "; each is a separate value with its own vote" if attribute.sensitive else ""
    strips = len({value.strip() for value in group}) == 1
    remedy = "run this again with --strip" if strips else "correct the table"
    return (
        f"{attribute.name!r}: {shown} differ only in {what}{role}; if they mean the same, {remedy}"
    )


def _check_blanks(attribute: Categorical) -> list[str]:
    """Find values with leading or trailing blanks, except those with a similar value."""
    unique = [group[0] for group in _group_similar(attribute) if len(group) == 1]
    padded = [value for value in unique if value != value.strip()]
    if not padded:
        return []
    shown = ", ".join(_quote(value) for value in padded[:MAX_VALUES])
    return [
        f"{attribute.name!r} has values with leading or trailing blanks: {shown}; if the model was "
        "trained without these blanks, run this again with --strip"
    ]


def _check_negative(attribute: Integer | Levels | Real, numbers: Collection[float]) -> list[str]:
    low = attribute.numbers[0] if isinstance(attribute, Levels) else attribute.low
    if low >= 0:
        return []
    effect = ", and would become a counterpart" if attribute.sensitive else ""
    if set(re.findall(r"[a-z]+", attribute.name.lower())) & COUNT_WORDS:
        return [
            f"{attribute.name!r} has the minimum {low:g}, which looks "
            f"impossible{effect}; correct the rows, or raise min"
        ]
    negative = {number for number in numbers if number < 0}
    if len(negative) == 1 and negative <= LOW_CODES and isinstance(attribute, Integer):
        return [
            f"{attribute.name!r}: {low:g} is the only negative number; if it is a code for "
            f"unknown, it is not an amount{effect}; correct the rows, or raise min"
        ]
    return []


def _check_codes(attribute: Integer | Levels | Real, numbers: Collection[float]) -> list[str]:
    """Find a maximum that consists of nines and is far from all other numbers."""
    high = attribute.numbers[-1] if isinstance(attribute, Levels) else attribute.high
    others = [number for number in numbers if number < high]
    if high not in HIGH_CODES or len(others) < 2 or max(others) > high / 2:  # noqa: PLR2004 - two values, 0 and 99, may be a flag
        return []
    effect = ", and would become a counterpart" if attribute.sensitive else ""
    return [
        f"{attribute.name!r}: {high:g} is more than twice every other number; if it is a "
        f"code for unknown or for a limit, it is not an amount{effect}; correct the rows, "
        "or lower max"
    ]


def _quote(value: object) -> str:
    return f"'{visible(value)}'" if isinstance(value, str) else visible(value)
