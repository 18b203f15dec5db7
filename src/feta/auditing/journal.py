"""Journal of an audit: its finished part, one row per person, so that it can resume.

A row with a wrong digest, or that no audit writes, counts as missing, and its person is audited
again. The digest detects damage, not forgery. A pair is therefore replayed exactly when it is read,
and people whom an earlier session called fair are audited again. The checker sees every verdict
that is read back.
"""

import hashlib
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.auditing.asked import AskedPeople
from feta.auditing.finding import Finding
from feta.auditing.stored_verdict import read_verdict, stored_verdict
from feta.checker.admit import admit
from feta.errors import DomainError
from feta.io.journal_file import JournalFile
from feta.model import Model
from feta.query import WorstAt
from feta.rule import DEFINITION
from feta.verdict.verdict import Fair
from feta.wider_limits import groups

TABLES = """
CREATE TABLE people (
    person BLOB NOT NULL PRIMARY KEY, finding TEXT NOT NULL, session BLOB NOT NULL, digest BLOB NOT NULL
) WITHOUT ROWID;
"""

FIELDS = {"verdict", "decision", "fair_decision", "alone", "replayed", "span"}

# People looked up with one statement; SQLite allows 999 parameters in all versions.
MAX_KEYS = 500


class AuditJournal(JournalFile):
    """An open journal of one audit; its answers depend on the model and on `settings`."""

    def __init__(self, path: Path, model: Model, settings: Mapping[str, object] = {}) -> None:
        self.model = model
        self._names = tuple(attribute.name for attribute in model.space.sensitive)
        self._session = secrets.token_bytes(16)
        known = {"model": model.fingerprint, "space": model.space.fingerprint, **settings}
        if model.rule.tolerance is not None:  # version 0.1.0 stored answers to another query
            known["definition of the tolerance"] = DEFINITION
        super().__init__(path, TABLES, known, work="audit")
        self.empty = len(self) == 0

    def __len__(self) -> int:
        return int(self.select("SELECT count(*) FROM people")[0][0])

    def known(self, people: Matrix) -> list[Finding | None]:
        """Return what is known about each of these people; None for people to audit."""
        results: list[Finding | None] = [None] * len(people)
        stored = self._stored(people)
        rows = np.array(sorted(stored), dtype=np.int64)
        if not len(rows):
            return results
        for model, indices in groups(self.model, people[rows]):
            part = rows[indices]
            asked = AskedPeople.of(model, people[part])
            queries = WorstAt.each(model, asked.people)
            for index, (row, query) in enumerate(zip(part.tolist(), queries, strict=True)):
                text, is_current = stored[row]
                finding = self._read(query, row, text, is_current=is_current)
                results[row] = None if finding is None else asked.known(index, finding)
        return results

    def _stored(self, people: Matrix) -> dict[int, tuple[object, bool]]:
        """Return the intact rows by person, and whether this session stored them."""
        keys = _keys(people)
        found: dict[bytes, tuple[object, bool]] = {}
        for start in range(0, len(keys), MAX_KEYS):
            part = keys[start : start + MAX_KEYS]
            marks = ", ".join("?" * len(part))
            query = f"SELECT person, finding, session, digest FROM people WHERE person IN ({marks})"
            for key, text, session, digest in self.select(query, part):
                if digest == self.digest(key, text, session):
                    found[key] = text, session == self._session
        return {row: found[key] for row, key in enumerate(keys) if key in found}

    def write(self, people: Matrix, findings: Sequence[Finding]) -> None:
        """Store what was found about these people, all of it or nothing."""
        moving, session = self.model.relation.moving, self._session
        rows = []
        for key, finding in zip(_keys(people), findings, strict=True):
            assert finding.verdict is not None  # only answers are stored
            content = {
                "verdict": stored_verdict(finding.verdict, moving),
                "decision": finding.decision,
                "fair_decision": finding.fair_decision,
                "alone": finding.alone,
                "replayed": finding.replayed,
                "span": finding.span,
            }
            text = json.dumps(content)
            rows.append((key, text, session, self.digest(key, text, session)))
        rows.sort()  # neighbors in the file are written together
        self.empty = self.empty and not rows
        self.insert(("INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?)", rows))

    def _read(self, query: WorstAt, row: int, text: object, *, is_current: bool) -> Finding | None:
        """Read a finding back; None unless an audit could have written it and its pair replays."""
        try:
            content = json.loads(text)  # type: ignore[arg-type]  # what is no text is refused
            if content.keys() != FIELDS or not self._is_possible(content):
                return None
            verdict = read_verdict(content.pop("verdict"), query)
        except (ValueError, TypeError, KeyError, AttributeError, DomainError):
            return None
        if verdict is None or (isinstance(verdict, Fair) and not is_current):
            return None
        content["alone"] = tuple(content["alone"])
        # An earlier session's claims without evidence, such as optimality, are withdrawn.
        admitted = admit(query, verdict, trusted=is_current)
        return Finding(row, admitted, **content)

    def _is_possible(self, content: dict[str, Any]) -> bool:
        """Check the values that reports rely on."""
        decisions = (content["decision"], content["fair_decision"])
        return (
            content["replayed"] in (None, True, False)
            and isinstance(content["alone"], list)
            and all(name in self._names for name in content["alone"])
            and all(self._is_answer(decision) for decision in decisions)
            and (content["span"] is None or _is_finite(content["span"]))
        )

    def _is_answer(self, answer: object) -> bool:
        if answer is None:
            return True
        if self.model.rule.tolerance is not None:
            return _is_finite(answer)
        classes = range(len(self.model.outcomes))
        return isinstance(answer, bool | int) and int(answer) in classes


def _keys(people: Matrix) -> list[bytes]:
    # + 0.0 makes −0.0 the 0.0 that it equals.
    return [hashlib.sha256(person.tobytes()).digest() for person in np.asarray(people) + 0.0]


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
