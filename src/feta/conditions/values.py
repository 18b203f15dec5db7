"""Values of categories as conditions write them: types must be equal."""

from collections.abc import Sequence

from feta.errors import unknown_choice
from feta.space.attribute import Value


def known_value(column: str, values: Sequence[Value], value: Value) -> tuple[Value, str]:
    """Return the value of a category that equals another one, or what is wrong with that."""
    for known in values:
        if type(known) is type(value) and known == value:
            return known, ""
    for known in values:
        if str(known) == str(value):
            return None, (
                f"got {quoted(value)} for {column!r}; expected {quoted(known)}: texts are in "
                "quotes, integers and booleans are not"
            )
    hint = "; write true or false" if any(known is True for known in values) else ""
    return None, f"unknown value of {column!r}: {unknown_choice(value, values)}{hint}"


def quoted(value: Value) -> str:
    """Return a value as conditions write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
