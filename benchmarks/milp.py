"""Benchmark: the MILP engine on German credit, solver by solver, and the lattice engine beside it.

    python -m benchmarks.milp [--people 20] [--counted 6] [--seed 0]

Medians over the same people in one run, milliseconds a person of processor time, one thread: on a busy
machine the clock on the wall would measure the neighbors.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TypeVar, get_args

import numpy as np
from threadpoolctl import threadpool_limits

from feta import FairAt, WorstAt, datasets
from feta.arrays import Matrix, Vector
from feta.cli.demo import train_model
from feta.engine.lattice import LatticeEngine
from feta.engine.milp.counting import Counting
from feta.engine.milp.engine import MilpEngine
from feta.engine.milp.solver import Bounds
from feta.engine.protocol import UNLIMITED, Budget, Engine
from feta.engine.registry import engines
from feta.model import Model

Answer = TypeVar("Answer")

# Counting by cuts slows down with every cut.
PATIENCE = Budget(seconds=60)


def milliseconds(
    work: Callable[[Vector], Answer], people: Sequence[Vector]
) -> tuple[Vector, list[Answer]]:
    """Time some work on each person, after one that is not counted; give the answers, too."""
    work(people[0])
    times, answers = [], []
    for person in people:
        started = time.process_time()
        answers.append(work(person))
        times.append(1000 * (time.process_time() - started))
    return np.array(times), answers


def asked(model: Model, engine: Engine, people: Matrix) -> None:
    """Print how long finding and the farthest take."""
    for kind in (FairAt, WorstAt):
        times, verdicts = milliseconds(
            lambda one: engine.solve(kind(model, one), UNLIMITED),  # noqa: B023 - called at once
            list(people),
        )
        needed = times[[one.effort.solver_calls > 0 for one in verdicts]]
        rest = f"{np.median(needed):.1f}" if len(needed) else "-"
        print(
            f"| {engine.name} | {kind.__name__} | {np.median(times):.2f} | {rest} | {len(needed)}/{len(times)} |",
            flush=True,
        )


def counted(model: Model, engine: Engine, name: str, people: Matrix) -> float:
    """Print how long counting until the majority takes; give the median."""
    times, told = milliseconds(
        lambda one: engine.tally(model, one[None, :], PATIENCE, until="majority"), list(people)
    )
    decided = sum(bool(one.decided[0]) for one in told)
    each = np.median(times / np.array([max(1, int(one.by_class.sum())) for one in told]))
    print(f"| {name} | {np.median(times):.3f} | {each:.3f} | {decided}/{len(people)} |", flush=True)
    return float(np.median(times))


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # threadpoolctl has no types
def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--counted", type=int, default=6)
    parser.add_argument("--bounds", nargs="*", choices=get_args(Bounds), default=get_args(Bounds))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dataset = datasets.load("german")
    everyone = dataset.space.encode(dataset.frame)
    test = np.arange(len(everyone)) % 5 == 0
    model = train_model(dataset, everyone, ~test, seed=options.seed)
    people = everyone[test][: options.people]
    here = [one for one in engines().values() if isinstance(one, MilpEngine) and one.available()]

    print("| engine, bounds | question | median ms | where the solver was asked | asked |")
    print("|---|---|---|---|---|")
    for bounds in options.bounds:
        for one in here:
            name = f"{one.backend.name}, {bounds}"
            asked(model, MilpEngine(name, one.backend, bounds=bounds), people)
    asked(model, LatticeEngine(threads=1), people)

    split = LatticeEngine(threads=1).tally(model, people, UNLIMITED, until="all")
    both = people[(split.by_class > 0).all(axis=1)][: options.counted]
    print("\n| counting until the majority, people decided both ways | ms | a witness | settled |")
    print("|---|---|---|---|")
    pooled = []
    for one in here:
        for way in get_args(Counting) if one.backend.pools else ("cuts",):
            engine = MilpEngine(one.name, one.backend, counting=way)
            median = counted(model, engine, f"{one.backend.name}, {way}", both)
            pooled += [(median, one.backend.name)] * (way == "pool")
    lattice = LatticeEngine(threads=1)
    alone = counted(model, lattice, "lattice, one call a person", both)
    many = np.tile(both, (2000, 1))
    started = time.process_time()
    lattice.tally(model, many, UNLIMITED, until="majority")
    batch = 1000 * (time.process_time() - started) / len(many)
    print(f"| lattice, a batch of {len(many)}, one thread | {batch:.4f} | | |")
    for median, name in pooled:
        print(
            f"{name}'s pool ÷ lattice: {median / alone:.0f} single, {median / batch:.0f} in batch"
        )


if __name__ == "__main__":
    main()
