"""Campaign of votes by means against fractions, with cut-offs on the means and next to them.

    python -m campaigns.votes [--models 2000] [--seed 0] [--engine exhaustive]

For each random model, the mean score and the graded ballot of two people are compared with sums
over the counterparts that the oracle lists. A third of the cut-offs is the float64 nearest to a
mean, a third is one float64 away. Levels that keep the share of favorable decisions are compared
with a search over all levels.
"""

import argparse
import sys
import time
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

import feta
from campaigns.result import finish
from feta.arrays import Matrix, Vector
from feta.model import Model
from feta.space.vote_weights import VoteWeights
from feta.vote.graded_ballot import UNIT, GradedBallot
from tests import oracle
from tests.strategies import random_network, random_person, random_space, random_weights

if TYPE_CHECKING:
    from feta.scorer.protocol import Side
    from feta.vote.mean_decision import VoteName


def exact_mean(
    model: Model, person: Vector, weights: VoteWeights | None, ballot: GradedBallot | None
) -> Fraction:
    """Return the mean score, or the mean grade as a probability."""
    total, votes = Fraction(0), 0
    thresholds = [Fraction(t) for t in ballot.thresholds.tolist()] if ballot else []
    for number, counterpart in enumerate(oracle.counterparts(model, person)):
        share = oracle.votes_of(number, weights)
        score = oracle.score(model, counterpart)
        if ballot is not None:
            score = Fraction(int(ballot.grades[bisect_right(thresholds, score)]), UNIT)
        total, votes = total + share * score, votes + share
    return total / votes


def random_model(rng: np.random.Generator) -> Model:
    """Return a network with a threshold and a sigmoid."""
    space = random_space(rng)
    network = random_network(rng, space, plain=bool(rng.integers(2)))
    side: Side = "above" if rng.random() < 0.7 else "below"
    scorer = network.with_link("logit")
    return Model(space, scorer, feta.Threshold(float(rng.normal()), side))


def wrong_decisions(
    model: Model, people: Matrix, engine: str, rng: np.random.Generator
) -> list[str]:
    """Name every vote whose decision contradicts the mean."""
    weights, wrong = random_weights(rng, model), []
    thresholds = np.unique(rng.normal(scale=2.0, size=int(rng.integers(1, 40))))
    grades = np.sort(rng.integers(0, UNIT + 1, len(thresholds) + 1))
    votes: dict[VoteName, GradedBallot | None] = {
        "mean_score": None,
        "mean_probability": GradedBallot(thresholds, grades),
    }
    for vote, ballot in votes.items():
        means = [exact_mean(model, person, weights, ballot) for person in people]
        level = float(means[0])
        if rng.random() < 1 / 3:
            level = float(np.nextafter(level, rng.choice([-np.inf, np.inf])))
        predictor = feta.FairPredictor(
            model, engine, weights=weights, vote=vote, level=level, ballot=ballot
        )
        found = predictor.decide(people).tolist()
        above = model.rule.favors == "above"
        expected = [m >= Fraction(level) if above else m <= Fraction(level) for m in means]
        if found != expected:
            wrong.append(f"WRONG: {vote}")
    return wrong


def wrong_level(model: Model, people: Matrix, engine: str) -> list[str]:
    """Name every fitted vote whose number of favorable decisions is not the nearest possible."""
    wrong, above = [], model.rule.favors == "above"
    own = sum(oracle.decide(model, person) for person in people)
    for vote in ("mean_score", "mean_probability"):
        predictor = feta.FairPredictor.fitted(model, people, vote, engine=engine, least=1)
        means = [exact_mean(model, p, predictor.weights, predictor.ballot) for p in people]
        counts = {sum(mean >= cut if above else mean <= cut for mean in means) for cut in means} | {
            0
        }
        best = min(counts, key=lambda count: (abs(count - own), -count))
        if int(predictor.decide(people).sum()) != best:
            wrong.append(f"WRONG: level of {vote}")
    return wrong


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", default="exhaustive")
    options = parser.parse_args()
    rng, started, counts = np.random.default_rng(options.seed), time.perf_counter(), Counter[str]()
    for number in range(options.models):
        model = random_model(rng)
        people = np.stack([random_person(rng, model.space) for _ in range(2)])
        counts["models"] += 1
        counts.update(wrong_decisions(model, people, options.engine, rng))
        if number % 5 == 0:
            several = np.stack([random_person(rng, model.space) for _ in range(8)])
            counts.update(wrong_level(model, several, options.engine))
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
