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
from feta.api import verify_many
from feta.arrays import Vector
from feta.checker.prove import prove
from feta.model import Model
from feta.relation.consequences import Consequences
from feta.relation.constrained import Constrained
from feta.relation.constraints import read_constraints
from feta.relation.similar import Similar
from feta.rule import Argmax, Rule, Threshold, Tolerance
from feta.scorer.network.separated import SeparatedNetwork
from feta.space.attribute import Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from tests import oracle
from tests.causal_cases import NaiveCauses, random_causal_space, random_equations
from tests.relation_cases import NaiveConstraints, random_constraints, similar_rows
from tests.strategies import (
    EDGES,
    random_case,
    random_network,
    random_person,
    random_rule,
    random_threshold,
    random_weights,
)

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
        others = oracle.counterparts(model, person)
        wrong += wrong_votes(
            model,
            person,
            related,
            case.weights,
            engine,
            all_if_none=naive.all_if_none,
            others=others,
        )
    return wrong + wrong_relation(model, people[0], naive)


def wrong_consequences(rng: np.random.Generator, engine: str) -> list[str]:
    """Draw a model with a causal model, and name every wrong answer about one person."""
    sums = bool(rng.random() < 0.5)
    space = random_causal_space(rng, sums=sums)
    entries, outside, naive = random_equations(rng, space, sums=sums)
    relation = Consequences.of(space, *entries, outside=outside)
    rule = random_rule(rng)
    network = random_network(rng, space, rule.outputs, plain=bool(rng.random() < 0.7))
    if sums:  # a table of a descendant is no sum
        network = replace(network, first=replace(network.first, tables=()))
    person = random_person(rng, space)
    related = naive.counterparts(person)
    rows = [row for _, row in related]
    plain = Model(space, network, rule)
    if isinstance(rule, Threshold) and rng.random() < 0.6:  # at a score, or next to one
        score = float(oracle.score(plain, rows[rng.integers(len(rows))]))
        value = score if rng.random() < 0.5 else float(np.nextafter(score, rng.choice([-9e9, 9e9])))
        rule = replace(rule, value=value)
    by_sums = isinstance(network.restrict(relation), SeparatedNetwork)
    engine = engine if by_sums else "exhaustive"
    wrong = [f"people: by {'sums' if by_sums else 'rows'}, {engine}"]
    wrong += _wrong_counterparts(relation, person, rows, naive)
    if not relation.has_key:
        if isinstance(rule, Tolerance):
            return [*wrong, "rules: tolerance without a key"]
        model = Model(space, network, rule, relation=relation)
        return wrong + wrong_verdicts(model, person, related, engine)
    model = Model(space, network, rule, relation=relation)
    wrong += wrong_verdicts(model, person, related, engine)
    if len(rows) > 1:
        found = verify_many([feta.WorstAt(model, row) for row in rows], engine=engine)
        for row, verdict in zip(rows, found, strict=True):
            if isinstance(verdict, feta.Fair) != _is_fair(model, row, rows):
                wrong.append(f"WRONG: {verdict} among several people")
    weights = random_weights(rng, Model(space, network, rule))
    return wrong + wrong_votes(
        model, person, related, weights, engine, all_if_none=False, others=rows
    )


def _wrong_counterparts(
    relation: Consequences, person: Vector, rows: list[Vector], naive: NaiveCauses
) -> list[str]:
    """Compare lists, keys and related people with the definition."""
    wrong = []
    listed = np.concatenate([np.zeros((0, len(person))), *relation.counterparts(person)])
    if {row.tobytes() for row in listed} != {row.tobytes() for row in rows}:
        wrong.append("WRONG: listed counterparts")
    if len(listed) != len(rows) or relation.count(person) != len(rows):
        wrong.append("WRONG: number of counterparts")
    for other in [*rows[:6], *naive.strangers(person)]:
        expected = any((row == other).all() for row in rows)
        if relation.related(person, other) != expected:
            wrong.append("WRONG: related people")
        if relation.has_key and relation.related(other, person) != expected:
            wrong.append("WRONG: not symmetric")
    if not relation.related(person, person):
        wrong.append("WRONG: not reflexive")
    if relation.has_key and len(set(relation.keys(np.array(rows)))) != 1:
        wrong.append("WRONG: not transitive")
    return wrong


def wrong_verdicts(
    model: Model, person: Vector, related: Related, engine: str, *, single: bool = False
) -> list[str]:
    """Compare verify and worst with the definition; `single`: one person alone is fair."""
    wrong = []
    admitted = any((row == person).all() for _, row in related)
    rows = [row for _, row in related]
    for query in (feta.FairAt(model, person), feta.WorstAt(model, person)):
        name = type(query).__name__
        verdict = feta.verify(query, engine=engine)
        if not admitted or (len(related) == 1 and not single):
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
    all_if_none: bool,
    others: list[Vector],
) -> list[str]:
    """Compare counts and fair decisions, with and without weights."""
    wrong = []
    people = person[None, :]
    for chosen in {None, weights}:
        votes = [(oracle.votes_of(n, chosen), row) for n, row in related]
        if all_if_none and not sum(vote for vote, _ in votes):
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
        if set(predictor.decide(np.array(others)).tolist()) != {found}:
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


