"""Benchmark of fair decisions by tree ensembles, compared with the library's own prediction.

    python -m benchmarks.forests [--trees 100] [--depth 6] [--people 300] [--data german]

Times are processor times of one thread per person, best of five. The ensemble is trained by
XGBoost on all rows of a data set.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import xgboost
from threadpoolctl import threadpool_limits

from feta import FairAt, Model, WorstAt
from feta.arrays import Array, Matrix
from feta.datasets import load as load_dataset
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED
from feta.readers.xgboost.read import read_xgboost
from feta.space.attribute import Categorical

# People that the exhaustive engine decides; each takes milliseconds or seconds.
ENUMERATED = 5


def seconds(call: Callable[[], object], *, repeats: int = 5) -> float:
    """Return the processor time of a call, best of several."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def train(name: str, trees: int, depth: int) -> tuple[Model, Matrix, pd.DataFrame, Array]:
    """Return a model, its people, and the ensemble that XGBoost trained."""
    data = load_dataset(name)
    frame = data.frame.copy()
    for attribute in data.space.attributes:
        if isinstance(attribute, Categorical):
            frame[attribute.name] = pd.Categorical(frame[attribute.name], attribute.values)
    booster = xgboost.XGBClassifier(
        n_estimators=trees, max_depth=depth, enable_categorical=True, tree_method="hist", n_jobs=1
    ).fit(frame, data.labels)
    model = Model(data.space, read_xgboost(booster, data.space))
    return model, data.space.encode(frame), frame, booster


def measure(model: Model, people: Matrix, frame: pd.DataFrame, booster: Array) -> None:
    """Print the times of each way to decide."""
    lattice, exhaustive = LatticeEngine(threads=1), ExhaustiveEngine()
    assert lattice.accepts(FairAt(model, people[0]))
    few, n_people = people[:ENUMERATED], len(people)

    def all_of(engine: LatticeEngine | ExhaustiveEngine, rows: Matrix) -> Array:
        return engine.tally(model, rows, UNLIMITED, until="all").by_class

    np.testing.assert_array_equal(all_of(lattice, few), all_of(exhaustive, few))
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "XGBoost, raw scores, a batch": (lambda: booster.predict(frame, output_margin=True), 0),
        "XGBoost, raw scores, one row": (
            lambda: booster.predict(frame[:1], output_margin=True),
            1,
        ),
        "majority, a batch": (lambda: lattice.majority(model, people), 0),
        "majority, one row": (lambda: lattice.majority(model, people[:1]), 1),
        "tally with label, a batch": (lambda: all_of(lattice, people), 0),
        "verify": (
            lambda: lattice.solve_many(FairAt.each(model, people), UNLIMITED),
            0,
        ),
        "worst": (lambda: lattice.solve_many(WorstAt.each(model, people), UNLIMITED), 0),
        "exhaustive, tally": (lambda: all_of(exhaustive, few), ENUMERATED),
    }
    print(f"{model.space.lattice.size:,} counterparts, {n_people} people")
    for name, (call, count) in ways.items():
        repeats = 2 if "exhaustive" in name else 5
        time_each = seconds(call, repeats=repeats) / (count or n_people)
        print(f"| {name} | {time_each * 1e6:,.1f} µs per person |", flush=True)


def main() -> None:
    """Train and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="german")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--people", type=int, default=300)
    arguments = parser.parse_args()
    model, people, frame, booster = train(arguments.data, arguments.trees, arguments.depth)
    rows = slice(0, arguments.people)
    with threadpool_limits(1):
        measure(model, people[rows], frame[rows], booster)


if __name__ == "__main__":
    main()
