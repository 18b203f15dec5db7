"""Benchmark: the MILP engine on German credit, solver by solver, and the lattice engine beside it.

    python -m benchmarks.milp [--people 20] [--counted 6] [--seed 0]

Times are medians over the same people in one run, milliseconds a person.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np

from feta import FairAt, WorstAt, datasets
from feta.arrays import Matrix, Vector
from feta.cli.demo import train_model
from feta.engine.lattice import Lattice
from feta.engine.milp.counting import Counting
from feta.engine.milp.engine import Milp
from feta.engine.milp.solver import Bounds
from feta.engine.protocol import UNLIMITED, Engine
from feta.engine.registry import engines
from feta.model import Model


def milliseconds(work: Callable[[Vector], object], people: Sequence[Vector]) -> Vector:
    """Time some work on each person, after one that is not counted."""
    work(people[0])
    times = []
    for person in people:
        started = time.perf_counter()
        work(person)
        times.append(1000 * (time.perf_counter() - started))
    return np.array(times)


def asked(model: Model, engine: Engine, people: Matrix) -> None:
    """Print how long finding and the farthest take."""
    for kind in (FairAt, WorstAt):
        calls = [
            engine.solve(kind(model, person), UNLIMITED).effort.solver_calls for person in people
        ]
        times = milliseconds(lambda one: engine.solve(kind(model, one), UNLIMITED), list(people))  # noqa: B023 - called at once
        needed = times[np.array(calls) > 0]
        rest = f"{np.median(needed):.1f}" if len(needed) else "-"
        print(
            f"| {engine.name} | {kind.__name__} | {np.median(times):.2f} | {rest} | {len(needed)}/{len(times)} |",
            flush=True,
        )


def counted(model: Model, engine: Engine, name: str, people: Matrix) -> float:
    """Print how long counting until the majority takes; give the median."""
    times = milliseconds(
        lambda one: engine.tally(model, one[None, :], UNLIMITED, until="majority"), list(people)
    )
    told = engine.tally(model, people, UNLIMITED, until="majority")
    settled = int(told.settled.sum())
    print(f"| {name} | {np.median(times):.3f} | {settled}/{len(people)} |", flush=True)
    return float(np.median(times))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--counted", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dataset = datasets.load("german")
    everyone = dataset.space.encode(dataset.frame)
    test = np.arange(len(everyone)) % 5 == 0
    model = train_model(dataset, everyone, ~test, seed=options.seed)
    people = everyone[test][: options.people]
    here = [one for one in engines().values() if isinstance(one, Milp) and one.available()]

    print("| engine, bounds | question | median ms | where the solver was asked | asked |")
    print("|---|---|---|---|---|")
    for bounds in get_args(Bounds):
        for one in here:
            name = f"{one.backend.name}, {bounds}"
            asked(model, Milp(name, one.backend, bounds=bounds), people)
    asked(model, Lattice(threads=1), people)

    split = Lattice(threads=1).tally(model, people, UNLIMITED, until="all")
    both = people[(split.by_class > 0).all(axis=1)][: options.counted]
    print("\n| counting until the majority, people decided both ways | median ms | settled |")
    print("|---|---|---|")
    pooled = []
    for one in here:
        for way in get_args(Counting) if one.backend.pools else ("cuts",):
            engine = Milp(one.name, one.backend, counting=way)
            median = counted(model, engine, f"{one.backend.name}, {way}", both)
            pooled += [(median, one.backend.name)] * (way == "pool")
    lattice = Lattice(threads=1)
    alone = counted(model, lattice, "lattice, one call a person", both)
    started = time.perf_counter()
    many = np.tile(both, (2000, 1))
    lattice.tally(model, many, UNLIMITED, until="majority")
    batch = 1000 * (time.perf_counter() - started) / len(many)
    print(f"| lattice, a batch of {len(many)}, one thread | {batch:.4f} | |")
    for median, name in pooled:
        print(
            f"{name}'s pool ÷ lattice: {median / alone:.0f} single, {median / batch:.0f} in batch"
        )


if __name__ == "__main__":
    main()
