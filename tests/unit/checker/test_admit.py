from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from feta import (
    CertificateError,
    Fair,
    FairAt,
    Model,
    Reason,
    Tolerance,
    Unfair,
    Unknown,
    WorstAt,
    verify,
)
from feta.checker.admit import admit
from feta.verdict.certificate import Certificate, LatticeProof
from feta.verdict.verdict import Verdict
from tests.examples import PERSON, SPACE, linear

FAIR = FairAt(linear(age=1.0), PERSON)
UNFAIR = FairAt(linear(age=1.0, bias=-31.0), PERSON)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("query", [FAIR, UNFAIR, WorstAt(UNFAIR.model, PERSON)])
def test_a_verdict_with_its_own_evidence_passes(query: FairAt, *, trusted: bool) -> None:
    verdict = verify(query)
    admitted = admit(query, verdict, trusted=trusted)
    assert type(admitted) is type(verdict)
    assert (admitted is verdict) or not trusted


def test_unproved_claims_of_an_untrusted_engine_are_withdrawn() -> None:
    worst = WorstAt(UNFAIR.model, PERSON)
    unfair, proved = verify(worst), verify(FAIR)
    assert isinstance(unfair, Unfair)
    assert unfair.optimal
    assert isinstance(proved, Fair)
    assert proved.runtime == "safe"
    admitted = admit(worst, unfair, trusted=False)
    assert isinstance(admitted, Unfair)
    assert not admitted.optimal
    rechecked = admit(FAIR, proved, trusted=False)
    assert isinstance(rechecked, Fair)
    assert rechecked.runtime == "sensitive"


@pytest.mark.parametrize("trusted", [True, False])
def test_unknown_needs_no_evidence(*, trusted: bool) -> None:
    verdict = Unknown(Reason.OUT_OF_TIME)
    assert admit(FAIR, verdict, trusted=trusted) is verdict


def test_the_pair_of_an_untrusted_engine_is_evaluated_again() -> None:
    for verdict in evidence():
        pair = verdict.counterexample if isinstance(verdict, Unfair) else verdict.best  # type: ignore[union-attr]
        object.__setattr__(pair, "counterpart", PERSON)
        assert admit(UNFAIR, verdict, trusted=True) is verdict
        with pytest.raises(CertificateError, match="which give the same decision"):
            admit(UNFAIR, verdict, trusted=False)


def _sampled(verdict: Verdict) -> Verdict:
    """Return a verdict with another provenance, and its certificate if it has one."""
    if isinstance(verdict, Fair):
        certificate = replace(verdict.certificate, provenance="sampled")
        return replace(verdict, certificate=certificate, provenance="sampled")
    return replace(verdict, provenance="sampled")


def test_a_sampled_model_marks_all_its_verdicts() -> None:
    network = replace(FAIR.model.network, provenance="sampled")
    query = FairAt(Model(SPACE, network, threshold=0.0), PERSON)
    certificate = Certificate(query.digest, "engine", LatticeProof(146))
    for verdict in (Fair(certificate, "safe"), Unknown(Reason.OUT_OF_TIME)):
        assert verdict.provenance == "proved"
        admitted = admit(query, verdict, trusted=True)
        assert admitted == _sampled(verdict)


def test_only_a_trusted_engine_is_not_re_checked() -> None:
    """The certificate has the right form, but its claim is false."""
    forged = Fair(Certificate(UNFAIR.digest, "forger", LatticeProof(146)))
    assert admit(UNFAIR, forged, trusted=True) is forged
    with pytest.raises(
        CertificateError, match=r"a counterpart with a different decision, {'age': 31"
    ):
        admit(UNFAIR, forged, trusted=False)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("counterparts", [0, 145, 147])
