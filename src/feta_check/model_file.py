"""Reading of .feta files: safetensors with a JSON description."""

import struct
from math import isfinite, prod
from pathlib import Path
from typing import Any

from feta_check.reading import describe, read_json, readable

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
            version = self.description.get("version")
            readable(version in (1, 2), f"got version {version!r} of a .feta file; expected 1 or 2")

    def vector(self, name: str, *, finite: bool = True) -> list[Any]:
        """Return an array of one dimension."""
        return list(self._array(name, 1, finite)[0])

    def matrix(self, name: str, height: int | None = None, width: int | None = None) -> list[Any]:
        """Return the rows of an array of two dimensions, of this height and width."""
        numbers, shape = self._array(name, 2, finite=True)
        fits = height in (None, shape[0]) and width in (None, shape[1]) and shape[1] > 0
        readable(fits, f"the model has arrays that do not fit: {name!r} has the shape {shape}")
        starts = [row * shape[1] for row in range(shape[0])]
        return [list(numbers[start : start + shape[1]]) for start in starts]

    def _array(self, name: str, n_dimensions: int, finite: bool) -> Any:
        """Return the numbers of an array, integers or floats, and its shape."""
        numbers, shape = self.arrays.get(name, ((), ()))
        readable(len(shape) == n_dimensions, f"the model has no such array: {name!r}")
        valid = not finite or all(map(isfinite, numbers))
        readable(valid, f"the model has a number that is NaN or infinite, in {name!r}")
        return numbers, shape
