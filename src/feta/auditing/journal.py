"""Journal of an audit: its finished part, one row per person, so that it can resume.

A row with a wrong digest, or that no audit writes, counts as missing, and its person is audited
again. The digest detects damage, not forgery. A pair is therefore replayed exactly when it is read,
and a "fair" of an earlier session must be proved again (`confirm.py`).
"""

import hashlib
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix, Vector
from feta.auditing.finding import Finding
from feta.errors import CertificateError, DomainError
from feta.io.journal_file import JournalFile
from feta.model import Model
from feta.rule import DEFINITION, Tolerance
from feta.verdict.counterexample import Counterexample
from feta.wider_limits import model_for

TABLES = """
CREATE TABLE people (
    person BLOB NOT NULL PRIMARY KEY, finding TEXT NOT NULL, session BLOB NOT NULL, digest BLOB NOT NULL
) WITHOUT ROWID;
"""

FIELDS = {"status", "decision", "fair_decision", "alone", "runtime", "replayed", "reason", "span"}


class AuditJournal(JournalFile):
    """An open journal of one audit; its answers depend on the model and on `settings`."""

    def __init__(self, path: Path, model: Model, settings: Mapping[str, object] = {}) -> None:
        self.model = model
        self._moving = model.space.sensitive_columns
        self._names = tuple(attribute.name for attribute in model.space.sensitive)
        self._session = secrets.token_bytes(16)
        known = {"model": model.fingerprint, "space": model.space.fingerprint, **settings}
        if isinstance(model.rule, Tolerance):  # version 0.1.0 stored answers to another query
            known["definition of the tolerance"] = DEFINITION
        super().__init__(path, TABLES, known, work="audit")
        self.empty = len(self) == 0

    def __len__(self) -> int:
        return int(self.select("SELECT count(*) FROM people")[0][0])

    def known(self, people: Matrix) -> list[Finding | None]:
        """Return what is known about each of these people; None for people to audit."""
        return [finding for finding, _ in self.known_since(people)]

    def known_since(self, people: Matrix) -> list[tuple[Finding | None, bool]]:
        """Return what is known, and whether this session stored it."""
        results: list[tuple[Finding | None, bool]] = []
        query = "SELECT finding, session, digest FROM people WHERE person = ?"
        for row, person in enumerate(people):
            key = self._key(person)
            finding, is_new = None, False
            for text, session, digest in self.select(query, (key,)):
                is_new = session == self._session
                if digest == self.digest(key, text, session):
                    finding = self._read(person, row, text)
            results.append((finding, is_new))
        return results

    def write(self, people: Matrix, findings: Sequence[Finding]) -> None:
        """Store what was found about these people, all of it or nothing."""
        rows = []
        for person, finding in zip(people, findings, strict=True):
            cells = self._key(person), self._text(finding), self._session
            rows.append((*cells, self.digest(*cells)))
        self.empty = self.empty and not rows
        self.insert(("INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?)", rows))

    def _key(self, person: Vector) -> bytes:
        # + 0.0 makes −0.0 the 0.0 that it equals.
        return hashlib.sha256((np.asarray(person) + 0.0).tobytes()).digest()

    def _text(self, finding: Finding) -> str:
        content: dict[str, Any] = {name: getattr(finding, name) for name in sorted(FIELDS)}
        if finding.pair is not None:
            ends = (finding.pair.person, finding.pair.counterpart)
            content["pair"] = [end[self._moving].tobytes().hex() for end in ends]
        return json.dumps(content)

    def _read(self, person: Vector, row: int, text: object) -> Finding | None:
        """Read a finding back; None unless an audit could have written it and its pair replays."""
        try:
            content = json.loads(text)  # type: ignore[arg-type]  # what is no text is refused
            ends = content.pop("pair", None)
            pair = None if ends is None else self._pair(person, ends)
            if content.keys() != FIELDS or not self._is_possible(content, pair):
                return None
            content["alone"] = tuple(content["alone"])
            return Finding(row, pair=pair, **content)
        except (ValueError, TypeError, KeyError, AttributeError, CertificateError, DomainError):
            return None

    def _pair(self, person: Vector, ends: list[str]) -> Counterexample:
        both = []
        for code in ends:
            end = np.array(person)
            end[self._moving] = np.frombuffer(bytes.fromhex(code))
            both.append(end)
        first, second = both
        if not isinstance(self.model.rule, Tolerance) and not np.array_equal(first, person):
            raise CertificateError("a pair of decisions must begin with the person")
        return Counterexample(model_for(self.model, person), first, second)

    def _is_possible(self, content: dict[str, Any], pair: Counterexample | None) -> bool:
        """Check the values that reports rely on; the pair itself has been replayed."""
        status, reason = content["status"], content["reason"]
        decisions = (content["decision"], content["fair_decision"])
        if (status == "unfair") != (pair is not None):
            return False
        return (
            status in ("fair", "unfair", "undecided")
            and content["runtime"] in ("safe", "sensitive")
            and content["replayed"] in (None, True, False)
            and isinstance(reason, str)
            and (status == "undecided") == bool(reason)
            and isinstance(content["alone"], list)
            and all(name in self._names for name in content["alone"])
            and all(self._is_answer(decision) for decision in decisions)
            and (content["span"] is None or _is_finite(content["span"]))
        )

    def _is_answer(self, answer: object) -> bool:
        if answer is None:
            return True
        if isinstance(self.model.rule, Tolerance):
            return _is_finite(answer)
        classes = range(len(self.model.outcomes))
        return isinstance(answer, bool | int) and int(answer) in classes


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
