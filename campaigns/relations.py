"""Campaign of relations against an oracle that lists the related people itself, in fractions.

    python -m campaigns.relations [--models 1000] [--seed 0] [--relation constrained]

Every answer about random models is compared: verdicts, worst gaps, counts, fair decisions by
majorities and means, with and without weights. No pair may hold a person who is not admitted. On
the people that the relation admits, it must be reflexive, symmetric and transitive.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

import feta
from campaigns.result import finish
from feta.arrays import Vector
from feta.checker.prove import prove
from feta.model import Model
from feta.relation.constrained import Constrained
from feta.relation.constraints import read_constraints
from feta.rule import Argmax, Tolerance
from feta.space.vote_weights import VoteWeights
from tests import oracle
from tests.relation_cases import NaiveConstraints, random_constraints
from tests.strategies import EDGES, random_case, random_person

ENGINES = ("lattice", "exhaustive")

Related = list[tuple[int, Vector]]


def wrong_constrained(rng: np.random.Generator, engine: str) -> list[str]:
    """Draw a model with constraints, and name every wrong answer about two people."""
    case = random_case(rng, EDGES[rng.integers(len(EDGES))], plain=bool(rng.random() < 0.5))
    entries, naive = random_constraints(rng, case.model.space)
    constraints = read_constraints(entries, case.model.space.attributes)
    relation = Constrained(constraints, "all" if naive.all_if_none else "refuse")
    model = replace(case.model, relation=relation, threshold=None)
    people = [*case.people, random_person(rng, model.space)]
    wrong = []
    for person in people:
        related = naive.counterparts(model, person)
        wrong += wrong_verdicts(model, person, related, engine)
        wrong += wrong_votes(model, person, related, case.weights, engine, naive=naive)
    return wrong + wrong_relation(model, people[0], naive)


def wrong_verdicts(model: Model, person: Vector, related: Related, engine: str) -> list[str]:
    """Compare verify and worst with the definition."""
    wrong = []
    admitted = any((row == person).all() for _, row in related)
    rows = [row for _, row in related]
    for query in (feta.FairAt(model, person), feta.WorstAt(model, person)):
        name = type(query).__name__
        verdict = feta.verify(query, engine=engine)
        if not admitted or len(related) == 1:
            reason = feta.Reason.NOBODY if admitted else feta.Reason.NOT_ADMITTED
            reason = reason if related else feta.Reason.NO_COUNTERPART
            if not isinstance(verdict, feta.Unknown) or verdict.reason is not reason:
                wrong.append(f"WRONG: {name} of somebody without counterparts: {verdict}")
            wrong.append(f"verdicts: {reason.name}")
            continue
        prove(verdict, query)
        wrong.append(f"verdicts: {type(verdict).__name__}")
        fair = _is_fair(model, person, rows)
        if isinstance(verdict, feta.Fair) != fair or isinstance(verdict, feta.Unknown):
            wrong.append(f"WRONG: {name}: {type(verdict).__name__}, expected fair: {fair}")
        if isinstance(verdict, feta.Unfair):
            pair = verdict.counterexample
            wrong += [
                f"WRONG: {name}: a pair with somebody who is not related"
                for end in (pair.person, pair.counterpart)
                if not any((row == end).all() for row in rows)
            ]
            if isinstance(query, feta.WorstAt) and pair.gap != _worst(model, person, rows):
                wrong.append(f"WRONG: {name}: gap {pair.gap}")
    return wrong


def _is_fair(model: Model, person: Vector, rows: list[Vector]) -> bool:
    if isinstance(model.rule, Tolerance):
        scores = [oracle.score(model, row) for row in rows]
        return max(scores) - min(scores) <= Fraction(model.rule.epsilon)
    return all(oracle.decide(model, row) == oracle.decide(model, person) for row in rows)


def _worst(model: Model, person: Vector, rows: list[Vector]) -> float:
    if isinstance(model.rule, Tolerance):
        scores = [oracle.score(model, row) for row in rows]
        return float(max(scores) - min(scores))
    others = [row for row in rows if oracle.decide(model, row) != oracle.decide(model, person)]
    return float(max(oracle.gap(model, person, row) for row in others))


def wrong_votes(  # noqa: C901 - one case after the other
    model: Model,
    person: Vector,
    related: Related,
    weights: VoteWeights | None,
    engine: str,
    *,
    naive: NaiveConstraints,
) -> list[str]:
    """Compare counts and fair decisions, with and without weights."""
    wrong = []
    people = person[None, :]
    for chosen in {None, weights}:
        votes = [(oracle.votes_of(n, chosen), row) for n, row in related]
        if naive.all_if_none and not sum(vote for vote, _ in votes):
            everybody = enumerate(oracle.counterparts(model, person))
            votes = [(oracle.votes_of(n, chosen), row) for n, row in everybody]
        votes = [(vote, row) for vote, row in votes if vote]
        predictor = feta.FairPredictor(model, engine, weights=chosen)
        try:
            found = predictor.decide(people).tolist()[0]
        except feta.Undecided as error:
            if votes:
                wrong.append(f"WRONG: undecided: {error}")
            wrong.append("decisions: refused")
            continue
        wrong.append("decisions: by " + ("votes" if chosen is None else "weights"))
        if not votes:
            wrong.append("WRONG: a decision without votes")
        elif found != _fair(model, votes):
            wrong.append(f"WRONG: fair decision {found}")
        if model.rule.outputs == 1 and votes:
            wrong += _wrong_mean(model, person, votes, chosen, engine)
        others = np.array(oracle.counterparts(model, person))
        if set(predictor.decide(others).tolist()) != {found}:
            wrong.append("WRONG: fair decisions differ within a class")
    if not isinstance(model.rule, Tolerance):
        counts = feta.tally(model, people, engine=engine).by_class[0].tolist()
        expected = Counter(oracle.decide(model, row) for _, row in related)
        if counts != [expected[k] for k in range(model.rule.n_classes)]:
            wrong.append(f"WRONG: counts {counts}")
    return wrong


def _fair(model: Model, votes: list[tuple[int, Vector]]) -> object:
    if isinstance(model.rule, Tolerance):
        ordered = sorted(oracle.score(model, row) for vote, row in votes for _ in range(vote))
        return float(ordered[(len(ordered) - 1) // 2])
    counts = [0] * model.rule.n_classes
    for vote, row in votes:
        counts[oracle.decide(model, row)] += vote
    if isinstance(model.rule, Argmax):
        return counts.index(max(counts))
    return counts[1] >= counts[0]


def _wrong_mean(
    model: Model,
    person: Vector,
    votes: list[tuple[int, Vector]],
    weights: VoteWeights | None,
    engine: str,
) -> list[str]:
    """Compare the mean score, with a cut-off at the mean itself."""
    total = sum(vote * oracle.score(model, row) for vote, row in votes)
    mean = Fraction(total) / sum(vote for vote, _ in votes)
    level = None if isinstance(model.rule, Tolerance) else float(mean)
    predictor = feta.FairPredictor(model, engine, weights=weights, vote="mean_score", level=level)
    found = predictor.decide(person[None, :]).tolist()[0]
    if level is None:
        return [] if found == float(mean) else [f"WRONG: mean {found}"]
    above = model.rule.favors == "above"
    expected = mean >= Fraction(level) if above else mean <= Fraction(level)
    return [] if found == expected else [f"WRONG: mean decision {found}"]


def wrong_relation(model: Model, person: Vector, naive: NaiveConstraints) -> list[str]:
    """Compare keys and admissions with the definition, among a person's neighbors."""
    relation = model.relation
    rows = oracle.counterparts(model, person)[:12]
    everybody = [naive.counterparts(model, row) for row in rows]
    admitted = [
        any((row == one).all() for _, one in related)
        for row, related in zip(rows, everybody, strict=True)
    ]
    wrong = []
    if relation.admits(np.array(rows)).tolist() != admitted:
        wrong.append("WRONG: admitted people")
    for left, right in product(range(len(rows)), repeat=2):
        expected = admitted[left] and admitted[right]
        if relation.related(rows[left], rows[right]) != expected:
            wrong.append("WRONG: related people")
    return wrong


KINDS: dict[str, Callable[[np.random.Generator, str], list[str]]] = {
    "constrained": wrong_constrained,
}


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--relation", choices=KINDS)
    arguments = parser.parse_args()
    started, results = time.perf_counter(), Counter[str]()
    for kind in [arguments.relation] if arguments.relation else KINDS:
        for index in range(arguments.models):
            rng = np.random.default_rng([arguments.seed, index])
            wrong = KINDS[kind](rng, ENGINES[index % len(ENGINES)])
            results[f"{kind}: models"] += 1
            results.update(wrong)
            for problem in wrong:
                if problem.startswith("WRONG"):
                    print(f"{kind} {index}: {problem}", file=sys.stderr)
    sys.exit(finish(results, started))


if __name__ == "__main__":
    main()
