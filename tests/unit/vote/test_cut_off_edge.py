"""A ballot has the cut-off as a threshold: unanimous counterparts are never outvoted."""

from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from feta import FairPredictor, FeatureSpace, Integer, Model, Network, Real, Threshold
from feta.scorer.protocol import Link, Side
from feta.vote.graded_ballot import UNIT, Edge, GradedBallot

SPACE = FeatureSpace((Integer("age", 0, 2, sensitive=True), Real("x", -1000.0, 1000.0)))

Ties = Literal["favorable", "unfavorable"]


def model(rule: Threshold, link: Link = "logit", slope: float = 0.0) -> Model:
    """Return a model whose score is x, plus the age times a slope."""
    network = Network.from_layers([([[slope, 1.0]], [0.0])])
    if link == "probit":
        return Model(SPACE, replace(network, inverse_link="probit"), rule)
    return Model(SPACE, network.with_link(link), rule)


def rows(*scores: float) -> np.ndarray:
    return np.array([[0.0, score] for score in scores])


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("favors", ["above", "below"])
@pytest.mark.parametrize("ties", ["favorable", "unfavorable"])
def test_unanimous_counterparts_decide(link: Link, favors: Side, ties: Ties) -> None:
    rng = np.random.default_rng(0)
    extremes = [0.0, -0.0, 7.0, -7.0, -7.6, 40.0, -40.0, 600.0, -600.0, 0.001, 1e-9]
    for threshold in [*extremes, *rng.normal(0, 3, 12).tolist()]:
        own = model(Threshold(threshold, favors, ties), link)
        near = [float(np.nextafter(threshold, end)) for end in (-np.inf, np.inf)]
        people = rows(threshold, *near, *(threshold + rng.normal(0, 1e-3, 20)), -900.0, 900.0)
        predictor = FairPredictor(own, vote="mean_probability")
        assert predictor.decide(people).tolist() == own.decide(people).tolist()
        assert len(set(own.decide(people).tolist())) == 2


@pytest.mark.parametrize("favors", ["above", "below"])
def test_unanimous_counterparts_decide_at_any_level(favors: Side) -> None:
    rng = np.random.default_rng(1)
    for level in [0.5, 0.0005, 0.9995, *rng.uniform(0, 1, 12).tolist()]:
        logit = float(np.log(level / (1 - level)))
        people = rows(*(logit + rng.choice([-1, 1], 30) * rng.uniform(1e-9, 1e-3, 30)))
        for predictor in (
            FairPredictor(model(Threshold(0.0, favors)), vote="mean_probability", level=level),
            FairPredictor.fitted(model(Threshold(0.0, favors)), people, level=level, least=1),
        ):
            above = people[:, 1] > logit
            assert (predictor.decide(people) == (above == (favors == "above"))).all()


def test_the_mean_of_counterparts_on_both_sides_is_close() -> None:
    own = model(Threshold.at_probability(0.0005), slope=0.01)
    scores = -7.6 + np.linspace(-0.02, 0.02, 401)
    ages = np.arange(3)[None, :]
    means = (1 / (1 + np.exp(-(scores[:, None] + 0.01 * ages)))).mean(axis=1)
    expected = means >= 0.0005
    found = FairPredictor(own, vote="mean_probability").decide(rows(*scores))
    unanimous = np.abs(scores + 0.01 + 7.6004) > 0.0101
    assert (found == expected)[unanimous].all()


def test_an_edge_replaces_the_thresholds_that_contradict_it() -> None:
    edge = Edge(0.5, 0.6)
    assert edge.among({-1.0: 0.2, 0.4: 0.61, 0.5: 0.62, 0.55: 0.6, 1.0: 0.7}) == {
        -1.0: 0.2,
        0.5: 0.6,
        1.0: 0.7,
    }
    ballot = GradedBallot.at("logit", [0.25, 0.75], Edge(0.0, 0.5))
    assert ballot.thresholds[1] == 0.0
    assert ballot.grades.tolist() == [int(UNIT * Fraction(n, 8)) for n in (1, 3, 5, 7)]
