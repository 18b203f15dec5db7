"""Messages between the service and its helper process: a header in JSON, and bytes."""

import struct
from collections.abc import Iterable
from typing import Any, BinaryIO

import orjson

# Before each message: the lengths of header and body.
LENGTHS = struct.Struct("<IQ")

Header = dict[str, Any]


def frame(header: Header, parts: Iterable[bytes] = ()) -> list[bytes]:
    """Return a message in parts, which are not copied."""
    content, body = orjson.dumps(header), list(parts)
    return [LENGTHS.pack(len(content), sum(map(len, body))) + content, *body]


def write_frame(stream: BinaryIO, parts: Iterable[bytes]) -> None:
    """Write a message; a pipe may take a part of it at a time."""
    for part in parts:
        left = memoryview(part)
        while left:
            left = left[stream.write(left) :]


def read_frame(stream: BinaryIO) -> tuple[Header, bytes] | None:
    """Read a message; return None at the end of the stream, also within a message."""
    lengths = stream.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    n_header, n_body = LENGTHS.unpack(lengths)
    header, body = stream.read(n_header), stream.read(n_body)
    if len(header) < n_header or len(body) < n_body:
        return None
    content: Header = orjson.loads(header)
    return content, body
