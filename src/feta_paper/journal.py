"""Journal: the outcomes of a long run, so that it resumes after a kill.

An outcome that fails its digest counts as missing, and its unit of work is done again. Networks are `.feta` files beside it, written before their outcome; each is checked by its own fingerprint when read.
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
    """An open journal of one run; `settings` are all that its outcomes hang on."""

    def __init__(self, path: Path, settings: Mapping[str, object]) -> None:
        self._file = JournalFile(path, TABLES, settings, work="run")
        self.new, self.set_aside = self._file.new, self._file.set_aside
        self._session = int(self._read("SELECT coalesce(max(number), 0) + 1 FROM sessions")[0][0])

    def __enter__(self) -> "RunJournal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; it stays where it is."""
        self._file.close()

    def _read(self, question: str) -> list[tuple[Any, ...]]:
        with self._file.told():
            return self._file.base.execute(question).fetchall()

    def done(self) -> dict[Key, tuple[dict[str, Any], float]]:
        """Return the outcomes there are as plain values, with the seconds each took."""
        rows = self._read("SELECT step, fold, outcome, seconds, digest FROM outcomes")
        return {
            (step.decode(), fold): (json.loads(text), seconds)
            for step, fold, text, seconds, digest in rows
            if digest == self._file.digest(step, fold, text, seconds)
        }

    def note(self, key: Key, told: Mapping[str, object], seconds: float, elapsed: float) -> None:
        """Keep an outcome, and how long this session has taken so far."""
        cells = (*key, json.dumps(told), float(seconds))
        row, session = (*cells, self._file.digest(*cells)), (self._session, elapsed)
        with self._file.told(), self._file.transaction():
            base = self._file.base
            base.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?)", row)
            base.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", session)

    def seconds(self) -> float:
        """Add up the time of all sessions, each up to its last outcome."""
        return float(self._read("SELECT coalesce(sum(seconds), 0) FROM sessions")[0][0])
