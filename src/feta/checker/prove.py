"""Prove: goes through a certificate again, in exact arithmetic only."""

import numpy as np

from feta.errors import CertificateError
from feta.query import Query
from feta.verdict.certificate import Certificate


def prove(certificate: Certificate, query: Query) -> None:
    """Raise unless the certificate proves that the query's person is treated fairly.

    Every counterpart is scored one by one without rounding: slow, and nothing to trust but integers.
    """
    check_coverage(certificate, query)
    model = query.model
    judge = model.rule.judge(model.exact.scores(query.person[None, :]))
    for block in model.space.lattice.counterparts(query.person):
        apart = np.flatnonzero(judge.settle_exactly(model.exact.scores(block)))
        if apart.size:
            message = f"a counterpart is treated apart: {model.space.decode(block[apart[0]])}"
            raise CertificateError(message)


def check_coverage(certificate: Certificate, query: Query) -> None:
    """Raise unless the certificate speaks of this question and of all its counterparts."""
    size = query.model.space.lattice.size
    if certificate.query_digest != query.digest:
        raise CertificateError("the certificate belongs to another question")
    if certificate.proof.counterparts != size:
        message = (
            f"the certificate must cover {size} counterparts, got {certificate.proof.counterparts}"
        )
        raise CertificateError(message)
