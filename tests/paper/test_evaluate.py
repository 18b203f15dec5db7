import numpy as np

import feta
from feta_paper.evaluate import Look, look_at
from tests.unit.train.people import LABELS, PEOPLE, SPACE

ALL = np.ones(4, dtype=bool)


def test_rates_are_those_of_the_paper() -> None:
    look = Look(
        labels=np.array([True, True, False, False]),
        own=np.array([True, False, True, False]),
        favorable=np.array([6, 5, 1, 0]),
        counterparts=6,
    )
    figures = look.figures("net", "vote")
    assert figures == {
        "net.accuracy": 50.0,
        "net.flip_rate": 50.0,
        "net.ce_rate": 50.0,
        "vote.accuracy": 100.0,
    }


def test_the_printed_algorithm_treats_people_apart_on_a_tie_and_only_there() -> None:
    look = Look(ALL, ALL, np.array([3, 2, 4, 0]), counterparts=6)
    assert look.printed("printed") == {"printed.treated_apart": 1.0, "printed.tied": 1.0}
    odd = Look(ALL, ALL, np.array([3, 2, 4, 0]), counterparts=7)
    assert odd.printed("printed") == {"printed.treated_apart": 0.0, "printed.tied": 0.0}


def test_a_look_counts_what_the_predictor_decides() -> None:
    weights = np.zeros((1, SPACE.width))
    weights[0, [0, -1]] = 0.2, 0.01
    network = feta.Network.from_layers([(weights, [-5.0])])
    look = look_at(SPACE, network, PEOPLE, np.asarray(LABELS, dtype=bool), real=True)
    model = feta.Model(SPACE, network)
    assert np.array_equal(look.vote, feta.FairPredictor(model).decide(PEOPLE))
    assert np.array_equal(look.apart, ~feta.tally(model, PEOPLE).unanimous)
    assert look.apart_real is not None
    assert look.apart.any()
    assert not (look.apart & ~look.apart_real).any()  # whole numbers are among the real ones
