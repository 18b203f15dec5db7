"""Fair decisions as ONNX graphs of small networks that runtimes simplify wrongly.

Slopes near 1 for a single neuron, PReLU of one neuron, slopes that are subnormal in float32,
ballots of odd length, rows that are no people, batches of 0 and 1. Each graph runs with
onnxruntime's default optimizations and without any; majorities are compared with the oracle in
fractions.
"""

import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from feta import (
    Categorical,
    Derived,
    FairPredictor,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Network,
    Real,
    Threshold,
)
from feta.arrays import Answers, Matrix
from feta.errors import FetaError
from feta.io.fair_onnx.graph import Precision
from feta.io.fair_onnx.write import write_fair_onnx
from feta.scorer.network.activation import Activation, piecewise, prelu
from feta.scorer.protocol import Side
from feta.space.sampling import draw_people
from feta.space.vote_weights import VoteWeights
from feta.vote.graded_ballot import UNIT, GradedBallot
from tests import oracle

PEOPLE = 6
PRECISIONS: tuple[Precision, ...] = ("float32", "float64")
SIDES: tuple[Side, ...] = ("above", "below")

# Slopes that float32 rounds to 1, and slopes that are subnormal in float32 or nothing there.
NEAR_1 = (1 + 1e-9, 1 - 1e-9, 1 + 2e-8, 1 - 2.0**-53, 1 + 2.0**-52, 1 + 1e-7)
SUBNORMAL = (1e-38, 1e-40, 3e-42, 1.3e-45, 6e-46)

# Relative distances of thresholds from scores: up to those by which float32 rounds such slopes.
NEAR = (1e-15, 5e-10, 1e-9, 3e-5, 3e-2, 0.5)

# Cells of rows that are no people.
BROKEN = (np.nan, np.inf, -np.inf, 1e37, -1.0, 0.25, 0.5, 1.0, 2.0, 3.3, 7.5)

SPACE = FeatureSpace(
    (
        Integer("age", 18, 21, sensitive=True),
        Real("income", 0.1, 7.3),
        Derived("band", "income", (("low", 0, 3), ("high", 3.0000001, 8))),
        Levels("rate", (0.1, 0.7, 1.9), missing=True),
        Integer("children", 0, 5, missing=True),
        Categorical("town", ("a", "b")),
    )
)


def random_network(rng: np.random.Generator) -> Network:
    """Draw a network of one to three layers, mostly with one neuron each."""
    width = int(rng.choice([1, 1, 1, 2]))
    first = rng.integers(-8, 9, (width, SPACE.width)) / 8 * (rng.random((width, SPACE.width)) < 0.7)
    activation, large = random_activation(rng, width)
    if rng.random() < 0.5:
        first = np.round(rng.normal(size=first.shape), 3)
    layers = [(first * large, rng.integers(-4, 5, width) / 4 * large)]
    if rng.random() < 0.3:
        layers.append((np.diag(rng.choice([1 + 1e-9, 1.0, -1.0], width)), np.zeros(width)))
    layers.append((rng.choice([1.0, -1.0, 1 + 1e-9], (1, width)) * large, np.zeros(1)))
    return Network.from_layers(layers, activation=activation).with_link("logit")


def random_activation(rng: np.random.Generator, width: int) -> tuple[Activation, float]:
    """Draw an activation, and a factor for the weights before and after it."""
    slope, other = (float(number) for number in rng.choice(NEAR_1, 2))
    tiny = float(rng.choice(SUBNORMAL))
    kinds = [
        (piecewise("near 1", [0], [slope, other], [0, 0]), 1.0),
        (piecewise("one piece", [], [slope], [0]), 1.0),
        (prelu(rng.choice(NEAR_1, width)), 1.0),
        (prelu(-rng.choice(NEAR_1, width)), 1.0),
        (piecewise("lifted", [0], [slope, other], [2.0**-155] * 2), 1.0),
        (piecewise("tiny", [0], [0, tiny], [0, 0]), 1e20),
        (prelu(rng.choice(SUBNORMAL, width)), 1e20),
        (piecewise("tiny break", [2.0**-140], [0, 1], [0, -(2.0**-140)]), 1.0),
    ]
    return kinds[rng.integers(len(kinds))]


