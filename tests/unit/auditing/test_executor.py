"""The contract of executors: the same people get the same findings."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

import feta
from feta.auditing.auditor import Auditor
from feta.auditing.block import AuditedBlock, Block, UnreadRow, blocks_in_memory
from feta.auditing.executor import Executor, InProcess
from feta.auditing.finding import Finding
from feta.auditing.report_data import ReportSource
from feta.auditing.stream import AuditStream
from feta.auditing.table_audit import TableAudit
from feta.auditing.workers import PEOPLE_PER_JOB, Workers
from feta.errors import DomainError
from feta.model import Model

SPACE = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 99)))
MODEL = Model(SPACE, feta.Network.from_layers([([[0.1, 1.0]], [-9.0])]))
PEOPLE = SPACE.encode([{"age": 20 + n % 50, "income": n % 23} for n in range(90)])


@pytest.fixture(params=["in this process", "in a thread", "workers"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made: Executor
    if request.param == "workers":
        made = Workers(partial(Auditor, MODEL), 1)
    else:
        made = InProcess(Auditor(MODEL), interruptible=request.param == "in a thread")
    yield made
    made.stop()


def content(finding: Finding) -> tuple[object, ...]:
    pair = None if finding.pair is None else finding.pair.counterpart.tolist()
    return finding.row, finding.status, finding.decision, finding.fair_decision, pair, finding.alone


def test_everybody_gets_the_finding_of_the_auditor(executor: Executor) -> None:
    expected = Auditor(MODEL).audit(PEOPLE)
    assert {finding.status for finding in expected} == {"fair", "unfair"}
    findings: dict[int, Finding] = {}
    for start, part in executor.audit(PEOPLE):
        assert [finding.row for finding in part] == list(range(len(part)))
        findings |= {start + finding.row: finding for finding in part}
    assert sorted(findings) == list(range(len(PEOPLE)))
    for row, finding in findings.items():
        assert content(finding)[1:] == content(expected[row])[1:]
        assert finding.certificate == expected[row].certificate
    assert executor.block_size >= PEOPLE_PER_JOB
    assert list(executor.audit(PEOPLE[:0])) == []


def test_a_stream_numbers_rows_and_keeps_unread_ones_in_place(executor: Executor) -> None:
    unread = {1: UnreadRow(DomainError("bad cell"))}
    block = Block(7, PEOPLE[:2], (None,) * 3, ("a", "b", "c"), unread)
    (audited,) = AuditStream(executor).blocks([block])
    assert [finding.row for finding in audited.findings] == [7, 8, 9]
    assert [finding.status for finding in audited.findings][1] == "not audited"
    assert audited.findings[1].reason == "bad cell"
    expected = Auditor(MODEL).audit(PEOPLE[:2])
    assert audited.findings[2].decision == expected[1].decision


def test_an_audit_is_partial_until_its_last_block() -> None:
    def interrupted() -> Iterator[Block]:
        yield from blocks_in_memory(PEOPLE[:40], 20)
        raise KeyboardInterrupt

    written: list[AuditedBlock] = []
    shares: list[float] = []
    with TableAudit(Auditor(MODEL), AuditStream(InProcess(Auditor(MODEL)))) as audit:
        with pytest.raises(KeyboardInterrupt):
            audit.run(interrupted(), write=written.append, advance=shares.append)
        assert audit.report(ReportSource()).partial
        assert audit.results.summary.people == 40
        assert [len(audited.findings) for audited in written] == [20, 20]
        audit.run(blocks_in_memory(PEOPLE[40:], 20))
    assert not audit.report(ReportSource()).partial
    assert audit.results.summary.people == len(PEOPLE)
    assert shares == [0.5, 1.0]


def test_blocks_of_a_table_in_memory_are_complete() -> None:
    blocks = list(blocks_in_memory(PEOPLE, 40, [True] * 90, [str(n) for n in range(90)]))
    assert [(block.start, len(block)) for block in blocks] == [(0, 40), (40, 40), (80, 10)]
    assert np.array_equal(np.concatenate([block.people for block in blocks]), PEOPLE)
    assert [name for block in blocks for name in block.names] == [str(n) for n in range(90)]
    assert blocks[-1].progress == 1.0
    assert list(blocks_in_memory(PEOPLE[:0], 40)) == []
