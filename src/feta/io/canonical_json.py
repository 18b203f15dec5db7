"""Canonical JSON: one text per value, so that two programs can compare bytes.

Keys are sorted, there are no spaces, all characters are ASCII, and all numbers are integers. Other
numbers are texts: an odd integer in hexadecimal digits, times a power of two.
"""

import json
from collections.abc import Mapping
from fractions import Fraction

from feta.errors import DomainError

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]


def canonical(value: Json) -> bytes:
    """Return the canonical text of a value, without a line break."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def exact_text(number: float) -> str:
    """Return a finite number exactly: "-3p-2" is −3 · 2^−2, and "0" is zero."""
    numerator, denominator = number.as_integer_ratio()
    return dyadic_text(numerator, 1 - denominator.bit_length())


def dyadic_text(numerator: int, exponent: int) -> str:
    """Return numerator · 2^exponent; the numerator is made odd, so the text is unique."""
    if not numerator:
        return "0"
    zeros = (numerator & -numerator).bit_length() - 1
    return f"{numerator >> zeros:x}p{exponent + zeros}"


def exact_number(text: str) -> Fraction:
    """Return the number of an exact text."""
    mantissa, _, exponent = text.partition("p")
    return Fraction(int(mantissa, 16)) * Fraction(2) ** int(exponent or 0)


def exact_json(value: object) -> Json:
    """Return a value in which every float is an exact text, and every sequence a list."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return exact_text(value)
    if isinstance(value, Mapping):
        return {str(key): exact_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [exact_json(item) for item in value]
    raise DomainError(
        f"no canonical JSON: got {type(value).__name__}; expected numbers, texts, lists and objects"
    )
