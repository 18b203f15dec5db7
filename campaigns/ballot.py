"""Campaign of the graded ballot: its decisions against true mean probabilities.

    python -m campaigns.ballot [--people 1500] [--seeds 3] [--large 1000]

Random networks approve 50, 25, 5 or 1 % of people, over lattices of 2, 6, 456 and 212,380
counterparts. Weights, ballot and level are fitted to people; the decisions of other people are
compared with those of the true mean probability, at the cut-off that keeps the share on the same
people. Weights are empirical, and exact, so that many combinations vote; lattices up to 456
also have equal weights. On the largest one, `--large` people are drawn, each with a combination
of their own.
"""

import argparse
import sys
import time
from collections import Counter

import numpy as np

from campaigns.result import finish
from feta import Categorical, FairPredictor, FeatureSpace, Integer, Model, Network, Real, Threshold
from feta.arrays import Matrix, Vector
from feta.space.vote_weights import VoteWeights

RATES = (0.5, 0.25, 0.05, 0.01)
AXES = {2: (2,), 6: (3, 2), 456: (57, 4, 2), 212_380: (74, 41, 14, 5)}
LARGEST_EQUAL = 456
HIDDEN = 16

# What the ballot must reach.
AGREEMENT = 0.995
LEVEL_POINTS = 0.002


def random_space(axes: tuple[int, ...]) -> FeatureSpace:
    """Return an integer and categories of these sizes, and six shared numbers."""
    number = Integer("number", 0, axes[0] - 1, sensitive=True)
    categories = [
        Categorical(f"category {index}", tuple(map(str, range(size))), sensitive=True)
        for index, size in enumerate(axes[1:])
    ]
    shared = [Real(f"shared {index}", -2.0, 2.0) for index in range(6)]
    return FeatureSpace((number, *categories, *shared))


def draw_crowd(rng: np.random.Generator, space: FeatureSpace, n_people: int) -> Matrix:
    """Draw people; low values of sensitive attributes are more frequent."""
    people = np.zeros((n_people, space.width))
    people[:, -6:] = rng.uniform(-2, 2, (n_people, 6))
    codes = space.lattice.codes(0, 1)
    people[:, : codes.shape[1]] = codes
    ids = (rng.beta(1.0, 2.0, n_people) * space.lattice.size).astype(np.int64)
    return np.asarray(space.lattice.moved(people, ids))


def random_model(rng: np.random.Generator, space: FeatureSpace, rate: float) -> Model:
    """Return a random network with a sigmoid, whose bias approves this share of people."""
    first = rng.normal(0, 0.6, (HIDDEN, space.width))
    first[:, 0] /= max(1, len(space.lattice.axes[0]) / 3)  # as if standardized
    layers = [(first, rng.normal(0, 0.1, HIDDEN)), (rng.normal(0, 0.6, (1, HIDDEN)), np.zeros(1))]
    scores = Network.from_layers(layers)(draw_crowd(rng, space, 4000))[:, 0]
    layers[1] = (layers[1][0], -np.quantile(scores, [1 - rate]))
    return Model(space, Network.from_layers(layers).with_link("logit"), Threshold(0.0))


def true_means(model: Model, people: Matrix, weights: VoteWeights | None) -> Vector:
    """Return the mean probability of each person's counterparts, in float64."""
    ids = np.arange(model.relation.size) if weights is None else weights.assignment_ids
    votes = np.ones(len(ids)) if weights is None else weights.votes
    means = []
    for person in people:
        rows = model.space.lattice.moved(np.repeat(person[None, :], len(ids), axis=0), ids)
        probabilities = 1 / (1 + np.exp(-model.scorer(np.asarray(rows))[:, 0]))
        means.append(float(probabilities @ votes / votes.sum()))
    return np.array(means)


def true_level(means: Vector, n_favorable: int) -> float:
    """Return the cut-off that keeps the number of favorable people, in the middle of a gap."""
    ordered = np.concatenate([[1.0], np.sort(means)[::-1], [0.0]])
    return float(ordered[n_favorable] + ordered[n_favorable + 1]) / 2


def compare(model: Model, fitted_to: Matrix, others: Matrix, *, equal: bool) -> tuple[float, float]:
    """Return the agreement on other people, and how far the level is from the model's own."""
    weights = None if equal else VoteWeights.from_people(model.space, fitted_to)
    predictor = FairPredictor.fitted(model, fitted_to, weights=weights)
    own = int(model.decide(fitted_to).sum())
    cut = true_level(true_means(model, fitted_to, predictor.weights), own)
    expected = true_means(model, others, predictor.weights) >= cut
    agreement = float(np.mean(predictor.decide(others) == expected))
    reached = abs(int(predictor.decide(fitted_to).sum()) - own) / len(fitted_to)
    return agreement, reached


def main() -> int:
    """Run from the command line; exit 1 if an agreement or a level is not reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--large", type=int, default=1000)
    options = parser.parse_args()
    started, counts, worst = time.perf_counter(), Counter[str](), (1.0, 0.0)
    for size, axes in AXES.items():
        space = random_space(axes)
        assert space.lattice.size == size
        n_people = options.people if size <= LARGEST_EQUAL else options.large
        for rate in RATES:
            for seed in range(options.seeds):
                rng = np.random.default_rng([seed, size, round(100 * rate)])
                model = random_model(rng, space, rate)
                crowd, others = (draw_crowd(rng, space, n_people) for _ in range(2))
                for equal in (False, True) if size <= LARGEST_EQUAL else (False,):
                    agreement, reached = compare(model, crowd, others, equal=equal)
                    worst = min(worst[0], agreement), max(worst[1], reached)
                    counts["votes"] += 1
                    counts["WRONG: agreement"] += agreement < AGREEMENT
                    counts["WRONG: level"] += reached > LEVEL_POINTS
                    kind = "equal" if equal else "empirical"
                    case = f"{size:,} counterparts, {rate:.0%}, {kind}, seed {seed}"
                    figures = f"agreement {agreement:.2%}, level {100 * reached:.2f} points"
                    print(f"{case}: {figures}", flush=True)
    print(f"least agreement {worst[0]:.2%}, level within {100 * worst[1]:.2f} points")
    return finish(+counts, started)


if __name__ == "__main__":
    sys.exit(main())
