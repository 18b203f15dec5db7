"""Journal of a run: the results of its steps, so that an interrupted run resumes.

A result whose digest is wrong counts as missing, and its step runs again. Networks are `.feta`
files in the same folder. They are written before their result, and each has a fingerprint that is
checked on reading.
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


class RunJournal(JournalFile):
    """An open journal of one run; its results depend on nothing but `settings`."""

    def __init__(self, path: Path, settings: Mapping[str, object]) -> None:
        super().__init__(path, TABLES, settings, work="run")
        self._session = int(self.select("SELECT coalesce(max(number), 0) + 1 FROM sessions")[0][0])

    def done(self) -> dict[Key, tuple[dict[str, Any], float]]:
        """Return the results so far as plain values, each with its seconds."""
        rows = self.select("SELECT step, fold, outcome, seconds, digest FROM outcomes")
        return {
            (step.decode(), fold): (json.loads(text), seconds)
            for step, fold, text, seconds, digest in rows
            if digest == self.digest(step, fold, text, seconds)
        }

    def note(self, key: Key, result: Mapping[str, object], seconds: float, elapsed: float) -> None:
        """Store a result, and the elapsed seconds of this session."""
        cells = (*key, json.dumps(result), float(seconds))
        row, session = (*cells, self.digest(*cells)), (self._session, elapsed)
        self.insert(
            ("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?)", [row]),
            ("INSERT OR REPLACE INTO sessions VALUES (?, ?)", [session]),
        )

    def seconds(self) -> float:
        """Return the total time of all sessions, each up to its last result."""
        return float(self.select("SELECT coalesce(sum(seconds), 0) FROM sessions")[0][0])
