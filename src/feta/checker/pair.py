"""Re-check of counterexamples: two people of the space, related, with different decisions."""

import numpy as np

from feta.checker.evaluators import evaluator_of
from feta.checker.pair_owner import check_owner
from feta.errors import CertificateError
from feta.query import PersonQuery
from feta.verdict.counterexample import Counterexample


def prove_pair(pair: Counterexample, query: PersonQuery) -> None:
    """Raise unless the pair is a counterexample for this query, with the numbers that it states.

    Whether it is the worst one, and whether the source's runtime agrees, is not re-checked.
    """
    check_owner(pair, query)
    model, rule = query.model, query.model.rule
    people = np.stack([pair.person, pair.counterpart])
    for person in people:
        if not model.space.contains(person):
            raise CertificateError(
                f"invalid counterexample: got {person.tolist()}, which is outside the space; "
                "expected two people of the space"
            )
    if not model.relation.related(pair.person, pair.counterpart):
        raise CertificateError(
            f"invalid counterexample: got {model.space.decode(people[0])} and "
            f"{model.space.decode(people[1])}, who are not related; expected counterparts"
        )
    scores = evaluator_of(model).scores(people)
    if not rule.separates(scores):
        raise CertificateError(
            f"invalid counterexample: got the exact scores {scores.floats().tolist()}, which give "
            "the same decision, or are within the tolerance; expected different decisions"
        )
    stated = (_flat(pair.scores), pair.decisions, pair.gap)
    found = (_flat(scores.floats()), rule.pair_decisions(scores), rule.gap(scores))
    if stated != found:
        raise CertificateError(
            f"invalid counterexample: got the scores, decisions and gap {stated}; expected {found}"
        )


def _flat(scores: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[float]:
    return list(scores.ravel().tolist())
