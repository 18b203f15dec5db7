"""Benchmark: what CE-Fair training costs beside plain training of the same network for as many epochs.

    python -m benchmarks.training [--epochs 50] [--tries 3] [--seed 0]

German credit, every person searched in every epoch (rho = 1), batches of 64, one network, nothing stacked.
Processor time of one thread, both by turns.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from feta import datasets
from feta.train.ce_fair import CEFairTrainer
from feta.train.farthest import Numbers
from feta.train.plain import PlainTrainer

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
    parser.add_argument("--tries", type=int, default=3)
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
    print(
        "| plain, s | whole numbers, s | ÷ plain | real age, s | ÷ plain |\n|---|---|---|---|---|"
    )
    for _ in range(options.tries):
        unit = seconds(lambda: plain.train(people, labels))
        cells = [f"{unit:.2f}"]
        for numbers in KINDS:
            fair = CEFairTrainer(
                dataset.space,
                sensitive_numbers=numbers,
                learning_rate=RATE,
                batch_size=BATCH,
                epochs=options.epochs,
                seed=options.seed,
            )
            spent = seconds(lambda: fair.train(network, people, labels))  # noqa: B023 - called at once
            cells += [f"{spent:.2f}", f"{spent / unit:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
