"""Campaign of votes by means against fractions, with cut-offs on the means and next to them.

    python -m campaigns.votes [--models 2000] [--seed 0] [--engine exhaustive]

Half of the random models are networks with a threshold; the others are tree ensembles, shares of
trees, and networks with several classes. For each, the mean score and the mean probability of two
people are compared with sums over the counterparts that the oracle lists, with and without weights.
A third of the cut-offs is the float64 nearest to a mean, a third is one float64 away. Levels that
keep the share of favorable decisions are compared with a search over all levels. Every counterpart
of each person must get the same decision.
"""

import argparse
import sys
import time
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

import feta
from campaigns.result import finish
from campaigns.vote_cases import KINDS, Kind, Means, class_decision, random_model, scores
from feta.arrays import Matrix
from feta.model import Model
from feta.vote.graded_ballot import UNIT, GradedBallot
from tests import oracle
from tests.strategies import random_person, random_weights

if TYPE_CHECKING:
    from feta.vote.mean_decision import VoteName

VOTES: tuple["VoteName", ...] = ("mean_score", "mean_probability")


def wrong_decisions(
    model: Model, people: Matrix, engine: str, rng: np.random.Generator
) -> list[str]:
    """Name every vote whose decision contradicts the mean, or differs between counterparts."""
    weights, wrong = random_weights(rng, model), []
    for vote in VOTES:
        graded = vote == "mean_probability" and model.rule.threshold is not None
        graded = graded and model.scorer.link == "logit"
        oracle_means = Means(model, weights, _random_ballot(rng) if graded else None)
        means = [oracle_means.of(person, vote) for person in people]
        level = _level(rng, means[0][0]) if model.rule.threshold is not None else None
        predictor = feta.FairPredictor(
            model, engine, weights=weights, vote=vote, level=level, ballot=oracle_means.ballot
        )
        found = predictor.decide(people).tolist()
        if found != [_expected(model, mean, level) for mean in means]:
            wrong.append(f"WRONG: {vote}")
        counterparts = np.array(oracle.counterparts(model, people[0]))
        if set(predictor.decide(counterparts).tolist()) != {found[0]}:
            wrong.append(f"WRONG: {vote} of counterparts")
    return wrong


def _random_ballot(rng: np.random.Generator) -> GradedBallot:
    thresholds = np.unique(rng.normal(scale=2.0, size=int(rng.integers(1, 40))))
    return GradedBallot(thresholds, np.sort(rng.integers(0, UNIT + 1, len(thresholds) + 1)))


def _level(rng: np.random.Generator, mean: Fraction) -> float:
    level = float(mean)
    if rng.random() < 1 / 3:
        return float(np.nextafter(level, rng.choice([-np.inf, np.inf])))
    return level


def _expected(model: Model, means: list[Fraction], level: float | None) -> int:
    if level is None:
        return class_decision(model, means)
    above = model.rule.favors == "above"
    return int(means[0] >= Fraction(level) if above else means[0] <= Fraction(level))


def wrong_level(model: Model, people: Matrix, engine: str) -> list[str]:
    """Name every fitted vote whose number of favorable decisions is not the nearest possible."""
    wrong, above = [], model.rule.favors == "above"
    own = sum(oracle.decision(model.rule, scores(model, person)) for person in people)
    for vote in VOTES:
        predictor = feta.FairPredictor.fitted(model, people, vote, engine=engine, least=1)
        oracle_means = Means(model, predictor.weights, predictor.ballot)
        means = [oracle_means.of(person, vote)[0] for person in people]
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
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    rng, started, counts = np.random.default_rng(options.seed), time.perf_counter(), Counter[str]()
    for number in range(options.models):
        kind: Kind = "network" if number % 2 else KINDS[number // 2 % len(KINDS)]
        model = random_model(rng, kind)
        people = np.stack([random_person(rng, model.space) for _ in range(2)])
        counts[f"models: {kind}"] += 1
        counts.update(wrong_decisions(model, people, options.engine, rng))
        if number % 5 == 0 and model.rule.threshold is not None:
            several = np.stack([random_person(rng, model.space) for _ in range(8)])
            counts["fitted levels"] += 1
            counts.update(wrong_level(model, several, options.engine))
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
