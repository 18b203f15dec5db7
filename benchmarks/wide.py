"""Benchmark of fair decisions by networks of many shapes, alternately in two builds.

    python -m benchmarks.wide --networks FOLDER [--other PYTHON] [--only NAME ...] [--people 60]

Networks are trained once, or drawn at random, and stored in the folder; a later call measures the
stored ones. `--train` only trains. With `--other`, the interpreter of another installation measures
the same people in turns with this one, so that changes of the machine's load affect both. Times are
processor times of one thread; the best round of each network counts. A forward pass is torch's for
a single row. The answers of both builds must be equal.
"""

import argparse
import hashlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.networks import random_model, train
from benchmarks.ways import lattice_engine
from feta import Model, datasets, load_model, save_model
from feta.arrays import Matrix
from feta.train.plain import PlainTrainer
from feta_paper.timing import forward_seconds

# Trained networks per row, each with its own seed and people.
SEEDS = 5


@dataclass(frozen=True)
class Row:
    """A kind of network: trained on a data set, or random over axes of these sizes."""

    data: Literal["adult", "german", "law", ""]
    hidden: tuple[int, ...]
    epochs: int = 15
    last: bool = False  # the last epoch instead of the best
    rate: float = 0.003
    batch: int = 256
    trained_on: int = 8000
    axes: tuple[int, ...] = ()

    def make(self, seed: int) -> tuple[Model, Matrix]:
        """Train or draw a network; return it with people whom it was not trained on."""
        if not self.data:
            return random_model(self.axes, self.hidden[0], len(self.hidden), seed)
        if not self.trained_on:  # as `python -m benchmarks` does
            trained = train(self.data, seed=seed, fold_number=seed)
            return trained.model, trained.people[:300]
        dataset = datasets.load(self.data)
        everyone = dataset.space.encode(dataset.frame)
        order = np.random.default_rng(seed).permutation(len(everyone))
        chosen, rest = order[: self.trained_on], order[self.trained_on :]
        trainer = PlainTrainer(
            dataset.space,
            hidden=self.hidden,
            learning_rates=(self.rate,),
            batch_sizes=(self.batch,),
            epochs=self.epochs,
            epoch="last" if self.last else "best",
            seed=seed,
        )
        run = trainer.train(everyone[chosen], dataset.labels[chosen])
        shared = everyone[rest][:, ~dataset.space.sensitive_columns]
        _, first = np.unique(shared, axis=0, return_index=True)
        return Model(dataset.space, run.network), everyone[rest][np.sort(first)][:300]


SMALL, LARGE = (57, 4, 2), (74, 41, 7, 5, 2)

ROWS = {
    "adult 64-64": Row("adult", (64, 64)),
    "adult 128-128-128": Row("adult", (128, 128, 128)),
    "adult 256-256": Row("adult", (256, 256)),
    "adult 3x16 long": Row("adult", (16, 16, 16), 150, last=True),
    "adult 3x16 validated": Row(
        "adult", (16, 16, 16), 100, rate=0.001, batch=128, trained_on=36_000
    ),
    "adult 3x16, 500 epochs": Row(
        "adult", (16, 16, 16), 500, rate=0.001, batch=128, trained_on=36_000
    ),
    "adult 3x16": Row("adult", (16, 16, 16), trained_on=0),
    "german 128-128-128": Row("german", (128, 128, 128), 60, batch=64, trained_on=800),
    "german 3x16": Row("german", (16, 16, 16), trained_on=0),
    "law 3x16": Row("law", (16, 16, 16), trained_on=0),
    "random 6x16, 456": Row("", (16,) * 6, axes=SMALL),
    "random 3x16, 456": Row("", (16,) * 3, axes=SMALL),
    "random 3x128, 456": Row("", (128,) * 3, axes=SMALL),
    "random 3x16, 212380": Row("", (16,) * 3, axes=LARGE),
    "random 6x16, 212380": Row("", (16,) * 6, axes=LARGE),
}


