"""Campaign of blocks: answers of many people together, one by one, and by the oracle.

    python -m campaigns.blocks [--people 100000] [--each 200] [--oracle 20]

It draws people of German credit and answers them in blocks: the worst counterexample and any
counterexample. Of each block, some people are also answered alone, with exact arithmetic in Python,
and some by the oracle of the tests, which enumerates counterparts in fractions. The digests of all
verdicts are printed; another commit on the same machine prints the same ones.
"""

import argparse
import hashlib
import sys
import time
from collections import Counter

import numpy as np

from campaigns.result import finish
from feta import FairAt, Model, Unfair, WorstAt, datasets, verify
from feta.api import verify_many
from feta.arrays import Matrix, Vector
from feta.cli.demo import train_model
from feta.space.sampling import draw_people
from feta.verdict.verdict import Verdict
from tests import oracle

BLOCK = 1000


def key(verdict: Verdict) -> bytes:
    """Return everything that a verdict claims, without its cost."""
    name = type(verdict).__name__.encode()
    if not isinstance(verdict, Unfair):
        return name + verdict.runtime.encode()
    pair = verdict.counterexample
    numbers = np.concatenate([pair.person, pair.counterpart, pair.scores.ravel(), [pair.gap]])
    facts = f"{verdict.optimal} {pair.runtime} {pair.decisions}".encode()
    return name + facts + numbers.tobytes()


def check_alone(model: Model, person: Vector, answers: tuple[bytes, bytes]) -> str:
    """Compare both answers with those of the person alone, by the readable engine."""
    alone = (
        verify(WorstAt(model, person), engine="exhaustive"),
        verify(FairAt(model, person), engine="exhaustive"),
    )
    if key(alone[0]) != answers[0]:
        return "WRONG: another worst counterexample alone"
    same = isinstance(alone[1], Unfair) == answers[1].startswith(b"Unfair")
    return "alone: equal" if same else "WRONG: another verdict alone"


def check_oracle(model: Model, person: Vector, verdict: Verdict) -> str:
    """Compare with the largest gap of all counterparts, in fractions."""
    worst = oracle.worst_gap(model, person)
    gap = verdict.counterexample.gap if isinstance(verdict, Unfair) else None
    expected = None if worst is None else float(worst)
    return "oracle: equal" if gap == expected else "WRONG: another gap by the oracle"


def main() -> int:
    """Run from the command line; exit 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--each", type=int, default=20, help="people of a block answered alone")
    parser.add_argument("--oracle", type=int, default=1, help="people of a block by the oracle")
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    dataset = datasets.load("german")
    rows: Matrix = dataset.space.encode(dataset.frame)
    model = train_model(dataset, rows, np.arange(len(rows)) % 5 != 0, seed=0)
    digests = {"worst": hashlib.sha256(), "any": hashlib.sha256()}
    for start in range(0, options.people, BLOCK):
        random = np.random.default_rng(start)
        people = draw_people(model.space, random, min(BLOCK, options.people - start))
        worst = verify_many(WorstAt.each(model, people))
        found = verify_many(FairAt.each(model, people))
        for row, (largest, some) in enumerate(zip(worst, found, strict=True)):
            counts[type(largest).__name__] += 1
            counts["WRONG: both answers differ"] += type(largest) is not type(some)
            digests["worst"].update(key(largest))
            digests["any"].update(key(some))
            if row < options.each:
                counts[check_alone(model, people[row], (key(largest), key(some)))] += 1
            if row < options.oracle:
                counts[check_oracle(model, people[row], largest)] += 1
    for name, digest in digests.items():
        print(f"{name}: {digest.hexdigest()}")
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
