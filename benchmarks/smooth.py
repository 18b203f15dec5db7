"""Benchmark of smooth activations in the compiled kernel, compared with ReLU, in one run.

    python -m benchmarks.smooth [--names german adult] [--activations tanh gelu] [--networks 5]

Each network has three hidden layers of 16 and is trained on the data set, one per seed. Each row is
the processor time of one thread per person, the mean over the networks, and its ratio to ReLU:
counting all counterparts, verdicts in a batch, without and with the gaps of counterexamples, and
fair decisions by majority. `--models DIR` keeps the trained networks there, so that a measurement
need not train. UCI Adult is read from the folder FETA_DATA_DIR.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.networks import TRAINING, Trained, train
from benchmarks.votes import measured
from benchmarks.ways import lattice_engine
from feta import FairAt, FairPredictor, Unfair, load_model, save_model
from feta.arrays import Matrix
from feta.engine.protocol import UNLIMITED
from feta.model import Model
from feta.verdict.verdict import Verdict

# People per network, drawn from those who are measured.
PEOPLE = 400


def trained_model(name: str, activation: str, seed: int, folder: Path | None) -> Trained:
    """Train a network, or load it with its people."""
    if folder is None:
        return train(name, seed=seed, activation=activation)
    file = folder / f"{name}-{activation}-{seed}.feta"
    rows = file.with_suffix(".npy")
    if not file.exists():
        trained = train(name, seed=seed, activation=activation)
        save_model(trained.model, file)
        np.save(rows, trained.people)
    people = np.load(rows)
    return Trained(name, load_model(file), people, people, 0.0)


def ways(model: Model, people: Matrix) -> dict[str, Callable[[], object]]:
    """Return what is measured."""
    engine, queries = lattice_engine(), [FairAt(model, person) for person in people]
    predictor = FairPredictor(model)
    return {
        "count": lambda: engine.tally(model, people, UNLIMITED, until="all"),
        "verdict, batch": lambda: engine.solve_many(queries, UNLIMITED),
        "verdict and gap, batch": lambda: gaps(engine.solve_many(queries, UNLIMITED)),
        "fair decision": lambda: predictor.decide(people),
    }


def gaps(verdicts: Sequence[Verdict]) -> list[float]:
    """Read the gaps of counterexamples, as an audit does."""
    return [verdict.counterexample.gap for verdict in verdicts if isinstance(verdict, Unfair)]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", nargs="+", default=["german", "adult"], choices=list(TRAINING))
    parser.add_argument("--activations", nargs="+", default=["tanh", "gelu"])
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--models", type=Path)
    options = parser.parse_args()
    lattice_engine().threads = 1
    with threadpool_limits(1):
        for name in options.names:
            compare(name, ["relu", *options.activations], options)


def compare(name: str, activations: list[str], options: argparse.Namespace) -> None:
    """Print the mean time of each activation and way, and its ratio to the first activation."""
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for seed in range(options.networks):
        cases: dict[str, Callable[[], object]] = {}
        names: dict[str, tuple[str, str]] = {}
        sizes = {}
        for activation in activations:
            trained = trained_model(name, activation, seed, options.models)
            people = trained.people[: options.people]
            sizes[activation] = len(people)
            for way, work in ways(trained.model, people).items():
                cases[f"{activation}: {way}"] = work
                names[f"{activation}: {way}"] = activation, way
        for name_of_case, seconds in measured(cases).items():
            activation, way = names[name_of_case]
            sums[activation, way] += seconds / sizes[activation] / options.networks
    print(f"\n## {name}: {options.networks} networks of each kind, 3 layers of 16\n")
    print("| way | activation | per person | ÷ ReLU |\n|---|---|---|---|")
    for way in dict.fromkeys(way for _, way in sums):
        for activation in activations:
            seconds = sums[activation, way]
            ratio = seconds / sums[activations[0], way]
            print(f"| {way} | {activation} | {seconds * 1e6:,.4g} µs | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
