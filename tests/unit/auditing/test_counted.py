"""Audits of counted models: what stops them, what they keep, and how they are reported."""

import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta import CertificateError, Fair, FairAt, Model, Threshold, Unfair
from feta.auditing.auditor import Auditor
from feta.auditing.block import blocks_in_memory
from feta.auditing.executor import InProcess
from feta.auditing.journal import AuditJournal
from feta.auditing.report_data import ReportSource
from feta.auditing.stream import AuditStream
from feta.auditing.table_audit import TableAudit
from feta.checker.admit import admit
from feta.checker.prove import prove
from feta.errors import SchemaError
from feta.query import WorstAt
from feta.readers.callable.read import read_callable
from feta.report.audit_json import audit_json
from feta.report.html import html
from feta.report.markdown import markdown
from feta.scorer.counted.options import CountingOptions, CountingProgress
from tests.counted import (
    OPTIONS,
    SPACE,
    Broken,
    Function,
    Hanging,
    Random,
    approve,
    brute_force,
    merit,
    people,
)

FAST = replace(OPTIONS, batch=64)
RECORDS = people(12, seed=8)
PEOPLE = SPACE.encode(RECORDS)
STRICT = Threshold(0.0, equality="unfavorable")


def counted(function: Function, **arguments: Any) -> Model:  # noqa: ANN401 - of read_callable
    scorer = read_callable(function, SPACE, **({"options": FAST} | arguments))
    return Model(SPACE, scorer, STRICT)


@dataclass
class Poor:
    """A function that is random for people with little income."""

    rng: np.random.Generator
    limit: int = 3

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        noise = self.rng.normal(0, 50, len(frame))
        return np.where(frame["income"] < self.limit, noise, merit(frame))


def poor() -> Poor:
    return Poor(np.random.default_rng(0))


def test_a_few_people_with_different_answers_are_undecided() -> None:
    records = [RECORDS[0] | {"income": 2}] + [RECORDS[1] | {"income": n} for n in range(10, 20)]
    result = feta.audit(counted(poor()), records)
    assert not result.stopped
    assert [finding.status for finding in result.findings].count("undecided") == 1
    reason = result.findings[0].reason
    assert "different answers to the same row" in reason
    assert "row (age " in reason
    assert "income 2, " in reason
    assert "the model answered" in reason


def test_many_people_with_different_answers_stop_the_audit_and_the_rest_is_kept() -> None:
    records = [record | {"income": 20} for record in (RECORDS * 2)[:16]]
    records += [record | {"income": n % 3} for n, record in enumerate(RECORDS)]
    model = counted(poor())
    with pytest.warns(
        UserWarning, match=r"^the audit stopped after \d+ of 28 people: the model is"
    ):
        result = feta.audit(model, records)
    assert "different answers to the same row for" in result.stopped
    assert "expected at most 1%" in result.stopped
    assert "row (age " in result.stopped
    assert 16 < len(result.findings) <= 28
    first = [finding.status for finding in result.findings[:16]]
    expected = [len(set(brute_force(approve, SPACE, record))) for record in records[:16]]
    assert first == ["fair" if count == 1 else "unfair" for count in expected]


def test_a_hanging_model_stops_the_audit_and_the_rest_is_kept() -> None:
    function = Hanging(after=10**9)
    model = counted(function)
    model.scorer.evaluator.calls.options = replace(OPTIONS, timeout=0.2)  # type: ignore[attr-defined]
    executor = InProcess(Auditor(model), interruptible=False, size=4)
    pieces = []

    class Watched(InProcess):
        def audit(self, people: np.ndarray) -> Any:  # noqa: ANN401 - as its parent
            for piece in executor.audit(people):
                pieces.append(piece)
                if len(pieces) == 1:
                    function.after = function.calls
                yield piece

    stream = AuditStream(Watched(executor.auditor))
    blocks = list(stream.blocks(blocks_in_memory(PEOPLE, 16)))
    function.release.set()
    assert stream.stopped.startswith("the model does not answer: got no answer for")
    findings = [finding for block in blocks for finding in block.findings]
    assert [finding.row for finding in findings] == list(range(len(findings)))
    assert len(findings) == sum(len(found) for _, found in pieces) > 0


def test_a_replaced_model_stops_the_audit_and_its_last_piece_is_void() -> None:
    factor = [1.0]
    model = counted(lambda frame: merit(frame) * factor[0])
    auditor = Auditor(model)
    stream = AuditStream(InProcess(auditor, interruptible=False))
    blocks = iter(stream.blocks(blocks_in_memory(PEOPLE, 5)))
    first = next(blocks)
    factor[0] = -1.0
    rest = list(blocks)
    assert len(first.findings) == 5
    assert sum(len(block.findings) for block in rest) == 0
    assert stream.stopped.startswith("the model changed during the work: row (age ")
    assert "keep the model fixed, and start anew" in stream.stopped


