"""Strict reading of certificates: canonical JSON, exact numbers, and the seal of all lines."""

import hashlib
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

MAX_LINE = {"header": 2**16, "claim": 2**20, "end": 2**16}
MAX_EXACT = 4096
EXACT = re.compile(r"0|(-?)([1-9a-f][0-9a-f]*)p(0|-?[1-9][0-9]{0,4})")
VERDICTS = ("fair", "not audited", "undecided", "unfair")
HEADER = {
    "data_sha256", "date", "feta", "format", "model_sha256", "provenance", "relation",
    "rule_sha256", "schema_sha256", "version", "votes_sha256",
}  # fmt: skip
END = {"claims", "complete", "counts", "header_sha256", "root"}


class Unreadable(Exception):
    """A file that is damaged, too large, or of another version."""


class Refuted(Exception):
    """A claim that is false, or whose evidence is not evidence for it."""


class Unchecked(Exception):
    """A claim that this program does not re-prove; nothing is known about it."""


def canonical(value: Any) -> bytes:
    """Return the canonical text of a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(content: bytes) -> str:
    """Return a SHA-256."""
    return hashlib.sha256(content).hexdigest()


def parse(line: bytes, what: str) -> dict[str, Any]:
    """Read an object in canonical JSON."""
    try:
        value = json.loads(line.decode("ascii"), parse_float=_no_number, parse_constant=_no_number)
        same = canonical(value) == line
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{what}: got no canonical JSON: {error}") from None
    if not same or type(value) is not dict:
        raise Unreadable(f"{what}: got JSON that is not canonical; expected an object")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"got {text[:40]!r}; expected integers")


def exact(text: object) -> Fraction:
    """Return the number of an exact text."""
    match = EXACT.fullmatch(text) if type(text) is str and len(text) <= MAX_EXACT else None
    if match is None:
        raise Refuted(f"got {str(text)[:40]!r}; expected an exact number")
    if text == "0":
        return Fraction(0)
    sign, digits, power = match.groups()
    mantissa = int(digits, 16)
    if mantissa % 2 == 0:
        raise Refuted(f"got {str(text)[:40]!r}; expected an odd integer before the p")
    number = Fraction(-mantissa if sign else mantissa)
    return number * 2 ** int(power) if int(power) >= 0 else number / 2 ** -int(power)


def nearest(number: Fraction) -> Fraction:
    """Return the float64 nearest to a number; of two, the even one."""
    try:
        return Fraction(number.numerator / number.denominator)
    except OverflowError:
        raise Refuted("a number is too large for a float64") from None


def exact_text(number: float) -> str:
    """Return the exact text of a float64."""
    numerator, denominator = number.as_integer_ratio()
    if not numerator:
        return "0"
    zeros = (numerator & -numerator).bit_length() - 1
    return f"{numerator >> zeros:x}p{1 - denominator.bit_length() + zeros}"


class Certificate:
    """A certificate whose seal is intact: no line was changed, removed or added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as stream:
            first = _line(stream, "header")
            self.header = parse(first, "the header")
            tree, last = _Merkle(), _line(stream, "claim")
            for line in iter(lambda: stream.readline(MAX_LINE["claim"] + 1), b""):
                tree.add(last)
                last = _checked(line, "claim")
        self.root = tree.root()
        self.end = parse(last, "the end line")
        _check_header(self.header)
        _check_end(self.end, digest(first), self.root, tree.count)

    def claims(self) -> Iterator[dict[str, Any]]:
        """Yield the claims; raise if the file has changed since it was opened."""
        tree, row = _Merkle(), 0
        with self.path.open("rb") as stream:
            _line(stream, "header")
            for _ in range(self.end["claims"]):
                line = _line(stream, "claim")
                tree.add(line)
                claim = parse(line, f"the claim after row {row}")
                if type(claim.get("row")) is not int or claim["row"] <= row:
                    raise Unreadable(f"rows of claims: got {claim.get('row')!r} after row {row}")
                if claim.get("verdict") not in VERDICTS:
                    raise Unreadable(f"row {claim['row']}: got another verdict than {VERDICTS}")
                row = claim["row"]
                yield claim
        if tree.root() != self.root:
            raise Unreadable("the certificate changed while it was read; check it again")


def _line(stream: BinaryIO, kind: str) -> bytes:
    return _checked(stream.readline(MAX_LINE[kind] + 1), kind)


def _checked(line: bytes, kind: str) -> bytes:
    """Return a line without its line feed, if it has one and is not too long."""
    if len(line) > MAX_LINE[kind]:
        raise Unreadable(f"a {kind} is too long: expected at most {MAX_LINE[kind]} bytes")
    if not line.endswith(b"\n"):
        raise Unreadable("the certificate is truncated: its last line is not complete")
    return line[:-1]


def _check_header(header: dict[str, Any]) -> None:
    kind = header.get("format"), header.get("version")
    if kind != ("feta-certificate", 1):
        raise Unreadable(f"got the format {kind!r}; expected a feta-certificate of version 1")
    texts = [header[name] for name in HEADER & header.keys() if name != "version"]
    nullable = header.get("data_sha256"), header.get("model_sha256")
    if header.keys() != HEADER or any(
        type(text) is not str and not (text is None and None in nullable) for text in texts
    ):
        raise Unreadable("the header has unknown, missing or invalid fields")


def _check_end(end: dict[str, Any], header: str, root: str, count: int) -> None:
    counts = end.get("counts")
    valid = (
        end.keys() == END
        and type(end["complete"]) is bool
        and type(end["claims"]) is int
        and type(counts) is dict
        and sorted(counts) == list(VERDICTS)
        and all(type(number) is int for number in counts.values())
        and sum(counts.values()) == end["claims"]
    )
    if not valid:
        raise Unreadable("the end line is missing or invalid: the certificate may be truncated")
    if (end["header_sha256"], end["root"], end["claims"]) != (header, root, count):
        raise Unreadable("the seal is broken: lines were changed, removed or added")


class _Merkle:
    """The root of a Merkle tree as in RFC 6962."""

    def __init__(self) -> None:
        self.count = 0
        self.peaks: list[tuple[int, bytes]] = []

    def add(self, line: bytes) -> None:
        """Add a leaf."""
        self.count += 1
        size, node = 1, hashlib.sha256(b"\0" + line).digest()
        while self.peaks and self.peaks[-1][0] == size:
            node = hashlib.sha256(b"\1" + self.peaks.pop()[1] + node).digest()
            size *= 2
        self.peaks.append((size, node))

    def root(self) -> str:
        """Return the root."""
        if not self.peaks:
            return digest(b"")
        node = self.peaks[-1][1]
        for _, left in reversed(self.peaks[:-1]):
            node = hashlib.sha256(b"\1" + left + node).digest()
        return node.hex()
