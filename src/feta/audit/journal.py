"""Journal: what is done of a long audit, one row a person in an SQLite file, so that it can go on.

Every block of answers is one transaction (WAL): after a crash or a kill each of them is there whole, or
not at all. A pair is replayed exactly when it is read back; what does not replay is asked again.
"""

import errno
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix, Vector
from feta.audit.finding import Finding
from feta.errors import CertificateError, SchemaError
from feta.model import Model
from feta.verdict.counterexample import Counterexample

TABLES = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS people (
    model TEXT NOT NULL, space TEXT NOT NULL, person BLOB NOT NULL, finding TEXT NOT NULL,
    PRIMARY KEY (model, space, person)
) WITHOUT ROWID;
"""


class Journal:
    """An open journal of one audit; `settings` are all that its answers hang on, besides the model."""

    def __init__(self, path: Path, model: Model, settings: Mapping[str, object] = {}) -> None:
        self.path, self.model = path, model
        self._moving = model.space.sensitive_columns
        with self._told():
            self._base = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        try:
            with self._told():
                # One audit at a time writes here; the lock goes with the process, however it ends.
                for setting in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=NORMAL"):
                    self._base.execute(f"PRAGMA {setting}").fetchall()
                self._base.executescript(TABLES)
            self._check({"model": model.fingerprint, **settings})
            self.empty = len(self) == 0
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what is wrong with the file in words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                message = f"{self.path}: another audit is writing to this folder; wait for it, or name another --out"
                raise SchemaError(message) from None
            what = f"the journal cannot be written ({error}); what is done is kept: make room, and run the same command again"
            raise OSError(errno.ENOSPC, what, str(self.path)) from None
        except sqlite3.DatabaseError as error:
            message = (
                f"{self.path}: the journal must be whole, got {error}; delete it to begin again"
            )
            raise SchemaError(message) from None

    def _check(self, settings: Mapping[str, object]) -> None:
        """Raise unless the journal is of this audit; a new one is given its settings."""
        now = {name: json.dumps(value) for name, value in settings.items()}
        with self._told():
            before = dict(self._base.execute("SELECT name, value FROM settings").fetchall())
        for name in now if before else ():
            if now[name] != before.get(name):
                message = f"{self.path} is the journal of another audit: the {name} was {before.get(name)}, and is {now[name]} now; name another --out, or delete the journal to begin again"
                raise SchemaError(message)
        if not before:
            with self._told(), self._transaction():
                self._base.executemany("INSERT INTO settings VALUES (?, ?)", now.items())

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._base.in_transaction:  # a full disk has ended it already
                self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; it stays where it is."""
        with self._told():
            self._base.close()

    def remove(self) -> None:
        """Close and delete the file: its audit is complete."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def __len__(self) -> int:
        with self._told():
            return int(self._base.execute("SELECT count(*) FROM people").fetchone()[0])

    def known(self, people: Matrix) -> list[Finding | None]:
        """Give what is known about each of these people; None where they are to be asked."""
        found = []
        for row, person in enumerate(people):
            with self._told():
                text = self._base.execute(
                    "SELECT finding FROM people WHERE model = ? AND space = ? AND person = ?",
                    self._key(person),
                ).fetchone()
            found.append(None if text is None else self._read(person, row, text[0]))
        return found

    def write(self, people: Matrix, findings: Sequence[Finding]) -> None:
        """Note what was found about these people, all of it or nothing."""
        rows = [
            (*self._key(person), self._text(one))
            for person, one in zip(people, findings, strict=True)
        ]
        self.empty = False
        with self._told(), self._transaction():
            self._base.executemany("INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?)", rows)

    def _key(self, person: Vector) -> tuple[str, str, bytes]:
        # + 0.0 makes −0.0 the 0.0 that it equals.
        digest = hashlib.sha256((np.asarray(person) + 0.0).tobytes()).digest()
        return self.model.fingerprint, self.model.space.fingerprint, digest

    def _text(self, finding: Finding) -> str:
        told: dict[str, Any] = {
            "status": finding.status,
            "decision": finding.decision,
            "fair_decision": finding.fair_decision,
            "alone": finding.alone,
            "runtime": finding.runtime,
            "replayed": finding.replayed,
            "reason": finding.reason,
            "span": finding.span,
        }
        if finding.pair is not None:
            told["counterpart"] = finding.pair.counterpart[self._moving].tobytes().hex()
        return json.dumps(told)

    def _read(self, person: Vector, row: int, text: str) -> Finding | None:
        """Read a finding back; None if it is damaged or its pair is not one."""
        try:
            told = json.loads(text)
            told["alone"] = tuple(told["alone"])
            code = told.pop("counterpart", None)
            pair = None
            if code is not None:
                other = np.array(person)
                other[self._moving] = np.frombuffer(bytes.fromhex(code))
                pair = Counterexample(self.model, person, other)
            if (told["status"] == "unfair") != (pair is not None):
                return None
            return Finding(row, pair=pair, **told)
        except (ValueError, TypeError, KeyError, AttributeError, CertificateError):
            return None
