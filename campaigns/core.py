"""Campaign: random networks against the oracle in fractions, a third of them at the edge.

    python -m campaigns.core [--networks 10000] [--seed 0] [--engine exhaustive]

Counts disagreements in verdict, worst, tally and fair decision, and any Unknown on a finite lattice.
"""

import argparse
import sys
import time
from collections import Counter
from fractions import Fraction

import numpy as np

import feta
from feta.model import Model
from tests import oracle
from tests.strategies import EDGES, random_case


def disagreements(model: Model, person: np.ndarray, engine: str) -> list[str]:
    """Name every answer about one person that the oracle contradicts."""
    wrong = []
    fair = oracle.is_fair(model, person)
    match feta.verify(feta.FairAt(model, person), engine=engine):
        case feta.Fair():
            wrong += [] if fair else ["verdict: fair"]
        case feta.Unfair(counterexample=found):
            wrong += ["verdict: unfair"] if fair or found.gap < 0 else []
        case feta.Unknown():
            wrong.append("verdict: unknown")
    match feta.worst(model, person, engine=engine):
        case feta.Fair():
            wrong += [] if fair else ["worst: fair"]
        case feta.Unfair(counterexample=found, optimal=optimal):
            gap = abs(oracle.score(model, found.counterpart) - oracle.score(model, person))
            wrong += [] if optimal and gap == oracle.worst_gap(model, person) else ["worst: gap"]
        case feta.Unknown():
            wrong.append("worst: unknown")
    counts = feta.tally(model, person[None, :], engine=engine)
    if (int(counts.favorable[0]), int(counts.unfavorable[0])) != oracle.tally(model, person):
        wrong.append("tally")
    decided = feta.FairPredictor(model, engine).decide(person[None, :])[0]
    if bool(decided) != oracle.fair_decision(model, person):
        wrong.append("fair decision")
    if bool(model.decide(person[None, :])[0]) != oracle.decide(model, person):
        wrong.append("own decision")
    return wrong


def run(networks: int, seed: int, engine: str) -> Counter[str]:
    """Try this many networks; count cases by kind and disagreements by name."""
    counts: Counter[str] = Counter()
    for number in range(networks):
        case = random_case(np.random.default_rng([seed, number]), EDGES[number % len(EDGES)])
        counts[case.edge] += 1
        for person in case.people:
            counts["fair people" if oracle.is_fair(case.model, person) else "unfair people"] += 1
            scores = [
                oracle.score(case.model, other) for other in oracle.counterparts(case.model, person)
            ]
            counts["people with a counterpart on the threshold"] += (
                Fraction(case.model.rule.value) in scores
            )
            for name in disagreements(case.model, person, engine):
                counts[f"WRONG {name}"] += 1
                print(f"network {number} (seed {seed}, {case.edge}): {name}", file=sys.stderr)
    return counts


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", default="exhaustive")
    options = parser.parse_args()
    started = time.perf_counter()
    counts = run(options.networks, options.seed, options.engine)
    wrong = sum(count for name, count in counts.items() if name.startswith("WRONG"))
    for name, count in sorted(counts.items()):
        print(f"{name}: {count}")
    print(
        f"{wrong} disagreements in {options.networks} networks, {time.perf_counter() - started:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
