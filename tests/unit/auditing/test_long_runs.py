import os
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import feta
from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.executor import InProcess
from feta.auditing.finding import AuditFault, Finding
from feta.auditing.interruptible import is_computing, run_interruptibly
from feta.auditing.journal import AuditJournal
from feta.auditing.stored_verdict import read_verdict, stored_verdict
from feta.auditing.stream import AuditStream
from feta.auditing.workers import Workers
from feta.checker.admit import admit
from feta.errors import EngineError, SchemaError
from feta.model import Model
from feta.query import WorstAt
from feta.verdict.certificate import Certificate, LatticeProof
from feta.verdict.verdict import Fair, Verdict

SPACE = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 99)))


def model_of(slope: float = 0.1) -> Model:
    return Model(SPACE, feta.Network.from_layers([([[slope, 1.0]], [-9.0])]))


def people_of(*incomes: float) -> Matrix:
    return SPACE.encode([{"age": 30, "income": income} for income in incomes])


PEOPLE = people_of(1.0, 5.0, 50.0)


def same(first: Finding, second: Finding) -> bool:
    """Return whether two findings have the same content."""
    names = ("row", "status", "decision", "fair_decision", "alone", "runtime", "replayed", "reason")
    pairs = [None if f.pair is None else f.pair.counterpart.tolist() for f in (first, second)]
    return pairs[0] == pairs[1] and all(getattr(first, n) == getattr(second, n) for n in names)


def test_findings_are_read_back_unchanged(tmp_path: Path) -> None:
    model = model_of()
    findings = Auditor(model).audit(PEOPLE)
    assert {finding.status for finding in findings} == {"fair", "unfair"}
    with AuditJournal(tmp_path / "j", model) as journal:
        assert journal.known(PEOPLE) == [None] * 3
        journal.write(PEOPLE, findings)
    with AuditJournal(tmp_path / "j", model) as journal:
        assert len(journal) == 3
        for read, original in zip(journal.known(PEOPLE), findings, strict=True):
            # A claim of fairness of an earlier session is proved again.
            assert (read is None) == (original.status == "fair")
            assert read is None or same(read, original)
        assert journal.known(people_of(2.0)) == [None]


def test_a_session_reads_its_own_findings_back_with_their_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, seen = model_of(), []

    def spy(query: WorstAt, verdict: Verdict, *, trusted: bool) -> Verdict:
        seen.append(verdict)
        return admit(query, verdict, trusted=trusted)

    findings = Auditor(model).audit(PEOPLE)
    monkeypatch.setattr(sys.modules[AuditJournal.__module__], "admit", spy)
    with AuditJournal(tmp_path / "j", model) as journal:
        journal.write(PEOPLE, findings)
        stored = journal.known(PEOPLE)
    for read, original in zip(stored, findings, strict=True):
        assert read is not None
        assert same(read, original)
        assert read.certificate == original.certificate
    assert any(finding.certificate for finding in findings)
    assert len(seen) == len(PEOPLE)


def test_a_journal_of_another_model_or_other_settings_is_rejected(tmp_path: Path) -> None:
    with AuditJournal(tmp_path / "j", model_of(), {"seconds": 1.0}) as journal:
        journal.write(PEOPLE, Auditor(model_of()).audit(PEOPLE))
    with pytest.raises(SchemaError, match="the journal of another audit: the model was"):
        AuditJournal(tmp_path / "j", model_of(0.2), {"seconds": 1.0})
    with pytest.raises(
        SchemaError, match=r"the seconds was 1.0, and is 2.0 now; name another --out"
    ):
        AuditJournal(tmp_path / "j", model_of(), {"seconds": 2.0})


def test_a_journal_is_locked_against_a_second_audit(tmp_path: Path) -> None:
    with (
        AuditJournal(tmp_path / "j", model_of()),
        pytest.raises(SchemaError, match="another audit is writing to this folder"),
    ):
        AuditJournal(tmp_path / "j", model_of())


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be read" * 99, b"SQLite format 3\0" * 9]
)
def test_an_invalid_journal_is_set_aside(tmp_path: Path, content: bytes) -> None:
    for number in (1, 2):
        (tmp_path / "j").write_bytes(content)
        with AuditJournal(tmp_path / "j", model_of()) as journal:
            moved = journal.set_aside
            assert (moved, len(journal)) == (tmp_path / f"j.damaged-{number}", 0)
            assert moved is not None
            assert moved.read_bytes() == content


