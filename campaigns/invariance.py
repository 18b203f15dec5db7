"""Campaign of invariance: all ways to compute the fair decisions give the same hash (S4).

    python -m campaigns.invariance [--people 220]

It decides all counterparts of each person of German credit, in batches of several sizes, in random
row order, with one thread and with two. 220 people × 456 counterparts are 100,320 decisions per
hash.
"""

import argparse
import hashlib
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from feta import FairPredictor, datasets
from feta.arrays import Matrix
from feta.cli.demo import train_model

BATCHES = (1, 2, 7, 64, 1000)


def decision_hash(predictor: FairPredictor, people: Matrix, batch: int, seed: int) -> str:
    """Decide people in batches and in random order; return the hash of the decisions."""
    order = np.random.default_rng(seed).permutation(len(people))
    decisions = np.zeros(len(people), dtype=bool)
    for start in range(0, len(people), batch):
        rows = order[start : start + batch]
        decisions[rows] = predictor.decide(people[rows])
    return hashlib.sha256(decisions.tobytes()).hexdigest()


def main() -> int:
    """Run from the command line; exit 1 unless all hashes are equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=220)
    options = parser.parse_args()
    started = time.perf_counter()
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    model = train_model(dataset, people, np.arange(len(people)) % 5 != 0, seed=0)
    counterparts = np.concatenate(
        [
            block
            for person in people[: options.people]
            for block in model.space.lattice.counterparts(person)
        ]
    )
    hashes = {}
    for threads in (1, 2):
        with threadpool_limits(threads):
            for batch in BATCHES:
                hashes[threads, batch] = decision_hash(
                    FairPredictor(model), counterparts, batch, batch
                )
    print(
        f"{len(counterparts)} decisions, {len(hashes)} ways, {len(set(hashes.values()))} hash(es)"
    )
    print(f"{time.perf_counter() - started:.0f} s")
    return 0 if len(set(hashes.values())) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
