"""Oddities: what a person should look at in the columns of a table, before a schema is trusted.

Pure functions of an attribute and of the numbers seen in its column; they return sentences.
"""

import re
from collections import defaultdict
from collections.abc import Collection

from feta.io.sanitize import visible
from feta.space.attribute import Attribute, Categorical, Integer, Levels, Real

# Parts of names whose numbers cannot be negative.
COUNTED = frozenset(
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

# Numbers that tables often hold instead of "unknown".
LOW_CODES = frozenset((-1.0, -9.0, -99.0, -999.0))
HIGH_CODES = frozenset((99.0, 999.0, 9999.0, 99999.0))

# Groups of values that are listed, and values of one group.
MAX_GROUPS = 5
MAX_VALUES = 4


def oddities(attribute: Attribute, numbers: Collection[float] = ()) -> list[str]:
    """Return a sentence for everything that looks odd about a column.

    Parameters
    ----------
    attribute
        What the column became; its limits are what the table holds.
    numbers
        The different numbers of the column, as far as they were kept.
    """
    match attribute:
        case Categorical():
            return [*_constant(attribute), *_alike(attribute), *_blanks(attribute)]
        case Integer() | Levels() | Real():
            return [
                *_constant(attribute),
                *_negative(attribute, numbers),
                *_codes(attribute, numbers),
            ]
        case _:
            return []


def _constant(attribute: Categorical | Integer | Levels | Real) -> list[str]:
    values = _different(attribute)
    if len(values) != 1 or attribute.missing:
        return []
    only = f"{attribute.name!r} is constant: every row holds {_quoted(values[0])}"
    if attribute.sensitive:
        return [
            f"{only}, so nobody has a counterpart with another one; add the values that may occur"
        ]
    return [f"{only}; widen it to what may occur, or leave the column out (--leave-out)"]


def _different(attribute: Categorical | Integer | Levels | Real) -> list[object]:
    match attribute:
        case Categorical(values=values):
            return list(values)
        case Levels(numbers=numbers):
            return list(numbers)
        case _:
            return (
                [attribute.low]
                if attribute.low == attribute.high
                else [attribute.low, attribute.high]
            )


def _alike(attribute: Categorical) -> list[str]:
    """Find values that differ only in blanks or case."""
    several = [group for group in _groups(attribute) if len(group) > 1]
    found = [_alike_words(attribute, group) for group in several[:MAX_GROUPS]]
    more = len(several) - MAX_GROUPS
    if more > 0:
        found.append(
            f"{attribute.name!r}: {more:,} more groups of values differ only in blanks or case"
        )
    return found


def _groups(attribute: Categorical) -> list[list[str]]:
    """Group texts that are equal but for blanks and case."""
    groups: dict[str, list[str]] = defaultdict(list)
    for value in attribute.values:
        if isinstance(value, str):
            groups[" ".join(value.split()).casefold()].append(value)
    return list(groups.values())


def _alike_words(attribute: Categorical, group: list[str]) -> str:
    cases = {value.casefold() for value in group}
    blanks = {" ".join(value.split()) for value in group}
    what = "case" if len(cases) == 1 else "blanks" if len(blanks) == 1 else "blanks or case"
    shown = ", ".join(_quoted(value) for value in group[:MAX_VALUES])
    role = "; each is a value of its own and votes" if attribute.sensitive else ""
    strips = len({value.strip() for value in group}) == 1
    remedy = "run this again with --strip" if strips else "correct the table"
    return (
        f"{attribute.name!r}: {shown} differ only in {what}{role}; if they mean the same, {remedy}"
    )


def _blanks(attribute: Categorical) -> list[str]:
    """Find values with blanks around them, unless they were named with a look-alike."""
    alone = [group[0] for group in _groups(attribute) if len(group) == 1]
    odd = [value for value in alone if value != value.strip()]
    if not odd:
        return []
    shown = ", ".join(_quoted(value) for value in odd[:MAX_VALUES])
    return [
        f"{attribute.name!r} holds values with blanks around them: {shown}; if the model was "
        "trained without them, run this again with --strip"
    ]


def _negative(attribute: Integer | Levels | Real, numbers: Collection[float]) -> list[str]:
    low = attribute.numbers[0] if isinstance(attribute, Levels) else attribute.low
    if low >= 0:
        return []
    counterpart = ", and would become a counterpart" if attribute.sensitive else ""
    if set(re.findall(r"[a-z]+", attribute.name.lower())) & COUNTED:
        return [
            f"{attribute.name!r} has the minimum {low:g}, which looks "
            f"impossible{counterpart}; correct the rows, or raise min"
        ]
    negative = {number for number in numbers if number < 0}
    if len(negative) == 1 and negative <= LOW_CODES and isinstance(attribute, Integer):
        return [
            f"{attribute.name!r}: {low:g} is the only negative number; if it is a code for "
            f"unknown, it is no amount{counterpart}; correct the rows, or raise min"
        ]
    return []


def _codes(attribute: Integer | Levels | Real, numbers: Collection[float]) -> list[str]:
    """Find a largest number of nines that is far from all others."""
    high = attribute.numbers[-1] if isinstance(attribute, Levels) else attribute.high
    others = [number for number in numbers if number < high]
    if high not in HIGH_CODES or len(others) < 2 or max(others) > high / 2:  # noqa: PLR2004 - a flag is 0 and 99
        return []
    counterpart = ", and would become a counterpart" if attribute.sensitive else ""
    return [
        f"{attribute.name!r}: {high:g} is more than twice every other number; if it is a "
        f"code for unknown or for a limit, it is no amount{counterpart}; correct the rows, "
        "or lower max"
    ]


def _quoted(value: object) -> str:
    return f"'{visible(value)}'" if isinstance(value, str) else visible(value)
