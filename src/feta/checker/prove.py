"""Re-check of the evidence of verdicts, with the checker's own exact arithmetic and bounds."""

from collections.abc import Iterator
from typing import assert_never

from feta.arrays import Matrix
from feta.checker.box import Box
from feta.checker.coverage import check_coverage, leaves
from feta.checker.criterion import OUTSIDE, Criterion, SpanCriterion
from feta.checker.evaluators import evaluator_of
from feta.checker.leaf import leaf_objection
from feta.checker.pair import prove_pair
from feta.checker.sensitive_axis import axes_of
from feta.errors import CertificateError
from feta.local_query import local_query
from feta.query import PersonQuery
from feta.rule.band import Band
from feta.scorer.protocol import Objective
from feta.verdict.certificate import BoundsProof, Certificate, LatticeProof
from feta.verdict.verdict import Fair, Unfair, Unknown, Verdict


def prove(evidence: Certificate | Verdict, query: PersonQuery) -> None:
    """Raise unless the evidence proves its verdict about this query's person.

    Scores are computed without rounding from the numbers that the scorer stores. Cells of a proof
    by bounds are bounded in integers. `Unknown` claims nothing, but its pair must be one. What a
    counted model answered cannot be proved from stored numbers, so its evidence is refused.
    """
    if query.model.scorer.provenance == "counted":
        raise CertificateError(
            "the evidence cannot be re-proved without the model: got a counted model, whose "
            "answers were recorded; expected a model that stores its numbers; run the "
            "model again to repeat the count"
        )
    repeat(evidence, query)


def repeat(evidence: Certificate | Verdict, query: PersonQuery) -> None:
    """Raise unless the evidence holds when every score is computed again.

    A counted model evaluates the counterparts again. Its pairs were evaluated when they were made.
    """
    counted = query.model.scorer.provenance == "counted"
    match evidence:
        case Unfair() | Unknown() if counted:
            pass
        case Certificate():
            _prove_certificate(evidence, query)
        case Fair(certificate=certificate):
            _prove_certificate(certificate, query)
        case Unfair(counterexample=pair):
            prove_pair(pair, query)
        case Unknown(best=best):
            if best is not None:
                prove_pair(best, query)
        case _:
            assert_never(evidence)


def _prove_certificate(certificate: Certificate, query: PersonQuery) -> None:
    query = local_query(query)
    check_coverage(certificate, query)  # there are two kinds of proofs, or it raises
    proof = certificate.proof
    if isinstance(proof, LatticeProof):
        objection = _lattice_objection(proof, query)
    else:
        objection = _bounds_objection(proof, query)
    if objection:
        raise CertificateError(
            f"the certificate does not prove fairness: got {objection}; expected evidence that "
            "all counterparts agree"
        )


def _lattice_objection(proof: LatticeProof, query: PersonQuery) -> str:
    """Score every counterpart, and count them."""
    model, person = query.model, query.person
    tolerance, evaluator = model.rule.tolerance, evaluator_of(model)
    criterion = (
        _same_decision(query)
        if tolerance is None
        else SpanCriterion(model, evaluator, person, tolerance)
    )
    n_scored = 0
    for people in _counterparts(query):
        objection = criterion.objection(people)
        if objection:
            return objection
        n_scored += len(people)
    if n_scored != proof.counterparts:
        return f"a proof about {proof.counterparts} counterparts where the checker lists {n_scored}"
    return ""


def _counterparts(query: PersonQuery) -> Iterator[Matrix]:
    """List all counterparts from the attributes, and keep those whom the relation admits."""
    model, relation = query.model, query.model.relation
    if relation.enclosing is None:
        yield from relation.counterparts(query.person)
        return
    for people in Box.whole(axes_of(model)).corners(query.person):
        yield people if relation.complete else people[relation.admits(people)]


def _same_decision(query: PersonQuery) -> Criterion:
    model, evaluator = query.model, evaluator_of(query.model)
    reference = evaluator.scores(query.person[None, :])
    return Criterion(model, evaluator, model.rule.comparator(reference))


def _bounds_objection(proof: BoundsProof, query: PersonQuery) -> str:
    """Bound every leaf; score counterparts where bounds do not decide."""
    model, person = query.model, query.person
    bounds = evaluator_of(model).bounds(axes_of(model), person)
    criterion, objective = _claim(proof, query)
    for leaf in leaves(proof, query):
        objection = leaf_objection(
            leaf, person, bounds=bounds, objective=objective, criterion=criterion
        )
        if objection:
            return objection
    return ""


def _claim(proof: BoundsProof, query: PersonQuery) -> tuple[Criterion, Objective]:
    """Return what every counterpart must satisfy, to score and to bound it."""
    model, evaluator = query.model, evaluator_of(query.model)
    tolerance = model.rule.tolerance
    if tolerance is None or proof.center is None:  # both, or check_coverage rejects the proof
        reference = evaluator.scores(query.person[None, :])
        return _same_decision(query), model.rule.objective(reference)
    band = Band.at(tolerance, proof.center)
    return Criterion(model, evaluator, band, OUTSIDE), band.objective()
