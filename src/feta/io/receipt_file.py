"""Receipts: the claim about one person, with what shows that it belongs to a certificate."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from feta.errors import DomainError, SchemaError
from feta.io.canonical_json import Json, canonical
from feta.io.certificate_file import SIGNATURE, parent_hash
from feta.io.certificate_reader import StoredCertificate, read_certificate

FORMAT, VERSION = "feta-receipt", 1


def receipt(folder: Path, *, name: str | None = None, row: int | None = None) -> bytes:
    """Return the receipt of one person, given by id or by row (counted from 1)."""
    certificate = read_certificate(folder)
    leaves: list[bytes] = []
    found: list[tuple[int, dict[str, Any]]] = []
    for index, line in enumerate(certificate.lines()):
        leaves.append(hashlib.sha256(b"\0" + line).digest())
        claim = json.loads(line)
        if claim["row"] == row if name is None else claim["id"] == name:
            found.append((index, claim))
    who = f"row {row}" if name is None else f"id {name!r}"
    if not found:
        raise DomainError(f"no claim about {who}: got {len(leaves):,} claims; expected one of them")
    if len(found) > 1:
        rows = ", ".join(str(claim["row"]) for _, claim in found[:8])
        raise DomainError(f"{who} occurs {len(found)} times: in the rows {rows}; name one by --row")
    index, claim = found[0]
    path: list[Json] = [node.hex() for node in merkle_path(leaves, index)]
    content: dict[str, Json] = {
        "claim": claim,
        "end": certificate.end,
        "format": FORMAT,
        "header": certificate.header,
        "index": index,
        "path": path,
        "schema": certificate.schema,
        "signature": _signature(certificate),
        "version": VERSION,
    }
    return canonical(content) + b"\n"


def merkle_path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes that lead from a leaf to the root (RFC 6962, 2.1.1)."""
    path, level = [], list(leaves)
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            path.append(level[sibling])
        pairs = zip(level[::2], level[1::2], strict=False)
        above = [parent_hash(left, right) for left, right in pairs]
        level = above + level[len(above) * 2 :]  # the last one of an odd number moves up
        index //= 2
    return path


def _signature(certificate: StoredCertificate) -> Json:
    path = certificate.folder / SIGNATURE
    if not path.exists():
        return None
    try:
        signature: Json = json.loads(path.read_bytes())
    except ValueError:
        raise SchemaError(
            f"{path}: invalid file: got no JSON; expected a signature; sign the audit again"
        ) from None
    return signature
