from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from feta import Categorical, EngineError, FeatureSpace, Integer, Model, Network, Real, SchemaError
from feta.rule import Tolerance
from feta.scorer.exact_scores import ExactScores
from feta.scorer.network.evaluation import Counterparts
from feta.scorer.network.layers import Columns
from feta.train.worst_counterparts import Numbers, worst_counterparts
from tests import oracle
from tests.strategies import eighths, random_network, random_person, random_space


def expected_counterpart(model: Model, person: np.ndarray, *, upward: bool) -> np.ndarray:
    others = oracle.counterparts(model, person)
    scores = [oracle.score(model, other) for other in others]
    return others[scores.index(max(scores) if upward else min(scores))]


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_integers_give_the_counterpart_of_the_oracle(seed: int, upward: bool, plain: bool) -> None:
    rng = np.random.default_rng(seed)
    space = random_space(rng)
    model = Model(space, random_network(rng, space, plain=plain), Tolerance(0.0))
    people = np.stack([random_person(rng, space) for _ in range(3)])
    rows, scores = worst_counterparts(space, model.network, people, np.full(3, upward))
    for person, row, score in zip(people, rows, scores, strict=True):
        expected = expected_counterpart(model, person, upward=upward)
        assert row.tolist() == expected.tolist()
        assert score == pytest.approx(float(oracle.score(model, expected)), rel=1e-12, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from((-np.inf, None, np.inf)))
@settings(max_examples=150, deadline=None)
def test_every_counterpart_that_reaches_a_score_is_found(
    seed: int, upward: bool, toward: float | None
) -> None:
    rng = np.random.default_rng(seed)
    space = random_space(rng)
    model = Model(space, random_network(rng, space, plain=False), Tolerance(0.0))
    people = np.stack([random_person(rng, space) for _ in range(3)])
    rows, scores = worst_counterparts(space, model.network, people, np.full(3, upward))
    # The score of one person, or a float64 next to it.
    beyond = float(scores[0] if toward is None else np.nextafter(scores[0], toward))
    counterparts, _ = worst_counterparts(
        space, model.network, people, np.full(3, upward), beyond=beyond
    )
    shared = ~space.sensitive_columns
    assert (counterparts[:, shared] == people[:, shared]).all()
    sign = 1 if upward else -1
    for row, expected in zip(counterparts, rows, strict=True):
        if sign * oracle.score(model, expected) >= sign * Fraction(beyond):
            assert row.tolist() == expected.tolist()


def test_people_of_a_batch_may_have_different_directions() -> None:
    space = FeatureSpace((Integer("age", 18, 90, sensitive=True), Real("income", 0, 9)))
    network = Network.from_layers([([[0.5, 1.0]], [0.0])])
    people = space.encode([{"age": 30, "income": 1}, {"age": 30, "income": 2}])
    rows, scores = worst_counterparts(space, network, people, np.array([True, False]))
    assert rows.tolist() == [[90.0, 1.0], [18.0, 2.0]]
    assert scores.tolist() == [46.0, 11.0]


def test_equal_scores_give_the_first_assignment() -> None:
    space = FeatureSpace((Categorical("group", ("a", "b", "c"), sensitive=True),))
    network = Network.from_layers([([[0.25, 0.5, 0.5]], [0.125])])
    people = space.encode([{"group": "c"}])
    rows, _ = worst_counterparts(space, network, people, np.array([True]))
    assert space.decode(rows[0]) == {"group": "b"}


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_order_that_float64_gets_wrong_is_corrected(sign: float) -> None:
    space = FeatureSpace((Categorical("group", ("a", "b", "c"), sensitive=True),))
    # The score is 1 + 1.5u for a and 1 + u + u for b, with u = 2^-53. Summed from the left in
    # float64, a is rounded up to 1 + 2u, and b loses u twice. The score of c is much lower.
    unit = 2.0**-53
    hidden = [[1.0, 1.0, 0.0], [1.5 * unit, unit, 0.0], [0.0, unit, 0.0]]
    network = Network.from_layers(
        [(hidden, [0.0] * 3), ([[sign] * 3], [0.0])], activation="identity"
    )
    people = space.encode([{"group": "c"}])
    rows, _ = worst_counterparts(space, network, people, np.array([sign > 0]))
    assert space.decode(rows[0]) == {"group": "b"}


