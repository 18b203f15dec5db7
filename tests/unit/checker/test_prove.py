from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from feta import (
    Argmax,
    CertificateError,
    Fair,
    FairAt,
    Model,
    Network,
    OneVsRest,
    Tolerance,
    WorstAt,
    verify,
)
from feta.checker.prove import prove
from feta.rule import Rule
from feta.verdict.certificate import BoundsProof, Certificate, LatticeProof
from tests.examples import PERSON, SPACE, linear

QUERY = FairAt(linear(age=1.0, bias=-18.0), PERSON)  # the youngest are exactly on the threshold


def certificate(query: FairAt) -> Certificate:
    verdict = verify(query)
    assert isinstance(verdict, Fair)
    return verdict.certificate


@pytest.mark.parametrize("query", [QUERY, WorstAt(QUERY.model, PERSON)])
def test_a_true_certificate_is_proved_again(query: FairAt) -> None:
    assert certificate(query).proof == LatticeProof(146)
    prove(certificate(query), query)


@pytest.mark.parametrize("counterparts", [0, 145, 147])
def test_a_certificate_must_cover_every_counterpart(counterparts: int) -> None:
    forged = replace(certificate(QUERY), proof=LatticeProof(counterparts))
    with pytest.raises(CertificateError, match=f"must cover 146 counterparts, got {counterparts}"):
        prove(forged, QUERY)


def test_a_forged_certificate_of_an_unfair_model_is_refused() -> None:
    query = FairAt(linear(age=1.0, bias=float(np.nextafter(-18.0, -19))), PERSON)
    forged = Certificate(query.digest, "forger", LatticeProof(146))
    with pytest.raises(CertificateError, match=r"a counterpart is treated apart: {'age': 18"):
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


@pytest.mark.parametrize("rule", [Argmax(("a", "b")), OneVsRest(("a", "b"), "b")])
def test_a_forged_certificate_of_several_classes_is_refused(rule: Rule) -> None:
    """At 40 the two classes tie, and the first wins."""
    network = Network.from_layers([([[1.0, 0, 0, 0], [0.0] * 4], [0.0, 40.0])])
    query = FairAt(Model(SPACE, network, rule), PERSON)
    forged = Certificate(query.digest, "forger", LatticeProof(146))
    with pytest.raises(CertificateError, match=r"a counterpart is treated apart: {'age': 40"):
        prove(forged, query)


@pytest.mark.parametrize("epsilon", [72.0, np.nextafter(72.0, 0)])
def test_a_tolerance_is_proved_to_the_last_ulp(epsilon: float) -> None:
    """Ages from 18 to 90; the person is 30."""
    model = Model(SPACE, Network.from_layers([([[1.0, 0, 0, 0]], [0.0])]), Tolerance(epsilon))
    query = FairAt(model, PERSON)
    forged = Certificate(query.digest, "forger", LatticeProof(146))
    if epsilon == 72.0:
        prove(forged, query)
        return
    message = r"two counterparts are farther apart than the tolerance: {'age': 18.* and {'age': 90"
    with pytest.raises(CertificateError, match=message):
        prove(forged, query)


LINE = Model(
    SPACE.with_sensitive(["income"]),
    Network.from_layers([([[1.0, 0, 0, 0.5]], [-17.0])]),
    Tolerance(50.0),  # from 13 to 63
)


@pytest.mark.parametrize("epsilon", [50.0, np.nextafter(50.0, 0)])
@pytest.mark.parametrize("cuts", [(None,), ((0, 25.0), None, None)])
def test_bounds_prove_a_tolerance_around_a_center(
    cuts: tuple[tuple[int, float] | None, ...], epsilon: float
) -> None:
    model = replace(LINE, rule=Tolerance(epsilon), threshold=None)
    query = FairAt(model, PERSON)
    forged = Certificate(query.digest, "forger", BoundsProof(cuts, Fraction(38)))
    if epsilon == 50.0:
        prove(forged, query)
        return
    with pytest.raises(CertificateError, match="a counterpart is treated apart"):
        prove(forged, query)


@pytest.mark.parametrize(
    ("model", "center", "message"),
    [
        (LINE, None, "must name a center for a tolerance, and only then"),
        (LINE, Fraction(39), "a counterpart is treated apart"),
        (LINE, Fraction(115, 3), "invalid center of a band"),
        (None, Fraction(38), "must name a center for a tolerance, and only then"),
    ],
)
def test_a_center_that_proves_nothing_is_refused(
    model: Model | None, center: Fraction | None, message: str
) -> None:
    query = FairAt(model or REAL, PERSON)
    with pytest.raises(CertificateError, match=message):
        prove(Certificate(query.digest, "forger", BoundsProof((None,), center)), query)


REAL = Model(
    SPACE.with_sensitive(["age", "income"]),
    Network.from_layers([([[1.0, 0, 0, 0.5]], [-17.0])]),
    threshold=0.0,
)


def bounded(*cuts: tuple[int, float] | None, model: Model = REAL) -> tuple[Certificate, FairAt]:
    query = FairAt(model, PERSON)
    return Certificate(query.digest, "forger", BoundsProof(cuts)), query


@pytest.mark.parametrize(
    "cuts", [(None,), ((1, 25.0), None, None), ((0, 3.0), (1, 100.0), None, None, None)]
)
def test_bounds_over_parts_are_gone_through_again(
    cuts: tuple[tuple[int, float] | None, ...],
) -> None:
    prove(*bounded(*cuts))


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        ((), "must settle every part, but leaves some out"),
        (((1, 25.0), None), "must settle every part, but leaves some out"),
        ((None, None), "cuts more parts than there are"),
        (((2, 25.0), None, None), r"must cut inside a part, got \(2, 25\.0\)"),
        (((1, 100.5), None, None), r"must cut inside a part, got \(1, 100\.5\)"),
        (((1, float("nan")), None, None), r"must cut inside a part, got \(1, nan\)"),
        (((0, 3.5), None, None), r"must cut inside a part, got \(0, 3\.5\)"),  # nobody aged 22
        (((0, 72.0), None, None), r"must cut inside a part, got \(0, 72\.0\)"),
    ],
)
def test_parts_that_do_not_cover_everybody_are_refused(
    cuts: tuple[tuple[int, float] | None, ...], message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        prove(*bounded(*cuts))


def test_bounds_that_settle_nothing_are_refused() -> None:
    network = Network.from_layers([([[1.0, 0, 0, 0.5]], [-20.0])])
    differs = Model(REAL.space, network, threshold=0.0)
    with pytest.raises(CertificateError, match="the bounds leave a part of the counterparts open"):
        prove(*bounded(None, model=differs))
    small = ((0, 0.0), (1, 1.0), None, None, None)
    with pytest.raises(CertificateError, match=r"a counterpart is treated apart: {'age': 18"):
        prove(*bounded(*small, model=differs))


def test_the_corners_decide_where_the_score_is_affine() -> None:
    """Age 18 with no income lies exactly on the threshold: no rounded bound settles that."""
    network = Network.from_layers([([[1.0, 0, 0, 0.5]], [-18.0])])
    model = Model(REAL.space, network, threshold=0.0)
    cuts = ((0, 0.0), None, None)
    prove(*bounded(*cuts, model=model))
    beside = Model(REAL.space, network, threshold=float(np.nextafter(0.0, 1.0)))
    with pytest.raises(CertificateError, match=r"a counterpart is treated apart: {'age': 18"):
        prove(*bounded(*cuts, model=beside))
