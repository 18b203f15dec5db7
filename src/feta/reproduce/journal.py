"""Journal: the outcomes of a long run in an SQLite file, so that it goes on after a kill.

An outcome is one transaction: after a crash it is there whole, or not at all. Networks are `.feta`
files beside it, written before their outcome, and known by their fingerprints.
"""

import errno
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from feta.errors import SchemaError

TABLES = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outcomes (
    step TEXT NOT NULL, fold INTEGER NOT NULL, outcome TEXT NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (step, fold)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (number INTEGER PRIMARY KEY, seconds REAL NOT NULL);
"""

Key = tuple[str, int]


class Journal:
    """An open journal of one run; `settings` are all that its outcomes hang on."""

    def __init__(self, path: Path, settings: Mapping[str, object]) -> None:
        self.path = path
        try:
            self._base = sqlite3.connect(path, timeout=1.0, isolation_level=None)
            # One run at a time writes here; the lock goes with the process, however it ends.
            for setting in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=NORMAL"):
                self._base.execute(f"PRAGMA {setting}").fetchall()
            self._base.executescript(TABLES)
        except sqlite3.OperationalError as error:
            message = f"{path}: the journal must be free and writable, got {error}; wait for the other run, or name another --out"
            raise SchemaError(message) from None
        except sqlite3.DatabaseError as error:
            message = f"{path}: the journal must be whole, got {error}; delete it to begin again"
            raise SchemaError(message) from None
        self._check(settings)
        row = self._base.execute("SELECT coalesce(max(number), 0) + 1 FROM sessions").fetchone()
        self._session = int(row[0])

    def _check(self, settings: Mapping[str, object]) -> None:
        """Raise unless the journal is of this run; a new one is given its settings."""
        now = {name: json.dumps(value) for name, value in settings.items()}
        before = dict(self._base.execute("SELECT name, value FROM settings").fetchall())
        for name in now if before else ():
            if now[name] != before.get(name):
                self.close()
                message = f"{self.path} is the journal of another run: the {name} was {before.get(name)}, and is {now[name]} now; name another --out, or delete the journal to begin again"
                raise SchemaError(message)
        if not before:
            with self._base:
                self._base.execute("BEGIN IMMEDIATE")
                self._base.executemany("INSERT INTO settings VALUES (?, ?)", now.items())

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; it stays where it is."""
        self._base.close()

    def done(self) -> dict[Key, tuple[dict[str, Any], float]]:
        """Give the outcomes there are as plain values, with the seconds each took."""
        rows = self._base.execute("SELECT step, fold, outcome, seconds FROM outcomes").fetchall()
        return {(step, fold): (json.loads(text), seconds) for step, fold, text, seconds in rows}

    def note(self, key: Key, told: Mapping[str, object], seconds: float, elapsed: float) -> None:
        """Keep an outcome, and how long this session has taken so far."""
        with self._written(), self._base:
            self._base.execute("BEGIN IMMEDIATE")
            row = (*key, json.dumps(told), seconds)
            self._base.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?)", row)
            session = (self._session, elapsed)
            self._base.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", session)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Say in words that the disk is full."""
        try:
            yield
        except sqlite3.OperationalError as error:
            what = f"the journal cannot be written ({error}); what is done is kept: make room, and run the same command again"
            raise OSError(errno.ENOSPC, what, str(self.path)) from None

    def seconds(self) -> float:
        """Add up the time of all sessions, each up to its last outcome."""
        return float(
            self._base.execute("SELECT coalesce(sum(seconds), 0) FROM sessions").fetchone()[0]
        )
