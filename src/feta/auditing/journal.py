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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.auditing.asked import AskedPeople
from feta.auditing.finding import Finding
from feta.auditing.stored_verdict import Ends, replayed, stored_ends, stored_verdict, verdict_with
from feta.checker.admit import admit
from feta.errors import DomainError
from feta.io.journal_file import JournalFile
from feta.io.key_index import KeyIndex
from feta.model import Model
from feta.query import WorstAt
from feta.rule import DEFINITION
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Verdict
from feta.wider_limits import groups

# Rows are appended. Sorted by their keys, which are digests, each would be on a page of its own.
TABLES = """
CREATE TABLE people (
    number INTEGER PRIMARY KEY, person BLOB NOT NULL, finding TEXT NOT NULL, session BLOB NOT NULL,
    digest BLOB NOT NULL
);
"""

FIELDS = {"verdict", "decision", "fair_decision", "alone", "replayed", "span"}

# Exceptions of content that no audit writes.
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, DomainError)

# People looked up with one statement; SQLite allows 999 parameters in all versions.
MAX_ROWS = 500

# Keys that are read together when a journal is opened.
READ_ROWS = 2**16

KEY_SIZE = 32

# No audit has as many rows; larger numbers are damage, and adding to them could overflow.
MAX_NUMBER = 2**53


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
        self._index, self._last = KeyIndex(), 0
        for numbers, keys in self._stored_keys():
            self._index.add(keys, numbers)
            self._last = max(self._last, *numbers)
        self.empty = len(self) == 0

    def __len__(self) -> int:
        return len(self._index)

    def _stored_keys(self) -> Iterator[tuple[list[int], list[bytes]]]:
        """Yield the numbers and keys of the rows; damaged ones belong to nobody."""
        query = """
            SELECT number, person FROM people WHERE number > ? AND number < ?
            ORDER BY number LIMIT ?
        """
        last = 0
        while rows := self.select(query, (last, MAX_NUMBER, READ_ROWS)):
            last = rows[-1][0]
            yield [number for number, _ in rows], [_whole(key) for _, key in rows]

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
            texts = [stored[row] for row in part.tolist()]
            findings = self._read(queries, part.tolist(), texts)
            for index, (row, finding) in enumerate(zip(part.tolist(), findings, strict=True)):
                results[row] = None if finding is None else asked.known(index, finding)
        return results

    def _stored(self, people: Matrix) -> dict[int, tuple[object, bool]]:
        """Return the intact rows by person, and whether this session stored them."""
        keys = _keys(people)
        places = [
            (number, row) for row, number in enumerate(self._index.find(keys)) if number is not None
        ]
        stored: dict[int, tuple[Any, ...]] = {}
        for start in range(0, len(places), MAX_ROWS):
            part = [number for number, _ in places[start : start + MAX_ROWS]]
            marks = ", ".join("?" * len(part))
            query = f"SELECT number, finding, session, digest FROM people WHERE number IN ({marks})"
            stored |= {number: rest for number, *rest in self.select(query, part)}
        found: dict[int, tuple[object, bool]] = {}
        for number, row in places:
            text, session, digest = stored.get(number, (None, None, None))
            if digest == self.digest(keys[row], text, session):
                found[row] = text, session == self._session
        return found

    def write(self, people: Matrix, findings: Sequence[Finding]) -> None:
        """Store what was found about these people, all of it or nothing."""
        moving, session = self.model.relation.moving, self._session
        texts: dict[bytes, str] = {}  # by key: a person may occur twice
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
            texts[key] = json.dumps(content)
        known = self._index.find([*texts])  # an older row of a person is replaced
        new = [key for key, number in zip(texts, known, strict=True) if number is None]
        numbers = dict(zip(new, range(self._last + 1, self._last + 1 + len(new)), strict=True))
        rows = [
            (numbers.get(key, number), key, text, session, self.digest(key, text, session))
            for (key, text), number in zip(texts.items(), known, strict=True)
        ]
        self.insert(("INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?, ?)", rows))
        self._index.add(new, [*numbers.values()])
        self._last += len(new)
        self.empty = self.empty and not rows

    def _read(
        self, queries: Sequence[WorstAt], rows: Sequence[int], stored: Sequence[tuple[object, bool]]
    ) -> list[Finding | None]:
        """Read findings back; None unless an audit could have written it and its pair replays."""
        contents = [
            self._content(query, text) for query, (text, _) in zip(queries, stored, strict=True)
        ]
        pairs = replayed(queries, [ends for _, ends in contents])
        findings: list[Finding | None] = []
        for query, row, (content, _), pair, (_, is_current) in zip(
            queries, rows, contents, pairs, stored, strict=True
        ):
            verdict = _verdict(content, query, pair)
            if verdict is None or (isinstance(verdict, Fair) and not is_current):
                findings.append(None)
                continue
            # An earlier session's claims without evidence, such as optimality, are withdrawn.
            admitted = admit(query, verdict, trusted=is_current)
            rest = {name: content[name] for name in FIELDS - {"verdict", "alone"}}
            findings.append(Finding(row, admitted, alone=tuple(content["alone"]), **rest))
        return findings

    def _content(self, query: WorstAt, text: object) -> tuple[dict[str, Any], Ends | None]:
        """Return what a row contains, and its stored pair; nothing if no audit writes it."""
        try:
            content = json.loads(text)  # type: ignore[arg-type]  # what is no text is refused
            if content.keys() == FIELDS and self._is_possible(content):
                return content, stored_ends(content["verdict"], query)
        except UNREADABLE:
            pass
        return {}, None

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


def _verdict(
    content: dict[str, Any], query: WorstAt, pair: Counterexample | None
) -> Verdict | None:
    try:
        return verdict_with(content["verdict"], query, pair) if content else None
    except UNREADABLE:
        return None


def _keys(people: Matrix) -> list[bytes]:
    # + 0.0 makes −0.0 the 0.0 that it equals.
    return [hashlib.sha256(person.tobytes()).digest() for person in np.asarray(people) + 0.0]


def _whole(key: object) -> bytes:
    return key if isinstance(key, bytes) and len(key) == KEY_SIZE else bytes(KEY_SIZE)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
