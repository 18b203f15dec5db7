"""Campaign of random networks against the exact oracle, a third of them at the edge.

    python -m campaigns.core [--networks 10000] [--seed 0] [--engine exhaustive] [--all]

It counts differences in verdict, worst gap, tally and fair decision, and any Unknown on a finite
lattice. With --all, networks have every activation, rules of every kind, and vote weights.
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
from feta.scorer.network import native_kernel
from feta.space.vote_weights import VoteWeights
from tests import oracle
from tests.strategies import EDGES, Case, random_case


def disagreements(
    model: Model, person: Vector, engine: str, weights: VoteWeights | None = None
) -> list[str]:
    """Name every result for one person that the oracle contradicts."""
    fair = oracle.is_fair(model, person)
    wrong = _wrong_verdict(feta.verify(feta.FairAt(model, person), engine=engine), fair=fair)
    match feta.worst(model, person, engine=engine):
        case feta.Unfair(counterexample=pair, optimal=optimal):
            gap = oracle.gap(model, pair.person, pair.counterpart)
            if not optimal or gap != oracle.worst_gap(model, person) or pair.gap != float(gap):
                wrong.append("worst: gap")
        case verdict:
            wrong += [f"worst, {name}" for name in _wrong_verdict(verdict, fair=fair)]
    decision = feta.FairPredictor(model, engine, weights=weights).decide(person[None, :])[0]
    if decision != float(oracle.fair_decision(model, person, weights)):
        wrong.append("fair decision")
    if model.rule.tolerance is not None:
        return wrong + _wrong_spread(model, person, engine)
    counts = feta.tally(model, person[None, :], engine=engine)
    if counts.by_class[0].tolist() != oracle.tally(model, person) or counts.undecided[0]:
        wrong.append("tally")
    if int(model.decide(person[None, :])[0]) != oracle.decide(model, person):
        wrong.append("model decision")
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
    spread = feta.spread(model, person[None, :], engine=engine)
    scores = [oracle.score(model, other) for other in oracle.counterparts(model, person)]
    expected = (float(min(scores)), float(max(scores)))
    return [] if (spread.lowest[0], spread.highest[0]) == expected else ["spread"]


def describe(case: Case, person: Vector) -> list[str]:
    """Name the kinds of a case."""
    model = case.model
    kinds = [f"rule {type(model.rule).__name__}", f"edge {case.edge}"]
    kinds += ["with vote weights"] * (case.weights is not None)
    names = {activation.name for activation in model.network.activations}
    kinds += [f"activation {name}" for name in names]
    kinds.append("fair people" if oracle.is_fair(model, person) else "unfair people")
    return kinds


def run(networks: int, seed: int, engine: str, *, plain: bool) -> Counter[str]:
    """Check this many networks; count cases by kind and disagreements by name."""
    counts: Counter[str] = Counter()
    for number in range(networks):
        rng = np.random.default_rng([seed, number])
        native_kernel.FORMS_FROM = 1 if number % 2 else 4096  # of the engine `lattice`
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
