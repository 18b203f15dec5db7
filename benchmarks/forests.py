"""Benchmark of fair decisions by tree ensembles, compared with the library's own raw score.

    python -m benchmarks.forests [--data german adult] [--cases xgboost-100x6 ...] [--people 200]

One call of `FairPredictor.decide` for one encoded person and one call of the library for the same
person alternate, on one thread. Times are processor times, means over the people, of the best of
several rounds; the ratio is that of the same round. Input rows are prepared beforehand. Batches are
measured for random forests, whose library has no fast call for one person.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.forest_cases import CASES, Trained
from feta import FairAt, FairPredictor, Model, WorstAt
from feta.arrays import Matrix
from feta.datasets import load as load_dataset
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED
from feta.engine.registry import engines

# People that the exhaustive engine also counts; each takes milliseconds or seconds.
ENUMERATED = 2


@dataclass(frozen=True, slots=True)
class Times:
    """Processor seconds per person of both calls."""

    ours: float
    library: float

    @property
    def ratio(self) -> float:
        """Our time relative to the library's."""
        return self.ours / self.library


def alternate(ours: Callable[[int], object], library: Callable[[int], object], count: int) -> Times:
    """Call both for each person, one after the other."""
    spent = np.zeros(2)
    clock = time.process_time_ns
    for person in range(count):
        start = clock()
        ours(person)
        middle = clock()
        library(person)
        spent += (middle - start, clock() - middle)
    return Times(*(spent / count * 1e-9).tolist())


def best(rounds: list[Times]) -> Times:
    """Return the round in which our call took the least time."""
    return min(rounds, key=lambda times: times.ours)


def seconds(call: Callable[[], object], *, repeats: int = 5) -> float:
    """Return the processor time of a call, best of several."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def check(model: Model, people: Matrix) -> None:
    """Compare the counts of a few people with those of the exhaustive engine."""
    few = people[:ENUMERATED]
    found = LatticeEngine(threads=1).tally(model, few, UNLIMITED, until="all").by_class
    expected = ExhaustiveEngine().tally(model, few, UNLIMITED, until="all").by_class
    np.testing.assert_array_equal(found, expected)


def measure_calls(model: Model, people: Matrix, trained: Trained, n_rounds: int) -> str:
    """Return the times of single calls and of batches as columns of a table."""
    predictor = FairPredictor(model)
    rows = [people[index : index + 1] for index in range(len(people))]

    def run(count: int) -> Times:
        inputs = [trained.prepare(trained.inputs[index : index + 1]) for index in range(count)]
        return alternate(
            lambda person: predictor.decide(rows[person]),
            lambda person: trained.raw_score(inputs[person]),
            count,
        )

    run(min(20, len(people)))
    rounds = [run(len(people)) for _ in range(n_rounds)]
    ratios = sorted(times.ratio for times in rounds)
    times = best(rounds)
    return (
        f"{times.ours * 1e6:,.1f} | {times.library * 1e6:,.1f} | {times.ratio:.2f} | "
        f"{ratios[len(ratios) // 2]:.2f}"
    )


def measure_batches(model: Model, people: Matrix, trained: Trained) -> str:
    """Return the times of batches, in microseconds per person."""
    lattice = engines()["lattice"]
    calls: list[Callable[[], Any]] = [
        lambda: lattice.majority(model, people),
        lambda: trained.raw_score(trained.prepare(trained.inputs)),
        lambda: lattice.solve_many(FairAt.each(model, people), UNLIMITED),
        lambda: lattice.solve_many(WorstAt.each(model, people), UNLIMITED),
        lambda: lattice.tally(model, people, UNLIMITED, until="all"),
    ]
    return " | ".join(f"{seconds(call) / len(people) * 1e6:,.1f}" for call in calls)


def main() -> None:
    """Train and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["german", "adult"])
    parser.add_argument("--cases", nargs="+", default=sorted(CASES), choices=sorted(CASES))
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", action="store_true", help="also measure batches")
    parser.add_argument("--check", action="store_true", help="compare counts with exhaustive")
    arguments = parser.parse_args()
    engines()["lattice"].threads = 1  # type: ignore[attr-defined]  # one thread on both sides
    print("| data | model | library | ours µs | library µs | ratio | median ratio |")
    for name in arguments.data:
        data = load_dataset(name)
        chosen = np.random.default_rng(0).choice(len(data.frame), arguments.people, replace=False)
        people = data.space.encode(data.frame.iloc[chosen])
        for case in arguments.cases:
            trained = CASES[case](data, chosen)
            model = Model(data.space, trained.forest, trained.rule)
            with threadpool_limits(1):
                if arguments.check:
                    check(model, people)
                columns = measure_calls(model, people, trained, arguments.rounds)
                print(f"| {name} | {case} | {trained.library} | {columns} |", flush=True)
                if arguments.batches:
                    print(f"| {name} | {case}, batch | {measure_batches(model, people, trained)} |")


if __name__ == "__main__":
    main()
