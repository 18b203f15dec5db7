"""Admit: lets a verdict through only with its evidence."""

from typing import assert_never

from feta.errors import CertificateError
from feta.query import Query
from feta.verdict.verdict import Fair, Unfair, Unknown, Verdict


def admit(query: Query, verdict: Verdict) -> Verdict:
    """Return the verdict if its evidence belongs to this very question, and raise otherwise.

    A counterexample replayed itself when it was made; what is left is whose it is.
    """
    match verdict:
        case Fair(certificate=certificate):
            if certificate.query_digest != query.digest:
                raise CertificateError("the certificate belongs to another question")
        case Unfair(counterexample=found):
            if found.person.tobytes() != query.person.tobytes():
                raise CertificateError("the counterexample belongs to another person")
        case Unknown():
            pass
        case _:
            assert_never(verdict)
    return verdict
