"""Signatures: Ed25519 (RFC 8032), DSSE envelopes of in-toto statements, manifests of bundles."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feta_check.reading import Unreadable, canonical, digest, parse

STATEMENT = "https://in-toto.io/Statement/v1"
CERTIFICATE, BUNDLE = "urn:x-feta:certificate:1", "urn:x-feta:bundle:1"
PAYLOAD = "application/vnd.in-toto+json"
ENVELOPE = "certificate.dsse.json"
MANIFEST, SIGNED_MANIFEST = "manifest.json", "manifest.dsse.json"
COMPILED = "feta_check/__pycache__/"  # Python writes it when the checker runs
MAX_BYTES, MAX_SIGNATURES = 2**24, 16

# The curve: its prime, the order of the base point, the constant d, and a root of −1.
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)
# A public key as DER: an algorithm identifier (RFC 8410), then 32 bytes.
DER_PREFIX = bytes.fromhex("302a300506032b6570032100")
PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----\s+([\w+/=\s]+?)\s+-----END PUBLIC KEY-----", re.A)

# Extended coordinates (x·z, y·z, z, x·y·z) of a point (x, y).
Point = tuple[int, int, int, int]
NEUTRAL: Point = (0, 1, 1, 0)


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a signature is valid: s·B = R + h·A, byte for byte, without cofactor.

    Keys of a small order are refused: their signatures fit many messages.
    """
    if len(key) != 32 or len(signature) != 64:
        return False
    point, s = _decoded(key), int.from_bytes(signature[32:], "little")
    if point is None or s >= ORDER or _encoded(_times(8, point)) == _encoded(NEUTRAL):
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    x, y, z, t = point
    negative = (-x % P, y, z, -t % P)
    return _encoded(_plus(_times(s, BASE), _times(h, negative))) == signature[:32]


def _plus(a: Point, b: Point) -> Point:
    """Add two points; the formula has no exceptions on this curve."""
    m = (a[1] - a[0]) * (b[1] - b[0]) % P
    n = (a[1] + a[0]) * (b[1] + b[0]) % P
    t, z = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = n - m, z - t, z + t, n + m
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(factor: int, point: Point) -> Point:
    result = NEUTRAL
    while factor:
        if factor & 1:
            result = _plus(result, point)
        point, factor = _plus(point, point), factor >> 1
    return result


def _encoded(point: Point) -> bytes:
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _decoded(encoded: bytes) -> Point | None:
    """Return a point; None for bytes that encode none, or not in the one canonical way."""
    number = int.from_bytes(encoded, "little")
    y, odd = number & (2**255 - 1), number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT_OF_MINUS_1 % P
    if y >= P or x * x % P != square or (x == 0 and odd):
        return None
    x = x if x & 1 == odd else P - x
    return x, y, 1, x * y % P


def _base() -> Point:
    """Return the base point, whose y is 4/5 and whose x is even."""
    point = _decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    assert point is not None
    return point


BASE = _base()


def public_key(path: Path) -> bytes:
    """Return the 32 bytes of a public key in a PEM file."""
    match = PEM.search(read(path))
    try:
        der = base64.b64decode(b"".join(match[1].split()), validate=True) if match else b""
    except binascii.Error:
        der = b""
    if der[:-32] != DER_PREFIX:
        raise Unreadable(f"{path}: got no public key; expected a PEM file with an Ed25519 key")
    return der[-32:]


def read(path: Path) -> bytes:
    """Read a file that may not be large."""
    with path.open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Unreadable(f"{path}: the file is too large; expected at most {MAX_BYTES} bytes")
    return content


def statement(header: dict[str, Any], end: dict[str, Any]) -> bytes:
    """Return what is signed about a certificate: its header and end line, and three files."""
    names = {"model.feta": "model_sha256", "schema.json": "schema_sha256", "table": "data_sha256"}
    subject = [
        {"name": name, "digest": {"sha256": header[key]}}
        for name, key in names.items()
        if header[key]
    ]
    about = {"_type": STATEMENT, "predicateType": CERTIFICATE, "subject": subject}
    return canonical({**about, "predicate": {"end": end, "header": header}})


@dataclass(frozen=True)
class Signature:
    """What is known about a signature."""

    words: str
    unchecked: bool = False  # there is one, and no key to check it


def check_signature(
    what: str, envelope: dict[str, Any] | None, payload: bytes, keys: Sequence[bytes]
) -> Signature:
    """Raise unless the holder of one of the keys has signed exactly this payload."""
    if envelope is None:
        if keys:
            raise Unreadable(f"{what} is not signed; expected a signature by the key of --key")
        return Signature(f"{what}: not signed.")
    signed, signatures = _opened(envelope)
    if signed != payload:
        raise Unreadable(f"{what}: the signature is about another content: stale, or copied")
    if not keys:
        return Signature(f"{what}: the signature was not checked; name the key with --key.", True)
    for key in keys:
        if any(verify(key, _encoding(payload), signature) for signature in signatures):
            return Signature(f"{what}: the signature of the key {digest(key)} is valid.")
    raise Unreadable(f"{what}: the signature is not one by the key of --key")


def read_envelope(path: Path) -> dict[str, Any] | None:
    """Read a DSSE envelope; None if there is no such file."""
    return parse(read(path).removesuffix(b"\n"), path.name) if path.exists() else None


def _opened(envelope: dict[str, Any]) -> tuple[bytes, list[bytes]]:
    try:
        signatures = envelope["signatures"]
        if envelope["payloadType"] != PAYLOAD or len(signatures) > MAX_SIGNATURES:
            raise ValueError("another type, or too many signatures")
        signed = [base64.b64decode(entry["sig"], validate=True) for entry in signatures]
        return base64.b64decode(envelope["payload"], validate=True), signed
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"the signature is no DSSE envelope: {error}") from None


def _encoding(payload: bytes) -> bytes:
    """Return the bytes that DSSE signs."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(payload), payload)


def check_manifest(folder: Path, keys: Sequence[bytes]) -> Signature:
    """Raise unless an unpacked bundle consists of exactly the files of its manifest."""
    content = read(folder / MANIFEST)
    listed = dict(_listed(parse(content, MANIFEST)))
    envelope = read_envelope(folder / SIGNED_MANIFEST)
    signature = check_signature("Manifest", envelope, content, keys)
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or name in (MANIFEST, SIGNED_MANIFEST) or name.startswith(COMPILED):
            continue
        if path.is_symlink() or name not in listed:
            raise Unreadable(f"{name}: the file is not in the manifest")
        with path.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != listed.pop(name):
                raise Unreadable(f"{name}: the file is not the one of the manifest")
    if listed:
        raise Unreadable(f"{next(iter(listed))}: the file is missing; the manifest lists it")
    return signature


def _listed(manifest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    try:
        if (manifest["_type"], manifest["predicateType"]) != (STATEMENT, BUNDLE):
            raise ValueError("another type")
        names = [entry["name"] for entry in manifest["subject"]]
        if len(set(names)) != len(names):
            raise ValueError("a file occurs twice")
        for entry in manifest["subject"]:
            yield entry["name"], entry["digest"]["sha256"]
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"{MANIFEST}: got no manifest of a bundle: {error}") from None
