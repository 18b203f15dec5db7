"""Prove: goes through a certificate again, in exact arithmetic or by bounds rounded outward."""

from fractions import Fraction
from typing import assert_never

import numpy as np

from feta.arrays import Matrix
from feta.bounds.cell_bounds import CellBounds
from feta.bounds.first_layer import Terms, tabulable
from feta.cells.cells import Cells, dimensions
from feta.errors import CertificateError
from feta.query import Query
from feta.rule import Band, Comparator, Objective, Tolerance, separates
from feta.verdict.certificate import BoundsProof, Certificate, LatticeProof


def prove(certificate: Certificate, query: Query) -> None:
    """Raise unless the certificate proves that the query's person is treated fairly.

    People are scored one by one without rounding: slow, and nothing to trust but integers. Parts of a
    bounds proof are bounded again, each on its own.
    """
    check_coverage(certificate, query)
    model = query.model
    match certificate.proof:
        case LatticeProof() if isinstance(model.rule, Tolerance):
            _check_span(query)
        case LatticeProof():
            comparator = model.rule.comparator(model.exact.scores(query.person[None, :]))
            for block in model.space.lattice.counterparts(query.person):
                _check_alike(query, comparator, block)
        case BoundsProof(cuts=cuts, center=center):
            comparator, goal = _bounded(query, center)
            if not tabulable(model):
                raise CertificateError("bounds need shorter tables than this model's")
            terms = Terms.of(model)
            for part in _parts(cuts, Cells.whole(terms.dimensions)):
                over = CellBounds.of(model, terms, query.person, part, goal)
                if not over.agrees[0]:
                    deciding = over.deciding(0, query.person)
                    if deciding is None:
                        raise CertificateError("the bounds leave a part of the counterparts open")
                    _check_alike(query, comparator, deciding)
        case _:
            assert_never(certificate.proof)


def _bounded(query: Query, center: Fraction | None) -> tuple[Comparator, Objective]:
    """Return what every part must pass: the person's own decision, or a band of scores."""
    model, rule = query.model, query.model.rule
    if isinstance(rule, Tolerance):
        assert center is not None  # the coverage was checked
        band = Band.at(rule.epsilon, center)
        return band, band.objective()
    reference = model.exact.scores(query.person[None, :])
    return rule.comparator(reference), rule.objective(reference)


def _check_span(query: Query) -> None:
    """Score every counterpart, and compare the lowest and the highest score."""
    model = query.model
    lowest = highest = query.person[None, :]
    for block in model.space.lattice.counterparts(query.person):
        people = np.concatenate([block, lowest, highest])
        scores = model.exact.scores(people).numerators[:, 0].tolist()
        first, last = scores.index(min(scores)), scores.index(max(scores))
        lowest, highest = people[first : first + 1], people[last : last + 1]
    if separates(model.rule, model.exact.scores(np.concatenate([lowest, highest]))):
        low, high = (model.space.decode(one[0]) for one in (lowest, highest))
        message = f"two counterparts are farther apart than the tolerance: {low} and {high}"
        raise CertificateError(message)


def _check_alike(query: Query, comparator: Comparator, people: Matrix) -> None:
    differs = np.flatnonzero(comparator.decide_exactly(query.model.exact.scores(people)))
    if differs.size:
        message = f"a counterpart is treated apart: {query.model.space.decode(people[differs[0]])}"
        raise CertificateError(message)


def _parts(cuts: tuple[tuple[int, float] | None, ...], whole: Cells) -> list[Cells]:
    """Follow the cuts; what they leave whole covers everybody, whatever they are."""
    left, done = [whole], []
    for cut in cuts:
        if not left:
            raise CertificateError("the certificate cuts more parts than there are")
        part = left.pop()
        if cut is None:
            done.append(part)
            continue
        dimension, at = cut
        if not 0 <= dimension < len(part.dimensions) or not _cuts(part, dimension, at):
            raise CertificateError(f"the certificate must cut inside a part, got {cut}")
        both = part.cut(0, dimension, at)
        left += [both[1:], both[:1]]
    if left:
        raise CertificateError("the certificate must settle every part, but leaves some out")
    return done


def _cuts(part: Cells, dimension: int, at: float) -> bool:
    low, high = part.lower[0, dimension], part.upper[0, dimension]
    if part.dimensions[dimension].real:
        return bool(low <= at <= high)
    return bool(low <= at < high) and float(at).is_integer()  # between two values, nobody is lost


def check_coverage(certificate: Certificate, query: Query) -> None:
    """Raise unless the certificate speaks of this question and of all its counterparts."""
    if certificate.query_digest != query.digest:
        raise CertificateError("the certificate belongs to another question")
    proof = certificate.proof
    if isinstance(proof, BoundsProof):
        if isinstance(query.model.rule, Tolerance) != (proof.center is not None):
            raise CertificateError(
                "a proof by bounds must name a center for a tolerance, and only then"
            )
        _parts(proof.cuts, Cells.whole(dimensions(query.model.space)))
        return
    size = query.model.space.lattice.size
    if proof.counterparts != size:
        message = f"the certificate must cover {size} counterparts, got {proof.counterparts}"
        raise CertificateError(message)
