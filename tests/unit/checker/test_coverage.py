from dataclasses import replace
from fractions import Fraction

import pytest

from feta import CertificateError, FairAt, FeatureSpace, Integer, Model, Network, Real, Tolerance
from feta.checker.box import Box
from feta.checker.coverage import check_coverage, leaves
from feta.checker.sensitive_axis import axes_of
from feta.verdict.certificate import BoundsProof, Certificate, Cut, CutTree, LatticeProof, Proof
from tests.examples import PERSON, SPACE, linear
from tests.extensions.toys import Grown

FINITE = FairAt(linear(age=1.0), PERSON)
NETWORK = Network.from_layers([([[1.0, 0, 0, 0.5]], [-17.0])])
REAL = FairAt(Model(SPACE.with_sensitive(["age", "income"]), NETWORK, threshold=0.0), PERSON)
LIMIT = FairAt(Model(REAL.model.space, NETWORK, Tolerance(50.0)), PERSON)
GROWN = FairAt(Model(SPACE, NETWORK, threshold=0.0, relation=Grown(21)), PERSON)


def check(query: FairAt, proof: Proof) -> None:
    check_coverage(Certificate(query.digest, "engine", proof), query)


@pytest.mark.parametrize(
    ("query", "proof"),
    [
        (FINITE, LatticeProof(146)),
        (FINITE, BoundsProof((None,))),
        (REAL, BoundsProof((None,))),
        (LIMIT, BoundsProof((None,), Fraction(1, 3))),
        (GROWN, LatticeProof(140)),
    ],
)
def test_a_certificate_that_covers_everybody_passes(query: FairAt, proof: Proof) -> None:
    check(query, proof)


def test_a_certificate_of_another_query_is_rejected() -> None:
    message = (
        rf"^the certificate belongs to another query: got digest {'0' * 64}; "
        rf"expected {FINITE.digest}$"
    )
    with pytest.raises(CertificateError, match=message):
        check_coverage(Certificate("0" * 64, "engine", LatticeProof(146)), FINITE)


@pytest.mark.parametrize(
    ("query", "got", "expected"),
    [(FINITE, 145, 146), (FINITE, 147, 146), (FINITE, 0, 146), (GROWN, 146, 140)],
)
def test_a_count_must_be_that_of_all_counterparts(query: FairAt, got: int, expected: int) -> None:
    message = f"^the certificate does not cover every counterpart: got {got}; expected {expected}$"
    with pytest.raises(CertificateError, match=message):
        check(query, LatticeProof(got))


def test_infinitely_many_counterparts_cannot_be_counted() -> None:
    message = (
        "^the certificate does not cover every counterpart: got 73; expected a proof by bounds, "
        "because a sensitive attribute is real-valued$"
    )
    with pytest.raises(CertificateError, match=message):
        check(REAL, LatticeProof(73))


@pytest.mark.parametrize(("query", "center"), [(LIMIT, None), (REAL, Fraction(38)), (FINITE, 0)])
def test_a_center_belongs_to_a_tolerance(query: FairAt, center: Fraction | None) -> None:
    message = (
        f"^invalid proof by bounds: got center {center}; "
        "expected a center for a tolerance, and None for other rules$"
    )
    with pytest.raises(CertificateError, match=message):
        check(query, BoundsProof((None,), center))


def test_bounds_need_a_relation_in_which_all_values_give_a_counterpart() -> None:
    message = (
        "^invalid proof by bounds: got a relation in which some sensitive values give no "
        "counterpart; expected a proof that lists the counterparts$"
    )
    with pytest.raises(CertificateError, match=message):
        check(GROWN, BoundsProof((None,)))


INSIDE = "expected an axis of the space and a place inside the cell$"


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        (
            (),
            r"^invalid cuts in the certificate: got 0 entries, which leave 1 cell\(s\) without a "
            "proof; expected a proof of every cell$",
        ),
        (((1, 25.0), None), r"got 2 entries, which leave 1 cell\(s\) without a proof"),
        (((1, 25.0),), r"got 1 entries, which leave 2 cell\(s\) without a proof"),
        (
            (None, None),
            "^invalid cuts in the certificate: got 2 entries; expected 1, which complete the tree$",
        ),
        (((1, 25.0), None, None, None), "got 4 entries; expected 3, which complete the tree$"),
        (
            ((2, 25.0), None, None),
            r"^invalid cut in the certificate: got \(2, 25\.0\); " + INSIDE,
        ),
        (((-1, 25.0), None, None), r"got \(-1, 25\.0\); " + INSIDE),
        (((1, 100.5), None, None), r"got \(1, 100\.5\); " + INSIDE),
        (((1, float("nan")), None, None), r"got \(1, nan\); " + INSIDE),
        (((0, 3.5), None, None), r"got \(0, 3\.5\); " + INSIDE),  # nobody would be 22
        (((0, 72.0), None, None), r"got \(0, 72\.0\); " + INSIDE),
        # Inside the whole, but not inside the first half.
        (((1, 25.0), (1, 50.0), None, None, None), r"got \(1, 50\.0\); " + INSIDE),
        (((0, 9.0), None, (0, 9.0), None, None), r"got \(0, 9\.0\); " + INSIDE),
    ],
)
def test_cuts_that_leave_somebody_out_are_rejected(
    cuts: tuple[Cut | None, ...], message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        check(REAL, BoundsProof(cuts))


def test_leaves_are_listed_depth_first() -> None:
    cuts = ((0, 3.0), (1, 25.0), None, None, (0, 4.0), None, None)
    axes = axes_of(REAL.model)
    assert leaves(BoundsProof(cuts), REAL) == (
        Box(axes, (0.0, 0.0), (3.0, 25.0)),
        Box(axes, (0.0, 25.0), (3.0, 100.0)),
        Box(axes, (4.0, 0.0), (4.0, 100.0)),
        Box(axes, (5.0, 0.0), (72.0, 100.0)),
    )
    assert leaves(BoundsProof(cuts), REAL) is leaves(BoundsProof(cuts), REAL)  # computed once


def test_the_same_cuts_of_another_model_give_other_leaves() -> None:
    cuts = ((0, 3.0), None, None)
    first = leaves(BoundsProof(cuts), REAL)
    space = FeatureSpace((Integer("n", 0, 9, sensitive=True), Real("x", 0, 1)))
    other = Model(space, Network.from_layers([([[1.0, 0.0]], [0.0])]), threshold=0.0)
    second = leaves(BoundsProof(cuts), FairAt(other, space.encode({"n": 1, "x": 1})[0]))
    assert [box.upper for box in first] == [(3.0, 100.0), (72.0, 100.0)]
    assert [box.upper for box in second] == [(3.0,), (9.0,)]


def test_a_tree_of_cuts_covers_everybody_until_a_leaf_is_removed_or_added() -> None:
    tree = CutTree()
    first = tree.cut(0, 1, 25.0)
    tree.cut(int(first[1]), 0, 10.0)
    proof = tree.proof()
    check(REAL, proof)
    places = [index for index, cut in enumerate(proof.cuts) if cut is None]
    assert len(places) == 3
    for place in places:
        fewer = (*proof.cuts[:place], *proof.cuts[place + 1 :])
        more = (*proof.cuts[:place], None, *proof.cuts[place:])
        for cuts in (fewer, more):
            with pytest.raises(CertificateError, match="invalid cuts in the certificate"):
                check(REAL, replace(proof, cuts=cuts))
