from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from feta import (
    Categorical,
    CertificateError,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Network,
    Real,
    Threshold,
)
from feta.arrays import Matrix, Vector
from feta.checker.box import Box
from feta.checker.exact_network import StoredNetwork
from feta.checker.lines import Enclosed
from feta.checker.network_bounds import MAX_ROWS, BoxBounds, NetworkBounds
from feta.checker.sensitive_axis import axes_of
from feta.dyadic import Dyadic
from feta.scorer.network.activation import Activation, absolute, clip, relu
from feta.scorer.network.layers import Columns, LookupTable
from feta.scorer.protocol import Objective
from feta.space.attribute import Attribute
from tests import oracle
from tests.strategies import Case, cases

UP = np.array([[1.0]])


def over(
    model: Model, person: Vector, objective: Objective, box: Box | None = None
) -> BoxBounds | None:
    axes = axes_of(model)
    bounds = NetworkBounds.of(StoredNetwork.of(model.scorer.stored()), axes, person)
    return bounds.over(box or Box.whole(axes), objective)


def highest(model: Model, person: Vector, directions: Matrix = UP) -> Fraction:
    """Return the upper bound of a direction, found by bisection on the level."""
    low, high = -(2.0**20), 2.0**20
    for _ in range(60):
        middle = (low + high) / 2
        known = over(model, person, Objective(directions, level=middle))
        assert known is not None
        low, high = (low, middle) if known.agrees else (middle, high)
    return Fraction(low)


def model_of(network: Network, *attributes: Attribute) -> Model:
    return Model(FeatureSpace(attributes), network, threshold=0.0)


X = Real("x", -1.0, 3.0, sensitive=True)
Y = Real("y", -2.0, 2.0, sensitive=True)
SHARED = Real("shared", 0.0, 9.0)


def test_an_affine_score_is_bounded_exactly() -> None:
    network = Network.from_layers([([[2.0, -0.5, 1.0]], [0.25])])
    model = model_of(network, X, Y, SHARED)
    person = np.array([0.0, 0.0, 5.0])
    top = Fraction(2 * 3 + 1 + 5) + Fraction(1, 4)
    assert highest(model, person) == top
    assert -highest(model, person, -UP) == -2 - 1 + 5 + Fraction(1, 4)
    known = over(model, person, Objective(UP, level=float(np.nextafter(float(top), 99))))
    assert known == BoxBounds(agrees=True, is_affine=True, influences=(Fraction(8), Fraction(2)))
    tie = over(model, person, Objective(UP, level=float(top)))
    assert tie == BoxBounds(agrees=False, is_affine=True, influences=(Fraction(8), Fraction(2)))


def test_relu_is_bounded_by_its_chord() -> None:
    """relu(x) ≤ 3/4·x + 3/4 on [−1, 3]; the sum with −x has its maximum at the left end."""
    layers = [([[1.0], [1.0]], [0.0, 10.0]), ([[1.0, -1.0]], [0.5])]
    model = model_of(Network.from_layers(layers), X)
    person = np.array([0.0])
    # The second neuron is x + 10, which is always positive.
    assert highest(model, person) == Fraction(3, 4) - Fraction(3, 4) - (-1 + 10) + Fraction(1, 2)
    # Below, relu(x) ≥ x, because the middle is positive: x + 10 − x + 1/2.
    assert -highest(model, person, -UP) == -10 + Fraction(1, 2)
    known = over(model, person, Objective(UP, level=0.0))
    assert known is not None
    assert known.agrees
    assert not known.is_affine
    # The row over the first layer is 3/4 and −1, times x from −1 to 3.
    assert known.influences == (Fraction(1),)


def test_the_bounds_of_a_deep_layer_use_lines() -> None:
    """|x| = relu(x) + relu(−x) is at most 3 by lines; the two ranges alone give 3 + 1."""
    layers = [
        ([[1.0], [-1.0]], [0.0, 0.0]),
        ([[1.0, 1.0]], [-3.5]),
        ([[1.0]], [0.0]),
    ]
    model = model_of(Network.from_layers(layers), X)
    known = over(model, np.array([0.0]), Objective(UP, level=2.0**-80))
    assert known is not None
    assert known.agrees  # the neuron of the second layer is never positive
    lines = highest(model, np.array([0.0]))
    assert lines == 0