def wrong_similar(rng: np.random.Generator, engine: str) -> list[str]:
    """Draw a model with distances, and name every wrong answer about one person."""
    hours = tuple(sorted({0.0, 0.1, 0.2, 0.3, float(np.nextafter(0.3, 1)), 1.0, 4.0}))
    space = FeatureSpace(
        (
            Integer("age", 20, 20 + int(rng.integers(0, 4)), sensitive=True),
            Integer("years", 0, int(rng.integers(1, 7))),
            Levels("hours", hours[: rng.integers(2, len(hours) + 1)]),
            Real("income", -8.0, 8.0),
        )
    )
    sizes = {"years": float(rng.integers(1, 4)), "hours": float(rng.choice([0.1, 0.2, 0.3, 1.0]))}
    names = [name for name in sizes if rng.random() < 0.7] or ["years"]
    distances = {name: sizes[name] for name in names}
    if rng.random() < 0.3:
        return _wrong_real(rng, space, distances["years"] / 4 if "years" in distances else 0.5)
    rule: Rule = random_threshold(rng) if rng.random() < 0.7 else Argmax(("a", "b", "c"))
    network = random_network(rng, space, rule.outputs, plain=False)
    person = random_person(rng, space)
    rows = similar_rows(Model(space, network, rule), person, distances)
    if isinstance(rule, Threshold) and rng.random() < 0.6:  # at a score, or next to one
        score = float(oracle.score(Model(space, network, rule), rows[rng.integers(len(rows))]))
        value = score if rng.random() < 0.5 else float(np.nextafter(score, rng.choice([-9e9, 9e9])))
        rule = replace(rule, value=value)
    model = Model(space, network, rule, relation=Similar(distances))
    wrong = wrong_verdicts(model, person, list(enumerate(rows)), engine, single=True)
    for row in oracle.counterparts(Model(model.space, network, rule), random_person(rng, space)):
        expected = any((row == one).all() for one in rows)
        if model.relation.related(person, row) != expected:
            wrong.append("WRONG: related people")
    return wrong


def _wrong_real(rng: np.random.Generator, space: FeatureSpace, size: float) -> list[str]:
    """Compare a distance of a real number with the exact kinks along its line."""
    rule = random_threshold(rng)
    network = random_network(rng, space, 1)
    network = replace(network, first=replace(network.first, tables=()))  # the oracle reads none
    person = random_person(rng, space)
    own = float(person[3])
    near = Real("income", max(-8.0, own - size), min(8.0, own + size))  # both are exact
    others = FeatureSpace((*space.attributes[:3], near))
    plain = Model(others, network, rule)
    ends = [oracle.highest_along(plain, person, "income", upward=side) for side in (True, False)]
    if rng.random() < 0.7:  # between the ends, at one of them, or next to it
        value = float([sum(ends) / 2, *ends][rng.integers(3)])
        value = float(np.nextafter(value, rng.choice([-9e9, 9e9]))) if rng.random() < 0.5 else value
        rule = replace(rule, value=value)
    model = Model(space, network, rule, relation=Similar({"income": size}))
    fair = len({oracle.decision(model.rule, [end]) for end in ends}) == 1
    wrong = []
    for query in (feta.FairAt(model, person), feta.WorstAt(model, person)):
        verdict = feta.verify(query)
        prove(verdict, query)
        wrong.append(f"verdicts: {type(verdict).__name__} along a real number")
        # A score within two float64 of the threshold may stay undecided along a real number.
        step = Fraction(float(np.spacing(abs(rule.value))))
        tie = any(abs(end - Fraction(rule.value)) <= 2 * step for end in ends)
        unknown = isinstance(verdict, feta.Unknown)
        if isinstance(verdict, feta.Fair) != fair and not (unknown and tie):
            wrong.append(f"WRONG: {verdict}, expected fair: {fair}")
        if unknown and not tie:
            wrong.append("undecided along a real number, without a tie")
        if isinstance(verdict, feta.Unfair):
            pair = verdict.counterexample
            if abs(Fraction(pair.counterpart[3]) - Fraction(own)) > Fraction(size):
                wrong.append("WRONG: a counterpart that is too far away")
    return wrong


KINDS: dict[str, Callable[[np.random.Generator, str], list[str]]] = {
    "constrained": wrong_constrained,
    "consequences": wrong_consequences,
    "similar": wrong_similar,
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
