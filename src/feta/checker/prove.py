"""Re-check of certificates, in exact arithmetic or by bounds rounded outward."""

from fractions import Fraction
from typing import assert_never

import numpy as np

from feta.arrays import Matrix
from feta.cells.cells import Cells
from feta.errors import CertificateError
from feta.query import PersonQuery
from feta.rule import Band, Comparator
from feta.scorer.protocol import Objective
from feta.verdict.certificate import BoundsProof, Certificate, Cut, LatticeProof


def prove(certificate: Certificate, query: PersonQuery) -> None:
    """Raise unless the certificate proves that the query's person is treated fairly.

    Counterparts are scored without rounding: slow, but only integer arithmetic must be trusted.
    Each cell of a bounds proof is bounded again, one at a time.
    """
    check_coverage(certificate, query)
    model = query.model
    match certificate.proof:
        case LatticeProof() if model.rule.tolerance is not None:
            _check_span(query)
        case LatticeProof():
            comparator = model.rule.comparator(model.exact_scores(query.person[None, :]))
            for block in model.relation.counterparts(query.person):
                _check_agreement(query, comparator, block)
        case BoundsProof(cuts=cuts, center=center):
            _check_bounds(query, cuts, center)
        case _:
            assert_never(certificate.proof)


def _check_bounds(
    query: PersonQuery, cuts: tuple[Cut | None, ...], center: Fraction | None
) -> None:
    """Bound every leaf cell; score a few of its people where the bounds are not conclusive."""
    model = query.model
    comparator, objective = _comparison(query, center)
    if not model.restricted.bounds_cells:
        raise CertificateError(
            "the bounds of this certificate cannot be re-checked: got a model with a sensitive "
            "attribute whose table is too long or whose domain is real-valued; "
            "expected short finite tables"
        )
    for cell in _leaf_cells(cuts, Cells.whole(model.relation.axes)):
        bounds = model.restricted.over(query.person, cell, objective, source_error=0.0)
        if bounds.agrees[0]:
            continue
        counterparts = bounds.deciding_counterparts(0, query.person)
        if counterparts is None:
            raise CertificateError(
                "the certificate does not prove fairness: got a cell that the bounds leave "
                f"undecided, from {cell.lower[0].tolist()} to {cell.upper[0].tolist()}; "
                "expected bounds that decide every cell"
            )
        _check_agreement(query, comparator, counterparts)


def _comparison(query: PersonQuery, center: Fraction | None) -> tuple[Comparator, Objective]:
    """Return what every cell must satisfy: the person's decision, or a band of scores."""
    model, rule = query.model, query.model.rule
    if rule.tolerance is not None:
        assert center is not None  # check_coverage rejects the certificate otherwise
        band = Band.at(rule.tolerance, center)
        return band, band.objective()
    reference = model.exact_scores(query.person[None, :])
    return rule.comparator(reference), rule.objective(reference)


def _check_span(query: PersonQuery) -> None:
    """Score every counterpart; compare the lowest with the highest score."""
    model = query.model
    lowest = highest = query.person[None, :]
    for block in model.relation.counterparts(query.person):
        people = np.concatenate([block, lowest, highest])
        scores = model.exact_scores(people).centers.numerators[:, 0].tolist()
        first, last = scores.index(min(scores)), scores.index(max(scores))
        lowest, highest = people[first : first + 1], people[last : last + 1]
    if model.rule.separates(model.exact_scores(np.concatenate([lowest, highest]))):
        low, high = (model.space.decode(people[0]) for people in (lowest, highest))
        raise CertificateError(
            "the certificate does not prove fairness: got two counterparts whose scores differ by "
            f"more than the tolerance, {low} and {high}; expected a span within the tolerance"
        )


def _check_agreement(query: PersonQuery, comparator: Comparator, people: Matrix) -> None:
    differs = np.flatnonzero(comparator.decide_exactly(query.model.exact_scores(people)))
    if differs.size:
        raise CertificateError(
            "the certificate does not prove fairness: got a counterpart with a different decision, "
            f"{query.model.space.decode(people[differs[0]])}; expected the same decision for all"
        )


def _leaf_cells(cuts: tuple[Cut | None, ...], whole: Cells) -> list[Cells]:
    """Apply the cuts; the leaf cells together contain every counterpart, whatever the cuts."""
    stack, leaves = [whole], []
    for index, cut in enumerate(cuts):
        if not stack:
            raise CertificateError(
                f"invalid cuts in the certificate: got {len(cuts)} entries; "
                f"expected {index}, which complete the tree"
            )
        cell = stack.pop()
        if cut is None:
            leaves.append(cell)
            continue
        axis, at = cut
        if not 0 <= axis < len(cell.axes) or not _is_inside(cell, axis, at):
            raise CertificateError(
                f"invalid cut in the certificate: got {cut}; "
                "expected an axis of the space and a place inside the cell"
            )
        halves = cell.cut(0, axis, at)
        stack += [halves[1:], halves[:1]]
    if stack:
        raise CertificateError(
            f"invalid cuts in the certificate: got {len(cuts)} entries, which leave "
            f"{len(stack)} cell(s) without a proof; expected a proof of every cell"
        )
    return leaves


def _is_inside(cell: Cells, axis: int, at: float) -> bool:
    low, high = cell.lower[0, axis], cell.upper[0, axis]
    if cell.axes[axis].real:
        return bool(low <= at <= high)
    # The second half starts at the next index, so a fraction would skip a value.
    return bool(low <= at < high) and float(at).is_integer()


def check_coverage(certificate: Certificate, query: PersonQuery) -> None:
    """Raise unless the certificate belongs to this query and covers all its counterparts."""
    if certificate.query_digest != query.digest:
        raise CertificateError(
            "the certificate belongs to another query: "
            f"got digest {certificate.query_digest}; expected {query.digest}"
        )
    proof = certificate.proof
    if isinstance(proof, BoundsProof):
        if (query.model.rule.tolerance is not None) != (proof.center is not None):
            raise CertificateError(
                f"invalid proof by bounds: got center {proof.center}; "
                "expected a center for a tolerance, and None for other rules"
            )
        _leaf_cells(proof.cuts, Cells.whole(query.model.relation.axes))
        return
    size = query.model.relation.count(query.person)
    if proof.counterparts != size:
        raise CertificateError(
            "the certificate does not cover every counterpart: "
            f"got {proof.counterparts}; expected {size}"
        )
