import numpy as np
import pytest

from feta import Argmax, CertificateError, Counterexample, DomainError, Model, Network, Tolerance
from tests.examples import PERSON, SPACE, linear

MODEL = linear(age=1.0, bias=-31.0)


def aged(age: float, income: float = 50.0) -> np.ndarray:
    return np.array([age, PERSON[1], PERSON[2], income])


def test_a_counterexample_replays_both_people() -> None:
    pair = Counterexample(MODEL, PERSON, aged(40))
    assert pair.decisions == (0, 1)
    assert pair.scores.tolist() == [-1.0, 9.0]
    assert pair.gap == 10.0
    assert pair.runtime == "safe"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (aged(40, 51.0), "differ in a column that is not sensitive; expected counterparts"),
        (
            aged(40, np.nextafter(50.0, 51)),
            "differ in a column that is not sensitive; expected counterparts",
        ),
        (aged(29), "same decision, or scores within the tolerance, in exact arithmetic"),
        (aged(30), "same decision, or scores within the tolerance, in exact arithmetic"),
    ],
)
def test_a_pair_that_proves_nothing_is_rejected(other: np.ndarray, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        Counterexample(MODEL, PERSON, other)
    assert Counterexample.witness(MODEL, PERSON, other) is None


@pytest.mark.parametrize("age", [17.0, 91.0, 40.5, np.nan])
def test_a_counterpart_outside_the_space_is_rejected_not_ignored(age: float) -> None:
    with pytest.raises(
        DomainError, match=r"'age' is invalid: .*; expected an integer from 18 to 90"
    ):
        Counterexample.witness(MODEL, PERSON, aged(age))


def test_a_tie_differs_exactly_but_not_provably_in_the_source() -> None:
    pair = Counterexample(MODEL, PERSON, aged(31))
    assert pair.decisions == (0, 1)
    assert pair.runtime == "sensitive"


def test_a_difference_that_float64_rounds_away_still_counts() -> None:
    tiny = linear(age=2.0**-60, bias=-31 * 2.0**-60)
    pair = Counterexample(tiny, PERSON, aged(31))
    assert pair.decisions == (0, 1)
    hidden = linear(age=0.1, bias=-3.0)  # 0.1·30 − 3 rounds to 0 in float64, and is above it
    assert Counterexample(hidden, PERSON, aged(29)).scores[0] > 0


def test_a_counterexample_is_read_only() -> None:
    other = aged(40)
    pair = Counterexample(MODEL, PERSON, other)
    other[0] = 18.0
    assert SPACE.decode(pair.counterpart)["age"] == 40
    for array in (pair.person, pair.counterpart, pair.scores):
        assert not array.flags.writeable


CLASSES = Model(
    SPACE,
    Network.from_layers([([[1.0, 0, 0, 0], [0.0] * 4, [0, 0, 0.5, 0]], [0.0, 35.0, 35.0])]),
    Argmax(("a", "b", "c")),
)


def test_a_counterexample_of_several_classes_names_both() -> None:
    pair = Counterexample(CLASSES, PERSON, aged(40))
    assert pair.decisions == (1, 0)
    assert pair.scores.tolist() == [[30.0, 35.0, 35.0], [40.0, 35.0, 35.0]]
    assert pair.gap == 5.0
    assert pair.fingerprint == CLASSES.fingerprint
    assert pair.runtime == "sensitive"  # the person's two best classes tie


def test_two_classes_that_are_not_the_chosen_one_agree() -> None:
    chosen = CLASSES.one_vs_rest("a")
    man = np.array([30.0, 0.0, 1.0, 50.0])
    assert Counterexample(CLASSES, PERSON, man).decisions == (1, 2)
    with pytest.raises(
        CertificateError, match="same decision, or scores within the tolerance, in exact arithmetic"
    ):
        Counterexample(chosen, PERSON, man)
    pair = Counterexample(chosen, PERSON, aged(40))
    assert (pair.decisions, pair.gap, pair.runtime) == ((0, 1), 5.0, "safe")


@pytest.mark.parametrize(
    ("epsilon", "runtime"), [(9.0, "safe"), (np.nextafter(10.0, 0), "sensitive")]
)
def test_scores_that_differ_by_more_than_the_tolerance_are_a_counterexample(
    epsilon: float, runtime: str
) -> None:
    model = Model(SPACE, MODEL.network, Tolerance(epsilon))
    pair = Counterexample(model, PERSON, aged(40))
    assert pair.decisions == ()
    assert (pair.gap, pair.runtime) == (10.0, runtime)


def test_scores_that_differ_by_exactly_the_tolerance_agree() -> None:
    model = Model(SPACE, MODEL.network, Tolerance(10.0))
    with pytest.raises(
        CertificateError, match="same decision, or scores within the tolerance, in exact arithmetic"
    ):
        Counterexample(model, PERSON, aged(40))
