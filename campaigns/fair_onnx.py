"""Campaign of fair decisions as ONNX graphs: sure ones are compared with `FairPredictor`.

    python -m campaigns.fair_onnx [--people 20000] [--models 60] [--edges 150]

First the model of `feta demo` (German credit) with each vote, on random people of its space and on
the people of the table; then random networks at the edge, with weights and several classes; last,
small networks that runtimes simplify wrongly, in `campaigns/fair_onnx_edges.py`.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime

from campaigns.fair_onnx_edges import of_edges
from campaigns.result import finish
from feta import FairPredictor, Model, datasets
from feta.arrays import Answers, Flags, Matrix
from feta.errors import FetaError
from feta.io.fair_onnx.graph import Precision
from feta.io.fair_onnx.write import write_fair_onnx
from feta.space.sampling import draw_people
from feta.train.plain import PlainTrainer
from feta.vote.mean_decision import VOTES
from tests.strategies import EDGES, random_case

PRECISIONS: tuple[Precision, ...] = ("float32", "float64")

# People per call of the graph: their counterparts' values are in memory at once.
BATCH = 500


def german() -> tuple[Model, Matrix]:
    """Return a network for German credit with log-odds as scores, and the people of the table."""
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    labels = np.asarray(dataset.labels)
    trainer = PlainTrainer(dataset.space, learning_rates=(3e-3,), batch_sizes=(64,), epochs=60)
    return Model(dataset.space, trainer.train(people, labels).network.with_link("logit")), people


def run_graph(
    predictor: FairPredictor, people: Matrix, precision: Precision
) -> tuple[Answers, Flags, float]:
    """Return decisions, which are sure, and microseconds of processor time per person."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fair.onnx")
        columns = write_fair_onnx(predictor, path, precision=precision).columns
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    rows = people[:, columns].astype(precision)
    started = time.process_time()
    parts = [
        session.run(["decision", "sure"], {"people": rows[start : start + BATCH]})
        for start in range(0, len(rows), BATCH)
    ]
    seconds = time.process_time() - started
    decisions, sure = (np.concatenate([part[index] for part in parts]) for index in (0, 1))
    return decisions, sure, seconds / len(rows) * 1e6


def compare(
    name: str, predictor: FairPredictor, people: Matrix, precision: Precision
) -> Counter[str]:
    """Compare the sure decisions of a graph with the predictor's."""
    decisions, sure, cost = run_graph(predictor, people, precision)
    wrong = int((decisions != predictor.decide(people))[sure].sum())
    if name:
        print(
            f"{name}, {precision}: {sure.sum()} of {len(people)} sure ({sure.mean():.3%}), "
            f"{wrong} wrong, {cost:.0f} µs of processor time per person",
            flush=True,
        )
    counts = Counter(
        {f"{precision} sure": int(sure.sum()), f"{precision} not sure": int((~sure).sum())}
    )
    counts["WRONG decisions"] += wrong
    return counts


def of_german(n_people: int) -> Counter[str]:
    """Compare the votes of one model."""
    counts: Counter[str] = Counter()
    model, table = german()
    people = draw_people(model.space, np.random.default_rng(1), n_people)
    predictors = [FairPredictor(model)]
    predictors += [FairPredictor.fitted(model, table, vote) for vote in VOTES[1:]]
    for predictor in predictors:
        for precision in PRECISIONS:
            counts.update(compare(f"German, {predictor.vote}", predictor, people, precision))
            counts.update(compare("", predictor, table, precision))
    return counts


def of_random_models(n_models: int) -> Counter[str]:
    """Compare random networks, many of them with a counterpart on the threshold."""
    counts: Counter[str] = Counter()
    for seed in range(n_models):
        rng = np.random.default_rng(seed)
        case = random_case(rng, EDGES[seed % len(EDGES)], plain=seed % 2 == 0)
        people = draw_people(case.model.space, rng, 200)
        for precision in PRECISIONS:
            predictor = FairPredictor(case.model, weights=case.weights)
            try:
                counts.update(compare("", predictor, people, precision))
            except FetaError:
                counts["refused by name"] += 1
    return counts


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--edges", type=int, default=150)
    options = parser.parse_args()
    started = time.perf_counter()
    counts = of_german(options.people) if options.people else Counter()
    counts.update(of_random_models(options.models))
    counts.update(of_edges(options.edges))
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