def test_ties_by_inactive_neurons_need_no_exact_arithmetic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space = FeatureSpace(
        (
            Integer("age", 0, 50, sensitive=True),
            Categorical("sex", ("f", "m"), sensitive=True),
            Real("income", 0, 9),
        )
    )
    # Age changes an inactive neuron, and one that only an inactive neuron reads; sex matters.
    network = Network.from_layers(
        [
            ([[0.1, 0.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0], [0.0, 0.3, 0.7, 0.1]], [-99.0, 0.0, 0.0]),
            ([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [0.0, -99.0]),
            ([[0.1, 0.7]], [0.0]),
        ]
    )
    exact: list[int] = []
    original = Counterparts.exact_scores

    def count(points: Counterparts, chosen: np.ndarray) -> ExactScores:
        exact.append(len(chosen))
        return original(points, chosen)

    monkeypatch.setattr(Counterparts, "exact_scores", count)
    people = space.encode([{"age": 7, "sex": "f", "income": 1}])
    rows, _ = worst_counterparts(space, network, people, np.array([True]))
    assert rows.tolist() == [[0.0, 0.0, 1.0, 1.0]]
    assert exact == []


def space_with_real_axis(rng: np.random.Generator) -> FeatureSpace:
    space = random_space(rng)
    attributes = [a for a in space.attributes if a.kind not in ("derived", "levels")]
    integer = Integer("age", -3, -3 + int(rng.integers(2, 9)), sensitive=True)
    real = Real("age", -2.5, 4.0, sensitive=True)
    age = integer if rng.random() < 0.7 else real
    return FeatureSpace(tuple(age if a.name == "age" else a for a in attributes))


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
@example(293, False, True)
@settings(max_examples=120, deadline=None)
def test_a_real_number_is_within_rounding_of_the_best_break(
    seed: int, upward: bool, plain: bool
) -> None:
    rng = np.random.default_rng(seed)
    space = space_with_real_axis(rng)
    network = random_network(rng, space, plain=plain)
    network = replace(network, first=Columns(network.first.bias, draw_slopes(rng, network)))
    model = Model(space, network, Tolerance(0.0))
    person = space.encode(
        {a.name: -2 if a.name == "age" else draw_value(rng, a) for a in space.attributes}
    )[0]
    rows, scores = worst_counterparts(
        space, network, person[None, :], np.array([upward]), numbers="real"
    )
    best = oracle.highest_along(model, person, "age", upward=upward)
    assert abs(Fraction(float(scores[0])) - best) <= Fraction(1, 10**9) * (1 + abs(best))
    shared = ~space.sensitive_columns
    assert (rows[0, shared] == person[shared]).all()
    age = space.attribute("age")
    assert isinstance(age, Integer | Real)
    assert age.low <= rows[0, space.columns_of(age).start] <= age.high
    sign, near = 1 if upward else -1, Fraction(1, 10**9) * (1 + abs(best))
    beyond = float(best - sign * near)  # just reached
    counterparts, reached = worst_counterparts(
        space, network, person[None, :], np.array([upward]), numbers="real", beyond=beyond
    )
    assert reached.tolist() == scores.tolist()  # equal scores may be reached at other numbers
    assert (counterparts[0, shared] == person[shared]).all()
    beyond = float(best + 3 * sign * near)  # not reached
    counterparts, reached = worst_counterparts(
        space, network, person[None, :], np.array([upward]), numbers="real", beyond=beyond
    )
    assert sign * Fraction(float(reached[0])) < sign * Fraction(beyond)
    column = space.columns_of(age).start
    assert age.low <= counterparts[0, column] <= age.high


def draw_slopes(rng: np.random.Generator, network: Network) -> np.ndarray:
    shape = network.first.slopes.shape
    return eighths(rng, *shape) if rng.random() < 0.5 else rng.normal(size=shape)


def draw_value(rng: np.random.Generator, attribute: object) -> object:
    if isinstance(attribute, Categorical):
        return attribute.values[rng.integers(len(attribute.values))]
    return float(rng.integers(-64, 65) / 8)


def test_a_maximum_between_two_integers_is_found() -> None:
    space = FeatureSpace((Integer("age", 0, 10, sensitive=True),))
    # 1 − |age − 2.5| by ReLU has its maximum between 2 and 3.
    network = Network.from_layers(
        [([[1.0], [-1.0]], [-2.5, 2.5]), ([[-1.0, -1.0]], [1.0])], activation="relu"
    )
    people = space.encode([{"age": 0}])
    rows, scores = worst_counterparts(space, network, people, np.array([True]), numbers="real")
    assert rows.tolist() == [[2.5]]
    assert scores.tolist() == [1.0]
    rows, scores = worst_counterparts(space, network, people, np.array([True]))
    assert rows.tolist() == [[2.0]]  # the first of two integers with equal scores
    assert scores.tolist() == [0.5]


def test_only_the_widest_integer_is_treated_as_real() -> None:
    space = FeatureSpace(
        (Integer("age", 0, 10, sensitive=True), Integer("children", 0, 3, sensitive=True))
    )
    network = Network.from_layers(
        [
            ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [-2.5, 2.5, -1.25, 1.25]),
            ([[-1.0] * 4], [0.0]),
        ]
    )
    rows, _ = worst_counterparts(
        space, network, np.array([[0.0, 0.0]]), np.array([True]), numbers="real"
    )
    assert rows.tolist() == [[2.5, 1.0]]


