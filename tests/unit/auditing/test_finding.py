import pickle

import pytest

import feta
from feta import Fair, Reason, Unfair, Unknown
from feta.auditing.auditor import Auditor
from feta.auditing.finding import AuditFault, Finding
from feta.verdict.certificate import Certificate, LatticeProof
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Verdict
from tests.examples import linear

MODEL = linear(age=1.0, bias=-40.0)
YOUNG, OLD = (MODEL.space.encode({"age": age, "sex": "male", "income": 1})[0] for age in (20, 60))
PAIR = Counterexample(MODEL, YOUNG, OLD)
CERTIFICATE = Certificate("digest", "lattice", LatticeProof(2))
UNKNOWN = Unknown(Reason.OUT_OF_TIME)


@pytest.mark.parametrize(
    ("verdict", "reason", "status"),
    [
        (Fair(CERTIFICATE), "", "fair"),
        (Unfair(PAIR), "", "unfair"),
        (Unknown(Reason.OUT_OF_TIME, PAIR), "", "unfair"),
        (UNKNOWN, "", "undecided"),
        (None, "row 3: 'age' is invalid", "not audited"),
        (None, AuditFault.WORKER_DIED, "undecided"),
        (None, AuditFault.ENGINE_CONTRADICTION, "undecided"),
    ],
)
def test_the_status_follows_from_the_verdict(
    verdict: Verdict | None, reason: str, status: str
) -> None:
    finding = Finding(0, verdict, reason=reason)
    assert finding.status == status
    assert (finding.pair is PAIR) == (status == "unfair")
    assert (finding.certificate is CERTIFICATE) == (status == "fair")
    assert bool(finding.reason) == (status in ("undecided", "not audited"))


def test_the_reason_of_an_unknown_verdict_names_the_solver() -> None:
    assert Finding(0, UNKNOWN).reason == str(Reason.OUT_OF_TIME)
    unknown = Unknown(Reason.SOLVER_FAILED, solver="HiGHS")
    assert Finding(0, unknown).reason == f"HiGHS: {Reason.SOLVER_FAILED}"


def test_the_runtime_is_that_of_the_evidence() -> None:
    assert PAIR.runtime == "safe"
    assert Finding(0, Fair(CERTIFICATE, "safe")).runtime == "safe"
    assert Finding(0, Fair(CERTIFICATE)).runtime == "sensitive"
    assert Finding(0, Unfair(PAIR)).runtime == "safe"
    assert Finding(0, Unfair(PAIR), replayed=True).runtime == "safe"
    assert Finding(0, Unfair(PAIR), replayed=False).runtime == "sensitive"
    assert Finding(0, UNKNOWN).runtime == "sensitive"


def test_findings_are_small_when_they_are_sent_to_another_process() -> None:
    people = MODEL.space.encode(
        [{"age": 18 + n % 60, "sex": "male", "income": n % 9} for n in range(200)]
    )
    findings = Auditor(MODEL).audit(people)
    assert {finding.status for finding in findings} == {"unfair"}
    assert len(pickle.dumps(findings)) < 200 * len(findings) * 5
    copies = pickle.loads(pickle.dumps(findings))
    for finding, copy in zip(findings, copies, strict=True):
        assert isinstance(copy.verdict, feta.Unfair)
        assert finding.pair is not None
        assert copy.pair.counterpart.tolist() == finding.pair.counterpart.tolist()
