"""Prove: goes through a certificate again, in exact arithmetic only."""

import numpy as np

from feta.errors import CertificateError
from feta.query import Query
from feta.verdict.certificate import Certificate


def prove(certificate: Certificate, query: Query) -> None:
    """Raise unless the certificate proves that the query's person is treated fairly.

    Every counterpart is scored one by one without rounding: slow, and nothing to trust but integers.
    """
    model, proof = query.model, certificate.proof
    if certificate.query_digest != query.digest:
        raise CertificateError("the certificate belongs to another question")
    if proof.counterparts != model.space.lattice.size:
        message = f"the certificate must cover {model.space.lattice.size} counterparts, got {proof.counterparts}"
        raise CertificateError(message)
    judge = model.rule.judge(model.exact.scores(query.person[None, :]))
    for block in model.space.lattice.counterparts(query.person):
        apart = np.flatnonzero(judge.settle_exactly(model.exact.scores(block)))
        if apart.size:
            message = f"a counterpart is treated apart: {model.space.decode(block[apart[0]])}"
            raise CertificateError(message)
