import numpy as np
import pytest

import feta
from feta.metrics import accuracy, ce_rate, flip_rate
from tests.examples import PERSON, linear


@pytest.mark.parametrize(
    ("model", "rate"),
    [(linear(age=1.0, bias=-30.0), 1.0), (linear(age=1.0), 0.0), (linear(age=-1.0), 0.0)],
)
def test_the_ce_rate_counts_people_whose_counterparts_differ(
    model: feta.Model, rate: float
) -> None:
    assert ce_rate(feta.tally(model, np.stack([PERSON, PERSON]))) == rate


def test_a_single_dissenting_counterpart_is_a_counterexample() -> None:
    oldest_only = linear(age=1.0, female=-0.5, bias=-90.0)
    counts = feta.tally(oldest_only, PERSON[None, :])
    assert (counts.favorable.tolist(), ce_rate(counts)) == ([1], 1.0)


def test_shares_are_of_all_people() -> None:
    own, fair = np.array([True, True, False, False]), np.array([True, False, False, False])
    assert flip_rate(own, fair) == 0.25
    assert accuracy(own, fair) == 0.75
    assert flip_rate(own, own) == 0.0
