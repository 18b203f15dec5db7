"""Strict reading of certificates: canonical JSON, exact numbers, and the seal of all lines."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

MAX_LINE, MAX_EXACT = 2**20, 4096
EXACT = re.compile(r"0|(-?(?:[1-9a-f][0-9a-f]*)?[13579bdf])p(0|-?[1-9][0-9]{0,4})")
FORMAT, VERSION = "feta-certificate", 1
VERDICTS = ["fair", "not audited", "undecided", "unfair"]
NULLABLE = {"data_sha256", "model_sha256"}
TEXTS = {"date", "feta", "provenance", "relation", "rule_sha256", "schema_sha256", "votes_sha256"}
HEADER = NULLABLE | TEXTS | {"format", "version"}
END = {"claims", "complete", "counts", "header_sha256", "root"}

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


class Certificate:
    """A certificate whose seal is intact: no line was changed, removed or added."""

    def __init__(self, path: Path) -> None:
        self.path, tree, lines = path, MerkleTree(), self._lines()
        first, last = next(lines, b""), next(lines, b"")
        for line in lines:
            tree.add(last)
            last = line
        self.header, self.end = parse(first, "the header"), parse(last, "the end line")
        kind = self.header.get("format"), self.header.get("version")
        wanted = f"expected a {FORMAT} of version {VERSION}"
        readable(kind == (FORMAT, VERSION), f"got the format {kind!r}; {wanted}")
        fields = self.header.keys() == HEADER
        fields &= all(type(self.header.get(name)) is str for name in TEXTS)
        fields &= all(type(self.header.get(name)) in (str, type(None)) for name in NULLABLE)
        readable(fields, "the header has unknown, missing or invalid fields")
        ended = self.end.keys() == END and type(self.end["complete"]) is bool
        readable(ended, "the end line is missing or invalid: the certificate may be truncated")
        self.root = tree.root()
        seal = {"claims": tree.count, "header_sha256": digest(first), "root": self.root}
        intact = canonical(self.end | seal) == last
        readable(intact, "the seal is broken: lines were changed, removed or added")

    def claims(self) -> Iterator[dict[str, Any]]:
        """Yield the claims; raise if they are not those that were sealed."""
        row, counts = 0, dict.fromkeys(VERDICTS, 0)
        for line in islice(self._lines(), 1, self.end["claims"] + 1):
            claim = parse(line, f"the claim after row {row}")
            now, verdict = claim.get("row"), str(claim.get("verdict"))
            readable(type(now) is int and now > row, f"rows of claims: got {now!r} after row {row}")
            readable(verdict in VERDICTS, f"row {now}: got another verdict than {VERDICTS}")
            row, counts[verdict] = claim["row"], counts[verdict] + 1
            yield claim
        counted = canonical(counts) == canonical(self.end["counts"])
        readable(counted, "the end line counts other verdicts than the claims have")

    def _lines(self) -> Iterator[bytes]:
        with self.path.open("rb") as stream:
            while line := stream.readline(MAX_LINE + 1):
                readable(len(line) <= MAX_LINE, f"a line has more than {MAX_LINE} bytes")
                readable(line.endswith(b"\n"), "the certificate is truncated: its end is missing")
                yield line[:-1]


class MerkleTree:
    """The root of a Merkle tree as in RFC 6962."""

    def __init__(self) -> None:
        self.count = 0
        self.peaks: list[bytes] = []  # complete subtrees: one per bit of the count

    def add(self, line: bytes) -> None:
        """Add a leaf."""
        self.count += 1
        node, size = hashlib.sha256(b"\0" + line).digest(), self.count
        while size % 2 == 0:
            node, size = _parent(self.peaks.pop(), node), size // 2
        self.peaks.append(node)

    def root(self) -> str:
        """Return the root."""
        peaks = reversed(self.peaks)
        node = next(peaks, b"")
        for left in peaks:
            node = _parent(left, node)
        return node.hex() or digest(b"")


def _parent(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
