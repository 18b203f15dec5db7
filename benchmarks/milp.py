"""Benchmark of the MILP engine on German credit, by solver, compared with the lattice engine.

    python -m benchmarks.milp [--people 20] [--counted 6] [--seed 0]

Times are medians over the same people in one run, in milliseconds of processor time per person, one
thread: on a busy machine, wall-clock times would include other processes.
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
from feta.engine.protocol import UNLIMITED, Budget, Engine
from feta.engine.registry import engines
from feta.model import Model
from feta.scorer.program_encoder import ProgramBounds

Answer = TypeVar("Answer")

# Counting by cuts slows down with every cut.
COUNTING_BUDGET = Budget(seconds=60)


def milliseconds(
    work: Callable[[Vector], Answer], people: Sequence[Vector]
) -> tuple[Vector, list[Answer]]:
    """Measure some work on each person, after a call to warm up; return its results, too."""
    work(people[0])
    times, answers = [], []
    for person in people:
        started = time.process_time()
        answers.append(work(person))
        times.append(1000 * (time.process_time() - started))
    return np.array(times), answers


def print_queries(model: Model, engine: Engine, people: Matrix) -> None:
    """Print the times of finding a counterexample and the worst one."""
    for kind in (FairAt, WorstAt):
        times, verdicts = milliseconds(
            lambda person: engine.solve(kind(model, person), UNLIMITED),  # noqa: B023 - called at once
            list(people),
        )
        solver_times = times[[verdict.effort.solver_calls > 0 for verdict in verdicts]]
        solver_median = f"{np.median(solver_times):.1f}" if len(solver_times) else "-"
        print(
            f"| {engine.name} | {kind.__name__} | {np.median(times):.2f} "
            f"| {solver_median} | {len(solver_times)}/{len(times)} |",
            flush=True,
        )


def print_counting(model: Model, engine: Engine, name: str, people: Matrix) -> float:
    """Print the time of counting until the majority is certain; return the median."""
    times, tallies = milliseconds(
        lambda person: engine.tally(model, person[None, :], COUNTING_BUDGET, until="majority"),
        list(people),
    )
    decided = sum(bool(tally.decided[0]) for tally in tallies)
    counts = np.array([max(1, int(tally.by_class.sum())) for tally in tallies])
    each = np.median(times / counts)
    print(f"| {name} | {np.median(times):.3f} | {each:.3f} | {decided}/{len(people)} |", flush=True)
    return float(np.median(times))


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # threadpoolctl has no types
def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--counted", type=int, default=6)
    bounds = get_args(ProgramBounds)
    parser.add_argument("--bounds", nargs="*", choices=bounds, default=bounds)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dataset = datasets.load("german")
    everyone = dataset.space.encode(dataset.frame)
    test = np.arange(len(everyone)) % 5 == 0
    model = train_model(dataset, everyone, ~test, seed=options.seed)
    people = everyone[test][: options.people]
    installed = [
        engine
        for engine in engines().values()
        if isinstance(engine, MilpEngine) and engine.available()
    ]

    print("| engine, bounds | query | median ms | if the solver was called | called |")
    print("|---|---|---|---|---|")
    for bounds in options.bounds:
        for engine in installed:
            name = f"{engine.backend.name}, {bounds}"
            print_queries(model, MilpEngine(name, engine.backend, bounds=bounds), people)
    print_queries(model, LatticeEngine(threads=1), people)

    split = LatticeEngine(threads=1).tally(model, people, UNLIMITED, until="all")
    unfair_people = people[(split.by_class > 0).all(axis=1)][: options.counted]
    print(
        "\n| counting until the majority, people with a counterexample "
        "| ms | per witness | decided |"
    )
    print("|---|---|---|---|")
    pooled = []
    for engine in installed:
        solver = engine.backend.name
        for way in get_args(Counting) if engine.backend.pools else ("cuts",):
            counting = MilpEngine(engine.name, engine.backend, counting=way)
            median = print_counting(model, counting, f"{solver}, {way}", unfair_people)
            pooled += [(median, solver)] * (way == "pool")
    lattice = LatticeEngine(threads=1)
    single = print_counting(model, lattice, "lattice, one call per person", unfair_people)
    repeated = np.tile(unfair_people, (2000, 1))
    started = time.process_time()
    lattice.tally(model, repeated, UNLIMITED, until="majority")
    batch = 1000 * (time.process_time() - started) / len(repeated)
    print(f"| lattice, a batch of {len(repeated)}, one thread | {batch:.4f} | | |")
    for median, name in pooled:
        print(
            f"{name}'s pool ÷ lattice: {median / single:.0f} single, {median / batch:.0f} in batch"
        )


if __name__ == "__main__":
    main()
