"""The `[table]` section of a schema file: the options with which pandas reads the user's CSV."""

from collections.abc import Callable
from typing import Any

from feta.errors import SchemaError, unknown_choice
from feta.io.table_options import NaValues, TableOptions


def parse_table_options(section: object) -> TableOptions:
    """Read the section; options that it omits have pandas' defaults."""
    if not isinstance(section, dict):
        raise SchemaError(
            f"[table] is not a table: got {section!r}; expected options such as decimal = ','"
        )
    for key in section:
        if key not in PARSERS:
            raise SchemaError(f"[table]: unknown key: {unknown_choice(key, PARSERS)}")
    return TableOptions(**{key: PARSERS[key](key, value) for key, value in section.items()})


def options_json(options: TableOptions) -> dict[str, Any]:
    """Return the options that differ from pandas' defaults, as plain values."""
    defaults = TableOptions()
    values = {name: getattr(options, name) for name in PARSERS}
    return {
        name: _plain_value(value)
        for name, value in values.items()
        if value != getattr(defaults, name)
    }


def _plain_value(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    """Return a value with lists instead of tuples."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, dict):
        return {key: _plain_value(item) for key, item in value.items()}
    return value


def _parse_character(key: str, value: object) -> str:
    if not isinstance(value, str) or len(value) != 1:
        raise SchemaError(f"[table]: invalid {key}: got {value!r}; expected one character")
    return value


def _parse_flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(f"[table]: invalid {key}: got {value!r}; expected true or false")
    return value


def _parse_texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise SchemaError(
            f'[table]: invalid {key}: got {value!r}; expected a list of texts such as ["NA"]'
        )
    return tuple(value)


def _parse_na_values(key: str, value: object) -> NaValues:
    if isinstance(value, dict):
        return {name: _parse_texts(f"{key}.{name}", texts) for name, texts in value.items()}
    return _parse_texts(key, value)


def _parse_dtypes(key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise SchemaError(
            f"[table]: invalid {key}: got {value!r}; "
            'expected columns with types such as { zip = "str" }'
        )
    return {name: _parse_dtype(name, dtype) for name, dtype in value.items()}


def _parse_dtype(name: str, value: object) -> str:
    if not isinstance(value, str) or not _is_dtype(value):
        raise SchemaError(
            f"[table]: invalid dtype of {name!r}: got {value!r}; expected a type of pandas such "
            'as "str", "int64", "float64", "bool" or "category"'
        )
    return value


def _is_dtype(name: str) -> bool:
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    try:
        pd.api.types.pandas_dtype(name)
    except (TypeError, ValueError):
        return False
    return True


# All options, in the order in which they are written.
PARSERS: dict[str, Callable[[str, object], Any]] = {
    "sep": _parse_character,
    "decimal": _parse_character,
    "dtype": _parse_dtypes,
    "na_values": _parse_na_values,
    "keep_default_na": _parse_flag,
    "true_values": _parse_texts,
    "false_values": _parse_texts,
    "strip": _parse_flag,
}
