"""Certificates: a header, claims and an end line, and the seal of all lines."""

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from feta_check.reading import canonical, digest, parse, readable

MAX_LINE = 2**20
FORMAT, VERSION = "feta-certificate", 1
VERDICTS = ["fair", "not audited", "undecided", "unfair"]
NULLABLE = {"data_sha256", "model_sha256"}
TEXTS = {"date", "feta", "provenance", "relation", "rule_sha256", "schema_sha256", "votes_sha256"}
HEADER = NULLABLE | TEXTS | {"format", "version"}
END = {"claims", "complete", "counts", "header_sha256", "root"}


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
            follows = now == row + 1 if self.end["complete"] else type(now) is int and now > row
            follows &= type(now) is int
            readable(follows, f"rows of claims: got {now!r} after row {row}")
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
