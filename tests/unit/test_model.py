from collections.abc import Callable

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from feta import (
    Argmax,
    DomainError,
    FeatureSpace,
    Integer,
    Model,
    Network,
    NetworkError,
    OneVsRest,
    Real,
    SchemaError,
    Threshold,
    Tolerance,
)
from feta.rule import UNDECIDED
from tests.examples import PERSON, SPACE, linear

RULE = Threshold(0.0, "above", "favorable")
ABC = Argmax(("a", "b", "c"))
THREE_OUTPUTS = Network.from_layers(
    [([[1.0, 0, 0, 0], [0.0] * 4, [0, 0, 0, 1.0]], [0.0, 40.0, 0.0])]
)
LINEAR = Network.from_layers([([[0.1, 0.0, 0.0, 0.0]], [0.0])])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Model(SPACE, LINEAR, Threshold(0.0), threshold=0.0),
            r"conflicting arguments: got rule=Threshold.* and threshold=0\.0; expected one of them",
        ),
        (
            lambda: Model(SPACE, Network.from_layers([(np.ones((3, 4)), np.zeros(3))])),
            "wrong number of network outputs: got 3; expected 1 or 2 for Threshold",
        ),
        (
            lambda: Model(SPACE, Network.from_layers([(np.ones((1, 3)), [0.0])])),
            "inputs: got 3; expected 4, .*; a categorical attribute has one column per value",
        ),
        (
            lambda: Model(SPACE, LINEAR, threshold=np.nan),
            "invalid threshold: got nan; expected a finite number",
        ),
        (
            lambda: Model(SPACE, LINEAR, 0.5),  # type: ignore[arg-type]
            r"invalid rule: got 0\.5; expected a rule such as feta\.Threshold\(0\.0\)",
        ),
        (
            lambda: Model(SPACE, LINEAR, Argmax(("a", "b"))),
            "wrong number of network outputs: got 1; expected 2 for Argmax",
        ),
        (
            lambda: Model(SPACE, THREE_OUTPUTS, OneVsRest(("a", "b"), "a")),
            "wrong number of network outputs: got 3; expected 2 for OneVsRest",
        ),
        (
            lambda: Model(SPACE, THREE_OUTPUTS, Tolerance(1.0)),
            "wrong number of network outputs: got 3; expected 1 for Tolerance",
        ),
        (
            lambda: Model(SPACE, LINEAR, Tolerance(1.0), outcomes=("a", "b")),
            r"invalid outcomes: got \('a', 'b'\); expected 0 different names",
        ),
        (
            lambda: Model(SPACE, THREE_OUTPUTS, ABC, outcomes=("x", "y")),
            r"invalid outcomes: got \('x', 'y'\); expected 3 different names",
        ),
        (
            lambda: Model(SPACE, LINEAR).one_vs_rest("a"),
            r"one class against the rest: got Threshold\(.*; expected an Argmax",
        ),
        (
            lambda: Model(SPACE, THREE_OUTPUTS, OneVsRest(ABC.classes, "a")).one_vs_rest("a"),
            r"one class against the rest: got OneVsRest\(.*; expected an Argmax",
        ),
        (
            lambda: Model(SPACE, THREE_OUTPUTS, ABC).one_vs_rest("d"),
            "unknown class: got 'd'; expected one of 'a', 'b', 'c'",
        ),
        (
            lambda: Model(SPACE, LINEAR, Tolerance(1.0)).decide(PERSON[None, :]),
            r"invalid rule: got a Tolerance; .* regression model has scores only, use model\.score",
        ),
        (
            lambda: Model(SPACE, LINEAR, outcomes=("no",)),
            r"invalid outcomes: got \('no',\); expected 2 different names",
        ),
        (lambda: Model(SPACE, LINEAR, outcomes=("no", "no")), "expected 2 different names"),
    ],
)
def test_an_invalid_model_is_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [([[1e299, 0, 0, 0]], [0.0])],
            "layer 1, neuron 0 could overflow: got values up to 9e.300 in this space",
        ),
        (
            [([[1, 0, 0, 0], [1e200, 0, 0, 0]], [0, 0]), ([[0, 1e200]], [0])],
            "layer 2, neuron 0 could overflow: got .* inf .*narrow the columns' limits or rescale",
        ),
    ],
)
def test_activations_that_overflow_float64_are_refused(
    layers: list[tuple[list[list[float]], list[float]]], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        Model(SPACE, Network.from_layers(layers))


def test_a_model_without_a_rule_decides_at_zero_and_a_tie_is_favorable() -> None:
    assert Model(SPACE, LINEAR).rule == Threshold(0.0, "above", "favorable")
    assert linear().decide(PERSON[None, :]).tolist() == [True]


@pytest.mark.parametrize(("side", "decision"), [(None, True), ("above", True), ("below", False)])
def test_a_tie_is_decided_as_in_the_source(side: str | None, *, decision: bool) -> None:
    network = Network.from_layers([([[0.0] * 4], [3.0])], equality=side)  # type: ignore[arg-type]
    assert Model(SPACE, network, threshold=3.0).decide(PERSON[None, :]).tolist() == [decision]


def test_the_score_of_two_outputs_is_their_difference() -> None:
    network = Network.from_layers([([[1.0, 0, 0, 0], [0, 0, 0, 1.0]], [0.0, 0.0])])
    model = Model(SPACE, network)
    assert model.score(PERSON[None, :]).tolist() == [20.0]
    assert model.network.outputs == 1


@pytest.mark.parametrize(
    ("age", "threshold", "decision"),
    [
        (30, 3.0, True),  # 0.1 is above 1/10, so 0.1·30 is above 3
        (30, np.nextafter(3.0, 4), False),
        (31, 3.1, True),
        (29, 2.9, True),
    ],
)
def test_a_decision_is_exact_even_if_float64_ties(
    age: int, threshold: float, *, decision: bool
) -> None:
    rule = Threshold(threshold, equality="unfavorable")
    person = SPACE.encode({"age": age, "sex": "male", "income": 0})
    assert Model(SPACE, LINEAR, rule).decide(person).tolist() == [decision]


def test_no_rows_give_no_decisions() -> None:
    assert linear().decide(np.zeros((0, 4))).shape == (0,)
    assert linear().score(np.zeros((0, 4))).shape == (0,)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 17.0, 30.5])
