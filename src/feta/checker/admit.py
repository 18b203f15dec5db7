"""Admission of verdicts: none passes without its evidence.

Ownership and coverage take microseconds, so every verdict of every engine passes here.
"""

from dataclasses import replace
from typing import assert_never

from feta.checker.coverage import check_coverage
from feta.checker.pair_owner import check_owner
from feta.checker.prove import repeat
from feta.query import PersonQuery
from feta.scorer.protocol import Provenance
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown, Verdict


def is_admitted(query: PersonQuery) -> bool:
    """Return whether the person is a counterpart of somebody, and so of the person."""
    relation = query.model.relation
    return relation.complete or bool(relation.admits(query.person[None, :])[0])


def admit(query: PersonQuery, verdict: Verdict, *, trusted: bool) -> Verdict:
    """Return the verdict if its evidence belongs to this query; raise otherwise.

    The evidence of an engine that is not trusted is re-checked, and its unproved claims are
    withdrawn: that a counterexample is optimal, and that the source runtime agrees with a proof. If
    the model was sampled or counted, not proved, verdict and certificate are marked as such.
    """
    if not is_admitted(query):
        return Unknown(Reason.NOT_ADMITTED)
    match verdict:
        case Fair(certificate=certificate):
            check_coverage(certificate, query)
        case Unfair(counterexample=pair):
            check_owner(pair, query)
        case Unknown(best=best):
            if best is not None:
                check_owner(best, query)
        case _:
            assert_never(verdict)
    if not trusted:
        repeat(verdict, query)
        verdict = _without_claims(verdict)
    return _marked(verdict, query.model.scorer.provenance)


def _marked(verdict: Verdict, provenance: Provenance) -> Verdict:
    """Return the verdict, and its certificate, with the provenance of the model."""
    if isinstance(verdict, Fair) and verdict.certificate.provenance != provenance:
        certificate = replace(verdict.certificate, provenance=provenance)
        return replace(verdict, certificate=certificate, provenance=provenance)
    return verdict if verdict.provenance == provenance else replace(verdict, provenance=provenance)


def _without_claims(verdict: Verdict) -> Verdict:
    """Withdraw what an engine that is not trusted claims without evidence."""
    if isinstance(verdict, Fair):
        return replace(verdict, runtime="sensitive")
    if isinstance(verdict, Unfair):
        return replace(verdict, optimal=False)
    return verdict