def test_a_journal_with_other_tables_or_damaged_settings_is_set_aside(tmp_path: Path) -> None:
    for number, damage in enumerate(
        (
            "CREATE TRIGGER t AFTER INSERT ON people BEGIN DELETE FROM people; END",
            "UPDATE settings SET value = '1' WHERE name = 'model'",
            "DELETE FROM settings WHERE name = 'space'",
            "ALTER TABLE people RENAME COLUMN finding TO found",
        )
    ):
        with AuditJournal(tmp_path / f"j{number}", model_of()) as journal:
            journal.write(PEOPLE, Auditor(model_of()).audit(PEOPLE))
        with closing(sqlite3.connect(tmp_path / f"j{number}")) as base, base:
            base.execute(damage)
        with AuditJournal(tmp_path / f"j{number}", model_of()) as journal:
            assert (journal.set_aside is None, len(journal)) == (False, 0), damage


MOVING = SPACE.sensitive_columns


def fair(model: Model, person: Matrix) -> Verdict:
    """Return the claim that a person is treated fairly."""
    digest = WorstAt(model, person).digest
    return Fair(Certificate(digest, "lattice", LatticeProof(SPACE.lattice.size)), "safe")


def rewrite(path: Path, model: Model, change: Callable[[str], str], *, signed: bool) -> None:
    """Change all findings of a journal; `signed` ones get valid digests, as in a forgery."""
    with AuditJournal(path, model) as journal:
        base, digest = journal.base, journal.digest
        rows = base.execute("SELECT person, finding, session, digest FROM people").fetchall()
        for key, text, session, old in rows:
            new = change(text.decode())
            row = (new, digest(key, new, session) if signed else old, key)
            base.execute("UPDATE people SET finding = ?, digest = ? WHERE person = ?", row)


FORGERIES = [
    lambda _: "{",
    lambda _: "[]",
    lambda _: "7",
    lambda text: text.replace('"unfair"', '"fair"'),
    lambda text: text.replace('"fair"', '"unfair"'),
    lambda text: re.sub(
        r'"verdict": {.*?}',
        '"verdict": {"fair": 73, "engine": "lattice", "runtime": "safe"}',
        text,
    ),
    lambda text: re.sub(
        r'"verdict": {.*?}', '"verdict": {"undecided": "no", "solver": "", "best": null}', text
    ),
    lambda text: text.replace('"decision": ', '"decision": 5, "x": '),
    lambda text: text.replace('"alone": [', '"alone": ["no such column", '),
    lambda text: re.sub(
        r'"unfair": \["[0-9a-f]*"', f'"unfair": ["{np.array([91.0]).tobytes().hex()}"', text
    ),
    lambda text: re.sub(r'", "[0-9a-f]*"\]', f'", "{np.array([91.0]).tobytes().hex()}"]', text),
    lambda text: re.sub(r'"unfair": \[.*?\]', '"unfair": ["00", 1]', text),
]


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_row_that_fails_its_digest_or_its_evidence_is_audited_again(
    tmp_path: Path, forgery: Callable[[str], str]
) -> None:
    model = model_of()
    expected = Auditor(model).audit(PEOPLE)
    for signed in (False, True):
        path = tmp_path / str(signed)
        with AuditJournal(path, model) as journal:
            journal.write(PEOPLE, expected)
        rewrite(path, model, forgery, signed=signed)
        with AuditJournal(path, model) as journal:
            findings = AuditStream(InProcess(Auditor(model)), journal).audit(PEOPLE)
        assert all(
            same(finding_, original) for finding_, original in zip(findings, expected, strict=True)
        )


def test_a_forged_fair_finding_is_not_trusted(tmp_path: Path) -> None:
    model = model_of()
    expected = Auditor(model).audit(PEOPLE)
    assert "unfair" in [finding.status for finding in expected]
    forged = [
        Finding(0, fair(model, person), finding.decision, finding.fair_decision)
        for person, finding in zip(PEOPLE, expected, strict=True)
    ]
    for engine in ("lattice", "exhaustive", "milp"):
        with AuditJournal(tmp_path / engine, model) as journal:
            journal.write(PEOPLE, forged)
        with AuditJournal(tmp_path / engine, model) as journal:
            assert (len(journal), journal.known(PEOPLE)) == (3, [None] * 3)
            findings = AuditStream(InProcess(Auditor(model, engine)), journal).audit(PEOPLE)
        assert [finding.status for finding in findings] == [finding.status for finding in expected]


def test_a_crash_of_a_worker_is_not_stored(tmp_path: Path) -> None:
    people = people_of(12.0, 13.0, 14.0)
    workers = Workers(partial(make_crashing_auditor, model_of()), 1)
    try:
        with AuditJournal(tmp_path / "j", model_of()) as journal:
            stream = AuditStream(workers, journal)
            assert stream.audit(people)[1].reason == AuditFault.WORKER_DIED
            assert (stream.lost, len(journal)) == (1, 2)
    finally:
        workers.stop()
    with AuditJournal(tmp_path / "j", model_of()) as journal:
        resumed = AuditStream(InProcess(Auditor(model_of())), journal).audit(people)
    expected = Auditor(model_of()).audit(people)
    assert all(
        same(finding_, original) for finding_, original in zip(resumed, expected, strict=True)
    )


