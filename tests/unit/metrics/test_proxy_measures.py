import json

import numpy as np
import pytest

from feta import Argmax, FeatureSpace, Integer, Model, Network, Real
from feta.metrics.proxy_measures import evenly, measure_proxies
from feta.report.proxy_words import proxy_lines
from tests.unit.metrics.planted import aware_model, blind_model, draw_labels, planted


def test_a_model_is_measured_against_itself_and_its_words_name_the_figures() -> None:
    measures = measure_proxies(aware_model(), planted(0.6))
    assert (measures.reference, measures.n_people) == ("the model itself", 2500)
    assert measures.reinference is not None
    assert measures.reinference.slope is not None
    low, high = measures.reinference.slope.interval
    assert low < 1.0 < high
    lines = list(proxy_lines(measures))
    assert "reveal sex for 0.0 % [0.0, 0.2] of people" in lines[0]
    assert lines[1].startswith("Re-inference slope: ")
    assert not any("extrapolates" in line for line in lines)
    content = json.loads(json.dumps(measures.as_json()))
    assert content["reinference"]["slope"]["value"] == measures.reinference.slope.value


def test_a_perfect_proxy_warns_that_the_vote_extrapolates() -> None:
    lines = list(proxy_lines(measure_proxies(aware_model(), planted(1.0))))
    (warning,) = [line for line in lines if line.startswith("Warning: ")]
    assert warning.startswith("Warning: for 100.0 % [99.8, 100.0] of people, a vote over sex")


def test_a_blind_model_needs_labels_to_be_measured() -> None:
    people = planted(0.8)
    unlabeled = measure_proxies(blind_model(), people)
    assert unlabeled.reinference is None
    assert "reads no sensitive column" in unlabeled.reference
    measures = measure_proxies(blind_model(), people, draw_labels(people))
    assert measures.reference == "a logistic regression of the labels on all columns"
    assert measures.reinference is not None
    assert measures.reinference.slope is not None
    # The town has the effect of the sex: more than a guess of the sex (0.8) would add.
    assert 1.0 < measures.reinference.slope.value < 1.6
    equal = measure_proxies(blind_model(), people, np.ones(len(people)))
    assert equal.reference == "all labels are equal"


def test_few_people_and_several_scores_are_not_measured() -> None:
    few = measure_proxies(aware_model(), planted(0.5, 99))
    assert (few.overlaps, few.reinference, few.reference) == ((), None, "fewer than 100 people")
    space = FeatureSpace((Integer("age", 18, 40, sensitive=True), Real("pay", 0, 9)))
    network = Network.from_layers([([[0.1, 1.0], [0.0, 1.0], [0.2, 0.0]], [0.0, 0.0, 0.0])])
    classes = Model(space, network, Argmax(("a", "b", "c")))
    rng = np.random.default_rng(0)
    people = np.stack([rng.integers(18, 41, 400), rng.uniform(0, 9, 400)], axis=1).astype(float)
    measures = measure_proxies(classes, people)
    assert measures.reference == "the model has several scores"
    assert measures.overlaps[0].groups[0].startswith("18 to ")


@pytest.mark.parametrize(("n_all", "most", "n_chosen"), [(10, 4, 4), (3, 4, 3), (1, 4, 1)])
def test_people_are_chosen_evenly(n_all: int, most: int, n_chosen: int) -> None:
    rows = evenly(n_all, most)
    assert len(rows) == n_chosen
    assert (rows[0], rows[-1]) == (0, n_all - 1)
