"""Journal of a run: the outcomes of finished units of work, so that it can resume.

An outcome with a wrong digest counts as missing, and its unit is repeated. Networks are `.feta`
files in the same folder, written before their outcome; reading checks their fingerprints.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feta.io.journal_file import JournalFile

TABLES = """
CREATE TABLE outcomes (
    step TEXT NOT NULL, fold INTEGER NOT NULL, outcome TEXT NOT NULL, seconds REAL NOT NULL,
    digest BLOB NOT NULL, PRIMARY KEY (step, fold)
) WITHOUT ROWID;
CREATE TABLE sessions (number INTEGER PRIMARY KEY, seconds REAL NOT NULL);
"""

Key = tuple[str, int]


class RunJournal:
    """An open journal of one run; its outcomes depend on `settings` only."""

    def __init__(self, path: Path, settings: Mapping[str, object]) -> None:
        self._file = JournalFile(path, TABLES, settings, work="run")
        self.new, self.set_aside = self._file.new, self._file.set_aside
        self._session = int(self._read("SELECT coalesce(max(number), 0) + 1 FROM sessions")[0][0])

    def __enter__(self) -> "RunJournal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file without deleting it."""
        self._file.close()

    def _read(self, statement: str) -> list[tuple[Any, ...]]:
        with self._file.explained():
            return self._file.base.execute(statement).fetchall()

    def done(self) -> dict[Key, tuple[dict[str, Any], float]]:
        """Return the outcomes there are as plain values, with the seconds each took."""
        rows = self._read("SELECT step, fold, outcome, seconds, digest FROM outcomes")
        return {
            (step.decode(), fold): (json.loads(text), seconds)
            for step, fold, text, seconds, digest in rows
            if digest == self._file.digest(step, fold, text, seconds)
        }

    def note(self, key: Key, outcome: Mapping[str, object], seconds: float, elapsed: float) -> None:
        """Store an outcome, and the time of this session so far."""
        cells = (*key, json.dumps(outcome), float(seconds))
        row, session = (*cells, self._file.digest(*cells)), (self._session, elapsed)
        with self._file.explained(), self._file.transaction():
            base = self._file.base
            base.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?)", row)
            base.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", session)

    def seconds(self) -> float:
        """Add up the time of all sessions, each up to its last outcome."""
        return float(self._read("SELECT coalesce(sum(seconds), 0) FROM sessions")[0][0])