def test_only_people_who_are_not_in_the_journal_are_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of()
    auditor = Auditor(model)
    sizes: list[int] = []

    def count(self: Auditor, people: Matrix, start: int = 0) -> list[Finding]:
        sizes.append(len(people))
        return original(self, people, start)

    original = Auditor.audit
    monkeypatch.setattr(Auditor, "audit", count)
    with AuditJournal(tmp_path / "j", model) as journal:
        first = AuditStream(InProcess(auditor), journal).audit(PEOPLE[:2])
        all_findings = AuditStream(InProcess(auditor), journal).audit(PEOPLE)
    assert sizes == [2, 1]
    assert [finding.row for finding in all_findings] == [0, 1, 2]
    assert all(
        same(finding_, resumed) for finding_, resumed in zip(first, all_findings[:2], strict=True)
    )


class CrashingAuditor(Auditor):
    """An auditor whose process crashes at a person with an income of 13."""

    def audit(self, people: Matrix, start: int = 0) -> list[Finding]:
        if (people[:, 1] == 13).any():
            os._exit(9)
        return super().audit(people, start)


def make_crashing_auditor(model: Model) -> Auditor:
    return CrashingAuditor(model)


def crash_at_start() -> Auditor:
    os._exit(9)


def test_a_crashed_worker_loses_no_results() -> None:
    people = people_of(*np.arange(40) % 40)
    workers = Workers(partial(make_crashing_auditor, model_of()), 2)
    try:
        findings = AuditStream(workers).audit(people)
    finally:
        workers.stop()
    assert [finding.row for finding in findings] == list(range(40))
    expected = Auditor(model_of()).audit(people)
    assert (findings[13].status, findings[13].reason) == ("undecided", AuditFault.WORKER_DIED)
    assert all(same(findings[n], expected[n]) for n in range(40) if n != 13)


def test_workers_that_crash_at_start_raise_an_error() -> None:
    workers = Workers(crash_at_start, 1)
    with pytest.raises(
        EngineError, match=r"^worker processes keep crashing: got 7 crashes .*; run with --jobs 1"
    ):
        list(workers.audit(people_of(*range(40))))
    workers.stop()


def test_zero_jobs_are_rejected() -> None:
    with pytest.raises(EngineError, match=r"^invalid number of jobs: got 0; expected at least 1$"):
        Workers(partial(make_crashing_auditor, model_of()), 0)


def test_an_interruptible_call_returns_results_and_raises_errors() -> None:
    assert run_interruptibly(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(divmod, 7, 0)
    assert not is_computing()


def regression(epsilon: float) -> Model:
    return Model(SPACE, model_of().network, feta.Tolerance(epsilon))


def test_both_ends_of_a_span_are_read_back(tmp_path: Path) -> None:
    """Ages from 18 to 90 score 1.8 to 9; nobody in the table is at an end."""
    model = regression(5.0)
    findings = Auditor(model).audit(PEOPLE)
    with AuditJournal(tmp_path / "j", model) as journal:
        journal.write(PEOPLE, findings)
    with AuditJournal(tmp_path / "j", model) as journal:
        stored = journal.known(PEOPLE)
    for read, written in zip(stored, findings, strict=True):
        assert read is not None
        assert same(read, written)
        assert read.pair is not None
        assert (read.pair.person[0], read.pair.counterpart[0]) == (18.0, 90.0)


def test_a_journal_of_another_definition_of_the_tolerance_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = regression(5.0)
    with monkeypatch.context() as earlier:
        earlier.setattr(sys.modules[AuditJournal.__module__], "DEFINITION", "distance")
        with AuditJournal(tmp_path / "j", model) as journal:
            journal.write(PEOPLE, Auditor(model).audit(PEOPLE))
    with pytest.raises(
        SchemaError, match=r"the definition of the tolerance was .distance., and is"
    ):
        AuditJournal(tmp_path / "j", model)


def test_a_pair_of_decisions_starts_with_the_person() -> None:
    model = model_of()
    (finding,) = Auditor(model).audit(PEOPLE[:1])
    assert finding.verdict is not None
    content, query = stored_verdict(finding.verdict, MOVING), WorstAt(model, PEOPLE[0])
    assert read_verdict(content, query) is not None
    content["unfair"].reverse()
    assert read_verdict(content, query) is None
