"""Admit: lets a verdict through only with its evidence."""

from dataclasses import replace
from typing import assert_never

import numpy as np

from feta.checker.prove import check_coverage, prove
from feta.errors import CertificateError
from feta.query import Query
from feta.rule import Tolerance
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Unfair, Unknown, Verdict


def admit(query: Query, verdict: Verdict, *, trusted: bool) -> Verdict:
    """Return the verdict if its evidence belongs to this very question, and raise otherwise.

    A counterexample replayed itself when it was made; what is left is whose it is. A proof from an
    engine that is not ours is gone through again, and what nothing proves is not said in its name: that
    no counterexample is farther, or that the source's own runtime is sure. A model whose preprocessing was only tried out has
    its verdicts labelled so.
    """
    match verdict:
        case Fair(certificate=certificate):
            check_coverage(certificate, query)
            if not trusted:
                prove(certificate, query)
                verdict = replace(verdict, runtime="sensitive")
        case Unfair(counterexample=found):
            _check_owner(query, found)
            if not trusted:
                verdict = replace(verdict, optimal=False)
        case Unknown(best=best):
            if best is not None:
                _check_owner(query, best)
        case _:
            assert_never(verdict)
    provenance = query.model.network.provenance
    return verdict if verdict.provenance == provenance else replace(verdict, provenance=provenance)


def _check_owner(query: Query, found: Counterexample) -> None:
    if found.fingerprint != query.model.fingerprint:
        raise CertificateError("the counterexample belongs to another model")
    # Regression: any two counterparts of the person; a counterexample's two agree on what is shared.
    same = np.ones(len(query.person), dtype=bool)
    if isinstance(query.model.rule, Tolerance):
        same = ~query.model.space.sensitive_columns
    if found.person[same].tobytes() != query.person[same].tobytes():
        raise CertificateError("the counterexample belongs to another person")