def stored(folder: Path, name: str, seed: int) -> tuple[Path, Path]:
    """Return the files of a network and of its people; make them if they are missing."""
    stem = f"{name.replace(' ', '-').replace(',', '')}-{seed}"
    model_path, people_path = folder / f"{stem}.feta", folder / f"{stem}.npy"
    if not people_path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        model, people = ROWS[name].make(seed)
        save_model(model, model_path)
        np.save(people_path, people)
        print(f"made {stem}", flush=True)
    return model_path, people_path


class Worker:
    """A process that decides people in one build."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.wide", "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, model: Path, people: Path, count: int) -> tuple[float, str]:
        """Decide people; return seconds per person and a digest of the answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(model), str(people), count]) + "\n")
        self._process.stdin.flush()
        seconds, digest = json.loads(self._process.stdout.readline())
        return seconds, digest

    def __enter__(self) -> Self:
        """Return the worker."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._process.communicate()


def work() -> None:
    """Answer the requests of a `Worker`."""
    lattice_engine().threads = 1
    models: dict[str, tuple[Model, Matrix]] = {}
    for line in sys.stdin:
        model_path, people_path, count = json.loads(line)
        if model_path not in models:
            models[model_path] = load_model(model_path), np.load(people_path)
            model, people = models[model_path]
            lattice_engine().majority(model, people[:1])  # builds the kernel
        model, people = models[model_path]
        some = np.ascontiguousarray(people[:count])
        started = time.process_time()
        decisions = lattice_engine().majority(model, some)
        seconds = (time.process_time() - started) / len(some)
        answers = b"" if decisions is None else np.asarray(decisions).tobytes()
        print(json.dumps([seconds, hashlib.sha256(answers).hexdigest()]), flush=True)


def rounds(
    workers: list[Worker], files: tuple[Path, Path], count: int, repeats: int
) -> tuple[float, list[float]]:
    """Measure a network alternately; return the forward pass's time and each build's best."""
    model, people = load_model(files[0]), np.load(files[1])
    unit, best = math.inf, [math.inf] * len(workers)
    for _ in range(repeats):
        unit = min(unit, forward_seconds(model, people[:1]))
        digests = set()
        for index, worker in enumerate(workers):
            seconds, digest = worker.ask(*files, count)
            best[index] = min(best[index], seconds)
            digests.add(digest)
        if len(digests) > 1:
            raise AssertionError(f"the builds give different answers: {files[0]}")
    return unit, best


def measure(
    folder: Path, names: list[str], workers: list[Worker], options: argparse.Namespace
) -> Iterator[str]:
    """Measure all networks; yield the lines of a table."""
    yield "| networks | forward passes per person, this build | the other build | factor |"
    yield "|---|---|---|---|"
    for name in names:
        units, times = [], []
        for seed in range(options.seeds):
            files = stored(folder, name, seed)
            unit, best = rounds(workers, files, options.people, options.repeats)
            units.append(unit)
            times.append(best)
        ratios = np.array(times) / np.array(units)[:, None]
        this = f"{ratios[:, 0].mean():.3g} ({', '.join(f'{value:.3g}' for value in ratios[:, 0])})"
        if len(workers) == 1:
            yield f"| {name} | {this} | | |"
            continue
        factors = ratios[:, 1] / ratios[:, 0]
        other = f"{ratios[:, 1].mean():.3g} ({', '.join(f'{value:.3g}' for value in ratios[:, 1])})"
        each = ", ".join(f"{value:.2f}" for value in factors)
        overall = ratios[:, 1].mean() / ratios[:, 0].mean()
        yield f"| {name} | {this} | {other} | {overall:.2f} ({each}) |"


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # threadpoolctl has no types
def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=Path, help="folder of the stored networks")
    parser.add_argument("--train", action="store_true", help="only make missing networks")
    parser.add_argument("--other", help="the Python interpreter of another installation")
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.worker:
        work()
        return
    if options.networks is None:
        parser.error("name a folder with --networks; missing networks are trained and stored there")
    for seed in range(options.seeds):
        for name in options.only:
            stored(options.networks, name, seed)
    if options.train:
        return
    pythons = [sys.executable, *([options.other] if options.other else [])]
    workers = [Worker(python) for python in pythons]
    try:
        for line in measure(options.networks, options.only, workers, options):
            print(line, flush=True)
    finally:
        for worker in workers:
            worker.__exit__()


if __name__ == "__main__":
    main()
