"""Escaping of untrusted names and values for terminals, spreadsheets and JSON."""

import csv
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import IO

# Characters with which a formula starts in a spreadsheet; some accept the wide forms too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - on purpose

# Blanks that a reader cannot see, and the character that shows them.
BLANKS = re.compile(r"^ +| +$| {2,}")
BLANK = "␠"


def plain(value: object) -> str:
    """Return a value as text, with control, escape and direction characters escaped."""
    text = str(value)
    if text.isprintable():  # nearly all texts are
        return text
    return "".join(
        character if character.isprintable() else _escape(character) for character in text
    )


def visible(value: object) -> str:
    """Return a value as text, escaped and with leading, trailing and repeated blanks shown."""
    return BLANKS.sub(lambda match: BLANK * len(match.group()), plain(value))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def csv_cell(value: object) -> object:
    """Return a cell that no spreadsheet executes as a formula; numbers remain numbers."""
    return _csv_text(value) if isinstance(value, str) else value


@lru_cache(maxsize=4096)  # most texts are categories
def _csv_text(value: str) -> str:
    text = plain(value)
    return f"'{text}" if value.lstrip(" ").startswith(FORMULA_STARTS) else text


def write_row(stream: IO[str], cells: Iterable[object]) -> None:
    """Write a line of CSV; texts are quoted, so that no other separator can split them."""
    write_rows(stream, [cells])


def write_rows(stream: IO[str], rows: Iterable[Iterable[object]]) -> None:
    """Write lines of CSV; texts are quoted, so that no other separator can split them."""
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows(
        [
            # Most texts consist of letters and digits, and are safe as they are.
            _csv_text(cell)
            if isinstance(cell, str) and not (cell.isascii() and cell.isalnum())
            else cell
            for cell in row
        ]
        for row in rows
    )


def json_text(content: object, *, indent: int | None = None) -> str:
    """Return JSON in ASCII, which is safe for every terminal and encoding."""
    return json.dumps(content, indent=indent) + "\n"


def shortened(message: str, max_length: int = 2000) -> str:
    """Return a message without its middle part if it is too long."""
    half = max_length // 2
    return message if len(message) <= max_length else f"{message[:half]} … {message[-half:]}"


def joined(words: Iterable[str]) -> str:
    """Join one or more words with commas and a final "and"."""
    *rest, last = words
    return f"{', '.join(rest)} and {last}" if rest else last


def listed(names: Iterable[str], max_names: int = 8) -> str:
    """Return the first names, escaped and joined with commas."""
    all_names = list(names)
    shown = [shortened(plain(name), 80) for name in all_names[:max_names]]
    return ", ".join(shown) + (", …" if len(all_names) > max_names else "")
