"""FETA's answers on a random tree ensemble, compared with those of the oracle."""

from collections.abc import Iterator

import numpy as np

import feta
from campaigns.evidence import false_claims
from feta.api import verify_many
from feta.checker.prove import prove
from feta.query import PersonQuery
from feta.verdict.verdict import Verdict
from tests.forest_cases import ForestCase, move_sensitive
from tests.forest_oracle import Answers


def engines_of(case: ForestCase) -> list[str]:
    """Return the engines that answer for a model."""
    fits = case.model.restricted.fits_kernel(case.model.space)
    return ["exhaustive", *["lattice"] * fits]


def disagreements(case: ForestCase, rng: np.random.Generator) -> Iterator[str]:
    """Name every result that the oracle contradicts."""
    model, people = case.model, case.people
    answers = [case.answers(record) for record in case.records]
    if model.space.lattice.size != len(answers[0].records):
        yield "number of counterparts"
    if model.rule.tolerance is None:
        expected = [one.decisions[one.own] for one in answers]
        if model.decide(people).astype(int).tolist() != expected:
            yield "model decision"
    for engine in engines_of(case):
        fair = verify_many(feta.FairAt.each(model, people), engine=engine)
        worst = verify_many(feta.WorstAt.each(model, people), engine=engine)
        single = feta.verify(feta.FairAt(model, people[0]), engine=engine)
        for row, one in enumerate(answers):
            yield from wrong_verdict(fair[row], one, f"{engine}, verify")
            yield from wrong_worst(worst[row], one, f"{engine}, worst")
            queries: list[PersonQuery] = [feta.FairAt(model, people[row])]
            queries.append(feta.WorstAt(model, people[row]))
            for query, verdict in zip(queries, (fair[row], worst[row]), strict=True):
                other = feta.FairAt(model, people[row - 1])
                yield from wrong_evidence(verdict, query, other, engine)
        yield from wrong_verdict(single, answers[0], f"{engine}, verify one")
        yield from wrong_aggregates(case, answers, engine)
        yield from wrong_predictions(case, answers, engine, rng)


def wrong_verdict(verdict: Verdict, answers: Answers, name: str) -> Iterator[str]:
    """Name what is wrong with a verdict and its label."""
    if not isinstance(verdict, feta.Fair if answers.fair else feta.Unfair):
        yield f"{name}: {type(verdict).__name__}"
        return
    if answers.rule.tolerance is not None or verdict.runtime != "safe":
        return
    if isinstance(verdict, feta.Fair) and answers.replayed != answers.decisions:
        yield f"{name}: called safe, the library decides differently"
    if isinstance(verdict, feta.Unfair):
        rows = [row.tolist() for row in answers.rows]
        pair = verdict.counterexample
        places = [rows.index(row.tolist()) for row in (pair.person, pair.counterpart)]
        if len({answers.replayed[place] for place in places}) == 1:
            yield f"{name}: called safe, the library decides the same"


def wrong_worst(verdict: Verdict, answers: Answers, name: str) -> Iterator[str]:
    """Name what is wrong with the worst counterpart."""
    yield from wrong_verdict(verdict, answers, name)
    if isinstance(verdict, feta.Unfair):
        pair = verdict.counterexample
        gap = answers.gap(pair.person, pair.counterpart)
        if not verdict.optimal or gap != answers.worst_gap or pair.gap != float(gap):
            yield f"{name}: gap"


def wrong_evidence(
    verdict: Verdict, query: PersonQuery, other: PersonQuery, engine: str
) -> Iterator[str]:
    """Name evidence that the checker rejects, and false evidence that it accepts."""
    if not is_proved(verdict, query):
        yield f"{engine}: rejected by the checker"
    size = query.model.space.lattice.size
    for name, claim in false_claims(query, verdict, n_counterparts=size, other=other):
        if name == "another person" and query.digest == other.digest:
            continue
        if is_proved(claim, query):
            yield f"{engine}: the checker accepts {name}"


def is_proved(evidence: object, query: PersonQuery) -> bool:
    """Return whether the checker accepts evidence."""
    try:
        prove(evidence, query)  # type: ignore[arg-type]  # a verdict or a certificate
    except feta.CertificateError:
        return False
    return True


def wrong_aggregates(case: ForestCase, answers: list[Answers], engine: str) -> Iterator[str]:
    """Name wrong counts or spreads."""
    model, people = case.model, case.people
    if model.rule.tolerance is not None:
        spread = feta.spread(model, people, engine=engine)
        for row, one in enumerate(answers):
            values = [float(score[0]) for score in one.scores]
            if (spread.lowest[row], spread.highest[row]) != (min(values), max(values)):
                yield f"{engine}, spread"
        return
    tally = feta.tally(model, people, engine=engine)
    for row, one in enumerate(answers):
        if tally.by_class[row].tolist() != one.tally() or tally.undecided[row]:
            yield f"{engine}, tally"
        elif tally.runtime_safe[row] and one.replayed != one.decisions:
            yield f"{engine}, tally: called safe, the library decides differently"


def wrong_predictions(
    case: ForestCase, answers: list[Answers], engine: str, rng: np.random.Generator
) -> Iterator[str]:
    """Name wrong fair decisions, and those that depend on sensitive values."""
    moved = [case.answers(move_sensitive(rng, case, record)) for record in case.records]
    others = np.stack([one.rows[one.own] for one in moved])
    for weights in {id(w): w for w in (None, case.weights)}.values():
        predictor = feta.FairPredictor(case.model, engine, weights=weights)
        expected = [float(one.fair_decision(weights)) for one in answers]
        for name, people in (("fair decision", case.people), ("fair decision, moved", others)):
            if predictor.decide(people).astype(float).tolist() != expected:
                yield f"{engine}, {name}{'' if weights is None else ', weights'}"
