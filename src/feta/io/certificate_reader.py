"""Stored certificates: the header, the claims and the end line, under a seal that is intact."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from feta.errors import SchemaError
from feta.io.certificate_file import CERTIFICATE, FORMAT, SCHEMA, VERSION, MerkleTree

Json = dict[str, Any]

# No line may be longer; docs/reference/certificates.md states the limits.
LONGEST_LINE = 2**20


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """A certificate that was not changed since it was written."""

    folder: Path
    header: Json
    end: Json

    @property
    def schema(self) -> Json:
        """The content of schema.json."""
        schema: Json = json.loads((self.folder / SCHEMA).read_bytes())
        return schema

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the claims."""
        for count, line in enumerate(_lines(self.folder / CERTIFICATE)):
            if 1 <= count <= self.end["claims"]:
                yield line

    def claims(self) -> Iterator[Json]:
        """Yield the claims."""
        for line in self.lines():
            yield json.loads(line)


def read_certificate(folder: Path) -> StoredCertificate:
    """Read the certificate of an audit; raise `SchemaError` if its seal or schema is not intact."""
    path = folder / CERTIFICATE
    if not path.is_file():
        raise SchemaError(
            f"{folder}: no certificate: got no {CERTIFICATE}; expected a folder of feta audit "
            "--certify; audit again with --certify"
        )
    lines, tree = _lines(path), MerkleTree()
    first = last = next(lines, b"")
    for count, line in enumerate(lines):
        if count:
            tree.add(last)
        last = line
    try:
        header, end = json.loads(first), json.loads(last)
        sealed = end["header_sha256"], end["root"]
        known = header["format"], header["version"]
    except (ValueError, LookupError, TypeError, RecursionError):
        _refuse(path, "a truncated or damaged file")
    if known != (FORMAT, VERSION):
        _refuse(path, f"version {known[1]!r} of {known[0]!r}")
    if sealed != (hashlib.sha256(first).hexdigest(), tree.root()):
        _refuse(path, "lines that were changed, removed or added")
    if not _is_schema(folder / SCHEMA, header["schema_sha256"]):
        _refuse(folder / SCHEMA, "a schema that does not belong to the certificate")
    return StoredCertificate(folder, header, end)


def _is_schema(path: Path, digest: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        for line in iter(lambda: stream.readline(LONGEST_LINE + 1), b""):
            if not line.endswith(b"\n"):
                _refuse(path, "a line that is truncated or too long")
            yield line[:-1]


def _refuse(path: Path, what: str) -> NoReturn:
    raise SchemaError(
        f"{path}: the certificate is not intact: got {what}; expected what feta audit --certify "
        "wrote; certify the audit again"
    )
