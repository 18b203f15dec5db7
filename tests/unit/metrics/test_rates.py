import numpy as np
import pytest

import feta
from feta.metrics.rates import accuracy, ce_rate, flip_rate
from tests.examples import PERSON, linear


@pytest.mark.parametrize(
    ("model", "rate"),
    [(linear(age=1.0, bias=-30.0), 1.0), (linear(age=1.0), 0.0), (linear(age=-1.0), 0.0)],
)
def test_ce_rate_counts_people_whose_counterparts_differ(model: feta.Model, rate: float) -> None:
    assert ce_rate(feta.tally(model, np.stack([PERSON, PERSON]))) == rate


def test_one_differing_counterpart_is_a_counterexample() -> None:
    oldest_only = linear(age=1.0, female=-0.5, bias=-90.0)
    counts = feta.tally(oldest_only, PERSON[None, :])
    assert (counts.favorable.tolist(), ce_rate(counts)) == ([1], 1.0)


def test_rates_are_shares_of_all_people() -> None:
    decisions, fair = np.array([True, True, False, False]), np.array([True, False, False, False])
    assert flip_rate(decisions, fair) == 0.25
    assert accuracy(decisions, fair) == 0.75
    assert flip_rate(decisions, decisions) == 0.0


def test_ce_rate_counts_people_with_several_classes() -> None:
    counts = feta.Tally(
        np.array([[3, 0, 0], [1, 0, 2], [0, 0, 3], [1, 1, 1]]),
        np.zeros(4, dtype=np.int64),
        np.ones(4, dtype=bool),
        "first",
    )
    assert ce_rate(counts) == 0.5


@pytest.mark.parametrize(
    ("epsilon", "rate"), [(0.0, 0.75), (0.5, 0.5), (np.nextafter(0.5, 0), 0.75), (2.0, 0.0)]
)
def test_a_score_flips_if_it_differs_from_the_fair_one_by_more_than_epsilon(
    epsilon: float, rate: float
) -> None:
    scores, fair = np.array([1.0, 1.0, 1.0, 1.0]), np.array([1.0, 1.5, 3.0, -1.0])
    assert flip_rate(scores, fair, epsilon=epsilon) == rate


def test_classes_flip_if_they_differ() -> None:
    assert flip_rate([0, 1, 2], [0, 2, 2]) == 1 / 3
    assert accuracy([0, 1, 2], ["a", "b", "c"]) == 0.0


@pytest.mark.parametrize(
    ("decisions", "labels", "shapes"),
    [
        ([True], [True, False], r"\(1,\) and \(2,\)"),
        ([True, False], [[True, False]], r"\(2,\) and \(1, 2\)"),
        ([True], True, r"\(1,\) and \(\)"),
        ([], [], r"\(0,\) and \(0,\)"),
    ],
)
def test_decisions_and_labels_of_different_shapes_are_rejected(
    decisions: list[bool], labels: list[bool], shapes: str
) -> None:
    message = f"^invalid shapes: got {shapes}; expected two nonempty arrays of the same shape$"
    with pytest.raises(feta.DomainError, match=message):
        accuracy(decisions, labels)


@pytest.mark.parametrize(
    ("decisions", "fair"),
    [
        ([True], [True, False]),
        ([True, False, True], [True, False]),
        ([1.0], [1.0, 2.0]),
        ([True, False], True),
        ([], []),
    ],
)
def test_decisions_and_fair_decisions_of_different_shapes_are_rejected(
    decisions: list[float], fair: list[float]
) -> None:
    with pytest.raises(feta.DomainError, match=r"^invalid shapes: got "):
        flip_rate(decisions, fair)


def test_ce_rate_of_nobody_is_rejected() -> None:
    counts = feta.tally(linear(), np.zeros((0, 4)))
    message = "^no people: got an empty tally; expected at least one person$"
    with pytest.raises(feta.DomainError, match=message):
        ce_rate(counts)
