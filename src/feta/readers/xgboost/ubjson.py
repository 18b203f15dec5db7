"""A strict parser of Universal Binary JSON, as XGBoost writes it."""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.errors import NetworkError

# Numbers by their marker: all are big-endian.
NUMBERS = {
    b"i": ">i1",
    b"U": ">u1",
    b"I": ">i2",
    b"l": ">i4",
    b"L": ">i8",
    b"d": ">f4",
    b"D": ">f8",
}
FORMATS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
INTEGERS = (b"i", b"U", b"I", b"l", b"L")
CONSTANTS = {b"Z": None, b"T": True, b"F": False}

# XGBoost's documents have eight levels.
MAX_DEPTH = 64


def parse_ubjson(content: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a document; arrays of one type become arrays of NumPy."""
    parser = _Parser(content)
    value = parser.value(parser.take(1), 0)
    if parser.at != len(content):
        raise parser.error(f"got {len(content) - parser.at} bytes after the end")
    return value


@dataclass
class _Parser:
    """A position in a document."""

    content: bytes
    at: int = 0

    def error(self, what: str) -> NetworkError:
        return NetworkError(f"invalid UBJSON at byte {self.at}: {what}; save the model again")

    def take(self, n_bytes: int) -> bytes:
        part = self.content[self.at : self.at + n_bytes]
        if len(part) < n_bytes:
            raise self.error(f"got {len(part)} bytes; expected {n_bytes}")
        self.at += n_bytes
        return part

    def peek(self) -> bytes:
        return self.content[self.at : self.at + 1]

    def value(self, marker: bytes, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        if depth > MAX_DEPTH:
            raise self.error(f"got more than {MAX_DEPTH} nested levels")
        if marker in FORMATS:
            form = FORMATS[marker]
            return struct.unpack(form, self.take(struct.calcsize(form)))[0]
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        if marker == b"S":
            return self.text()
        if marker == b"{":
            return self.members(depth)
        if marker == b"[":
            return self.elements(depth)
        raise self.error(f"got the marker {marker!r}; expected a value")

    def length(self) -> int:
        """Return a length; nothing can be longer than the rest of the document."""
        marker = self.take(1)
        if marker not in INTEGERS:
            raise self.error(f"got the marker {marker!r}; expected a length")
        length = int(self.value(marker, 0))
        if not 0 <= length <= len(self.content) - self.at:
            raise self.error(f"got the length {length}; expected at most the rest of the file")
        return length

    def text(self) -> str:
        try:
            return self.take(self.length()).decode()
        except UnicodeDecodeError:
            raise self.error("got a text that is not UTF-8") from None

    def members(self, depth: int) -> dict[str, Any]:
        if self.peek() in (b"$", b"#"):
            raise self.error("got an object with a length; expected members")
        members: dict[str, Any] = {}
        while self.peek() != b"}":
            name = self.text()
            if name in members:
                raise self.error(f"got {name!r} twice")
            members[name] = self.value(self.take(1), depth + 1)
        self.take(1)
        return members

    def elements(self, depth: int) -> Any:  # noqa: ANN401 - an array of any kind
        kind = b""
        if self.peek() == b"$":
            self.take(1)
            kind = self.take(1)
            if kind not in FORMATS or self.peek() != b"#":
                raise self.error(f"got an array of the type {kind!r}; expected numbers")
        if self.peek() == b"#":
            self.take(1)
            count = self.length()
            if kind:
                dtype = np.dtype(FORMATS[kind])
                return np.frombuffer(self.take(count * dtype.itemsize), dtype)
            return [self.value(self.take(1), depth + 1) for _ in range(count)]
        items = []
        while self.peek() != b"]":
            items.append(self.value(self.take(1), depth + 1))
        self.take(1)
        return items
