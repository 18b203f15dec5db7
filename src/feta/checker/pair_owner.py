"""Owners of counterexamples: whether a pair belongs to a query."""

from feta.errors import CertificateError
from feta.query import PersonQuery
from feta.verdict.counterexample import Counterexample


def check_owner(pair: Counterexample, query: PersonQuery) -> None:
    """Raise unless the counterexample belongs to this query's model and person.

    Regression: any two counterparts of the person may form the pair.
    """
    model = query.model
    if pair.fingerprint != model.fingerprint:
        raise CertificateError(
            "the counterexample belongs to another model: "
            f"got {pair.fingerprint}; expected {model.fingerprint}"
        )
    if model.rule.tolerance is not None:
        same = model.relation.related(query.person, pair.person)
    else:
        same = pair.person.tobytes() == query.person.tobytes()
    if not same:
        raise CertificateError(
            "the counterexample belongs to another person: "
            f"got {pair.person.tolist()}; expected {query.person.tolist()}"
        )
