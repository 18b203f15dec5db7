"""The parser of UBJSON: what XGBoost writes, and nothing else."""

import struct

import numpy as np
import pytest

from feta import NetworkError
from feta.readers.xgboost.ubjson import parse_ubjson


def text(value: str) -> bytes:
    content = value.encode()
    return b"L" + struct.pack(">q", len(content)) + content


def test_values_are_parsed() -> None:
    document = b"{" + text("a") + b"i\xff" + text("b") + b"S" + text("ü") + text("c") + b"[ZTF]}"
    assert parse_ubjson(document) == {"a": -1, "b": "ü", "c": [None, True, False]}
    assert parse_ubjson(b"[#i\x02I\x01\x00d\x3f\x80\x00\x00") == [256, 1.0]
    assert parse_ubjson(b"[{}[]]") == [{}, []]
    numbers = parse_ubjson(b"[$d#U\x02" + struct.pack(">2f", 0.5, -3.0))
    np.testing.assert_array_equal(numbers, [0.5, -3.0])
    assert parse_ubjson(b"D" + struct.pack(">d", 0.1)) == 0.1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "at byte 0: got 0 bytes; expected 1"),
        (b"i", "at byte 1: got 0 bytes; expected 1"),
        (b"i\x01\x02", "at byte 2: got 1 bytes after the end"),
        (b"N", "got the marker b'N'; expected a value"),
        (b"Si\x05ab", "got the length 5; expected at most the rest"),
        (b"Si\xff", "got the length -1"),
        (b"Sd\x00\x00\x00\x00", "got the marker b'd'; expected a length"),
        (b"Si\x01\xff", "got a text that is not UTF-8"),
        (b"[$d#L\x7f\xff\xff\xff\xff\xff\xff\xff", "got the length 9223372036854775807"),
        (b"[$d#i\x04\x00\x00\x00\x00", "got 4 bytes; expected 16"),
        (b"[$Z#i\x04", "got an array of the type b'Z'; expected numbers"),
        (b"[$i\x04", "got an array of the type b'i'; expected numbers"),
        (b"{$i#i\x01", "got an object with a length; expected members"),
        (b"{i\x01aZi\x01aZ}", "got 'a' twice"),
        (b"{i\x01aZ", "got 0 bytes"),
        (b"[" * 70, "got more than 64 nested levels"),
        (b"[#i\x03Z", "got the length 3"),
    ],
)
def test_damaged_documents_are_rejected(content: bytes, message: str) -> None:
    with pytest.raises(NetworkError, match=r"^invalid UBJSON at byte") as error:
        parse_ubjson(content)
    assert message in str(error.value)
