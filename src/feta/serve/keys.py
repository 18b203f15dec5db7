"""API keys: a file of hashes, compared in constant time."""

import asyncio
import hashlib
import hmac
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from feta.errors import FetaError, SchemaError
from feta.serve.file_signature import Signature, signature_of
from feta.serve.limits import ServiceLimits

logger = logging.getLogger("feta.serve")

LINE = re.compile(r"(?P<name>[\w.-]{1,64})\s+(?P<digest>[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The names of clients and the sha256 of each one's key."""

    digests: tuple[tuple[str, bytes], ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file with one name and one sha256 per line; `#` starts a comment."""
        digests: list[tuple[str, bytes]] = []
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            line = text.partition("#")[0].strip()
            if not line:
                continue
            match = LINE.fullmatch(line)
            if match is None:
                raise SchemaError(
                    f"{path}: invalid line {number}: got {len(line)} characters; expected a name "
                    "and the sha256 of a key, in 64 hexadecimal digits"
                )
            digests.append((match["name"], bytes.fromhex(match["digest"])))
        if not digests:
            raise SchemaError(f"{path}: no keys: got an empty file; expected one or more lines")
        return cls(tuple(digests))

    def client(self, key: bytes) -> str | None:
        """Return the name of the client with this key; every hash is compared."""
        digest, found = hashlib.sha256(key).digest(), None
        for name, expected in self.digests:
            if hmac.compare_digest(digest, expected):
                found = name
        return found


@dataclass(slots=True)
class KeyFile:
    """The keys of a file, read again when it changes; a damaged file changes nothing."""

    path: Path
    current: ApiKeys
    signature: Signature | None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file for the first time."""
        signature = signature_of(path)
        return cls(path, ApiKeys.read(path), signature)

    async def watch(self, limits: ServiceLimits) -> None:
        """Read the file whenever it changes, until cancelled; every process does this."""
        while True:
            await asyncio.sleep(limits.reload_seconds)
            signature = signature_of(self.path)
            if signature is None or signature == self.signature:
                continue
            self.signature = signature
            try:
                self.current = ApiKeys.read(self.path)
            except (FetaError, OSError, UnicodeDecodeError) as error:
                logger.warning("the keys were not read again, and the old ones stay: %s", error)


def presented_key(headers: dict[bytes, bytes]) -> bytes:
    """Return the key of a request; empty if there is none."""
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
