"""DSSE envelopes of in-toto statements: what is signed, and in which bytes.

docs/reference/certificates.md defines the statements. Nothing here needs a key.
"""

import base64
from collections.abc import Mapping

from feta.io.canonical_json import Json, canonical
from feta.io.certificate_file import MODEL, SCHEMA

STATEMENT = "https://in-toto.io/Statement/v1"
ABOUT_CERTIFICATE, ABOUT_BUNDLE = "urn:x-feta:certificate:1", "urn:x-feta:bundle:1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"

# The name of the table in statements, which do not contain the name of its file.
TABLE = "table"


def certificate_statement(header: Mapping[str, Json], end: Mapping[str, Json]) -> bytes:
    """Return the statement about a certificate: its header and end line, and three files."""
    digests = {
        MODEL: header["model_sha256"],
        SCHEMA: header["schema_sha256"],
        TABLE: header["data_sha256"],
    }
    known = {name: str(digest) for name, digest in digests.items() if digest}
    return statement(ABOUT_CERTIFICATE, known, {"end": dict(end), "header": dict(header)})


def statement(kind: str, digests: Mapping[str, str], predicate: Json) -> bytes:
    """Return an in-toto statement about files, by name and SHA-256."""
    subject: list[Json] = [
        {"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()
    ]
    return canonical(
        {"_type": STATEMENT, "predicateType": kind, "subject": subject, "predicate": predicate}
    )


def signed_bytes(payload: bytes) -> bytes:
    """Return the bytes that are signed: the pre-authentication encoding of DSSE."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def envelope(payload: bytes, signature: bytes, *, key_id: str) -> bytes:
    """Return a file with one signature."""
    signatures: list[Json] = [{"keyid": key_id, "sig": _base64(signature)}]
    content: dict[str, Json] = {
        "payload": _base64(payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": signatures,
    }
    return canonical(content) + b"\n"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
