from dataclasses import replace

import numpy as np
import pytest

from feta import CertificateError, Fair, FairAt, Reason, Unfair, Unknown, WorstAt, verify
from feta.checker.admit import admit
from tests.examples import PERSON, linear

FAIR = FairAt(linear(age=1.0), PERSON)
UNFAIR = FairAt(linear(age=1.0, bias=-31.0), PERSON)


@pytest.mark.parametrize("query", [FAIR, UNFAIR, WorstAt(UNFAIR.model, PERSON)])
def test_a_verdict_with_its_own_evidence_passes(query: FairAt) -> None:
    verdict = verify(query)
    assert admit(query, verdict) is verdict


def test_unknown_needs_no_evidence() -> None:
    verdict = Unknown(Reason.OUT_OF_TIME)
    assert admit(FAIR, verdict) is verdict


@pytest.mark.parametrize(
    "other",
    [
        WorstAt(FAIR.model, PERSON),
        FairAt(FAIR.model, np.array([31.0, *PERSON[1:]])),
        FairAt(linear(age=2.0), PERSON),
    ],
)
def test_a_certificate_of_another_question_is_refused(other: FairAt) -> None:
    verdict = verify(FAIR)
    assert isinstance(verdict, Fair)
    with pytest.raises(CertificateError, match="the certificate belongs to another question"):
        admit(other, verdict)
    forged = replace(verdict.certificate, query_digest="0" * 64)
    with pytest.raises(CertificateError, match="the certificate belongs to another question"):
        admit(FAIR, replace(verdict, certificate=forged))


def test_a_counterexample_of_another_person_is_refused() -> None:
    verdict = verify(UNFAIR)
    assert isinstance(verdict, Unfair)
    for age, income in ((29.0, 50.0), (30.0, 51.0)):
        other = FairAt(UNFAIR.model, np.array([age, PERSON[1], PERSON[2], income]))
        with pytest.raises(CertificateError, match="the counterexample belongs to another person"):
            admit(other, verdict)