def test_a_stopped_audit_is_reported_with_its_reason() -> None:
    model = counted(Random(share=0.4))
    audit = TableAudit(Auditor(model), AuditStream(InProcess(Auditor(model))))
    with audit:
        audit.run(blocks_in_memory(PEOPLE, 16))
        report = audit.report(ReportSource(data="people.csv"))
    assert report.partial
    content = audit_json(report)
    assert content["stopped"].startswith("the model is not deterministic: got different answers")
    assert content["provenance"] == content["model"]["reading"] == "counted"
    for page in (html(report), markdown(report)):
        assert "Stopped, these are partial results: the model is not deterministic" in page
    json.dumps(content)


def test_a_report_says_counted_and_never_proved() -> None:
    records = [record for record in RECORDS if len(set(brute_force(approve, SPACE, record))) == 1]
    model = counted(merit)
    audit = TableAudit(Auditor(model), AuditStream(InProcess(Auditor(model))))
    audit.run(blocks_in_memory(SPACE.encode(records), 16))
    page = html(audit.report(ReportSource()))
    assert "counted as fair" in page
    assert "proved fair" not in page
    assert "This is a proof" not in page
    assert "Counted: fair means that the function merit evaluated every counterpart" in page
    assert page.index("Counted: the model itself evaluated") < page.index("</header>")
    assert f"Fair: each of the {len(records)} people gets the same decision" in page


def test_summaries_of_proved_and_counted_people_are_not_merged() -> None:
    network = feta.Network.from_layers([(np.ones((1, SPACE.width)), np.zeros(1))])
    proved = feta.audit(Model(SPACE, network), RECORDS[:2]).summary
    count = feta.audit(counted(merit), RECORDS[:2]).summary
    with pytest.raises(AssertionError):
        proved.merged(count)


def test_labels_have_no_gap_in_any_figure() -> None:
    result = feta.audit(counted(approve), RECORDS)
    assert result.pairs
    figures = result.summary.as_dict()
    assert figures["mean_violation"] is figures["max_violation"] is None
    report = TableAudit(Auditor(result.model), AuditStream(InProcess(result.auditor)))
    report.run(blocks_in_memory(PEOPLE, 16))
    page = html(report.report(ReportSource()))
    assert "The model returns labels only, so the counterexamples have no gap." in page


def test_certificates_are_marked_and_cannot_be_proved_without_the_model() -> None:
    model = counted(merit)
    verdicts = {person.tobytes(): feta.verify(FairAt(model, person)) for person in PEOPLE}
    assert {type(verdict) for verdict in verdicts.values()} == {Fair, Unfair}
    for key, verdict in verdicts.items():
        query = FairAt(model, np.frombuffer(key))
        assert admit(query, verdict, trusted=True) == verdict
        admit(query, verdict, trusted=False)  # the model counts again
        with pytest.raises(CertificateError, match=r"^the evidence cannot be re-proved without"):
            prove(verdict, query)
        if isinstance(verdict, Fair):
            assert verdict.certificate.provenance == "counted"


def test_a_forged_certificate_of_a_counted_model_is_counted_again() -> None:
    model = counted(merit)
    queries = [WorstAt(model, person) for person in PEOPLE]
    verdicts = [feta.verify(query) for query in queries]
    fair = next(verdict for verdict in verdicts if isinstance(verdict, Fair))
    unfair = next(
        q for q, verdict in zip(queries, verdicts, strict=True) if isinstance(verdict, Unfair)
    )
    forged = replace(fair, certificate=replace(fair.certificate, query_digest=unfair.digest))
    with pytest.raises(CertificateError, match="does not prove fairness"):
        admit(unfair, forged, trusted=False)


def test_a_journal_resumes_with_the_same_function_and_refuses_another(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    model = counted(merit)
    stream = AuditStream(InProcess(Auditor(model), interruptible=False), AuditJournal(path, model))
    before = stream.audit(PEOPLE)
    assert stream.journal is not None
    stream.journal.close()
    with AuditJournal(path, counted(merit)) as journal:
        known = journal.known(PEOPLE)
    unfair = [finding.status == "unfair" for finding in before]
    assert [finding is not None for finding in known] == unfair  # fair people are counted again
    other = counted(lambda frame: merit(frame) + 1)
    with pytest.raises(SchemaError, match="is the journal of another audit: the model was"):
        AuditJournal(path, other)


def test_people_in_doubt_are_not_stored_but_asked_again(tmp_path: Path) -> None:
    model = counted(Broken("raises"))
    journal = AuditJournal(tmp_path / "journal.sqlite", model)
    stream = AuditStream(InProcess(Auditor(model), interruptible=False), journal)
    findings = stream.audit(PEOPLE[:6])
    undecided = [finding.status == "undecided" for finding in findings]
    assert any(undecided)
    known = journal.known(PEOPLE[:6])
    assert not any(
        finding is not None for finding, open_ in zip(known, undecided, strict=True) if open_
    )
    journal.close()


def test_the_number_of_rows_and_the_remaining_time_are_known() -> None:
    reports: list[CountingProgress] = []
    options = CountingOptions(batch=64, timeout=None, progress=reports.append)
    model = counted(merit, options=options)
    begun = len(reports)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        feta.audit(model, RECORDS)
    n_people = len(set(model.relation.keys(PEOPLE)))
    assert reports[-1].expected is not None
    assert reports[-1].expected - reports[begun - 1].rows == 2 * 24 * n_people
    assert reports[-1].seconds_left is not None
