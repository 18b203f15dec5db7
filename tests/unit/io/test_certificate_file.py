import hashlib
import json
from pathlib import Path

import pytest

from feta.io.certificate_file import CertificateWriter, MerkleTree


def root_of(lines: list[bytes]) -> bytes:
    """Compute the root by its recursive definition."""
    if not lines:
        return hashlib.sha256(b"").digest()
    if len(lines) == 1:
        return hashlib.sha256(b"\0" + lines[0]).digest()
    split = 1
    while 2 * split < len(lines):
        split *= 2
    return hashlib.sha256(b"\1" + root_of(lines[:split]) + root_of(lines[split:])).digest()


@pytest.mark.parametrize("count", [*range(10), 31, 32, 33])
def test_the_root_is_that_of_rfc_6962(count: int) -> None:
    lines = [bytes([number]) for number in range(count)]
    tree = MerkleTree()
    for line in lines:
        tree.add(line)
    assert tree.root() == root_of(lines).hex()


def test_the_end_line_seals_header_and_claims(tmp_path: Path) -> None:
    path = tmp_path / "certificate.jsonl"
    writer = CertificateWriter(path, {"date": "2026-01-31"})
    writer.add({"verdict": "fair", "row": 1})
    writer.add({"verdict": "unfair", "row": 2})
    writer.finish(complete=True)
    header, *claims, end = path.read_bytes().splitlines()
    assert json.loads(header) == {"date": "2026-01-31", "format": "feta-certificate", "version": 1}
    assert json.loads(end) == {
        "claims": 2,
        "complete": True,
        "counts": {"fair": 1, "not audited": 0, "undecided": 0, "unfair": 1},
        "header_sha256": hashlib.sha256(header).hexdigest(),
        "root": root_of(claims).hex(),
    }
