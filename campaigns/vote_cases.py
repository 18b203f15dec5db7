"""Random models and their votes by means, computed in fractions for `campaigns.votes`."""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import TYPE_CHECKING, Literal

import numpy as np

import feta
from feta.arrays import Vector
from feta.model import Model
from feta.rule import Rule
from feta.scorer.forest.forest import Forest
from feta.space.attribute import Derived
from feta.space.vote_weights import VoteWeights
from feta.vote.graded_ballot import UNIT, GradedBallot
from tests import oracle
from tests.forests import random_forest
from tests.forests import scores as forest_scores
from tests.strategies import random_network, random_space

if TYPE_CHECKING:
    from feta.scorer.protocol import Side

Kind = Literal["network", "forest", "classes", "shares"]
KINDS: tuple[Kind, ...] = ("network", "forest", "classes", "shares")

# Bits after the point of the exponentials below; a grade has 20.
BITS = 400


@dataclass(frozen=True, eq=False)
class Means:
    """Exact means of the counterparts of one person."""

    model: Model
    weights: VoteWeights | None
    ballot: GradedBallot | None = None

    def of(self, person: Vector, vote: str) -> list[Fraction]:
        """Return the mean per output: of scores, or of grades as probabilities."""
        total, n_votes = [Fraction(0)] * self.model.scorer.outputs, 0
        for number, counterpart in enumerate(oracle.counterparts(self.model, person)):
            votes = oracle.votes_of(number, self.weights)
            parts = self._contributions(scores(self.model, counterpart), vote)
            total = [old + votes * part for old, part in zip(total, parts, strict=True)]
            n_votes += votes
        return [part / n_votes for part in total]

    def _contributions(self, own: list[Fraction], vote: str) -> list[Fraction]:
        link = self.model.scorer.link
        if vote == "mean_score" or link == "share":
            return own
        if link == "share_margin":
            return [(1 + own[0]) / 2]
        if len(own) > 1:
            return [Fraction(grade, UNIT) for grade in softmax_grades(own)]
        assert self.ballot is not None
        thresholds = [Fraction(t) for t in self.ballot.thresholds.tolist()]
        return [Fraction(int(self.ballot.grades[bisect_right(thresholds, own[0])]), UNIT)]


def scores(model: Model, person: Vector) -> list[Fraction]:
    """Return the exact scores of a person."""
    if isinstance(model.scorer, Forest):
        return forest_scores(model.scorer, person)
    return oracle.scores(model, person)


def softmax_grades(own: list[Fraction]) -> list[int]:
    """Return the softmax in units of a grade, rounded to nearest, by exponentials in integers."""
    if len(set(own)) == 1:
        return [floor(Fraction(UNIT, len(own)) + Fraction(1, 2))] * len(own)
    powers = [_exponential(score - max(own)) for score in own]
    exact = [Fraction(UNIT * power, sum(powers)) + Fraction(1, 2) for power in powers]
    grades = [floor(number) for number in exact]
    slack = Fraction(1, 2**200)  # more than the error of the exponentials
    assert grades == [floor(number + slack) for number in exact]
    assert grades == [floor(number - slack) for number in exact]
    return grades


def _exponential(x: Fraction) -> int:
    """Return e^x · 2^BITS for x ≤ 0, as the reciprocal of a Taylor series of positive terms."""
    if x < -BITS:
        return 0
    bits = 2 * BITS + 100
    argument = floor(-x * 2**bits)
    total = term = 1 << bits
    power = 0
    while term:
        power += 1
        term = (term * argument >> bits) // power
        total += term
    return (1 << (bits + BITS)) // total


def random_model(rng: np.random.Generator, kind: Kind = "network") -> Model:
    """Draw a model with a link to probabilities."""
    if kind == "classes":
        return _classes(rng)
    space = random_space(rng)
    while kind != "network" and any(isinstance(a, Derived) for a in space.attributes):
        space = random_space(rng)  # the random trees have no bands
    side: Side = "above" if rng.random() < 0.7 else "below"
    if kind == "network":
        network = random_network(rng, space, plain=bool(rng.integers(2)))
        return Model(space, network.with_link("logit"), feta.Threshold(float(rng.normal()), side))
    outputs = int(rng.integers(2, 4)) if kind == "shares" else 1
    forest = random_forest(rng, space, outputs=outputs)
    forest = forest.with_link("share" if kind == "shares" else "logit")
    rule: Rule = feta.Threshold(float(rng.integers(-2, 3)) / 4, side)
    if outputs > 2:
        rule = _class_rule(rng, outputs)
    return Model(space, forest, rule)


def _classes(rng: np.random.Generator) -> Model:
    space, outputs = random_space(rng), int(rng.integers(2, 5))
    network = random_network(rng, space, outputs, plain=bool(rng.integers(2)))
    return Model(space, network.with_link("logit"), _class_rule(rng, outputs))


def _class_rule(rng: np.random.Generator, outputs: int) -> Rule:
    names = tuple("abcd"[:outputs])
    if rng.random() < 0.7:
        return feta.Argmax(names)
    return feta.OneVsRest(names, names[int(rng.integers(outputs))])


def class_decision(model: Model, means: list[Fraction]) -> int:
    """Return the decision for these means per class."""
    common = lcm(*(mean.denominator for mean in means))
    return oracle.decision(model.rule, [mean * common for mean in means])
