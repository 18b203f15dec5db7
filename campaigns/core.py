"""Campaign: random networks against the oracle in fractions, a third of them at the edge.

    python -m campaigns.core [--networks 10000] [--seed 0] [--engine exhaustive] [--all]

Counts disagreements in verdict, worst, tally and fair decision, and any Unknown on a finite lattice.
With --all, networks have every activation, rules of every kind, and vote weights.
"""

import argparse
import sys
import time
from collections import Counter

import numpy as np

import feta
from campaigns.result import finish
from feta.arrays import Vector
from feta.model import Model
from feta.rule import Tolerance
from feta.space.vote_weights import VoteWeights
from tests import oracle
from tests.strategies import EDGES, Case, random_case


def disagreements(
    model: Model, person: Vector, engine: str, weights: VoteWeights | None = None
) -> list[str]:
    """Name every answer about one person that the oracle contradicts."""
    fair = oracle.is_fair(model, person)
    wrong = _wrong_verdict(feta.verify(feta.FairAt(model, person), engine=engine), fair=fair)
    match feta.worst(model, person, engine=engine):
        case feta.Unfair(counterexample=found, optimal=optimal):
            gap = oracle.gap(model, found.person, found.counterpart)
            if not optimal or gap != oracle.worst_gap(model, person) or found.gap != float(gap):
                wrong.append("worst: gap")
        case verdict:
            wrong += [f"worst, {name}" for name in _wrong_verdict(verdict, fair=fair)]
    decided = feta.FairPredictor(model, engine, weights=weights).decide(person[None, :])[0]
    if decided != float(oracle.fair_decision(model, person, weights)):
        wrong.append("fair decision")
    if isinstance(model.rule, Tolerance):
        return wrong + _wrong_spread(model, person, engine)
    counts = feta.tally(model, person[None, :], engine=engine)
    if counts.by_class[0].tolist() != oracle.tally(model, person) or counts.undecided[0]:
        wrong.append("tally")
    if int(model.decide(person[None, :])[0]) != oracle.decide(model, person):
        wrong.append("own decision")
    return wrong


def _wrong_verdict(verdict: object, *, fair: bool) -> list[str]:
    match verdict:
        case feta.Fair():
            return [] if fair else ["verdict: fair"]
        case feta.Unfair():
            return ["verdict: unfair"] if fair else []
        case _:
            return ["verdict: unknown"]


def _wrong_spread(model: Model, person: Vector, engine: str) -> list[str]:
    found = feta.spread(model, person[None, :], engine=engine)
    scores = [oracle.score(model, other) for other in oracle.counterparts(model, person)]
    right = (float(min(scores)), float(max(scores)))
    return [] if (found.lowest[0], found.highest[0]) == right else ["spread"]


def describe(case: Case, person: Vector) -> list[str]:
    """Name what a case is an example of."""
    model = case.model
    kinds = [f"rule {type(model.rule).__name__}", f"edge {case.edge}"]
    kinds += ["with vote weights"] * (case.weights is not None)
    kinds += [f"activation {name}" for name in {one.name for one in model.network.activations}]
    kinds.append("fair people" if oracle.is_fair(model, person) else "unfair people")
    return kinds


def run(networks: int, seed: int, engine: str, *, plain: bool) -> Counter[str]:
    """Try this many networks; count cases by kind and disagreements by name."""
    counts: Counter[str] = Counter()
    for number in range(networks):
        rng = np.random.default_rng([seed, number])
        case = random_case(rng, EDGES[number % len(EDGES)], plain=plain)
        for person in case.people:
            counts.update(describe(case, person))
            for name in disagreements(case.model, person, engine, case.weights):
                counts[f"WRONG {name}"] += 1
                print(f"network {number} (seed {seed}, {case.edge}): {name}", file=sys.stderr)
    return counts


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", default="exhaustive")
    parser.add_argument("--all", action="store_true", help="all activations, rules and weights")
    options = parser.parse_args()
    started = time.perf_counter()
    return finish(
        run(options.networks, options.seed, options.engine, plain=not options.all), started
    )


if __name__ == "__main__":
    sys.exit(main())