def random_threshold(
    rng: np.random.Generator, network: Network, person: np.ndarray[Any, Any]
) -> float:
    """Draw a threshold on the score of a counterpart, or close to it."""
    model = Model(SPACE, network, Threshold(0.0))
    scores = [oracle.score(model, other) for other in oracle.counterparts(model, person)]
    score = Fraction(scores[rng.integers(len(scores))])
    near = float(rng.choice([0, *(sign * size for sign in (-1, 1) for size in NEAR)]))
    return float(score * (1 + Fraction(near)))


def random_ballot(rng: np.random.Generator, threshold: float) -> GradedBallot:
    """Draw a ballot with two to ten cells; one threshold is close to the scores."""
    others = threshold + rng.normal(size=rng.integers(0, 9)) * max(1.0, abs(threshold))
    thresholds = np.unique([threshold, *others])
    return GradedBallot(thresholds, np.linspace(0, UNIT, len(thresholds) + 1).astype(np.int64))


def broken_rows(rng: np.random.Generator, people: Matrix) -> Matrix:
    """Change one cell per row; some rows remain people."""
    rows = np.repeat(people, 4, axis=0)
    rows[np.arange(len(rows)), rng.integers(1, SPACE.width, len(rows))] = rng.choice(
        BROKEN, len(rows)
    )
    return rows


def of_edges(n_models: int) -> Counter[str]:
    """Compare small networks."""
    counts: Counter[str] = Counter()
    for seed in range(n_models):
        rng = np.random.default_rng(seed)
        people = draw_people(SPACE, rng, PEOPLE)
        network = random_network(rng)
        threshold = random_threshold(rng, network, people[0])
        model = Model(SPACE, network, Threshold(threshold, SIDES[seed % 2]))
        weights = VoteWeights.from_people(SPACE, people[: 1 + seed % 3]) if seed % 3 else None
        majority = FairPredictor(model, weights=weights)
        truth = np.array([oracle.fair_decision(model, person, weights) for person in people])
        ballot = random_ballot(rng, threshold)
        mean = FairPredictor(model, vote="mean_probability", ballot=ballot, engine="exhaustive")
        score = FairPredictor(model, vote="mean_score", engine="exhaustive")
        rows = broken_rows(rng, people)
        for precision in PRECISIONS:
            counts.update(compare(majority, truth, people, rows, precision))
            for predictor in (mean, score):
                counts.update(compare(predictor, predictor.decide(people), people, rows, precision))
    return counts


def compare(
    predictor: FairPredictor, truth: Answers, people: Matrix, broken: Matrix, precision: Precision
) -> Counter[str]:
    """Compare sure decisions with the truth, with and without optimizations."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fair.onnx")
        try:
            columns = write_fair_onnx(predictor, path, precision=precision).columns
        except FetaError:
            counts["refused by name"] += 1
            return counts
        content = path.read_bytes()
    everybody = np.concatenate([people, broken])
    inside = np.array([SPACE.contains(row) for row in everybody])
    for optimized in (True, False):
        session = open_session(content, optimized=optimized)
        decisions, sure = evaluate(session, everybody[:, columns], precision)
        wrong = (decisions[: len(people)] != truth) & sure[: len(people)]
        counts["WRONG decisions"] += int(wrong.sum())
        # A row of float32 may be a person although its number in float64 is not, and vice versa.
        if precision == "float64":
            counts["WRONG rows that are no people"] += int((sure & ~inside).sum())
        counts[f"edges, {precision} sure"] += int(sure[: len(people)].sum())
        counts[f"edges, {precision} not sure"] += int((~sure[: len(people)]).sum())
        alone, flag = evaluate(session, people[:1, columns], precision)
        counts["WRONG batches of 1"] += int(flag[0] and alone[0] != truth[0])
        none = evaluate(session, people[:0, columns], precision)
        counts["WRONG empty batches"] += int(any(len(part) for part in none))
    return counts


def open_session(content: bytes, *, optimized: bool) -> Any:  # noqa: ANN401 - untyped
    """Return a session with onnxruntime's default optimizations, or without any."""
    options, levels = onnxruntime.SessionOptions(), onnxruntime.GraphOptimizationLevel
    options.intra_op_num_threads = 1
    if not optimized:
        options.graph_optimization_level = levels.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def evaluate(session: Any, rows: Matrix, precision: Precision) -> tuple[Any, Any]:  # noqa: ANN401 - untyped
    """Return decisions, and which are sure."""
    with np.errstate(over="ignore"):
        return tuple(session.run(["decision", "sure"], {"people": rows.astype(precision)}))
