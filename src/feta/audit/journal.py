"""Journal: what is done of a long audit, one row a person, so that it can go on.

A pair is replayed exactly when it is read back; what does not replay is asked again.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix, Vector
from feta.audit.finding import Finding
from feta.errors import CertificateError
from feta.journal_file import JournalFile
from feta.model import Model
from feta.rule import DEFINITION, Tolerance
from feta.verdict.counterexample import Counterexample

TABLES = """
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
        known = {"model": model.fingerprint, **settings}
        self._spans = isinstance(model.rule, Tolerance)
        if self._spans:  # version 0.1.0 noted answers to another question
            known["definition of the tolerance"] = DEFINITION
        self._file = JournalFile(path, TABLES, known, work="audit")
        self.empty = len(self) == 0

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; it stays where it is."""
        self._file.close()

    def remove(self) -> None:
        """Close and delete the file: its audit is complete."""
        self._file.remove()

    def __len__(self) -> int:
        with self._file.told():
            return int(self._file.base.execute("SELECT count(*) FROM people").fetchone()[0])

    def known(self, people: Matrix) -> list[Finding | None]:
        """Give what is known about each of these people; None where they are to be asked."""
        found = []
        for row, person in enumerate(people):
            with self._file.told():
                text = self._file.base.execute(
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
        with self._file.told(), self._file.transaction():
            self._file.base.executemany("INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?)", rows)

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
            if self._spans:  # neither of the two need be the person
                told["first"] = finding.pair.person[self._moving].tobytes().hex()
            told["counterpart"] = finding.pair.counterpart[self._moving].tobytes().hex()
        return json.dumps(told)

    def _with(self, person: Vector, code: str) -> Vector:
        """Put sensitive values into a person's row."""
        other = np.array(person)
        other[self._moving] = np.frombuffer(bytes.fromhex(code))
        return other

    def _read(self, person: Vector, row: int, text: str) -> Finding | None:
        """Read a finding back; None if it is damaged or its pair is not one."""
        try:
            told = json.loads(text)
            told["alone"] = tuple(told["alone"])
            first, code = told.pop("first", None), told.pop("counterpart", None)
            if (first is not None) != (self._spans and code is not None):
                return None
            pair = None
            if code is not None:
                one = person if first is None else self._with(person, first)
                pair = Counterexample(self.model, one, self._with(person, code))
            if (told["status"] == "unfair") != (pair is not None):
                return None
            return Finding(row, pair=pair, **told)
        except (ValueError, TypeError, KeyError, AttributeError, CertificateError):
            return None
