"""Certificate files: one header, one claim per person, and an end line that seals them.

docs/reference/certificates.md defines the format. Lines are written one by one, so a certificate
may be larger than memory.
"""

import hashlib
from collections import Counter
from pathlib import Path
from typing import IO

from feta.io.canonical_json import Json, canonical

FORMAT, VERSION = "feta-certificate", 1

# The files that `--certify` writes.
CERTIFICATE, SCHEMA, MODEL = "certificate.jsonl", "schema.json", "model.feta"

# The signature of a certificate, which `--sign` writes.
SIGNATURE = "certificate.dsse.json"


class MerkleTree:
    """The root of a Merkle tree (RFC 6962) over lines that arrive one by one."""

    def __init__(self) -> None:
        self._peaks: list[tuple[int, bytes]] = []  # complete subtrees: number of lines, hash

    def add(self, line: bytes) -> None:
        """Add a leaf."""
        size, node = 1, hashlib.sha256(b"\0" + line).digest()
        while self._peaks and self._peaks[-1][0] == size:
            node = parent_hash(self._peaks.pop()[1], node)
            size *= 2
        self._peaks.append((size, node))

    def root(self) -> str:
        """Return the root; without leaves, the hash of nothing."""
        if not self._peaks:
            return hashlib.sha256(b"").hexdigest()
        node = self._peaks[-1][1]
        for _, before in reversed(self._peaks[:-1]):
            node = parent_hash(before, node)
        return node.hex()


def parent_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node of the tree."""
    return hashlib.sha256(b"\1" + left + right).digest()


class CertificateWriter:
    """A certificate under construction."""

    def __init__(self, path: Path, header: dict[str, Json]) -> None:
        self._stream: IO[bytes] = path.open("wb")
        self._tree = MerkleTree()
        self._counts = Counter({"fair": 0, "not audited": 0, "undecided": 0, "unfair": 0})
        line = canonical({"format": FORMAT, "version": VERSION, **header})
        self._header = hashlib.sha256(line).hexdigest()
        self._stream.write(line + b"\n")

    def add(self, claim: dict[str, Json]) -> None:
        """Write the claim about one person."""
        self.add_line(canonical(claim), str(claim["verdict"]))

    def add_line(self, line: bytes, verdict: str) -> None:
        """Write a claim that is encoded already."""
        self._tree.add(line)
        self._counts[verdict] += 1
        self._stream.write(line + b"\n")

    def finish(self, *, complete: bool) -> str:
        """Write the end line and return its digest, the seal.

        `complete`: whether all rows of the table have a claim.
        """
        counts: Json = dict(self._counts)
        end: dict[str, Json] = {
            "claims": self._counts.total(),
            "complete": complete,
            "counts": counts,
            "header_sha256": self._header,
            "root": self._tree.root(),
        }
        line = canonical(end)
        self._stream.write(line + b"\n")
        self.close()
        return hashlib.sha256(line).hexdigest()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
