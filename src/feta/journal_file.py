"""JournalFile: an SQLite file that keeps what is done of a long piece of work, so that it can go on.

What is written together is one transaction (WAL): after a crash or a kill it is there whole, or not at all.
"""

import errno
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from feta.errors import SchemaError

SETTINGS = "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);"

# The low byte of SQLite's codes for a file that cannot be opened or may not be written.
NOT_OPEN = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


class JournalFile:
    """An open journal; `settings` are all that its content hangs on, `work` is what users call the work."""

    def __init__(
        self, path: Path, tables: str, settings: Mapping[str, object], *, work: str
    ) -> None:
        self.path, self.work = path, work
        with self.told():
            self.base = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        try:
            with self.told():
                # One at a time writes here; the lock goes with the process, however it ends.
                for setting in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=NORMAL"):
                    self.base.execute(f"PRAGMA {setting}").fetchall()
                self.base.executescript(SETTINGS + tables)
                self.new = self._check(settings)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say what is wrong with the file in words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                message = f"{self.path}: another {self.work} is writing to this folder; wait for it, or name another --out"
                raise SchemaError(message) from None
            if error.sqlite_errorcode & 0xFF in NOT_OPEN:
                what = f"the journal cannot be opened ({error}); let its folder be written to, or name another --out"
                raise PermissionError(errno.EACCES, what, str(self.path)) from None
            what = f"the journal cannot be written ({error}); what is done is kept: make room, and run the same command again"
            raise OSError(errno.ENOSPC, what, str(self.path)) from None
        except sqlite3.DatabaseError as error:
            message = (
                f"{self.path}: the journal must be whole, got {error}; delete it to begin again"
            )
            raise SchemaError(message) from None

    def _check(self, settings: Mapping[str, object]) -> bool:
        """Raise unless the journal is of this work; a new one is given its settings, and is said to be new."""
        now = {name: json.dumps(value) for name, value in settings.items()}
        before = dict(self.base.execute("SELECT name, value FROM settings").fetchall())
        for name in now if before else ():
            if now[name] != before.get(name):
                message = f"{self.path} is the journal of another {self.work}: the {name} was {before.get(name)}, and is {now[name]} now; name another --out, or delete the journal to begin again"
                raise SchemaError(message)
        if not before:
            with self.transaction():
                self.base.executemany("INSERT INTO settings VALUES (?, ?)", now.items())
        return not before

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all of it, or nothing."""
        self.base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self.base.in_transaction:  # a full disk has ended it already
                self.base.execute("ROLLBACK")
            raise
        self.base.execute("COMMIT")

    def close(self) -> None:
        """Close the file; it stays where it is."""
        with self.told():
            self.base.close()

    def remove(self) -> None:
        """Close and delete the file: its work is complete."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