def test_long_axes_and_uncached_terms_are_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space = FeatureSpace((Integer("amount", 0, 70_000, sensitive=True),))
    # The maximum of -|amount - 65537| is at 65537.
    network = Network.from_layers([([[1.0], [-1.0]], [-65537.0, 65537.0]), ([[-1.0, -1.0]], [0.0])])
    for max_terms in (2**24, 1):
        monkeypatch.setattr("feta.train.worst_counterparts.MAX_CACHED_TERMS", max_terms)
        rows, scores = worst_counterparts(space, network, np.array([[5.0]]), np.array([True]))
        assert (rows.tolist(), scores.tolist()) == ([[65537.0]], [0.0])


def test_unsupported_searches_are_refused() -> None:
    two_real_axes = FeatureSpace((Real("a", 0, 1, sensitive=True), Real("b", 0, 1, sensitive=True)))
    network = Network.from_layers([([[1.0, 1.0]], [0.0])])
    with pytest.raises(
        SchemaError,
        match=r"too many real-valued sensitive attributes .* got 'a', 'b'; expected at most one",
    ):
        worst_counterparts(two_real_axes, network, np.zeros((1, 2)), np.array([True]))
    two_outputs = Network.from_layers([([[1.0], [2.0]], [0.0, 0.0])])
    space = FeatureSpace((Integer("age", 0, 10**7, sensitive=True),))
    with pytest.raises(SchemaError, match="invalid number of scores: got 2; expected 1"):
        worst_counterparts(space, two_outputs, np.zeros((1, 1)), np.array([True]))
    one_output = Network.from_layers([([[1.0]], [0.0])])
    with pytest.raises(EngineError, match="got 10,000,001; expected at most 10,000,000;"):
        worst_counterparts(space, one_output, np.zeros((1, 1)), np.array([True]))


@pytest.mark.parametrize("numbers", ["integer", "real"])
def test_a_number_that_may_be_missing_is_searched_over_all_its_values(numbers: Numbers) -> None:
    age = Integer("age", 18, 90, sensitive=True, missing=True)
    space = FeatureSpace((age, Real("income", 0, 9)))
    people = space.encode({"age": 30, "income": 1})
    upward = np.array([True])
    rises = Network.from_layers([([[1.0, 0.0, 1.0]], [-50.0])])
    rows, scores = worst_counterparts(space, rises, people, upward, numbers=numbers)
    assert (rows[0].tolist(), scores.tolist()) == ([90.0, 0.0, 1.0], [41.0])
    flagged = Network.from_layers([([[1.0, 500.0, 1.0]], [-50.0])])
    rows, scores = worst_counterparts(space, flagged, people, upward, numbers=numbers)
    assert (rows[0].tolist(), scores.tolist()) == ([18.0, 1.0, 1.0], [469.0])
