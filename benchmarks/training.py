"""Benchmark: what CE-Fair training costs beside plain training of the same network for as many epochs.

    python -m benchmarks.training [--epochs 50] [--tries 5] [--seed 0]

German credit, every person searched in every epoch (rho = 1), batches of 64, one network, nothing stacked.
Processor time of one thread, by turns; neighbors on the machine only ever add to it, so the best counts.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from feta import datasets
from feta.train.ce_fair import CEFairTrainer
from feta.train.plain import PlainTrainer
from feta.train.worst_counterparts import Numbers

BATCH, RATE = 64, 1e-3
KINDS: tuple[Numbers, ...] = ("integer", "real")


def seconds(work: Callable[[], object]) -> float:
    """Take the processor time of some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # threadpoolctl has no types
def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    learn = np.random.default_rng(options.seed).permutation(len(people)) >= len(people) // 5
    people, labels = people[learn], dataset.labels[learn]
    plain = PlainTrainer(
        dataset.space,
        learning_rates=(RATE,),
        batch_sizes=(BATCH,),
        epochs=options.epochs,
        seed=options.seed,
    )
    network = plain.train(people, labels).network  # also warms up
    trainings: dict[str, Callable[[], object]] = {"plain": partial(plain.train, people, labels)}
    for numbers in KINDS:
        fair = CEFairTrainer(
            dataset.space,
            sensitive_numbers=numbers,
            learning_rate=RATE,
            batch_size=BATCH,
            epochs=options.epochs,
            seed=options.seed,
        )
        trainings[f"CE-Fair, {numbers} age"] = partial(fair.train, network, people, labels)
    print(f"| try | {' | '.join(trainings)} |\n|---|{'---|' * len(trainings)}")
    tries: list[list[float]] = []
    for number in range(options.tries):
        tries.append([seconds(one) for one in trainings.values()])
        print(f"| {number + 1} | {' | '.join(f'{one:.2f} s' for one in tries[-1])} |", flush=True)
    best = np.min(tries, axis=0)
    print(f"| best | {' | '.join(f'{one:.2f} s' for one in best)} |")
    print(f"| best ÷ plain | {' | '.join(f'{one:.2f}' for one in best / best[0])} |")


if __name__ == "__main__":
    main()