def test_people_outside_the_space_are_refused(bad: float) -> None:
    person = np.array(PERSON)
    person[0] = bad
    for evaluate in (linear().decide, linear().score):
        with pytest.raises(
            DomainError, match=r"'age' is invalid: .*; expected an integer from 18 to 90"
        ):
            evaluate(person[None, :])


def test_after_the_deadline_only_exact_decisions_remain_undecided() -> None:
    model = linear(age=1.0, bias=-30.0)
    people = np.repeat(PERSON[None, :], 3, axis=0)
    people[:, 0] = (29, 30, 31)
    result = model.resolve(model.points(people), RULE, deadline=-np.inf)
    assert result.decisions.tolist() == [0, UNDECIDED, 1]
    assert result.runtime_safe.tolist() == [True, False, True]
    assert model.resolve(model.points(people), RULE).decisions.tolist() == [0, 1, 1]


def test_a_score_within_float32s_error_is_decided_but_not_safe() -> None:
    model = linear(age=1.0, bias=-30.0 + 1e-7)
    batch = model.resolve(model.points(PERSON[None, :]), RULE)
    assert (batch.decisions.tolist(), batch.runtime_safe.tolist()) == ([1], [False])
    exact = Network.from_layers([([[1.0, 0, 0, 0]], [-30.0 + 1e-7])], source="float64")
    float64_model = Model(SPACE, exact)
    assert float64_model.resolve(
        float64_model.points(PERSON[None, :]), RULE
    ).runtime_safe.tolist() == [True]


@pytest.mark.parametrize(
    ("network", "high", "source_error"),
    [
        (Network.from_layers([([[1.0]], [0.0])]), 9.0, (0.0, 0.0)),
        (Network.from_layers([([[1.0]], [0.0])], sigmoid=True), 9.0, (1e-7, 1e-5)),
        (Network.from_layers([([[1.0]], [0.0])]), 1e39, (np.inf, np.inf)),
        (Network.from_layers([([[1.0]], [0.0])], source="float64"), 1e39, (0.0, 0.0)),
    ],
)
def test_the_error_of_the_source_is_included(
    network: Network, high: float, source_error: tuple[float, float]
) -> None:
    space = FeatureSpace((Real("x", 0, high, sensitive=True),))
    low_error, high_error = source_error
    assert low_error <= Model(space, network).runtime_error <= high_error


