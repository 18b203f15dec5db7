"""Ed25519 keys that sign certificates and bundles: PEM files of the package `cryptography`."""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from feta.errors import MissingExtra, SchemaError
from feta.io.envelope import envelope, signed_bytes
from feta.io.regular_file import read_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# Only the owner may read and write a private key.
PRIVATE = 0o600
OF_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key."""

    secret: "Ed25519PrivateKey" = field(repr=False)

    @classmethod
    def new(cls) -> Self:
        """Create a random key."""
        ed25519, _ = _library()
        return cls(ed25519.Ed25519PrivateKey.generate())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a PEM file; it must contain an Ed25519 key without a password."""
        ed25519, serialization = _library()
        if not path.is_file():
            raise SchemaError(f"{path}: no such file; feta keys new writes a key")
        try:
            secret = serialization.load_pem_private_key(read_bytes(path), password=None)
        except TypeError:
            raise _no_key(path, "a key with a password") from None
        except Exception as error:  # it has many exceptions for damaged keys
            raise _no_key(path, type(error).__name__) from None
        if not isinstance(secret, ed25519.Ed25519PrivateKey):
            raise _no_key(path, type(secret).__name__)
        return cls(secret)

    def write(self, path: Path) -> None:
        """Write a PEM file that only its owner can read; an existing file is not replaced."""
        _, formats = _library()
        content = self.secret.private_bytes(
            formats.Encoding.PEM, formats.PrivateFormat.PKCS8, formats.NoEncryption()
        )
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        except FileExistsError:
            raise SchemaError(
                f"{path}: the file exists: a key is never replaced; name another file"
            ) from None
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)

    @property
    def public_pem(self) -> str:
        """The public key as the text of a PEM file."""
        _, formats = _library()
        public = self.secret.public_key()
        content = public.public_bytes(
            formats.Encoding.PEM, formats.PublicFormat.SubjectPublicKeyInfo
        )
        return content.decode("ascii")

    @property
    def key_id(self) -> str:
        """The SHA-256 of the 32 bytes of the public key."""
        return hashlib.sha256(self.secret.public_key().public_bytes_raw()).hexdigest()

    def signed(self, payload: bytes) -> bytes:
        """Return an envelope with a signature of a statement."""
        signature = self.secret.sign(signed_bytes(payload))
        return envelope(payload, signature, key_id=self.key_id)


def is_shared(path: Path) -> bool:
    """Return whether other users of this machine may read a file."""
    return os.name == "posix" and bool(path.stat().st_mode & OF_OTHERS)


def _library() -> tuple[Any, Any]:
    """Return two modules of `cryptography`: keys, and the formats of files."""
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("cryptography", "sign") from None
    return ed25519, serialization


def _no_key(path: Path, got: str) -> SchemaError:
    return SchemaError(
        f"{path}: no private key: got {got}; expected a PEM file with an Ed25519 key without a "
        "password; feta keys new writes one"
    )
