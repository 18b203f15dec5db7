from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import feta
from feta import (
    Argmax,
    CertificateError,
    Fair,
    FairAt,
    Model,
    Network,
    OneVsRest,
    Reason,
    Threshold,
    Tolerance,
    Unfair,
    Unknown,
    WorstAt,
    verify,
)
from feta.checker.box import BLOCK
from feta.checker.prove import prove
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.rule import Rule
from feta.scorer.network.layers import Columns, LookupTable
from feta.verdict.certificate import BoundsProof, Certificate, Cut, LatticeProof, Proof
from tests.examples import PERSON, SPACE, linear
from tests.extensions.toys import Grown, Square

QUERY = FairAt(linear(age=1.0, bias=-18.0), PERSON)  # the youngest are exactly on the threshold
DIFFERENT = (
    "^the certificate does not prove fairness: got a counterpart with a different decision, {}.*; "
    "expected evidence that all counterparts agree$"
)
OUTSIDE = "got a counterpart with a score outside the band around the center, {'age': 30"


def fair(query: FairAt) -> Fair:
    verdict = verify(query)
    assert isinstance(verdict, Fair)
    return verdict


def forged(query: FairAt, proof: Proof) -> tuple[Certificate, FairAt]:
    return Certificate(query.digest, "forger", proof), query


@pytest.mark.parametrize("query", [QUERY, WorstAt(QUERY.model, PERSON)])
def test_a_true_certificate_passes(query: FairAt) -> None:
    verdict = fair(query)
    assert verdict.certificate.proof == LatticeProof(146)
    prove(verdict.certificate, query)
    prove(verdict, query)


@pytest.mark.parametrize("counterparts", [0, 145, 147])
def test_a_certificate_must_cover_every_counterpart(counterparts: int) -> None:
    message = f"does not cover every counterpart: got {counterparts}; expected 146$"
    with pytest.raises(CertificateError, match=message):
        prove(*forged(QUERY, LatticeProof(counterparts)))


def test_a_forged_certificate_of_an_unfair_model_is_rejected() -> None:
    query = FairAt(linear(age=1.0, bias=float(np.nextafter(-18.0, -19))), PERSON)
    certificate, _ = forged(query, LatticeProof(146))
    for evidence in (certificate, Fair(certificate)):
        with pytest.raises(CertificateError, match=DIFFERENT.format(r"\{'age': 18")):
            prove(evidence, query)


@pytest.mark.parametrize(
    "other",
    [
        WorstAt(QUERY.model, PERSON),
        FairAt(QUERY.model, np.array([31.0, *PERSON[1:]])),
        FairAt(linear(age=2.0), PERSON),
    ],
)
def test_a_certificate_of_another_query_is_rejected(other: FairAt) -> None:
    with pytest.raises(CertificateError, match="the certificate belongs to another query: got"):
        prove(fair(QUERY), other)


@pytest.mark.parametrize("rule", [Argmax(("a", "b")), OneVsRest(("a", "b"), "b")])
def test_a_forged_certificate_of_several_classes_is_rejected(rule: Rule) -> None:
    """At 40 the two classes tie, and the first wins."""
    network = Network.from_layers([([[1.0, 0, 0, 0], [0.0] * 4], [0.0, 40.0])])
    query = FairAt(Model(SPACE, network, rule), PERSON)
    with pytest.raises(CertificateError, match=DIFFERENT.format(r"\{'age': 40")):
        prove(*forged(query, LatticeProof(146)))


def test_a_counterpart_after_the_first_block_is_scored_too() -> None:
    """Only the last value is unfavorable."""
    space = feta.FeatureSpace((feta.Integer("n", 0, 2 * BLOCK, sensitive=True),))
    for bias in (2.0 * BLOCK, 2.0 * BLOCK - 0.5):
        model = Model(space, Network.from_layers([([[-1.0]], [bias])]), threshold=0.0)
        query = FairAt(model, np.array([0.0]))
        certificate, _ = forged(query, LatticeProof(2 * BLOCK + 1))
        if bias == 2 * BLOCK:
            prove(certificate, query)
            continue
        with pytest.raises(CertificateError, match=DIFFERENT.format(r"\{'n': 2048")):
            prove(certificate, query)


