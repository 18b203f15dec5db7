"""Benchmark of votes: fair decisions by means, compared with the equal majority, in one run.

    python -m benchmarks.votes [--seed 0] [--names german law adult]

Each row is the processor time of one thread per person, best of several alternating repeats, and
its ratio to the equal majority of the same people. Weights and level are fitted to the people of
the data set who are not measured (German: to everyone). UCI Adult and Law School are read from the
folder FETA_DATA_DIR.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.networks import TRAINING, train
from benchmarks.ways import lattice_engine
from feta import FairPredictor, datasets
from feta.arrays import Matrix
from feta.model import Model

# Repeats of each way, in turn, so that a busy moment affects all of them.
REPEATS = 7

# People measured with equal weights: every counterpart of each is scored.
MAX_EQUAL = 40

# Seconds that one repeat lasts, so that the clock's resolution is small.
MIN_SECONDS = 0.05


def predictors(model: Model, others: Matrix) -> dict[str, FairPredictor]:
    """Return all votes; weights and level are fitted to other people."""
    voting = model if model.scorer.link == "logit" else _with_sigmoid(model)
    return {
        "equal majority": FairPredictor(model),
        "majority, empirical": FairPredictor.fitted(voting, others, "majority"),
        "mean score, empirical": FairPredictor.fitted(voting, others, "mean_score"),
        "mean probability, empirical": FairPredictor.fitted(voting, others),
        "mean probability, exact weights": FairPredictor.fitted(voting, others, least=1),
    }


def equal_predictors(model: Model, others: Matrix) -> dict[str, FairPredictor]:
    """Return votes by means with equal weights."""
    voting = model if model.scorer.link == "logit" else _with_sigmoid(model)
    some = others[:MAX_EQUAL]
    return {
        "equal majority": FairPredictor(model),
        "mean score, equal": FairPredictor.fitted(voting, some, "mean_score", "equal"),
        "mean probability, equal": FairPredictor.fitted(voting, some, weights="equal"),
    }


def _with_sigmoid(model: Model) -> Model:
    return Model(model.space, model.scorer.with_link("logit"), model.rule)


def measured(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the best processor seconds of each way; the ways alternate."""
    calls, best = dict.fromkeys(ways, 1), dict.fromkeys(ways, math.inf)
    for repeat in range(REPEATS + 1):
        for name, work in ways.items():
            started = time.process_time()
            for _ in range(calls[name]):
                work()
            seconds = (time.process_time() - started) / calls[name]
            best[name] = min(best[name], seconds) if repeat else math.inf
            if not repeat:
                calls[name] = max(1, math.ceil(MIN_SECONDS / max(seconds, 1e-9)))
    return best


def show(title: str, votes: dict[str, FairPredictor], people: Matrix) -> None:
    """Print the time of each vote per person, and its ratio to the first one."""
    seconds = measured({name: _deciding(vote, people) for name, vote in votes.items()})
    first = next(iter(seconds.values()))
    print(f"\n## {title}: {len(people):,} people", flush=True)
    print("\n| vote | assignments | per person | ÷ equal majority |\n|---|---|---|---|")
    for name, vote in votes.items():
        size = vote.model.relation.size
        n_votes = size if vote.weights is None else len(vote.weights.assignment_ids)
        per_person = seconds[name] / len(people) * 1e6
        ratio = seconds[name] / first
        print(f"| {name} | {n_votes:,} | {per_person:,.3g} µs | {ratio:.2f} |", flush=True)


def _deciding(vote: FairPredictor, people: Matrix) -> Callable[[], object]:
    return lambda: vote.decide(people)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--names", nargs="+", default=list(TRAINING), choices=list(TRAINING))
    options = parser.parse_args()
    lattice_engine().threads = 1
    with threadpool_limits(1):
        for name in options.names:
            trained = train(name, seed=options.seed)
            everyone = trained.model.space.encode(datasets.load(name).frame)
            decided = {row.tobytes() for row in trained.everyone}
            rest = np.array([row for row in everyone if row.tobytes() not in decided])
            others = rest if len(rest) else everyone
            show(f"{trained.title}, weights", predictors(trained.model, others), trained.people)
            some = trained.people[:MAX_EQUAL]
            show(f"{trained.title}, equal", equal_predictors(trained.model, others), some)


if __name__ == "__main__":
    main()
