from dataclasses import replace

import numpy as np
import pytest

from feta import CertificateError, Fair, FairAt, WorstAt, verify
from feta.checker.prove import prove
from feta.verdict.certificate import Certificate, LatticeProof
from tests.examples import PERSON, linear

QUERY = FairAt(linear(age=1.0, bias=-18.0), PERSON)  # the youngest are exactly on the threshold


def certificate(query: FairAt) -> Certificate:
    verdict = verify(query)
    assert isinstance(verdict, Fair)
    return verdict.certificate


@pytest.mark.parametrize("query", [QUERY, WorstAt(QUERY.model, PERSON)])
def test_a_true_certificate_is_proved_again(query: FairAt) -> None:
    assert certificate(query).proof == LatticeProof(146, 1)
    prove(certificate(query), query)


@pytest.mark.parametrize("counterparts", [0, 145, 147])
def test_a_certificate_must_cover_every_counterpart(counterparts: int) -> None:
    forged = replace(certificate(QUERY), proof=LatticeProof(counterparts, 1))
    with pytest.raises(CertificateError, match=f"must cover 146 counterparts, got {counterparts}"):
        prove(forged, QUERY)


@pytest.mark.parametrize("decision", [0, -1, 2])
def test_a_certificate_of_the_wrong_decision_is_refused(decision: int) -> None:
    forged = replace(certificate(QUERY), proof=LatticeProof(146, decision))
    with pytest.raises(CertificateError, match=r"a counterpart is decided apart: {'age': 18"):
        prove(forged, QUERY)


def test_a_forged_certificate_of_an_unfair_model_is_refused() -> None:
    query = FairAt(linear(age=1.0, bias=float(np.nextafter(-18.0, -19))), PERSON)
    forged = Certificate(query.digest, "forger", LatticeProof(146, 1))
    with pytest.raises(CertificateError, match=r"a counterpart is decided apart: {'age': 18"):
        prove(forged, query)


@pytest.mark.parametrize(
    "other",
    [
        WorstAt(QUERY.model, PERSON),
        FairAt(QUERY.model, np.array([31.0, *PERSON[1:]])),
        FairAt(linear(age=2.0), PERSON),
    ],
)
def test_a_certificate_of_another_question_is_refused(other: FairAt) -> None:
    with pytest.raises(CertificateError, match="the certificate belongs to another question"):
        prove(certificate(QUERY), other)
