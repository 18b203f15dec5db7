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


def no_question(query: PersonQuery) -> Reason | None:
    """Return why there is nothing to ask: the person is nobody's counterpart, or has no other."""
    relation, person = query.model.relation, query.person
    if relation.complete:
        return None
    if not relation.admits(person[None, :])[0]:
        nobody = relation.finite and not relation.count(person)
        return Reason.NO_COUNTERPART if nobody else Reason.NOT_ADMITTED
    return Reason.NOBODY if relation.finite and relation.count(person) == 1 else None


def admit(query: PersonQuery, verdict: Verdict, *, trusted: bool) -> Verdict:
    """Return the verdict if its evidence belongs to this query; raise otherwise.

    The evidence of an engine that is not trusted is re-checked, and its unproved claims are
    withdrawn: that a counterexample is optimal, and that the source runtime agrees with a proof. If
    the model was sampled or counted, not proved, verdict and certificate are marked as such.
    """
    reason = no_question(query)
    if reason is not None:
        return Unknown(reason)
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