def test_a_certificate_must_cover_every_counterpart(counterparts: int, *, trusted: bool) -> None:
    forged = Fair(Certificate(FAIR.digest, "forger", LatticeProof(counterparts)))
    message = f"does not cover every counterpart: got {counterparts}; expected 146$"
    with pytest.raises(CertificateError, match=message):
        admit(FAIR, forged, trusted=trusted)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    "other",
    [
        WorstAt(FAIR.model, PERSON),
        FairAt(FAIR.model, np.array([31.0, *PERSON[1:]])),
        FairAt(linear(age=2.0), PERSON),
    ],
)
def test_a_certificate_of_another_query_is_rejected(other: FairAt, *, trusted: bool) -> None:
    verdict = verify(FAIR)
    assert isinstance(verdict, Fair)
    with pytest.raises(CertificateError, match="the certificate belongs to another query: got"):
        admit(other, verdict, trusted=trusted)
    forged = replace(verdict.certificate, query_digest="0" * 64)
    with pytest.raises(CertificateError, match="the certificate belongs to another query: got"):
        admit(FAIR, replace(verdict, certificate=forged), trusted=trusted)


def evidence() -> list[Verdict]:
    """Return the two verdicts that may contain a counterexample."""
    verdict = verify(UNFAIR)
    assert isinstance(verdict, Unfair)
    return [verdict, Unknown(Reason.OUT_OF_NODES, verdict.counterexample)]


def test_a_forged_person_is_rejected_even_if_it_cannot_be_decoded() -> None:
    verdict = verify(UNFAIR)
    assert isinstance(verdict, Unfair)
    forged = copy(verdict.counterexample)
    object.__setattr__(forged, "person", np.full(len(PERSON), np.nan))
    with pytest.raises(CertificateError, match=r"belongs to another person: got \[nan, "):
        admit(UNFAIR, replace(verdict, counterexample=forged), trusted=False)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(("age", "income"), [(29.0, 50.0), (30.0, 51.0)])
def test_a_counterexample_of_another_person_is_rejected(
    age: float, income: float, *, trusted: bool
) -> None:
    other = FairAt(UNFAIR.model, np.array([age, PERSON[1], PERSON[2], income]))
    message = rf"^the counterexample belongs to another person: got \[30\.0, .*; expected \[{age}, "
    for verdict in evidence():
        with pytest.raises(CertificateError, match=message):
            admit(other, verdict, trusted=trusted)


@pytest.mark.parametrize("trusted", [True, False])
def test_a_counterexample_of_another_model_is_rejected(*, trusted: bool) -> None:
    other = FairAt(linear(age=1.0, bias=float(np.nextafter(-31.0, -32))), PERSON)
    for verdict in evidence():
        message = (
            "^the counterexample belongs to another model: "
            f"got {UNFAIR.model.fingerprint}; expected {other.model.fingerprint}$"
        )
        with pytest.raises(CertificateError, match=message):
            admit(other, verdict, trusted=trusted)


SPAN = Model(SPACE, linear(age=1.0).network, Tolerance(71.0))


@pytest.mark.parametrize("trusted", [True, False])
def test_any_two_counterparts_of_the_person_violate_a_tolerance(*, trusted: bool) -> None:
    """Ages from 18 to 90; the person is 30. The pair also belongs to another counterpart."""
    verdict = verify(FairAt(SPAN, PERSON))
    assert isinstance(verdict, Unfair)
    pair = verdict.counterexample
    assert (pair.person[0], pair.counterpart[0], pair.gap) == (18.0, 90.0, 72.0)
    other = FairAt(SPAN, np.array([54.0, PERSON[2], PERSON[1], PERSON[3]]))
    assert admit(other, verdict, trusted=trusted) == verdict
    unrelated = FairAt(SPAN, np.array([*PERSON[:3], 51.0]))
    for evident in (verdict, Unknown(Reason.OUT_OF_NODES, pair)):
        with pytest.raises(CertificateError, match="the counterexample belongs to another person"):
            admit(unrelated, evident, trusted=trusted)


def test_what_is_no_verdict_is_rejected() -> None:
    with pytest.raises(AssertionError, match="unreachable"):
        admit(FAIR, "fair", trusted=True)  # type: ignore[arg-type]
