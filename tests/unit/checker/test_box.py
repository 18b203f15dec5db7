from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from feta import Categorical, FeatureSpace, Integer, Model, Network, Real
from feta.checker.box import BLOCK, Box
from feta.checker.sensitive_axis import axes_of
from tests import oracle
from tests.strategies import Case, cases

SPACE = FeatureSpace(
    (
        Categorical("sex", ("female", "male", "other"), sensitive=True),
        Real("height", -2.0, 2.0, sensitive=True),
        Real("income", 0, 100),
        Integer("age", 18, 28, sensitive=True),
    )
)
PERSON = SPACE.encode({"sex": "male", "height": 1.0, "income": 50, "age": 20})[0]
MODEL = Model(SPACE, Network.from_layers([(np.ones((1, 6)), [0.0])]), threshold=0.0)
WHOLE = Box.whole(axes_of(MODEL))
SEX, HEIGHT, AGE = range(3)


def test_the_whole_box_reaches_from_end_to_end() -> None:
    assert (WHOLE.lower, WHOLE.upper) == ((0.0, -2.0, 0.0), (2.0, 2.0, 10.0))
    assert WHOLE.axes == axes_of(MODEL)
    assert WHOLE.sides == [3, 2, 11]
    assert WHOLE.n_corners == 66
    assert not WHOLE.is_finite


@pytest.mark.parametrize(
    ("axis", "at", "upper", "lower"),
    [
        (SEX, 0.0, (0.0, 2.0, 10.0), (1.0, -2.0, 0.0)),
        (HEIGHT, 0.5, (2.0, 0.5, 10.0), (0.0, 0.5, 0.0)),  # both halves contain 0.5
        (AGE, 4.0, (2.0, 2.0, 4.0), (0.0, -2.0, 5.0)),
    ],
)
def test_halves_leave_nothing_out(
    axis: int, at: float, upper: tuple[float, ...], lower: tuple[float, ...]
) -> None:
    first, second = WHOLE.halves(axis, at)
    assert first == replace(WHOLE, upper=upper)
    assert second == replace(WHOLE, lower=lower)


PART = replace(WHOLE, lower=(1.0, 0.5, 2.0), upper=(2.0, 1.5, 5.0))


@pytest.mark.parametrize(
    ("axis", "at", "expected"),
    [
        (SEX, 1.0, True),
        (SEX, 0.0, False),  # before the box
        (SEX, 2.0, False),  # nothing would follow
        (HEIGHT, 0.5, True),
        (HEIGHT, 1.0, True),
        (HEIGHT, 1.5, True),
        (HEIGHT, float(np.nextafter(0.5, 0)), False),
        (HEIGHT, float(np.nextafter(1.5, 2)), False),
        (HEIGHT, float("nan"), False),
        (AGE, 2.0, True),
        (AGE, 4.0, True),
        (AGE, 5.0, False),
        (AGE, 1.0, False),
        (AGE, 3.5, False),  # would leave out a value
        (AGE, float("nan"), False),
        (AGE, float("inf"), False),
        (-1, 3.0, False),
        (3, 3.0, False),
    ],
)
def test_a_cut_must_be_inside_the_box(axis: int, at: float, *, expected: bool) -> None:
    assert PART.admits_cut(axis, at) is expected


def test_middles() -> None:
    assert [WHOLE.middle(axis) for axis in range(3)] == [1.0, 0.0, 5.0]
    assert [PART.middle(axis) for axis in range(3)] == [1.0, 1.0, 3.0]
    single = replace(WHOLE, lower=(2.0, 1.0, 10.0), upper=(2.0, 1.0, 10.0))
    assert [single.middle(axis) for axis in range(3)] == [None, None, None]
    for low in (1.0, 1.0 + 2**-52):  # between neighbors, float64 rounds down, or up
        neighbors = replace(WHOLE, lower=(0.0, low, 0.0), upper=(2.0, low + 2**-52, 10.0))
        assert neighbors.middle(HEIGHT) is None
    pairs = replace(WHOLE, lower=(0.0, -2.0, 9.0), upper=(1.0, 2.0, 10.0))
    assert (pairs.middle(SEX), pairs.middle(AGE)) == (0.0, 9.0)
    for axis in range(3):
        assert WHOLE.admits_cut(axis, WHOLE.middle(axis) or 0.0)


def test_a_box_is_finite_if_no_real_number_varies() -> None:
    fixed = replace(WHOLE, lower=(0.0, 1.0, 0.0), upper=(2.0, 1.0, 10.0))
    assert fixed.is_finite
    assert fixed.sides == [3, 1, 11]
    assert not replace(fixed, upper=(2.0, 1.5, 10.0)).is_finite
    assert not replace(fixed, lower=(0.0, 0.5, 0.0), upper=(0.0, 1.0, 0.0)).is_finite


def test_a_box_has_two_ends_along_every_axis() -> None:
    for broken in (replace(WHOLE, lower=(0.0,)), replace(WHOLE, upper=(0.0,))):
        with pytest.raises(ValueError, match="zip"):
            _ = broken.sides
        with pytest.raises(ValueError, match="zip"):
            _ = replace(broken, axes=WHOLE.axes[::2]).is_finite


def test_corners_of_a_part() -> None:
    part = replace(WHOLE, lower=(1.0, 0.5, 9.0), upper=(2.0, 1.5, 10.0))
    (people,) = part.corners(PERSON)
    assert people.tolist() == [
        [*sex, height, 50.0, age]
        for sex in ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
        for height in (0.5, 1.5)
        for age in (27.0, 28.0)
    ]
    assert PERSON.tolist() == [0.0, 1.0, 0.0, 1.0, 50.0, 20.0]


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_many_corners_are_listed_in_blocks(extra: int) -> None:
    n_values = 2 * BLOCK + extra
    space = FeatureSpace((Integer("n", 0, n_values - 1, sensitive=True),))
    model = Model(space, Network.from_layers([([[1.0]], [0.0])]), threshold=0.0)
    blocks = list(Box.whole(axes_of(model)).corners(np.array([0.0])))
    assert [len(block) for block in blocks] == [
        size for size in (BLOCK, min(BLOCK, BLOCK + extra), extra) if size > 0
    ]
    assert np.concatenate(blocks)[:, 0].tolist() == list(range(n_values))
    assert BLOCK == 1024


@given(case=cases(plain=False))
@settings(max_examples=40, deadline=None)
def test_the_corners_of_a_finite_box_are_the_oracles_counterparts(case: Case) -> None:
    box = Box.whole(axes_of(case.model))
    people = np.concatenate(list(box.corners(case.people[0])))
    np.testing.assert_array_equal(people, oracle.counterparts(case.model, case.people[0]))
    assert box.n_corners == len(people)
    assert box.is_finite
