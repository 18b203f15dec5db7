import numpy as np
import pytest

from feta import CertificateError, Counterexample, DomainError
from tests.examples import PERSON, SPACE, linear

MODEL = linear(age=1.0, bias=-31.0)


def aged(age: float, income: float = 50.0) -> np.ndarray:
    return np.array([age, PERSON[1], PERSON[2], income])


def test_a_counterexample_replays_both_people() -> None:
    found = Counterexample(MODEL, PERSON, aged(40))
    assert found.decisions == (0, 1)
    assert found.scores.tolist() == [-1.0, 9.0]
    assert found.gap == 10.0
    assert found.runtime == "safe"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (aged(40, 51.0), "must agree on every column that is not sensitive"),
        (aged(40, np.nextafter(50.0, 51)), "must agree on every column that is not sensitive"),
        (aged(29), "must be decided apart, but exact scores agree"),
        (aged(30), "must be decided apart, but exact scores agree"),
    ],
)
def test_a_pair_that_proves_nothing_is_refused(other: np.ndarray, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        Counterexample(MODEL, PERSON, other)
    assert Counterexample.witness(MODEL, PERSON, other) is None


@pytest.mark.parametrize("age", [17.0, 91.0, 40.5, np.nan])
def test_a_counterpart_outside_the_space_is_refused_not_swallowed(age: float) -> None:
    with pytest.raises(DomainError, match="'age' must be a whole number from 18 to 90"):
        Counterexample.witness(MODEL, PERSON, aged(age))


def test_a_tie_is_decided_apart_exactly_but_not_surely_by_the_source() -> None:
    found = Counterexample(MODEL, PERSON, aged(31))
    assert found.decisions == (0, 1)
    assert found.runtime == "sensitive"


def test_a_difference_that_float64_rounds_away_still_counts() -> None:
    tiny = linear(age=2.0**-60, bias=-31 * 2.0**-60)
    found = Counterexample(tiny, PERSON, aged(31))
    assert found.decisions == (0, 1)
    hidden = linear(age=0.1, bias=-3.0)  # 0.1·30 − 3 rounds to 0 in float64, and is above it
    assert Counterexample(hidden, PERSON, aged(29)).scores[0] > 0


def test_a_counterexample_cannot_be_written_to() -> None:
    other = aged(40)
    found = Counterexample(MODEL, PERSON, other)
    other[0] = 18.0
    assert SPACE.decode(found.counterpart)["age"] == 40
    for array in (found.person, found.counterpart, found.scores):
        assert not array.flags.writeable
