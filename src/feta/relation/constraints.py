"""Constraints of a schema: conditions, forbidden combinations, and support learned from a table.

An entry is what a file stores. It is read with the attributes of a space, and becomes one
condition, which a plausible person does not violate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from feta.conditions.condition import (
    AllOf,
    Among,
    AnyOf,
    Compared,
    Condition,
    Linear,
    Not,
    Operator,
    columns_of,
)
from feta.conditions.parse import parse_condition, parse_linear
from feta.errors import SchemaError, unknown_choice
from feta.space.attribute import OTHER, Attribute, Categorical, Derived, Value

Entry = Mapping[str, Any]

KINDS = ("condition", "forbidden", "support")
KEYS = {*KINDS, "seen", "least"}

# Texts of more parts are abbreviated in reports.
MAX_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that plausible people do not violate, its words, and its entry in a file."""

    condition: Condition
    words: str
    entry: Entry = field(compare=False)

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that it reads."""
        return columns_of(self.condition)


def read_constraints(entries: object, attributes: Sequence[Attribute]) -> tuple[Constraint, ...]:
    """Read the entries of `[[constraints]]`; messages number them from 1."""
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise SchemaError(
            f"[[constraints]] is not a list of tables: got {entries!r}; expected entries such as "
            '[[constraints]] with condition = "age - years_employed >= 14"'
        )
    constraints = []
    for number, entry in enumerate(entries, 1):
        try:
            constraints.append(read_constraint(entry, attributes))
        except SchemaError as error:
            raise SchemaError(f"[[constraints]], entry {number}: {error}") from None
    return tuple(constraints)


def read_constraint(entry: Entry, attributes: Sequence[Attribute]) -> Constraint:
    """Read one entry."""
    for key in entry:
        if key not in KEYS:
            raise SchemaError(f"unknown key: {unknown_choice(key, sorted(KEYS))}")
    kinds = [key for key in KINDS if key in entry]
    if len(kinds) != 1:
        raise SchemaError(
            f"got {' and '.join(kinds) or 'none of them'}; expected exactly one of condition, "
            "forbidden and support"
        )
    if kinds != ["support"] and len(entry) > 1:
        raise SchemaError(f"got the keys {sorted(entry)}; seen and least belong to support")
    match kinds[0]:
        case "condition":
            return _read_condition(entry, attributes)
        case "forbidden":
            return _read_forbidden(entry, attributes)
        case _:
            return _read_support(entry, attributes)


def _read_condition(entry: Entry, attributes: Sequence[Attribute]) -> Constraint:
    text = entry["condition"]
    if not isinstance(text, str):
        raise SchemaError(f'invalid condition: got {text!r}; expected a text such as "age >= 14"')
    return Constraint(parse_condition(text, attributes), text, dict(entry))


def _read_forbidden(entry: Entry, attributes: Sequence[Attribute]) -> Constraint:
    row = entry["forbidden"]
    if not isinstance(row, Mapping) or not row:
        raise SchemaError(
            f"invalid forbidden combination: got {row!r}; expected values by column, such as "
            '{ sex = "male", relationship = "wife" }'
        )
    return Constraint(Not(_row_condition(row, attributes)), f"never {_row_words(row)}", dict(entry))


def _read_support(entry: Entry, attributes: Sequence[Attribute]) -> Constraint:
    columns, rows = entry["support"], entry.get("seen")
    if not isinstance(columns, list) or not columns:
        raise SchemaError(
            f"invalid support: got {columns!r}; expected a list of columns and sums of columns"
        )
    if not isinstance(rows, list) or not rows:
        raise SchemaError(
            f"invalid seen: got {rows!r}; expected the combinations that occur, one or more; "
            "feta constraints learns them from a table"
        )
    for row in rows:
        if not isinstance(row, Mapping) or set(row) != set(columns):
            raise SchemaError(f"invalid seen: got {row!r}; expected values of exactly {columns!r}")
    condition = AnyOf(tuple(_row_condition(row, attributes) for row in rows))
    least = entry.get("least")
    often = "" if least is None else f", seen {least} times or more"
    words = f"one of {len(rows):,} combinations of {', '.join(map(str, columns))}{often}"
    shown = "; ".join(_row_words(row) for row in rows[:MAX_SHOWN])
    more = "; …" if len(rows) > MAX_SHOWN else ""
    return Constraint(condition, f"{words}: {shown}{more}", dict(entry))


def _row_condition(row: Mapping[str, Any], attributes: Sequence[Attribute]) -> Condition:
    """Return the condition that all cells of a row match."""
    return AllOf(tuple(_cell_condition(key, cell, attributes) for key, cell in row.items()))


def _cell_condition(
    key: str,
    cell: Any,  # noqa: ANN401 - any TOML value
    attributes: Sequence[Attribute],
) -> Condition:
    attribute = next((one for one in attributes if one.name == key), None)
    if isinstance(attribute, Categorical | Derived):
        return Among(key, tuple(_known_values(attribute, cell)))
    total = (
        Linear.of({key: Fraction(1)}, Fraction(0)) if attribute else parse_linear(key, attributes)
    )
    limits = cell if isinstance(cell, list) else [cell, cell]
    if len(limits) != 2 or not all(map(_is_number, limits)):  # noqa: PLR2004 - a band
        raise SchemaError(
            f"invalid value of {key!r}: got {cell!r}; expected a number, or a band [low, high]"
        )
    low, high = (Fraction(float(limit)) for limit in limits)
    if low > high:
        raise SchemaError(f"invalid band of {key!r}: got {cell!r}; expected [low, high]")
    return AllOf((_at(total, low, ">="), _at(total, high, "<=")))


def _at(total: Linear, limit: Fraction, operator: Operator) -> Condition:
    return Compared(total.plus(Linear((), limit), -1), operator)


def _known_values(
    attribute: Categorical | Derived,
    cell: Any,  # noqa: ANN401 - any TOML value
) -> list[Value]:
    """Return the values of a cell; types must be equal, so that 1, true and "1" are different."""
    if isinstance(attribute, Derived):
        known: list[Value] = [label for label, _, _ in attribute.bands]
    else:
        known = [*attribute.values, *([OTHER] if attribute.other else [])]
    values = cell if isinstance(cell, list) else [cell]
    if not values:
        raise SchemaError(f"invalid values of {attribute.name!r}: got an empty list")
    for value in values:
        if not any(type(one) is type(value) and one == value for one in known):
            raise SchemaError(
                f"unknown value of {attribute.name!r}: {unknown_choice(value, known)}"
            )
    return list(values)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return Fraction(float(value)) == Fraction(value)
    except (OverflowError, ValueError):  # too large, infinite or NaN
        return False


def _row_words(row: Mapping[str, Any]) -> str:
    """Return a row in words, such as "marital = married and age from 17 to 90"."""
    return " and ".join(_cell_words(key, cell) for key, cell in row.items())


def _cell_words(key: str, cell: object) -> str:
    if isinstance(cell, list) and len(cell) == 2 and all(map(_is_number, cell)):  # noqa: PLR2004
        return f"{key} from {cell[0]} to {cell[1]}"
    if isinstance(cell, list):
        return f"{key} in {', '.join(map(str, cell))}"
    return f"{key} = {cell}"
