"""Admission of verdicts: none passes without its evidence."""

from dataclasses import replace
from typing import assert_never

from feta.checker.prove import check_coverage, prove
from feta.errors import CertificateError
from feta.query import PersonQuery
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Unfair, Unknown, Verdict


def admit(query: PersonQuery, verdict: Verdict, *, trusted: bool) -> Verdict:
    """Return the verdict if its evidence belongs to this query; raise otherwise.

    A counterexample replays itself when it is created; only the owner is checked here. The proof of
    an engine that is not trusted is re-checked, and its unproved claims are withdrawn: that a
    counterexample is optimal, and that the source runtime agrees. If the preprocessing of the model
    was sampled, not proved, the verdict is marked as such.
    """
    match verdict:
        case Fair(certificate=certificate):
            check_coverage(certificate, query)
            if not trusted:
                prove(certificate, query)
                verdict = replace(verdict, runtime="sensitive")
        case Unfair(counterexample=pair):
            _check_owner(query, pair)
            if not trusted:
                verdict = replace(verdict, optimal=False)
        case Unknown(best=best):
            if best is not None:
                _check_owner(query, best)
        case _:
            assert_never(verdict)
    provenance = query.model.scorer.provenance
    return verdict if verdict.provenance == provenance else replace(verdict, provenance=provenance)


def _check_owner(query: PersonQuery, pair: Counterexample) -> None:
    if pair.fingerprint != query.model.fingerprint:
        raise CertificateError(
            "the counterexample belongs to another model: "
            f"got {pair.fingerprint}; expected {query.model.fingerprint}"
        )
    same = pair.person.tobytes() == query.person.tobytes()
    if query.model.rule.tolerance is not None:
        # Any two counterparts of the person may form the pair.
        same = query.model.relation.related(query.person, pair.person)
    if not same:
        raise CertificateError(
            "the counterexample belongs to another person: "
            f"got {pair.person.tolist()}; expected {query.person.tolist()}"
        )
