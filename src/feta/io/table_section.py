"""Table section: `[table]` of a schema file, the options with which pandas reads the user's CSV."""

from collections.abc import Callable
from typing import Any

from feta.errors import SchemaError, one_of
from feta.io.table_options import NaValues, TableOptions
from feta.io.toml_text import toml

# The options in the order in which they are written.
NAMES = (
    "sep",
    "decimal",
    "dtype",
    "na_values",
    "keep_default_na",
    "true_values",
    "false_values",
    "strip",
)


def parse_table_options(entry: object) -> TableOptions:
    """Read the section; what it leaves out is pandas' default."""
    if not isinstance(entry, dict):
        raise SchemaError(f"[table] must be a table of pandas' reading options, got {entry!r}")
    for key in entry:
        if key not in NAMES:
            raise SchemaError(f"[table]: a key must be {one_of(key, NAMES)}")
    return TableOptions(**{key: PARSERS[key](key, value) for key, value in entry.items()})


def options_json(options: TableOptions) -> dict[str, Any]:
    """Return the options that differ from pandas' defaults, as plain values."""
    usual = TableOptions()
    named = {name: getattr(options, name) for name in NAMES}
    return {name: _listed(value) for name, value in named.items() if value != getattr(usual, name)}


def table_lines(options: TableOptions) -> list[str]:
    """Write the options that differ from pandas' defaults; nothing if none does."""
    changed = options_json(options)
    if not changed:
        return []
    lines = [f"{name} = {toml(value)}" for name, value in changed.items()]
    return ["", "[table]                    # how pandas reads the CSV file", *lines]


def _listed(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    if isinstance(value, tuple):
        return list(value)
    return {key: _listed(one) for key, one in value.items()} if isinstance(value, dict) else value


def _character(key: str, value: object) -> str:
    if not isinstance(value, str) or len(value) != 1:
        raise SchemaError(f"[table]: {key} must be one character, got {value!r}")
    return value


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(f"[table]: {key} must be true or false, got {value!r}")
    return value


def _texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise SchemaError(f'[table]: {key} must be a list of texts such as ["NA"], got {value!r}')
    return tuple(value)


def _na_values(key: str, value: object) -> NaValues:
    if isinstance(value, dict):
        return {name: _texts(f"{key}.{name}", one) for name, one in value.items()}
    return _texts(key, value)


def _dtypes(key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        message = (
            f'[table]: {key} must name columns and types such as {{ zip = "str" }}, got {value!r}'
        )
        raise SchemaError(message)
    return {name: _dtype(name, one) for name, one in value.items()}


def _dtype(name: str, value: object) -> str:
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    try:
        assert isinstance(value, str)
        pd.api.types.pandas_dtype(value)
    except (AssertionError, TypeError, ValueError):
        message = (
            f"[table]: dtype of {name!r} must be a type of pandas such as "
            f'"str", "int64", "float64", "bool" or "category", got {value!r}'
        )
        raise SchemaError(message) from None
    return value


PARSERS: dict[str, Callable[[str, object], Any]] = {
    "sep": _character,
    "decimal": _character,
    "dtype": _dtypes,
    "na_values": _na_values,
    "keep_default_na": _flag,
    "true_values": _texts,
    "false_values": _texts,
    "strip": _flag,
}
