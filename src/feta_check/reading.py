"""Strict reading: canonical JSON and exact numbers, and what a check may find."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

MAX_EXACT = 4096
EXACT = re.compile(r"0|(-?(?:[1-9a-f][0-9a-f]*)?[13579bdf])p(0|-?[1-9][0-9]{0,4})")
# What values of wrong types raise, and values that are missing, too large, or nested too deeply.
DAMAGE = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError

Number = int | Fraction


class Unreadable(Exception):
    """A file that is damaged, too large, or of another version."""


class Refuted(ValueError):
    """A claim that is false, or whose evidence is not evidence for it."""


class Unchecked(Exception):
    """A claim that this program does not re-prove; nothing is known about it."""


def readable(condition: bool, words: str) -> None:
    """Raise unless a file has the right form."""
    if not condition:
        raise Unreadable(words)


def holds(condition: bool, words: str) -> None:
    """Raise unless a claim holds."""
    if not condition:
        raise Refuted(words)


def checkable(condition: bool, what: str) -> None:
    """Raise unless this program knows something."""
    if not condition:
        raise Unchecked(f"not checkable by this program: {what}")


@contextmanager
def describe(words: str, error: type[Exception] = Unreadable) -> Iterator[None]:
    """Raise another error for values of wrong types and names that are missing."""
    try:
        yield
    except DAMAGE as cause:
        raise cause if isinstance(cause, error) else error(f"{words}: {cause!r}") from None


def canonical(value: Any) -> bytes:
    """Return the canonical text of a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(content: bytes) -> str:
    """Return a SHA-256."""
    return hashlib.sha256(content).hexdigest()


def read_json(content: bytes, what: str) -> dict[str, Any]:
    """Read an object without repeated keys; numbers with a fraction become exact texts."""
    with describe(f"{what}: got no valid JSON"):
        # int() accepts neither NaN nor Infinity.
        hooks: Any = {"parse_constant": int, "object_pairs_hook": _unique}
        value = json.loads(content.decode(), parse_float=lambda t: exact_text(float(t)), **hooks)
    readable(type(value) is dict, f"{what}: got no JSON object")
    return dict(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    holds(len(dict(pairs)) == len(pairs), "a key occurs twice")
    return dict(pairs)


def parse(line: bytes, what: str) -> dict[str, Any]:
    """Read an object in canonical JSON."""
    value = read_json(line, what)
    with describe(f"{what}: got no valid JSON"):  # lists that are nested too deeply
        readable(canonical(value) == line, f"{what}: got JSON that is not canonical")
    return value


def exact(text: object) -> Number:
    """Return the number of an exact text, which is an integer if it can be one."""
    match = EXACT.fullmatch(text) if type(text) is str and len(text) <= MAX_EXACT else None
    if match is None:
        raise Refuted(f"got {str(text)[:40]!r}; expected an exact number")
    odd, power = int(match[1] or "0", 16), int(match[2] or 0)
    return odd << power if power >= 0 else Fraction(odd, 1 << -power)


def exact_text(number: Number | float) -> str:
    """Return the exact text of an integer times a power of two."""
    top, bottom = number.as_integer_ratio()
    zeros = (top & -top).bit_length() - 1
    return f"{top >> zeros:x}p{zeros + 1 - bottom.bit_length()}" if top else "0"


def number_of(value: object) -> Number:
    """Return a number of a description: an integer, or an exact text."""
    return int(value) if type(value) is int else exact(value)


def nearest(number: Number) -> Fraction:
    """Return the float64 nearest to a number; of two, the even one."""
    try:
        return Fraction(number.numerator / number.denominator)
    except OverflowError:
        raise Refuted("a number is too large for a float64") from None


def places(numbers: Iterable[Number | float]) -> int:
    """Return how many binary places these numbers have at most."""
    return max((n.as_integer_ratio()[1].bit_length() - 1 for n in numbers), default=0)


def scaled(numbers: Sequence[Number | float], n_places: int) -> list[int]:
    """Return numbers as integers times 2^-places, without rounding."""
    ratios = [number.as_integer_ratio() for number in numbers]
    exact = all(bottom.bit_length() <= n_places + 1 for _, bottom in ratios)
    holds(exact, "a number has more binary places than expected")
    return [(top << n_places) // bottom for top, bottom in ratios]
