"""The checker compared with the oracle: it accepts a claim of fairness exactly if it is true."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feta
from campaigns.milp import real_problems, sample_counterparts
from campaigns.regression import random_real, tolerances
from feta.arrays import Vector
from feta.checker.prove import prove
from feta.engine.registry import engines
from feta.model import Model
from feta.query import PersonQuery
from feta.rule import Tolerance
from feta.rule.band import SMALLEST_EPSILON
from feta.verdict.certificate import BoundsProof, Certificate, LatticeProof, Proof
from feta.verdict.counterexample import Counterexample
from tests import oracle
from tests.strategies import Case, cases


def accepts(query: PersonQuery, proof: Proof) -> bool:
    """Return whether the checker accepts a certificate of the right form."""
    try:
        prove(Certificate(query.digest, "forger", proof), query)
    except feta.CertificateError as error:
        if not str(error).startswith("the certificate does not prove fairness: got "):
            raise
        return False
    return True


def center_of(model: Model, person: Vector) -> Fraction | None:
    """Return the middle of all scores, around which a proof by bounds must be."""
    if not isinstance(model.rule, Tolerance):
        return None
    scores = [oracle.score(model, other) for other in oracle.counterparts(model, person)]
    return (min(scores) + max(scores)) / 2


@given(case=cases(plain=False))
@settings(max_examples=150, deadline=None)
def test_a_claim_is_accepted_exactly_if_it_is_true(case: Case) -> None:
    """A tie and its neighbors, missing values, tables, bands, all activations and rules."""
    model = case.model
    for person in case.people:
        query = feta.FairAt(model, person)
        fair = oracle.is_fair(model, person)
        size = len(oracle.counterparts(model, person))
        assert accepts(query, LatticeProof(size)) is fair
        assert accepts(query, BoundsProof((None,), center_of(model, person))) is fair


@given(case=cases(plain=False), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_any_cuts_prove_the_same(case: Case, seed: int) -> None:
    """Cut the lattice at random; then remove and add one leaf."""
    model, person = case.model, case.people[0]
    rng = np.random.default_rng(seed)
    query = feta.FairAt(model, person)
    cuts = _random_cuts(model, rng)
    proof = BoundsProof(cuts, center_of(model, person))
    assert accepts(query, proof) is oracle.is_fair(model, person)
    leaves = [index for index, cut in enumerate(cuts) if cut is None]
    place = leaves[rng.integers(len(leaves))]
    for other in ((*cuts[:place], *cuts[place + 1 :]), (*cuts[:place], None, *cuts[place:])):
        with pytest.raises(feta.CertificateError, match=r"invalid cuts? in the certificate"):
            prove(Certificate(query.digest, "forger", replace(proof, cuts=other)), query)


def _random_cuts(model: Model, rng: np.random.Generator) -> tuple[tuple[int, float] | None, ...]:
    """Cut the lattice depth first, at random places."""
    sizes = [
        len(oracle.values_of(attribute))
        for attribute in model.space.attributes
        if getattr(attribute, "sensitive", False)
    ]
    cuts: list[tuple[int, float] | None] = []
    stack = [[(0, size - 1) for size in sizes]]
    while stack:
        box = stack.pop()
        axis = int(rng.integers(len(box)))
        low, high = box[axis]
        if low == high or rng.random() < 0.3:
            cuts.append(None)
            continue
        at = int(rng.integers(low, high))
        cuts.append((axis, float(at)))
        stack += [
            [*box[:axis], (at + 1, high), *box[axis + 1 :]],
            [*box[:axis], (low, at), *box[axis + 1 :]],
        ]
    return tuple(cuts)


@given(case=cases(plain=False))
@settings(max_examples=60, deadline=None)
def test_a_pair_is_accepted_exactly_if_it_differs(case: Case) -> None:
    model, person = case.model, case.people[0]
    verdict = feta.verify(feta.FairAt(model, person))
    if not isinstance(verdict, feta.Unfair):
        return
    query, pair = feta.FairAt(model, person), verdict.counterexample
    for other in oracle.counterparts(model, person):
        differs = oracle.differs(model, pair.person, other)
        honest = Counterexample.witness(model, pair.person, other)
        assert (honest is not None) is differs
        if honest is not None:
            prove(feta.Unfair(honest), query)
            continue
        object.__setattr__(pair, "counterpart", other)
        with pytest.raises(feta.CertificateError, match="which give the same decision"):
            prove(verdict, query)


@pytest.mark.parametrize("engine", ["lattice", "milp"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_verdicts_about_real_numbers_are_proved(engine: str, seed: int) -> None:
    for _, model, person in real_problems(3, seed):
        for query in (feta.FairAt(model, person), feta.WorstAt(model, person)):
            if engines()[engine].accepts(query):
                prove(feta.verify(query, engine=engine), query)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_no_false_claim_about_real_numbers_is_accepted(seed: int) -> None:
    """Against samples; regression along one real number: against the exact span."""
    for _, model, person in real_problems(1, seed):
        if isinstance(model.rule, Tolerance) or model.space.finite:
            continue
        others = sample_counterparts(model, person, np.random.default_rng(seed))
        if any(oracle.differs(model, person, other) for other in others):
            assert not accepts(feta.FairAt(model, person), BoundsProof((None,)))
    rng = np.random.default_rng(seed)
    drawn, person, span = random_real(rng)
    low, high = (
        oracle.highest_along(drawn, person, "hours", upward=upward) for upward in (False, True)
    )
    center = (low + high) / 2
    if center.denominator.bit_count() > 1:  # a kink between two float64 numbers
        center = Fraction(float(center))
    for _, epsilon in tolerances(rng, span):
        query = feta.FairAt(replace(drawn, rule=Tolerance(epsilon), threshold=None), person)
        if accepts(query, BoundsProof((None,), center)):
            assert span <= Fraction(epsilon)
        else:
            assert Fraction(epsilon) <= span * Fraction(1001, 1000) + Fraction(SMALLEST_EPSILON)
