"""Values and keys as TOML text."""

import json


def toml(value: object) -> str:
    """Return a value as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # JSON's escapes are valid TOML. TOML also forbids DEL; all invisible characters are
            # escaped, so that a reader sees them.
            return "".join(_visible(part) for part in json.dumps(value, ensure_ascii=False))
        case list():
            return "[" + ", ".join(toml(item) for item in value) + "]"
        case dict():
            pairs = ", ".join(f"{toml_key(key)} = {toml(item)}" for key, item in value.items())
            return "{ " + pairs + " }"
        case _:
            return repr(value)


def toml_key(name: str) -> str:
    """Return a key as TOML, with quotes if they are necessary."""
    bare = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if bare else toml(name)


def _visible(character: str) -> str:
    return character if character.isprintable() else f"\\U{ord(character):08X}"
