"""Journal files: SQLite files with the finished part of a long task, so that it can resume.

What is written together is one transaction (WAL): after a crash it is complete or absent. Each row
has a digest of its key and content, bound to the settings; a row with a wrong digest counts as
missing. A damaged file is renamed, and the task starts again.
"""

import errno
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from feta.errors import SchemaError
from feta.io.sanitize import plain

SETTINGS = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL);
"""

# The low byte of SQLite's codes: the file cannot be opened or written, another process has locked
# it, or the disk is full or fails.
NOT_OPEN = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM)

SUFFIXES = ("", "-wal", "-shm")

Cell = str | bytes | int | float | None


class Damaged(Exception):
    """A file that is damaged, or not a journal of this version."""


class JournalFile:
    """An open journal, the base of all journals.

    Its content depends on `settings`; `work` is what users call the task.
    """

    def __init__(
        self, path: Path, tables: str, settings: Mapping[str, object], *, work: str
    ) -> None:
        self.path, self.work = path, work
        self.set_aside: Path | None = None  # the new path of a damaged journal
        self._settings = {name: json.dumps(value) for name, value in settings.items()}
        self._bond = hashlib.sha256(json.dumps(sorted(self._settings.items())).encode()).digest()
        try:
            self._open(SETTINGS + tables)
        except Damaged:
            self.set_aside = self._set_aside()
            self._open(SETTINGS + tables)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, tables: str) -> None:
        """Open or create the file; raise `Damaged` unless it is complete and of this version."""
        with self.explained():
            self.base = sqlite3.connect(self.path, timeout=1.0, isolation_level=None)
            self.base.text_factory = bytes  # damaged texts cannot be decoded
        try:
            with self.explained(), self._damage():
                # One process at a time writes here; the lock ends with the process.
                for setting in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=NORMAL"):
                    self.base.execute(f"PRAGMA {setting}").fetchall()
                self._check_content(tables)
                self.new = self._check_settings()
        except BaseException:
            with suppress(sqlite3.Error):
                self.base.close()
            raise

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Distinguish a damaged file from one that is locked, not writable, or on a full disk."""
        try:
            yield
        except UnicodeDecodeError:  # SQLite's own message quotes damaged bytes
            raise Damaged from None
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in (*BUSY, *NO_ROOM) or (code in NOT_OPEN and not self._writable()):
                raise
            raise Damaged from None

    def _writable(self) -> bool:
        """Return whether the system allows writing; then SQLite's error means a damaged file."""
        return os.access(self.path, os.R_OK | os.W_OK) and os.access(self.path.parent, os.W_OK)

    def _check_content(self, tables: str) -> None:
        listed = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        with self.transaction():
            if not self.base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in tables.split(";")[:-1]:
                    self.base.execute(statement)
        expected = sqlite3.connect(":memory:")
        expected.text_factory = bytes
        try:
            expected.executescript(tables)
            same = self.base.execute(listed).fetchall() == expected.execute(
                listed
            ).fetchall() and self.base.execute("PRAGMA integrity_check(1)").fetchall() == [(b"ok",)]
        finally:
            expected.close()
        if not same:
            raise Damaged

    def _set_aside(self) -> Path:
        """Rename a damaged journal: nothing is lost, and nothing of it is used."""
        number = 1
        while (target := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        for suffix in SUFFIXES:
            with suppress(FileNotFoundError):
                file = self.path.with_name(self.path.name + suffix)
                file.replace(target.with_name(target.name + suffix))
        return target

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Replace errors of SQLite by messages that say what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode & 0xFF
            if code in BUSY:
                message = (
                    f"{self.path}: another {self.work} is writing to this folder; wait for it, "
                    "or name another --out"
                )
                raise SchemaError(message) from None
            if code in NOT_OPEN:
                what = (
                    f"the journal cannot be opened ({error}); let its folder be written to, or "
                    "name another --out"
                )
                raise PermissionError(errno.EACCES, what, str(self.path)) from None
            what = (
                f"the journal cannot be written ({error}); what is done is kept: make room, and "
                "run the same command again"
            )
            raise OSError(errno.ENOSPC, what, str(self.path)) from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            message = (
                f"{self.path}: the journal is damaged: got {error}; run the same command again"
            )
            raise SchemaError(message) from None

    def _check_settings(self) -> bool:
        """Raise unless the journal belongs to this task; a new one gets its settings."""
        stored: dict[str, str] = {}
        for name, value, digest in self.base.execute("SELECT name, value, digest FROM settings"):
            if digest != _digest(b"settings", name, value):
                raise Damaged
            stored[name.decode()] = value.decode()
        count = stored.pop("count", None)
        if count is not None and count != str(len(stored)):
            raise Damaged
        if count is not None:
            self._compare(stored)
            return False
        if stored:
            raise Damaged
        rows = {**self._settings, "count": str(len(self._settings))}
        with self.transaction():
            self.base.executemany(
                "INSERT INTO settings VALUES (?, ?, ?)",
                [(name, value, _digest(b"settings", name, value)) for name, value in rows.items()],
            )
        return True

    def _compare(self, before: dict[str, str]) -> None:
        for name, value in self._settings.items():
            if value != before.get(name):
                message = (
                    f"{self.path} is the journal of another {self.work}: the {name} was "
                    f"{before.get(name)}, and is {value} now; name another --out, or delete the "
                    "journal to start again"
                )
                raise SchemaError(message)

    def damage_note(self, contents: str) -> str:
        """Return a note about a damaged journal that was renamed; empty if there was none."""
        if self.set_aside is None:
            return ""
        return (
            "the journal was damaged or written by another version: it was renamed to "
            f"{plain(self.set_aside)}, and none of it is used; all {contents} start again; "
            "no further action is needed"
        )

    def select(self, query: str, parameters: Sequence[Cell] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; texts are bytes."""
        with self.explained():
            return self.base.execute(query, parameters).fetchall()

    def insert(self, *statements: tuple[str, Sequence[Sequence[Cell]]]) -> None:
        """Execute each statement for all its rows; everything is stored, or nothing."""
        with self.explained(), self.transaction():
            for statement, rows in statements:
                self.base.executemany(statement, rows)

    def digest(self, *cells: Cell) -> bytes:
        """Return the digest of a row: over its key and content, bound to the settings."""
        return _digest(self._bond, *cells)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything, or nothing if an exception occurs."""
        self.base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self.base.in_transaction:  # a full disk ends the transaction
                self.base.execute("ROLLBACK")
            raise
        self.base.execute("COMMIT")

    def close(self) -> None:
        """Close the file without deleting it."""
        with self.explained():
            self.base.close()

    def remove(self) -> None:
        """Close and delete the file: its work is complete."""
        self.close()
        for suffix in SUFFIXES:
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def _digest(bond: bytes, *cells: Cell) -> bytes:
    """Hash cells with their lengths, so that different rows give different bytes."""
    hashed = hashlib.sha256(bond)
    for cell in cells:
        content = cell if isinstance(cell, bytes) else str(cell).encode()
        hashed.update(f"{len(content)}:".encode() + content)
    return hashed.digest()