def test_the_ranges_of_a_deep_layer_are_the_tighter_of_both_bounds() -> None:
    """The first layer has clip(x) on [−2, 2], relu(y) and relu(−y) on [−1, 3].

    Lines: x/4 − 3/4 ≤ clip(x) ≤ 0, y ≤ relu(y) ≤ 3/4·y + 3/4, 0 ≤ relu(−y) ≤ 3/4 − y/4.
    """
    breaks = np.array([[-1.0, 0.0, 0.0], [0.0, 9.0, 9.0]])  # 9 is never reached
    slopes = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    intercepts = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    activation = Activation("each", breaks, slopes, intercepts)
    layers = [
        ([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [0.0, 0.0, 0.0]),
        (
            [[1.0, -2.0, 0.0], [0.0, 1.0, 1.0], [0.0, -1.0, -1.0], [-1.0, 0.0, 0.0]],
            [0.5, 1.0, 1.0, 0.25],
        ),
        ([[1.0] * 4], [0.0]),
    ]
    network = Network.from_layers(layers, activation=[activation, relu()])
    x, y = Real("x", -2.0, 2.0, sensitive=True), Real("y", -1.0, 3.0, sensitive=True)
    axes = axes_of(model_of(network, x, y))
    bounds = NetworkBounds.of(StoredNetwork.of(network.stored()), axes, np.zeros(2))
    first = bounds._first_layer(Box.whole(axes))
    assert [part.fractions() for part in first.ranges()] == [[-2, -1, -3], [2, 3, 1]]
    enclosed = [Enclosed.of(bounds.network.layers[0], *first.ranges())]
    lower, upper = bounds._next_ranges(first, enclosed)
    assert lower.fractions() == [
        -1 - 2 * 3 + Fraction(1, 2),  # ranges; lines: −27/4
        1,  # ranges; lines: 0
        -3 + 1,  # lines; ranges: −3
        0 + Fraction(1, 4),  # both
    ]
    assert upper.fractions() == [
        Fraction(1, 2),  # ranges; lines: 5/2
        3 + 1,  # lines; ranges: 5
        1,  # ranges; lines: 2
        1 + Fraction(1, 4),  # ranges; lines: 3/2
    ]


@pytest.mark.parametrize(("bias", "agrees"), [(-2.25, True), (-2.0, True), (-1.75, False)])
def test_the_ranges_decide_whether_a_deep_neuron_is_ever_positive(
    bias: float, *, agrees: bool
) -> None:
    """−clip(x) − clip(y) is at most 2, for which chords give 5/2."""
    layers = [
        ([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]),
        ([[-1.0, -1.0]], [bias]),
        ([[1.0]], [0.0]),
    ]
    network = Network.from_layers(layers, activation=[clip(-1.0, 0.0), "relu"])
    x, y = (Real(name, -2.0, 2.0, sensitive=True) for name in ("x", "y"))
    known = over(model_of(network, x, y), np.zeros(2), Objective(UP, level=2.0**-80))
    assert known is not None
    assert known.agrees is agrees


def test_all_values_of_a_category_count_and_only_those_in_the_box() -> None:
    race = Categorical("race", ("a", "b", "c", "d"), sensitive=True)
    network = Network.from_layers([([[1.0, 9.0, 2.0, -3.0, 0.0]], [0.0])])
    model = model_of(network, race, SHARED)
    person = np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    assert highest(model, person) == 9
    assert -highest(model, person, -UP) == -3
    part = Box(axes_of(model), (2.0,), (3.0,))
    for level, agrees in ((2.0, False), (2.5, True)):
        known = over(model, person, Objective(UP, level=level), part)
        assert known == BoxBounds(agrees=agrees, is_affine=True, influences=(Fraction(5),))


def test_a_table_need_not_be_monotone() -> None:
    numbers = np.array([0.0, 1.0, 2.0])
    table = LookupTable(0, numbers, np.array([[1.0], [7.0], [2.0]]))
    first = Columns(np.zeros(1), np.array([[0.0, 1.0]]), (table,))
    for attribute in (
        Integer("n", 0, 2, sensitive=True),
        Levels("n", (0.0, 1.0, 2.0), sensitive=True),
    ):
        model = model_of(Network(first, (), ()), attribute, SHARED)
        assert highest(model, np.array([0.0, 0.5])) == 7 + Fraction(1, 2)


def test_a_long_line_has_only_two_ends() -> None:
    number = Integer("n", 0, 2**40, sensitive=True)
    network = Network.from_layers([([[-1.0, 0.0]], [0.0])])
    model = model_of(network, number, SHARED)
    known = over(model, np.array([5.0, 0.0]), Objective(UP, level=0.5))
    assert known == BoxBounds(agrees=True, is_affine=True, influences=(Fraction(2**40),))


@pytest.mark.parametrize("extra", [0, 1])
def test_long_tables_are_split_first(extra: int) -> None:
    """A number that may be missing has two columns, so all its values are listed."""
    levels = tuple(float(n) for n in range(MAX_ROWS - 1 + extra))
    number = Levels("n", levels, sensitive=True, missing=True)
    network = Network.from_layers([([[1.0, -5.0, 0.0]], [0.0])])
    known = over(model_of(network, number, X), np.zeros(3), Objective(UP, level=1e6))
    if extra:
        assert known is None
    else:
        assert known is not None
        assert known.influences == (Fraction(MAX_ROWS - 2 + 5), Fraction(0))
    assert MAX_ROWS == 4096


def test_several_directions_and_offsets() -> None:
    """The margins of two classes over the first one: 2x − 1 and −x − 2, on [−1, 3]."""
    network = Network.from_layers([([[0.0], [2.0], [-1.0]], [0.0, -1.0, -2.0])])
    space = FeatureSpace((X,))
    bounds = NetworkBounds.of(StoredNetwork.of(network.stored()), (), np.zeros(1))
    box = Box.whole(axes_of(Model(space, Network.from_layers([([[1.0]], [0.0])]), threshold=0.0)))
    directions = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    for level, most, least in ((5.25, True, True), (5.0, False, True), (-1.0, False, False)):
        for is_least, expected in ((False, most), (True, least)):
            known = bounds.over(box, Objective(directions, least=is_least, level=level))
            assert known is not None
            assert known.agrees is expected
    moved = Objective(directions, Dyadic.of([-4.0, 3.0]), level=2.5)
    known = bounds.over(box, moved)  # the largest values are 1 and 2
    assert known is not None
    assert known.agrees
    second = bounds.over(box, replace(moved, level=1.5))
    assert second is not None
    assert not second.agrees
    assert second.influences == (Fraction(4),)  # of the direction that does not agree


def test_a_table_of_a_real_number_is_rejected() -> None:
    table = LookupTable(0, np.array([0.5]), np.ones((1, 1)))
    network = Network(Columns(np.zeros(1), np.zeros((1, 2)), (table,)), (), ())
    model = model_of(network, X, SHARED)
    message = (
        "^the bounds of this certificate cannot be re-checked: got a table of the real-valued "
        "attribute 'x'; expected a slope$"
    )
    with pytest.raises(CertificateError, match=message):
        over(model, np.zeros(2), Objective(UP))
    # A table of a shared column is a constant.
    shared = LookupTable(1, np.array([0.5]), np.array([[4.0]]))
    network = Network(Columns(np.zeros(1), np.array([[1.0, 0.0]]), (shared,)), (), ())
    assert highest(model_of(network, X, SHARED), np.array([0.0, 0.5])) == 7


def test_no_neuron_changes_its_piece_if_all_layers_are_affine() -> None:
    layers = [([[1.0]], [1.0]), ([[1.0]], [-4.0]), ([[1.0]], [0.0])]
    for shift, is_affine in ((-4.0, True), (-3.75, False)):
        layers[1] = ([[1.0]], [shift])
        known = over(
            model_of(Network.from_layers(layers), X), np.zeros(1), Objective(UP, level=1.0)
        )
        assert known is not None
        assert known.is_affine is is_affine
    twice = Network.from_layers(layers, activation=[absolute(), absolute()])
    known = over(model_of(twice, X), np.zeros(1), Objective(UP, level=1.0))
    assert known is not None
    assert not known.is_affine


@given(case=cases(plain=False), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_bounds_enclose_the_scores_of_all_counterparts_in_a_box(case: Case, seed: int) -> None:
    """The level is between the oracle's largest score and the bound, or on the largest score."""
    model, person = case.model, case.people[0]
    rng = np.random.default_rng(seed)
    axes = axes_of(model)
    whole = Box.whole(axes)
    ends = [sorted(rng.integers(0, int(high) + 1, 2)) for high in whole.upper]
    box = Box(axes, *(tuple(float(end[side]) for end in ends) for side in (0, 1)))
    people = np.concatenate(list(box.corners(person)))
    direction = rng.integers(-1, 2, (1, model.scorer.outputs)).astype(np.float64)
    values = [
        sum(
            Fraction(sign) * score
            for sign, score in zip(direction[0], oracle.scores(model, other), strict=True)
        )
        for other in people
    ]
    level = float(max(values))
    assume(Fraction(level) <= max(values))
    known = over(model, person, Objective(direction, level=level), box)
    assert known is not None
    assert not known.agrees  # a counterpart is on the level, or above
    if len(people) == 1:
        above = float(np.nextafter(level, np.inf))
        known = over(model, person, Objective(direction, level=above), box)
        assert known == BoxBounds(
            agrees=True, is_affine=True, influences=(Fraction(0),) * len(axes)
        )


def test_rules_use_the_level_of_their_threshold() -> None:
    network = Network.from_layers([([[1.0, 0.0]], [0.0])])
    space = FeatureSpace((X, SHARED))
    for value, agrees in ((3.0, False), (3.5, True)):
        model = Model(space, network, Threshold(value))
        person = np.array([0.0, 0.0])
        objective = model.rule.objective(model.exact_scores(person[None, :]))
        known = over(model, person, objective)
        assert known is not None
        assert known.agrees is agrees
