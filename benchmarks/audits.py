"""Processor time of audits and single answers on German credit.

    python -m benchmarks.audits [--people 12000] [--rounds 3]

It audits two tables with `feta audit --out`, a long one and a short one, and divides the difference
of their times by the difference of their rows: start and report do not count. The rows are those of
the data set, with numbers that are not sensitive taken from other rows, so that people differ. The
model is the demo's, stored in a file: no library of the user takes part. Single people are answered
in a loop.
"""

import argparse
import contextlib
import csv
import io
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feta import FairAt, Model, WorstAt, datasets, verify
from feta.api import verify_many
from feta.arrays import Matrix
from feta.cli.demo import train_model
from feta.cli.run_command import run_command
from feta.datasets.dataset import Dataset
from feta.io.model_file import save_model
from feta.space.attribute import Integer, Real

if TYPE_CHECKING:
    from collections.abc import Callable

SHORT = 4000  # the report measures proxies on fewer people
SINGLE = 200


def write_table(path: Path, dataset: Dataset, n_people: int) -> None:
    """Write people who differ, in the mix of the data set, with labels."""
    random = np.random.default_rng(0)
    chosen = random.integers(0, len(dataset.frame), n_people)
    frame = dataset.frame.iloc[chosen].reset_index(drop=True)
    for attribute in dataset.space.attributes:
        if isinstance(attribute, Integer | Real) and not attribute.sensitive:
            others = dataset.frame[attribute.name].sample(n_people, replace=True, random_state=1)
            keep = random.random(n_people) < 0.3
            frame[attribute.name] = frame[attribute.name].where(keep, others.to_numpy())
    names = np.array([dataset.unfavorable, dataset.favorable])
    frame.assign(credit=names[dataset.labels[chosen].astype(int)]).to_csv(path, index=False)


def audit_seconds(model: Path, table: Path, out: Path) -> float:
    """Return the processor time of a whole command."""
    command = ["audit", str(model), "--data", str(table), "--label", "credit", "--out", str(out)]
    started = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run_command(command)
    return time.process_time() - started


def per_person(model: Model, people: Matrix, rounds: int) -> dict[str, float]:
    """Return the microseconds of answers one by one, and in a block; the best of all rounds."""
    some = people[np.random.default_rng(1).permutation(len(people))[:SINGLE]]
    ways: dict[str, Callable[[], object]] = {
        "verify": lambda: [verify(FairAt(model, person)) for person in some],
        "worst": lambda: [verify(WorstAt(model, person)) for person in some],
        "verify, in blocks": lambda: verify_many(FairAt.each(model, some)),
        "worst, in blocks": lambda: verify_many(WorstAt.each(model, some)),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            started = time.process_time()
            way()
            best[name] = min(best[name], (time.process_time() - started) / len(some) * 1e6)
    return best


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=14_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    model = train_model(dataset, people, np.arange(len(people)) % 5 != 0, seed=0)
    with tempfile.TemporaryDirectory(prefix="audits_") as name:
        folder = Path(name)
        save_model(model, folder / "model.feta")
        sizes = {"short": SHORT, "long": options.people}
        for table, size in sizes.items():
            write_table(folder / f"{table}.csv", dataset, size)
        times = []
        audit_seconds(folder / "model.feta", folder / "short.csv", folder / "first")  # imports
        for _ in range(options.rounds):
            seconds = {
                table: audit_seconds(folder / "model.feta", folder / f"{table}.csv", folder / table)
                for table in sizes
            }
            times.append((seconds["long"] - seconds["short"]) / (options.people - SHORT) * 1e6)
            print(f"audit --out: {times[-1]:.1f} µs per person; whole commands: {seconds}")
        with (folder / "long" / "verdicts.csv").open(encoding="utf-8") as file:
            statuses = [row["verdict"] for row in csv.DictReader(file)]
        unfair = statuses.count("unfair") / len(statuses)
        print(f"audit --out: median {statistics.median(times):.1f} µs; {unfair:.1%} unfair")
    for way, microseconds in per_person(model, people, options.rounds).items():
        print(f"{way}: {microseconds:.1f} µs per person")
    return 0


if __name__ == "__main__":
    sys.exit(main())