@pytest.mark.parametrize("rule", [Threshold(0.0), Tolerance(99.0)])
def test_the_checker_counts_the_counterparts_itself(
    rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relation claims one counterpart fewer, and so does the certificate."""
    monkeypatch.setattr(AllSensitiveValues, "count", lambda *_: 145)
    query = FairAt(Model(SPACE, QUERY.model.scorer, rule), PERSON)
    message = (
        "^the certificate does not prove fairness: got a proof about 145 counterparts where the "
        "checker lists 146; expected evidence that all counterparts agree$"
    )
    with pytest.raises(CertificateError, match=message):
        prove(*forged(query, LatticeProof(145)))


@pytest.mark.parametrize("epsilon", [72.0, np.nextafter(72.0, 0)])
def test_a_tolerance_is_proved_to_the_last_ulp(epsilon: float) -> None:
    """Ages from 18 to 90; the person is 30."""
    model = Model(SPACE, Network.from_layers([([[1.0, 0, 0, 0]], [0.0])]), Tolerance(epsilon))
    query = FairAt(model, PERSON)
    certificate, _ = forged(query, LatticeProof(146))
    if epsilon == 72.0:
        prove(certificate, query)
        return
    message = (
        r"^the certificate does not prove fairness: got two counterparts not provably within the "
        r"tolerance, {'age': 18.* and {'age': 90.*; expected evidence that all counterparts agree$"
    )
    with pytest.raises(CertificateError, match=message):
        prove(certificate, query)


def test_the_counterparts_of_another_relation_are_those_that_it_lists() -> None:
    """Among people of at least 21, the score is favorable for all."""
    network = linear(age=1.0, bias=-21.0).scorer
    query = FairAt(Model(SPACE, network, threshold=0.0, relation=Grown(21)), PERSON)
    verdict = fair(query)
    assert verdict.certificate.proof == LatticeProof(140)
    prove(verdict, query)
    younger = FairAt(Model(SPACE, network, threshold=0.0, relation=Grown(20)), PERSON)
    with pytest.raises(CertificateError, match=DIFFERENT.format(r"\{'age': 20")):
        prove(*forged(younger, LatticeProof(142)))

    class Fewer(Grown):
        def counterparts(self, person):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            yield next(super().counterparts(person))[:-1]

    fewer = FairAt(Model(SPACE, network, threshold=0.0, relation=Fewer(21)), PERSON)
    with pytest.raises(CertificateError, match="140 counterparts where the checker lists 139"):
        prove(*forged(fewer, LatticeProof(140)))


def test_a_scorer_of_an_unknown_kind_is_re_checked_by_its_own_exact_scores() -> None:
    """(age / 2)² − 81 is at least 0 from age 18 on."""
    query = FairAt(Model(SPACE, Square((0.5, 0, 0, 0), 81.0), threshold=0.0), PERSON)
    prove(fair(query), query)
    higher = FairAt(Model(SPACE, Square((0.5, 0, 0, 0), 81.5), threshold=0.0), PERSON)
    with pytest.raises(CertificateError, match=DIFFERENT.format(r"\{'age': 18")):
        prove(*forged(higher, LatticeProof(146)))
    with pytest.raises(CertificateError, match="got a scorer of the kind 'square'"):
        prove(*forged(query, BoundsProof((None,))))


LINE = Model(
    SPACE.with_sensitive(["income"]),
    Network.from_layers([([[1.0, 0, 0, 0.5]], [-17.0])]),
    Tolerance(50.0),  # from 13 to 63
)


@pytest.mark.parametrize("epsilon", [50.0, np.nextafter(50.0, 0)])
@pytest.mark.parametrize("cuts", [(None,), ((0, 25.0), None, None)])
def test_bounds_prove_a_tolerance_around_a_center(
    cuts: tuple[Cut | None, ...], epsilon: float
) -> None:
    query = FairAt(replace(LINE, rule=Tolerance(epsilon), threshold=None), PERSON)
    certificate, _ = forged(query, BoundsProof(cuts, Fraction(38)))
    if epsilon == 50.0:
        prove(certificate, query)
        return
    with pytest.raises(CertificateError, match=OUTSIDE):
        prove(certificate, query)


@pytest.mark.parametrize(
    ("model", "center", "message"),
    [
        (LINE, None, "got center None; expected a center for a tolerance"),
        (LINE, Fraction(39), OUTSIDE),
        (LINE, Fraction(115, 3), "invalid center of a band"),
        (None, Fraction(38), "got center 38; expected .* None for other rules"),
    ],
)
def test_a_center_that_proves_nothing_is_rejected(
    model: Model | None, center: Fraction | None, message: str
) -> None:
    query = FairAt(model or REAL, PERSON)
    with pytest.raises(CertificateError, match=message):
        prove(*forged(query, BoundsProof((None,), center)))


REAL = Model(
    SPACE.with_sensitive(["age", "income"]),
    Network.from_layers([([[1.0, 0, 0, 0.5]], [-17.0])]),
    threshold=0.0,
)


def bounded(*cuts: Cut | None, model: Model = REAL) -> tuple[Certificate, FairAt]:
    return forged(FairAt(model, PERSON), BoundsProof(cuts))


@pytest.mark.parametrize(
    "cuts", [(None,), ((1, 25.0), None, None), ((0, 3.0), (1, 100.0), None, None, None)]
)
def test_bounds_over_cells_are_re_checked(cuts: tuple[Cut | None, ...]) -> None:
    prove(*bounded(*cuts))


def test_cells_that_do_not_cover_everybody_are_rejected() -> None:
    with pytest.raises(CertificateError, match=r"which leave 1 cell\(s\) without a proof"):
        prove(*bounded((1, 25.0), None))


def test_a_different_decision_in_any_leaf_is_found() -> None:
    """Age 18 without income is unfavorable: in the whole, in the first or in the last leaf."""
    differs = Model(REAL.space, Network.from_layers([([[1.0, 0, 0, 0.5]], [-20.0])]), threshold=0.0)
    last = Model(REAL.space, Network.from_layers([([[-1.0, 0, 0, -0.5]], [139.0])]), threshold=0.0)
    young = DIFFERENT.format(r"\{'age': 18, 'sex': 'female', 'income': 0\.0\}")
    old = DIFFERENT.format(r"\{'age': 90, 'sex': 'female', 'income': 100\.0\}")
    cuts = ((0, 36.0), (1, 50.0), None, None, (1, 50.0), None, None)
    for proof in ((None,), cuts):
        with pytest.raises(CertificateError, match=young):
            prove(*bounded(*proof, model=differs))
        with pytest.raises(CertificateError, match=old):
            prove(*bounded(*proof, model=last))


def test_a_real_number_at_a_tie_remains_undecided() -> None:
    """|x − 1/3·3| at 0 is a tie between two float64 numbers; no box around it can be decided."""
    layers = [([[0, 0, 0, 3.0], [0, 0, 0, -3.0]], [-1.0, 1.0]), ([[1.0, 1.0]], [0.0])]
    model = Model(
        SPACE.with_sensitive(["income"]),
        Network.from_layers(layers),
        Threshold(0.0, equality="unfavorable"),
    )
    message = (
        r"^the certificate does not prove fairness: got a cell that the bounds leave undecided, "
        r"from \[0\.0\] to \[100\.0\]; expected evidence that all counterparts agree$"
    )
    with pytest.raises(CertificateError, match=message):
        prove(*bounded(None, model=model))


def test_the_corners_decide_if_the_score_is_affine() -> None:
    """Age 18 with no income is exactly on the threshold, which no bound decides."""
    network = Network.from_layers([([[1.0, 0, 0, 0.5]], [-18.0])])
    model = Model(REAL.space, network, threshold=0.0)
    cuts = ((0, 0.0), None, None)
    prove(*bounded(*cuts, model=model))
    above = Model(REAL.space, network, threshold=float(np.nextafter(0.0, 1.0)))
    with pytest.raises(CertificateError, match=DIFFERENT.format(r"\{'age': 18")):
        prove(*bounded(*cuts, model=above))


@pytest.mark.parametrize(
    "proof", [LatticeProof(146), BoundsProof(((0, 5.0), None, (0, 40.0), None, None))]
)
def test_a_proof_does_not_hold_for_a_model_that_differs_by_one_ulp(proof: Proof) -> None:
    """At age 18, the score is exactly on the threshold, or one ulp of the bias below it."""

    def query(bias: float) -> FairAt:
        network = Network.from_layers([([[0.5, 0.0, 0.0, 0.0]], [bias])])
        return FairAt(Model(SPACE, network, Threshold(10.0)), PERSON)

    prove(*forged(query(1.0), proof))
    with pytest.raises(CertificateError, match=DIFFERENT.format(r"\{'age': 18")):
        prove(*forged(query(float(np.nextafter(1.0, 0.0))), proof))


def test_bounds_of_a_real_valued_table_are_rejected() -> None:
    """A table on a real-valued sensitive attribute has no finite number of rows."""
    space = SPACE.with_sensitive(["income"])
    table = LookupTable(3, np.array([50.0]), np.ones((1, 1)))
    network = Network.from_layers([([[1.0] * 4], [0.0])])
    tabled = replace(network, first=Columns(np.zeros(1), np.zeros((1, 4)), (table,)))
    with pytest.raises(CertificateError, match="got a table of the real-valued attribute"):
        prove(*bounded(None, model=Model(space, tabled)))


UNFAIR = FairAt(linear(age=1.0, bias=-31.0), PERSON)


def test_a_pair_is_evaluated_again() -> None:
    verdict = verify(UNFAIR)
    assert isinstance(verdict, Unfair)
    unknown = Unknown(Reason.OUT_OF_NODES, verdict.counterexample)
    for evidence in (verdict, unknown):
        prove(evidence, UNFAIR)
    object.__setattr__(verdict.counterexample, "gap", 7.0)
    for evidence in (verdict, unknown):
        with pytest.raises(CertificateError, match=r"got the scores, decisions and gap .* 7\.0\)"):
            prove(evidence, UNFAIR)


def test_unknown_claims_nothing() -> None:
    prove(Unknown(Reason.OUT_OF_TIME), UNFAIR)


def test_what_is_no_evidence_is_rejected() -> None:
    with pytest.raises(AssertionError, match="unreachable"):
        prove("fair", UNFAIR)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="unreachable"):
        prove(*forged(UNFAIR, "a proof"))  # type: ignore[arg-type]