@pytest.mark.parametrize(
    "other",
    [
        Model(SPACE, LINEAR, threshold=np.nextafter(0.0, 1)),
        Model(SPACE, LINEAR, Threshold(0.0, equality="unfavorable")),
        Model(SPACE, LINEAR, Threshold(0.0, "below")),
        Model(SPACE, LINEAR, Tolerance(0.0)),
        Model(SPACE.with_sensitive(["sex"]), LINEAR),
        linear(age=0.2),
    ],
)
def test_any_two_models_have_different_fingerprints(other: Model) -> None:
    model = Model(SPACE, LINEAR)
    assert other.fingerprint != model.fingerprint
    assert model.fingerprint == Model(SPACE, LINEAR, Threshold(-0.0)).fingerprint
    assert model.fingerprint == Model(SPACE, LINEAR, outcomes=("no", "yes")).fingerprint


def test_changing_sensitive_attributes_keeps_the_rest() -> None:
    network = Network.from_layers([(np.ones((2, 4)), [0.0, 1.0])], equality="below")
    model = Model(SPACE, network, threshold=1.0, outcomes=("no", "yes"))
    other = model.with_sensitive(["sex"])
    assert other.rule == model.rule
    assert other.outcomes == ("no", "yes")
    assert other.network.fingerprint == model.network.fingerprint
    assert other.space.lattice.size == 2


def test_a_wide_integer_is_exact_to_the_last_unit() -> None:
    space = FeatureSpace((Integer("n", 0, 2**52, sensitive=True),))
    model = Model(space, Network.from_layers([([[1.0]], [0.0])]), threshold=2.0**52 - 0.5)
    assert model.decide(np.array([[2.0**52 - 1], [2.0**52]])).tolist() == [False, True]


def at(age: float, income: float) -> list[float]:
    return [age, 1.0, 0.0, income]


def test_the_class_with_the_largest_score_wins_and_the_first_on_a_tie() -> None:
    model = Model(SPACE, THREE_OUTPUTS, ABC)
    people = np.array([at(41, 0), at(40, 0), at(39, 40), at(39, np.nextafter(40, 41)), at(41, 41)])
    assert model.decide(people).tolist() == [0, 0, 1, 2, 0]
    assert model.score(people).shape == (5, 3)
    assert model.outcomes == ("a", "b", "c")


@pytest.mark.parametrize("chosen", ["a", "b", "c"])
def test_one_against_the_rest_decides_one_class_of_the_same_model(chosen: str) -> None:
    model = Model(SPACE, THREE_OUTPUTS, ABC, outcomes=("x", "y", "z"))
    binary = model.one_vs_rest(chosen)
    people = np.array([at(41, 0), at(40, 0), at(39, 40), at(39, 41)])
    expected = [ABC.classes[winner] == chosen for winner in model.decide(people)]
    assert binary.decide(people).tolist() == expected
    assert binary.decide(people).dtype == np.bool_
    assert binary.outcomes == (f"not {chosen}", chosen)
    assert binary.network is model.network
    assert binary.fingerprint != model.fingerprint


def test_two_outputs_may_be_two_classes_and_a_tie_is_then_the_first() -> None:
    network = Network.from_layers([([[1.0, 0, 0, 0], [0, 0, 0, 1.0]], [0.0, 0.0])])
    tie = np.array([at(50, 50)])
    assert Model(SPACE, network, Argmax(("a", "b"))).decide(tie).tolist() == [0]
    assert Model(SPACE, network).decide(tie).tolist() == [True]


def test_a_regression_model_scores() -> None:
    model = Model(SPACE, LINEAR, Tolerance(1.0))
    assert model.score(PERSON[None, :]).tolist() == [3.0]
    assert model.outcomes == ()
    assert model.with_sensitive(["sex"]).rule == Tolerance(1.0)


def test_a_threshold_that_looks_like_a_probability_gives_a_warning() -> None:
    network = Network.from_layers([([[0.0, 0.0, 0.0, 1.0]], [0.0])], sigmoid=True)
    with pytest.warns(
        UserWarning, match=r"threshold=0.5 is compared with the score.*at_probability\(0.5\)"
    ):
        Model(SPACE, network, threshold=0.5)


def test_an_estimator_is_no_network() -> None:
    message = (
        r"^invalid network: got Pipeline; expected a Network; use feta\.read_sklearn\(estimator, "
    )
    with pytest.raises(NetworkError, match=message):
        Model(SPACE, make_pipeline(StandardScaler()))
