"""Campaign of fitted votes over tables in different orders, with ties and extreme cut-offs.

    python -m campaigns.ballot_orders [--seeds 3] [--people 2000]

Random networks decide people at logits of 0, ±5 and ±7, over 2, 6 and 456 counterparts. The
people are all different, or many have equal columns. Weights, ballot and level are fitted to the
table as it was drawn, sorted by the score both ways, sorted by the first column, and shuffled. All
orders must give the same votes, bit for bit. The level must be kept within .2 points of the best
that a level on the true means reaches, and the decisions must agree with those of the true means.
"""

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from campaigns.ballot import (
    AGREEMENT,
    AXES,
    LARGEST_EQUAL,
    LEVEL_POINTS,
    draw_crowd,
    random_model,
    random_space,
    true_means,
)
from campaigns.result import finish
from feta import FairPredictor, Model, Network, Threshold
from feta.arrays import Counts, Matrix, Vector

if TYPE_CHECKING:
    from feta.scorer.protocol import Side

CUTS = (-7.0, -5.0, 0.0, 5.0, 7.0)
RATE = 0.4

# Different people of a table in which many are equal.
N_DIFFERENT = 60


def model_at(rng: np.random.Generator, space_model: Model, cut: float) -> Model:
    """Return the model with its scores and its threshold moved to a cut-off."""
    network = space_model.scorer
    assert isinstance(network, Network)
    layers = [(network.first.slopes, network.first.bias)]
    layers += [(layer.weight, layer.bias) for _, layer in network.steps]
    layers[-1] = (layers[-1][0], layers[-1][1] + cut)
    side: Side = "above" if rng.random() < 0.5 else "below"
    moved = Network.from_layers(layers).with_link("logit")
    return Model(space_model.space, moved, Threshold(cut, side))


def orders(rng: np.random.Generator, model: Model, people: Matrix) -> Iterator[Counts]:
    """Yield the orders of a table."""
    by_score = np.argsort(model.score(people), kind="stable")
    yield np.arange(len(people))
    yield by_score
    yield by_score[::-1]
    yield np.argsort(people[:, 0], kind="stable")
    yield rng.permutation(len(people))


def votes_of(predictor: FairPredictor) -> tuple[object, ...]:
    """Return everything that is fitted, comparable bit for bit."""
    assert predictor.ballot is not None
    assert predictor.weights is not None
    arrays = (
        predictor.ballot.thresholds,
        predictor.ballot.grades,
        predictor.weights.assignment_ids,
        predictor.weights.votes,
    )
    return predictor.level, *(array.tobytes() for array in arrays)


def best_miss(means: Vector, n_favorable: int) -> int:
    """Return how far a level on these means must miss a number of favorable people."""
    ordered = np.sort(means)[::-1]
    ends = np.flatnonzero(np.diff(ordered) < -1e-15 * np.abs(ordered[1:])) + 1
    return int(np.abs(np.array([0, *ends, len(means)]) - n_favorable).min())


def compare(rng: np.random.Generator, model: Model, people: Matrix) -> tuple[int, float, float]:
    """Return the number of different votes, the excess miss of the level, and the agreement."""
    predictors = [
        FairPredictor.fitted(model, people[order]) for order in orders(rng, model, people)
    ]
    first, own = predictors[0], int(model.decide(people).sum())
    assert first.weights is not None
    above = model.rule.favors == "above"
    means = true_means(model, people, first.weights)
    favorable = means if above else -means
    decided = first.decide(people)
    miss = abs(int(decided.sum()) - own) - best_miss(favorable, own)
    # The decisions of the true means at the cut-off that is best for the vote.
    agreement = max(
        float(np.mean(decided == (favorable >= cut)))
        for cut in np.sort(favorable)[::-1][max(0, int(decided.sum()) - 1) :][:2]
    )
    return len(set(map(votes_of, predictors))), miss / len(people), agreement


def main() -> int:
    """Run from the command line; exit 1 if an order matters or a level is not kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--people", type=int, default=2000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # levels that ties make rough
    started, counts, worst = time.perf_counter(), Counter[str](), (1.0, 0.0)
    for size, axes in AXES.items():
        if size > LARGEST_EQUAL:
            continue
        for seed in range(options.seeds):
            for cut in CUTS:
                rng = np.random.default_rng([seed, size, int(10 + cut)])
                model = model_at(rng, random_model(rng, random_space(axes), RATE), cut)
                for tied in (False, True):
                    people = draw_crowd(rng, model.space, options.people)
                    if tied:
                        people = people[rng.integers(0, N_DIFFERENT, len(people))]
                    n_votes, miss, agreement = compare(rng, model, people)
                    worst = min(worst[0], agreement), max(worst[1], miss)
                    counts["tables"] += 1
                    counts["WRONG: order"] += n_votes > 1
                    counts["WRONG: level"] += miss > LEVEL_POINTS
                    counts["WRONG: agreement"] += agreement < AGREEMENT
                    if n_votes > 1 or miss > LEVEL_POINTS or agreement < AGREEMENT:
                        case = f"{size} counterparts, logit {cut}, tied {tied}, seed {seed}"
                        print(f"{case}: {n_votes} votes, {miss:.2%}, {agreement:.2%}", flush=True)
    print(f"least agreement {worst[0]:.2%}, level within {100 * worst[1]:.2f} points of the best")
    return finish(+counts, started)


if __name__ == "__main__":
    sys.exit(main())
