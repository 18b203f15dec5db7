"""Verification of Ed25519 compared with `cryptography`, which shares no code with it."""

import hashlib
import random

import pytest

from feta_check import signatures
from feta_check.signatures import ORDER, verify
from tests.certificates.test_signatures import SMALL

pytest.importorskip("cryptography")

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def scalar(seed: bytes) -> int:
    """Return the secret scalar of a private key (RFC 8032, 5.1.5)."""
    number = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little")
    return number & ((1 << 254) - 8) | 1 << 254


def challenge(r: bytes, key: bytes, message: bytes) -> int:
    return int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % ORDER


def other(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def signed(seed: bytes, message: bytes, r: bytes, key: bytes) -> bytes:
    """Return the signature of a signer who states R without knowing its logarithm."""
    s = challenge(r, key, message) * scalar(seed) % ORDER
    return r + s.to_bytes(32, "little")


def test_verification_agrees_with_another_program() -> None:
    drawn, accepted = random.Random(8032), 0
    for number in range(60):
        seed, message = drawn.randbytes(32), drawn.randbytes(number)
        private = Ed25519PrivateKey.from_private_bytes(seed)
        key = private.public_key().public_bytes_raw()
        signature = private.sign(message)
        assert verify(key, message, signature)
        torsion = signatures._decoded(SMALL[number % 8])
        own = signatures._decoded(key)
        assert torsion is not None
        assert own is not None
        mixed = signatures._encoded(signatures._plus(own, torsion))
        flipped = bytearray(signature)
        flipped[number] ^= 1 << drawn.randrange(8)
        cases = [
            (key, message, bytes(flipped)),
            (drawn.randbytes(32), message, signature),
            (key, message, drawn.randbytes(64)),
            (key, message, signed(seed, message, SMALL[number % 8], key)),
            (mixed, message, signed(seed, message, SMALL[0], mixed)),
            (mixed, message, signature),
        ]
        for case in cases:
            assert verify(*case) == other(*case), [part.hex() for part in case]
            accepted += verify(*case)
    assert accepted >= 8  # R may be the neutral point; then s = h · secret is a valid signature
