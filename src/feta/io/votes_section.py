"""The `[votes]` section of a schema file: settings of the vote, never fitted numbers."""

from typing import Any

from feta.errors import SchemaError, unknown_choice
from feta.vote.settings import VoteSettings

KEYS = ("vote", "weights", "level", "least")


def parse_votes(section: object) -> VoteSettings | None:
    """Read the section; settings that it omits have the recommended defaults."""
    if section is None:
        return None
    if not isinstance(section, dict):
        raise SchemaError(
            f'[votes] is not a table: got {section!r}; expected settings such as level = "keep"'
        )
    for key, value in section.items():
        if key not in KEYS:
            raise SchemaError(f"[votes]: unknown key: {unknown_choice(key, KEYS)}")
        if key != "least" and not isinstance(value, str):
            raise SchemaError(
                f"[votes]: invalid {key}: got {value!r}; expected a text: [votes] holds settings, "
                "and fitted numbers are stored in a .feta file; use feta export --votes-from"
            )
    try:
        return VoteSettings(**section)
    except SchemaError as error:
        raise SchemaError(f"[votes]: {error}") from None


def votes_json(settings: VoteSettings | None) -> dict[str, Any]:
    """Return the settings that differ from the defaults, as plain values."""
    if settings is None:
        return {}
    defaults = VoteSettings()
    values = {name: getattr(settings, name) for name in KEYS}
    return {name: value for name, value in values.items() if value != getattr(defaults, name)}
