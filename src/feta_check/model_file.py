"""Reading of .feta files: safetensors with a JSON description, every number exact."""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from feta_check.reading import Refuted, Unchecked, Unreadable, exact_text

MAX_FILE, MAX_HEADER, MAX_NUMBERS = 2**25, 2**23, 10**6
TYPES = {"F64": ("d", 8), "I64": ("q", 8), "I8": ("b", 1), "U8": ("B", 1)}


@dataclass(frozen=True)
class Tensor:
    """An array of exact numbers: integers times one power of two."""

    numbers: list[int]
    exponent: int  # at most 0
    shape: tuple[int, ...]

    @classmethod
    def of(cls, floats: Sequence[float], shape: tuple[int, ...]) -> "Tensor":
        """Convert finite float64 numbers."""
        try:
            ratios = [number.as_integer_ratio() for number in floats]
        except (ValueError, OverflowError):
            raise Unreadable("the model has a number that is NaN or infinite") from None
        bits = max((bottom.bit_length() for _, bottom in ratios), default=1)
        return cls([top << (bits - low.bit_length()) for top, low in ratios], 1 - bits, shape)

    def at(self, exponent: int) -> list[int]:
        """Return the numbers as integers times 2^exponent, which is not larger."""
        return [number << (self.exponent - exponent) for number in self.numbers]

    def row(self, index: int, exponent: int) -> list[int]:
        """Return one row of a matrix as integers times 2^exponent."""
        start, width = index * self.shape[1], self.shape[1]
        shift = self.exponent - exponent
        return [number << shift for number in self.numbers[start : start + width]]

    def rows(self, exponent: int | None = None) -> list[list[int]]:
        """Return a matrix by rows."""
        numbers = self.numbers if exponent is None else self.at(exponent)
        width = self.shape[1]
        return [numbers[start : start + width] for start in range(0, len(numbers), width)]


class ModelFile:
    """The description and the arrays of a .feta file."""

    def __init__(self, path: Path) -> None:
        if path.stat().st_size > MAX_FILE:
            raise Unreadable(f"{path}: the file is too large; expected at most {MAX_FILE} bytes")
        self.content = path.read_bytes()
        size = int.from_bytes(self.content[:8], "little")
        if len(self.content) < 8 or size > min(len(self.content) - 8, MAX_HEADER):
            raise Unreadable(f"{path}: got a header of {size} bytes; expected a .feta file")
        header = strict_json(self.content[8 : 8 + size])
        description = strict_json(_field(_field(header, "__metadata__"), "feta-model"))
        if type(description) is not dict:
            raise Unreadable(f"{path}: got no description; expected a .feta file")
        self.description = description
        data = memoryview(self.content)[8 + size :]
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        self.tensors = _tensors(entries, data)

    def tensor(self, name: str, n_dimensions: int) -> Tensor:
        """Return an array of this number of dimensions."""
        numbers, shape = self.tensors.get(name, ((), ()))
        if len(shape) != n_dimensions:
            raise Unreadable(f"the model has no array {name!r} of {n_dimensions} dimensions")
        return Tensor.of(numbers, shape)

    def raw(self, name: str) -> tuple[float, ...]:
        """Return an array as it is stored: it may contain infinities and NaN."""
        return self.tensors.get(name, ((), ()))[0]


Stored = tuple[tuple[float, ...], tuple[int, ...]]


def _tensors(entries: dict[str, Any], data: memoryview) -> dict[str, Stored]:
    tensors: dict[str, Stored] = {}
    expected, count = 0, 0
    for name, entry in sorted(entries.items(), key=lambda item: _offsets(item[1])):
        (begin, end), shape = _offsets(entry), _field(entry, "shape")
        kind = TYPES.get(str(_field(entry, "dtype")))
        sizes = type(shape) is list and all(type(n) is int and 0 <= n <= MAX_NUMBERS for n in shape)
        if kind is None or not sizes or len(shape) > 2 or begin != expected or end > len(data):
            raise Unreadable(f"invalid array {name[:40]!r} in the model")
        length = 1
        for n in shape:
            length *= n
        count += length
        if length * kind[1] != end - begin or count > MAX_NUMBERS:
            raise Unreadable(f"invalid size of the array {name[:40]!r} in the model")
        numbers = struct.unpack(f"<{length}{kind[0]}", data[begin:end])
        tensors[name] = numbers, tuple(shape)
        expected = end
    if expected != len(data):
        raise Unreadable("the model has bytes that belong to no array")
    return tensors


def _offsets(entry: Any) -> tuple[int, int]:
    pair = _field(entry, "data_offsets")
    if type(pair) is not list or len(pair) != 2 or not all(type(n) is int for n in pair):
        raise Unreadable("the model has an array without a place")
    if not 0 <= pair[0] <= pair[1]:
        raise Unreadable("the model has an array at an invalid place")
    return pair[0], pair[1]


def _field(entry: Any, name: str) -> Any:
    if type(entry) is not dict or name not in entry:
        raise Unreadable(f"the model lacks {name!r}; expected a .feta file")
    return entry[name]


def strict_json(text: str | bytes) -> Any:
    """Read JSON without repeated keys; numbers with a fraction become exact texts."""
    try:
        return json.loads(
            text.decode() if isinstance(text, bytes) else text,
            parse_float=_exact_float,
            parse_constant=_no_constant,
            object_pairs_hook=_unique,
        )
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"the model has an invalid description: {error}") from None


def _exact_float(text: str) -> str:
    try:
        return exact_text(float(text))
    except OverflowError:
        raise ValueError(f"got {text[:40]}; expected a finite number") from None


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"got {text}; expected numbers")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("got a key twice")
    return entries


def scaled(number: Fraction, exponent: int) -> int:
    """Return the integer n with number = n · 2^exponent; the exponent is at most 0."""
    top, rest = divmod(number.numerator << -exponent, number.denominator)
    if rest:
        raise Unchecked(f"the number {float(number):g} has too many digits for this program")
    return top


def exponent_of(number: Fraction) -> int:
    """Return the largest exponent, at most 0, of which a number is a multiple."""
    bits = number.denominator.bit_length() - 1
    if number.denominator != 1 << bits:
        raise Refuted(f"got {number}; expected an integer times a power of two")
    return -bits
