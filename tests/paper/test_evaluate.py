"""Tests of the rates of an evaluation."""

import numpy as np

import feta
from feta_paper.evaluate import FoldEvaluation, evaluate
from tests.unit.train.people import LABELS, PEOPLE, SPACE

ALL = np.ones(4, dtype=bool)


def test_rates_are_those_of_the_paper() -> None:
    evaluation = FoldEvaluation(
        labels=np.array([True, True, False, False]),
        decisions=np.array([True, False, True, False]),
        favorable=np.array([6, 5, 1, 0]),
        counterparts=6,
    )
    figures = evaluation.figures("net", "vote")
    assert figures == {
        "net.accuracy": 50.0,
        "net.flip_rate": 50.0,
        "net.ce_rate": 50.0,
        "vote.accuracy": 100.0,
    }


def test_the_printed_algorithm_is_unfair_on_ties_only() -> None:
    even = FoldEvaluation(ALL, ALL, np.array([3, 2, 4, 0]), counterparts=6)
    assert even.printed("printed") == {"printed.treated_apart": 1.0, "printed.tied": 1.0}
    odd = FoldEvaluation(ALL, ALL, np.array([3, 2, 4, 0]), counterparts=7)
    assert odd.printed("printed") == {"printed.treated_apart": 0.0, "printed.tied": 0.0}


def test_an_evaluation_agrees_with_the_predictor_and_the_tally() -> None:
    weights = np.zeros((1, SPACE.width))
    weights[0, [0, -1]] = 0.2, 0.01
    network = feta.Network.from_layers([(weights, [-5.0])])
    evaluation = evaluate(SPACE, network, PEOPLE, np.asarray(LABELS, dtype=bool), real=True)
    model = feta.Model(SPACE, network)
    assert np.array_equal(evaluation.vote, feta.FairPredictor(model).decide(PEOPLE))
    assert np.array_equal(evaluation.unfair, ~feta.tally(model, PEOPLE).unanimous)
    assert evaluation.unfair_real is not None
    assert evaluation.unfair.any()
    assert not (evaluation.unfair & ~evaluation.unfair_real).any()  # integers are real numbers
