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
from feta.scorer.network.layers import Columns, LookupTable
from feta.verdict.certificate import BoundsProof, Certificate, LatticeProof
from tests.examples import PERSON, SPACE, linear

QUERY = FairAt(linear(age=1.0, bias=-18.0), PERSON)  # the youngest are exactly on the threshold


def certificate(query: FairAt) -> Certificate:
    verdict = verify(query)
    assert isinstance(verdict, Fair)
    return verdict.certificate


@pytest.mark.parametrize("query", [QUERY, WorstAt(QUERY.model, PERSON)])
def test_a_true_certificate_passes(query: FairAt) -> None:
    assert certificate(query).proof == LatticeProof(146)
    prove(certificate(query), query)


@pytest.mark.parametrize("counterparts", [0, 145, 147])
def test_a_certificate_must_cover_every_counterpart(counterparts: int) -> None:
    forged = replace(certificate(QUERY), proof=LatticeProof(counterparts))
    message = f"does not cover every counterpart: got {counterparts}; expected 146"
    with pytest.raises(CertificateError, match=message):
        prove(forged, QUERY)


def test_a_forged_certificate_of_an_unfair_model_is_rejected() -> None:
    query = FairAt(linear(age=1.0, bias=float(np.nextafter(-18.0, -19))), PERSON)
    forged = Certificate(query.digest, "forger", LatticeProof(146))
    with pytest.raises(
        CertificateError, match=r"a counterpart with a different decision, {'age': 18"
    ):
        prove(forged, query)


@pytest.mark.parametrize(
    "other",
    [
        WorstAt(QUERY.model, PERSON),
        FairAt(QUERY.model, np.array([31.0, *PERSON[1:]])),
        FairAt(linear(age=2.0), PERSON),
    ],
)
def test_a_certificate_of_another_query_is_rejected(other: FairAt) -> None:
    with pytest.raises(
        CertificateError, match="the certificate belongs to another query: got digest"
    ):
        prove(certificate(QUERY), other)


@pytest.mark.parametrize("rule", [Argmax(("a", "b")), OneVsRest(("a", "b"), "b")])
def test_a_forged_certificate_of_several_classes_is_rejected(rule: Rule) -> None:
    """At 40 the two classes tie, and the first wins."""
    network = Network.from_layers([([[1.0, 0, 0, 0], [0.0] * 4], [0.0, 40.0])])
    query = FairAt(Model(SPACE, network, rule), PERSON)
    forged = Certificate(query.digest, "forger", LatticeProof(146))
    with pytest.raises(
        CertificateError, match=r"a counterpart with a different decision, {'age': 40"
    ):
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
    message = r"scores differ by more than the tolerance, {'age': 18.* and {'age': 90"
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
    with pytest.raises(CertificateError, match="a counterpart with a different decision"):
        prove(forged, query)


@pytest.mark.parametrize(
    ("model", "center", "message"),
    [
        (LINE, None, "got center None; expected a center for a tolerance"),
        (LINE, Fraction(39), "a counterpart with a different decision"),
        (LINE, Fraction(115, 3), "invalid center of a band"),
        (None, Fraction(38), "got center 38; expected .* None for other rules"),
    ],
)
def test_a_center_that_proves_nothing_is_rejected(
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
def test_bounds_over_cells_are_re_checked(
    cuts: tuple[tuple[int, float] | None, ...],
) -> None:
    prove(*bounded(*cuts))


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        ((), r"got 0 entries, which leave 1 cell\(s\) without a proof"),
        (((1, 25.0), None), r"got 2 entries, which leave 1 cell\(s\) without a proof"),
        ((None, None), "got 2 entries; expected 1, which complete the tree"),
        (((2, 25.0), None, None), r"invalid cut in the certificate: got \(2, 25\.0\)"),
        (((1, 100.5), None, None), r"invalid cut in the certificate: got \(1, 100\.5\)"),
        (((1, float("nan")), None, None), r"invalid cut in the certificate: got \(1, nan\)"),
        (
            ((0, 3.5), None, None),
            r"invalid cut in the certificate: got \(0, 3\.5\)",
        ),  # nobody aged 22
        (((0, 72.0), None, None), r"invalid cut in the certificate: got \(0, 72\.0\)"),
    ],
)
def test_cells_that_do_not_cover_everybody_are_rejected(
    cuts: tuple[tuple[int, float] | None, ...], message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        prove(*bounded(*cuts))


def test_bounds_that_prove_nothing_are_rejected() -> None:
    network = Network.from_layers([([[1.0, 0, 0, 0.5]], [-20.0])])
    differs = Model(REAL.space, network, threshold=0.0)
    message = r"cell that the bounds leave undecided, from \[0\.0, 0\.0\] to \[72\.0, 100\.0\]"
    with pytest.raises(CertificateError, match=message):
        prove(*bounded(None, model=differs))
    small = ((0, 0.0), (1, 1.0), None, None, None)
    with pytest.raises(
        CertificateError, match=r"a counterpart with a different decision, {'age': 18"
    ):
        prove(*bounded(*small, model=differs))


def test_the_corners_decide_if_the_score_is_affine() -> None:
    """Age 18 with no income is exactly on the threshold, which no rounded bound decides."""
    network = Network.from_layers([([[1.0, 0, 0, 0.5]], [-18.0])])
    model = Model(REAL.space, network, threshold=0.0)
    cuts = ((0, 0.0), None, None)
    prove(*bounded(*cuts, model=model))
    above = Model(REAL.space, network, threshold=float(np.nextafter(0.0, 1.0)))
    with pytest.raises(
        CertificateError, match=r"a counterpart with a different decision, {'age': 18"
    ):
        prove(*bounded(*cuts, model=above))


def test_bounds_of_a_real_valued_table_are_rejected() -> None:
    """A table on a real-valued sensitive attribute has no finite number of rows."""
    space = SPACE.with_sensitive(["income"])
    table = LookupTable(3, np.array([50.0]), np.ones((1, 1)))
    network = Network.from_layers([([[1.0] * 4], [0.0])])
    tabled = replace(network, first=Columns(np.zeros(1), np.zeros((1, 4)), (table,)))
    with pytest.raises(CertificateError, match=r"cannot be re-checked: .* tables of at most 4096"):
        prove(*bounded(None, model=Model(space, tabled)))
