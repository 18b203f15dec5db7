"""Reading of .feta files: safetensors with a JSON description."""

import struct
from collections.abc import Iterable, Sequence
from math import isfinite, prod
from pathlib import Path
from typing import Any

from feta_check.reading import Number, describe, holds, read_json, readable

MAX_FILE, MAX_HEADER, MAX_NUMBERS = 2**25, 2**23, 10**6
TYPES = {"F64": "d", "I64": "q", "I8": "b", "U8": "B"}


class ModelFile:
    """The description and the arrays of a .feta file."""

    def __init__(self, path: Path) -> None:
        large = f"{path}: the file is too large; expected at most {MAX_FILE} bytes"
        readable(path.stat().st_size <= MAX_FILE, large)
        self.content = path.read_bytes()
        size = int.from_bytes(self.content[:8], "little")
        fits = 8 + size <= len(self.content) and size <= MAX_HEADER
        readable(fits, f"{path}: got a header of {size} bytes; expected a .feta file")
        header = read_json(self.content[8 : 8 + size], "the header of the model")
        with describe(f"{path}: got no .feta file"):
            text = header.pop("__metadata__")["feta-model"].encode()
            self.description = read_json(text, "the description of the model")
            self.arrays, data = dict[str, Any](), memoryview(self.content)[8 + size :]
            place = count = 0
            for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
                shape, letter = entry["shape"], TYPES[entry["dtype"]]
                sizes = all(type(n) is int and 0 <= n <= MAX_NUMBERS for n in shape)
                length = prod(shape) if sizes else MAX_NUMBERS + 1
                end, count = place + length * struct.calcsize(f"<{letter}"), count + length
                valid = count <= MAX_NUMBERS and entry["data_offsets"] == [place, end]
                readable(valid and end <= len(data), f"invalid array {name[:40]!r}")
                numbers = struct.unpack(f"<{length}{letter}", data[place:end])
                self.arrays[name], place = (numbers, shape), end
            readable(place == len(data), "the model has bytes that belong to no array")

    def array(self, name: str, n_dimensions: int, *, finite: bool = True) -> Any:
        """Return an array as lists of integers and floats."""
        numbers, shape = self.arrays.get(name, ((), ()))
        readable(len(shape) == n_dimensions, f"the model has no such array: {name!r}")
        valid = not finite or all(map(isfinite, numbers))
        readable(valid, f"the model has a number that is NaN or infinite, in {name!r}")
        if n_dimensions == 1:
            return list(numbers)
        rows, width = shape
        return [list(numbers[row * width : (row + 1) * width]) for row in range(rows)]


def places(numbers: Iterable[Number | float]) -> int:
    """Return how many binary places these numbers have at most."""
    return max((n.as_integer_ratio()[1].bit_length() - 1 for n in numbers), default=0)


def scaled(numbers: Sequence[Number | float], n_places: int) -> list[int]:
    """Return numbers as integers times 2^-places, without rounding."""
    ratios = [number.as_integer_ratio() for number in numbers]
    exact = all(bottom.bit_length() <= n_places + 1 for _, bottom in ratios)
    holds(exact, "a number has more binary places than expected")
    return [(top << n_places) // bottom for top, bottom in ratios]
