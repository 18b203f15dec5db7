"""Coverage: whether a certificate belongs to a query, and whether it covers all counterparts.

This is cheap, because every verdict passes here. Whether the certificate is true is not checked.
"""

from functools import lru_cache
from typing import assert_never

from feta.checker.box import Box
from feta.checker.sensitive_axis import axes_of
from feta.errors import CertificateError
from feta.local_query import local_query
from feta.model import Model
from feta.query import PersonQuery
from feta.verdict.certificate import BoundsProof, Certificate, Cut, LatticeProof


def check_coverage(certificate: Certificate, query: PersonQuery) -> None:
    """Raise unless the certificate belongs to this query and covers all its counterparts."""
    query = local_query(query)
    if certificate.query_digest != query.digest:
        raise CertificateError(
            "the certificate belongs to another query: "
            f"got digest {certificate.query_digest}; expected {query.digest}"
        )
    match certificate.proof:
        case LatticeProof(counterparts=counterparts):
            _check_count(counterparts, query)
        case BoundsProof():
            leaves(certificate.proof, query)
        case _:
            assert_never(certificate.proof)


def _check_count(counterparts: int, query: PersonQuery) -> None:
    relation = query.model.relation
    if not relation.finite:
        raise CertificateError(
            f"the certificate does not cover every counterpart: got {counterparts}; expected a "
            "proof by bounds, because a sensitive attribute is real-valued"
        )
    size = relation.count(query.person)
    if size == 1 and not relation.complete:
        raise CertificateError(
            "the certificate proves nothing: got a person without another counterpart; expected "
            "two people or more to compare"
        )
    if counterparts != size or size < 1:
        raise CertificateError(
            f"the certificate does not cover every counterpart: got {counterparts}; expected {size}"
        )


def leaves(proof: BoundsProof, query: PersonQuery) -> tuple[Box, ...]:
    """Apply the cuts of a proof; the leaf boxes together contain every counterpart."""
    model = query.model
    if (model.rule.tolerance is not None) != (proof.center is not None):
        raise CertificateError(
            f"invalid proof by bounds: got center {proof.center}; "
            "expected a center for a tolerance, and None for other rules"
        )
    if not model.relation.complete:
        raise CertificateError(
            "invalid proof by bounds: got a relation in which some sensitive values give no "
            "counterpart; expected a proof that lists the counterparts"
        )
    return _apply(proof.cuts, model)


@lru_cache(maxsize=8)  # proofs about many people often have the same cuts
def _apply(cuts: tuple[Cut | None, ...], model: Model) -> tuple[Box, ...]:
    stack, result = [Box.whole(axes_of(model))], []
    for index, cut in enumerate(cuts):
        if not stack:
            raise CertificateError(
                f"invalid cuts in the certificate: got {len(cuts)} entries; "
                f"expected {index}, which complete the tree"
            )
        box = stack.pop()
        if cut is None:
            result.append(box)
            continue
        if not box.admits_cut(*cut):
            raise CertificateError(
                f"invalid cut in the certificate: got {cut}; "
                "expected an axis of the space and a place inside the cell"
            )
        stack += reversed(box.halves(*cut))
    if stack:
        raise CertificateError(
            f"invalid cuts in the certificate: got {len(cuts)} entries, which leave "
            f"{len(stack)} cell(s) without a proof; expected a proof of every cell"
        )
    return tuple(result)
