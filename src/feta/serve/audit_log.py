"""The log of decisions: a chain of hashes per process, with keyed hashes instead of people.

Each line holds the sha256 of the line before it, so a line that is changed, removed or inserted
breaks the chain. An input is stored as a keyed BLAKE2b hash of the encoded columns that were read:
whoever has the key can confirm the entry of a known person, and nobody else can guess one.
"""

import errno
import hashlib
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from feta.arrays import Matrix
from feta.errors import SchemaError
from feta.serve.decisions import DecidedPeople

KEY_FILE = "salt.key"
KEY_BYTES = 32

# Bytes of the hash of one person.
PERSON_BYTES = 16

START = "0" * 64


def person_hashes(people: Matrix, key: bytes) -> list[str]:
    """Return the keyed hash of each row of shared columns."""
    content = (people + 0.0).tobytes()  # −0.0 equals 0.0
    size = people.shape[1] * people.itemsize
    keyed, hashes = hashlib.blake2b(key=key, digest_size=PERSON_BYTES), []
    for row in range(len(people)):
        state = keyed.copy()  # the key is hashed once
        state.update(content[row * size : (row + 1) * size])
        hashes.append(state.hexdigest())
    return hashes


def shared_key(folder: Path) -> bytes:
    """Return the key of a folder; the first process creates it, readable by its owner only."""
    path = folder / KEY_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_key(path)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
    return path.read_bytes()


def _read_key(path: Path) -> bytes:
    deadline = time.monotonic() + 5.0  # another process may be writing it
    while time.monotonic() < deadline:
        key = path.read_bytes()
        if len(key) == KEY_BYTES:
            return key
    raise SchemaError(
        f"{path}: the key is damaged: got {len(path.read_bytes())} bytes; expected {KEY_BYTES}; "
        "move the folder away and start again"
    )


def log_entry(decided: DecidedPeople, *, client: str, key: bytes) -> bytes:
    """Return the content of a line about the decisions of one request."""
    shared = decided.people.take(decided.served.shared, axis=1)
    return orjson.dumps(
        {
            "client": client,
            "model": decided.served.digest,
            "people": person_hashes(shared, key),
            "decisions": decided.names,
            "refused": len(decided.refused),
        }
    )


@dataclass(slots=True)
class AuditLog:
    """The log of one process, which only appends; each line is written at once."""

    path: Path
    descriptor: int
    key: bytes
    previous: str = START
    size: int = 0

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Start a new file in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        key = shared_key(folder)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path = folder / f"decisions-{stamp}-{os.getpid()}-{secrets.token_hex(3)}.jsonl"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        return cls(path, descriptor, key)

    def append(self, content: dict[str, Any]) -> None:
        """Append one line that continues the chain."""
        self.append_entry(orjson.dumps(content))

    def append_entry(self, entry: bytes) -> None:
        """Append an object in JSON as one line; two threads must not do this at once.

        A line that does not fit on the disk is removed, and `OSError` is raised.
        """
        start = b'{"previous":"%b","time":%.3f,' % (self.previous.encode(), time.time())
        line = start + entry[1:]
        written = os.write(self.descriptor, line + b"\n")
        if written <= len(line):
            os.ftruncate(self.descriptor, self.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size += written
        self.previous = hashlib.sha256(line).hexdigest()

    def close(self) -> None:
        """End the file with a line that says so; one without it was killed."""
        self.append({"closed": True})
        os.close(self.descriptor)


@dataclass(frozen=True, slots=True)
class CheckedLog:
    """The number of lines and decisions of an intact file, and whether it was closed."""

    lines: int
    decisions: int
    closed: bool
    last: str  # the hash of the last line: who keeps it elsewhere notices a shortened file


def check_log(path: Path) -> CheckedLog:
    """Check the chain of a file; raise at the first line that does not continue it."""
    previous, n_lines, n_decisions, closed = START, 0, 0, False
    with path.open("rb") as file:
        for n_lines, line in enumerate(file, start=1):
            content = _parse(path, n_lines, line)
            if content.get("previous") != previous:
                raise SchemaError(
                    f"{path}: the chain is broken in line {n_lines}: got the previous hash "
                    f"{content.get('previous')!r}; expected {previous!r}; lines were changed, "
                    "removed or inserted"
                )
            previous = hashlib.sha256(line.rstrip(b"\n")).hexdigest()
            n_decisions += len(content.get("decisions", ()))
            closed = bool(content.get("closed"))
    return CheckedLog(n_lines, n_decisions, closed, previous)


def _parse(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        content = None
    if not isinstance(content, dict) or not line.endswith(b"\n"):
        raise SchemaError(
            f"{path}: line {number} is damaged: got {line[:60]!r}; expected one JSON object; the "
            "process may have been killed while it wrote the line"
        )
    return content
