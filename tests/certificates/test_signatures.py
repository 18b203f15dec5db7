"""Signatures: vectors of RFC 8032, malformed keys and points, envelopes and statements."""

import base64
from pathlib import Path

import pytest

from feta.io.canonical_json import Json
from feta.io.envelope import certificate_statement, envelope, signed_bytes
from feta_check import signatures
from feta_check.reading import Unreadable
from feta_check.signatures import ORDER, P, check_signature, public_key, verify

# RFC 8032, 7.1: public key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd"
        "25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c3"
        "87b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594"
        "a7c15e9716ed28dc027beceea1ec40a",
    ),
]
KEY, MESSAGE, SIGNATURE = (bytes.fromhex(text) for text in VECTORS[1])


def times(factor: int, point: signatures.Point = signatures.BASE) -> signatures.Point:
    return signatures._times(factor, point)


def small_points() -> list[bytes]:
    """Return the encodings of the eight points of a small order."""
    y = 2
    while True:
        point = signatures._decoded(y.to_bytes(32, "little"))
        y += 1
        if point is None:
            continue
        torsion = times(ORDER, point)
        if signatures._encoded(times(4, torsion)) != signatures._encoded(signatures.NEUTRAL):
            return [signatures._encoded(times(n, torsion)) for n in range(8)]


SMALL = small_points()


@pytest.mark.parametrize("vector", VECTORS)
def test_signatures_of_the_standard_are_valid(vector: tuple[str, str, str]) -> None:
    key, message, signature = (bytes.fromhex(text) for text in vector)
    assert verify(key, message, signature)
    assert not verify(key, message + b"\0", signature)
    assert not verify(key, message, signature[:32] + bytes(32))


def test_lengths_and_ranges_are_checked() -> None:
    s = int.from_bytes(SIGNATURE[32:], "little")
    for added in (ORDER, 2 * ORDER):
        assert not verify(KEY, MESSAGE, SIGNATURE[:32] + (s + added).to_bytes(32, "little"))
    for signature in (b"", SIGNATURE[:-1], SIGNATURE + b"\0"):
        assert not verify(KEY, MESSAGE, signature)
    for key in (b"", KEY[:-1], KEY + b"\0", (P + 2).to_bytes(32, "little")):
        assert not verify(key, MESSAGE, SIGNATURE)


def test_keys_of_a_small_order_sign_nothing() -> None:
    assert len(set(SMALL)) == 8
    for key in SMALL:
        for r in SMALL:
            for number in range(16):
                assert not verify(key, b"%d" % number, r + bytes(32))
    minus_zero = (1 | 1 << 255).to_bytes(32, "little")  # x = 0 with the sign of an odd number
    assert signatures._decoded(minus_zero) is None
    assert signatures._decoded((P + 1).to_bytes(32, "little")) is None


def pem(der: bytes) -> str:
    text = base64.b64encode(der).decode()
    return f"-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n"


def test_a_public_key_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "key.pub"
    path.write_text(pem(signatures.DER_PREFIX + KEY))
    assert public_key(path) == KEY
    for text in (
        "",
        pem(KEY),
        pem(signatures.DER_PREFIX + KEY + b"\0"),
        pem(b"\1" + signatures.DER_PREFIX + KEY),
        pem(signatures.DER_PREFIX + KEY).replace("PUBLIC", "PRIVATE"),
        pem(signatures.DER_PREFIX + KEY).replace("MCow", "MC=w"),
    ):
        path.write_text(text)
        with pytest.raises(Unreadable, match="got no public key"):
            public_key(path)
    path.write_bytes(b"\0" * (signatures.MAX_BYTES + 1))
    with pytest.raises(Unreadable, match="too large"):
        public_key(path)


HEADER: dict[str, Json] = {
    "model_sha256": "ab",
    "schema_sha256": "cd",
    "data_sha256": None,
    "date": "2026-01-31",
}
END: dict[str, Json] = {"root": "ef", "claims": 3}


def test_both_programs_make_the_same_statement() -> None:
    for header in (HEADER, HEADER | {"model_sha256": None, "data_sha256": "01"}):
        ours, theirs = certificate_statement(header, END), signatures.statement(header, END)
        assert ours == theirs
    assert signed_bytes(b"abc") == b"DSSEv1 28 application/vnd.in-toto+json 3 abc"
    assert signatures._encoding(b"abc") == signed_bytes(b"abc")


def opened(path: Path, content: bytes) -> dict[str, object] | None:
    path.write_bytes(content)
    return signatures.read_envelope(path)


def test_what_is_no_envelope_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "envelope"
    good = envelope(b"abc", SIGNATURE, key_id="")
    for old, new in (
        (b"application", b"applicatiom"),
        (b'"YWJj"', b'"YW"'),
        (b'"YWJj"', b"7"),
        (b'"sig"', b'"sih"'),
        (b'"sig":"', b'"sig":"!'),
        (b'"payload"', b'"paxload"'),
        (b'"signatures":[', b'"signatures":[' + b'{"keyid":"","sig":"AA=="},' * 16),
    ):
        broken = opened(path, good.replace(old, new))
        with pytest.raises(Unreadable, match="is no DSSE envelope"):
            check_signature("Certificate", broken, b"abc", [KEY])
    with pytest.raises(Unreadable, match="not canonical"):
        opened(path, good + b"\n")


def test_a_signature_is_by_one_of_the_keys(tmp_path: Path) -> None:
    path = tmp_path / "envelope"
    content = opened(path, envelope(b"abc", SIGNATURE, key_id=""))
    assert check_signature("Certificate", content, b"abc", []).unchecked
    with pytest.raises(Unreadable, match="the signature is not one by the key of --key"):
        check_signature("Certificate", content, b"abc", [KEY])
    with pytest.raises(Unreadable, match="stale, or copied"):
        check_signature("Certificate", content, b"abd", [])
    with pytest.raises(Unreadable, match="Certificate is not signed; expected a signature"):
        check_signature("Certificate", None, b"abc", [KEY])
    assert not check_signature("Certificate", None, b"abc", []).unchecked
    assert signatures.read_envelope(tmp_path / "none") is None
