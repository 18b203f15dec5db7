"""Benchmark of CE-Fair training compared with plain training for the same number of epochs.

    python -m benchmarks.training [--epochs 50] [--tries 5] [--seed 0]

It trains one network at a time on German credit in batches of 64, and searches for every person in
every epoch (sample fraction 1). It measures processor times of one thread, alternately. Other
processes can only increase them, so the best one counts.
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
    """Measure the processor time of some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def _row(times: list[float]) -> str:
    return " | ".join(f"{value:.2f} s" for value in times)


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
    training_rows = np.random.default_rng(options.seed).permutation(len(people)) >= len(people) // 5
    people, labels = people[training_rows], dataset.labels[training_rows]
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
        tries.append([seconds(training) for training in trainings.values()])
        print(f"| {number + 1} | {_row(tries[-1])} |", flush=True)
    best = np.min(tries, axis=0)
    print(f"| best | {_row(best.tolist())} |")
    print(f"| best ÷ plain | {' | '.join(f'{ratio:.2f}' for ratio in best / best[0])} |")


if __name__ == "__main__":
    main()
