"""Escaping of untrusted names and values for terminals, spreadsheets and JSON."""

import csv
import json
import re
from collections.abc import Iterable
from typing import IO

# What a spreadsheet takes for the start of a formula; some take the wide forms too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - meant

# Blanks that cannot be seen in print, and how they are shown.
BLANKS = re.compile(r"^ +| +$| {2,}")
BLANK = "␠"


def plain(value: object) -> str:
    """Show a value with control, escape and direction characters spelled out."""
    return "".join(one if one.isprintable() else _escaped(one) for one in str(value))


def visible(value: object) -> str:
    """Escape a value, and show blanks that are easy to overlook: leading, trailing, repeated."""
    return BLANKS.sub(lambda found: BLANK * len(found.group()), plain(value))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def csv_cell(value: object) -> object:
    """Make a cell that no spreadsheet runs as a formula; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if value.lstrip(" ").startswith(FORMULA_STARTS) else text


def write_row(stream: IO[str], cells: Iterable[object]) -> None:
    """Write a line of CSV; texts are quoted, so that no other separator takes them apart."""
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow([csv_cell(cell) for cell in cells])


def json_text(content: object, *, indent: int | None = None) -> str:
    """Write JSON in ASCII, which no terminal or encoding interprets."""
    return json.dumps(content, indent=indent) + "\n"


def shortened(message: str, most: int = 2000) -> str:
    """Leave out the middle of a message that nobody would read to its end."""
    half = most // 2
    return message if len(message) <= most else f"{message[:half]} … {message[-half:]}"


def joined(words: Iterable[str]) -> str:
    """Join words as a sentence would; there must be one."""
    *rest, last = words
    return f"{', '.join(rest)} and {last}" if rest else last


def listed(names: Iterable[str], most: int = 8) -> str:
    """List the first few names."""
    chosen = list(names)
    return ", ".join(shortened(plain(name), 80) for name in chosen[:most]) + (
        ", …" if len(chosen) > most else ""
    )
