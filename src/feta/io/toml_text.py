"""TOML text: values and keys as a schema file spells them."""

import json


def toml(value: object) -> str:
    """Write a value."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # JSON's escapes are TOML's; what cannot be seen is escaped too, as TOML wants for DEL.
            return "".join(_visible(one) for one in json.dumps(value, ensure_ascii=False))
        case list():
            return "[" + ", ".join(toml(one) for one in value) + "]"
        case dict():
            inside = ", ".join(f"{toml_key(key)} = {toml(one)}" for key, one in value.items())
            return "{ " + inside + " }"
        case _:
            return repr(value)


def _visible(character: str) -> str:
    return character if character.isprintable() else f"\\U{ord(character):08X}"


def toml_key(name: str) -> str:
    """Write a key, quoted where it must be."""
    plain = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if plain else toml(name)
