from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from feta import Categorical, Derived, FeatureSpace, Integer, Levels, Model, Network, Real
from feta.checker.sensitive_axis import SensitiveAxis, axes_of
from feta.space.attribute import Attribute, Finite
from tests import oracle
from tests.extensions.toys import Grown
from tests.strategies import Case, cases

AGE = Integer("age", 20, 23, sensitive=True)
SEX = Categorical("sex", ("female", "male"), sensitive=True)
HOURS = Levels("hours", (-1.0, 0.5, 3.0), sensitive=True)
HEIGHT = Real("height", 1.5, 2.25, sensitive=True)
BAND = Derived("band", "age", (("young", 20, 21), ("old", 22, 23)))
HALF = Derived("half", "age", (("first", 20, 20), ("rest", 21, 23)))


def axis_of(attribute: Finite | Real, *derived: Derived) -> SensitiveAxis:
    width = attribute.width + sum(band.width for band in derived)
    return SensitiveAxis(attribute, derived, tuple(range(width)))


FINITE: list[tuple[Finite, list[list[float]]]] = [
    (AGE, [[20], [21], [22], [23]]),
    (replace(AGE, missing=True), [[20, 0], [21, 0], [22, 0], [23, 0], [20, 1]]),
    (SEX, [[1, 0], [0, 1]]),
    (replace(SEX, missing=True), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    (replace(SEX, sensitive=False, other=True), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    (HOURS, [[-1.0], [0.5], [3.0]]),
    (replace(HOURS, missing=True), [[-1.0, 0], [0.5, 0], [3.0, 0], [-1.0, 1]]),
]


@pytest.mark.parametrize(("attribute", "rows"), FINITE)
def test_all_values_of_a_finite_attribute_are_listed(
    attribute: Finite, rows: list[list[float]]
) -> None:
    axis = axis_of(attribute)
    low, high = axis.ends
    assert (low, high) == (0.0, len(rows) - 1)
    assert axis.n_values(low, high) == len(rows)
    assert not axis.real
    codes = axis.codes(low, high, np.arange(len(rows)))
    assert codes.dtype == np.float64
    assert codes.tolist() == rows
    # From the second value on, in another order.
    assert axis.n_values(1.0, high) == len(rows) - 1
    assert axis.codes(1.0, high, np.array([len(rows) - 2, 0])).tolist() == [rows[-1], rows[1]]


def test_a_real_number_has_two_ends() -> None:
    axis = axis_of(HEIGHT)
    assert axis.real
    assert axis.ends == (1.5, 2.25)
    assert (axis.n_values(1.5, 2.0), axis.n_values(2.0, 2.0)) == (2, 1)
    assert axis.codes(1.75, 2.0, np.array([1, 0, 1])).tolist() == [[2.0], [1.75], [2.0]]
    assert axis.codes(2.0, 2.0, np.array([0])).tolist() == [[2.0]]


def test_bands_follow_their_source() -> None:
    axis = axis_of(AGE, BAND, HALF)
    assert axis.codes(0.0, 3.0, np.arange(4)).tolist() == [
        [20, 1, 0, 1, 0],
        [21, 1, 0, 0, 1],
        [22, 0, 1, 0, 1],
        [23, 0, 1, 0, 1],
    ]


@pytest.mark.parametrize(
    ("attribute", "derived", "expected"),
    [
        (AGE, (), True),
        (HOURS, (), True),
        (HEIGHT, (), True),
        (SEX, (), False),
        (Categorical("one", ("only",), sensitive=True), (), False),
        (AGE, (BAND,), False),
        (replace(AGE, missing=True), (), False),
    ],
)
def test_a_line_has_one_column_that_grows_with_the_coordinate(
    attribute: Finite | Real, derived: tuple[Derived, ...], *, expected: bool
) -> None:
    assert axis_of(attribute, *derived).is_line is expected


def model_of(*attributes: Attribute) -> Model:
    space = FeatureSpace(attributes)
    return Model(space, Network.from_layers([(np.ones((1, space.width)), [0.0])]), threshold=0.0)


def test_axes_are_listed_from_the_attributes() -> None:
    """Shared attributes of every width come before, between and after the sensitive ones."""
    town = Categorical("town", ("a", "b"), other=True, missing=True)  # four columns
    model = model_of(
        BAND,
        town,
        AGE,
        Integer("years", 0, 9, missing=True),
        Levels("rate", (0.0, 1.0), missing=True),
        HEIGHT,
        Real("income", 0, 9, missing=True),
        replace(SEX, missing=True),
        HALF,
        Real("debt", 0, 9),
        HOURS,
    )
    assert axes_of(model) == (
        SensitiveAxis(AGE, (BAND, HALF), (6, 0, 1, 17, 18)),
        SensitiveAxis(HEIGHT, (), (11,)),
        SensitiveAxis(replace(SEX, missing=True), (), (14, 15, 16)),
        SensitiveAxis(HOURS, (), (20,)),
    )
    assert axes_of(model) is axes_of(model)


def test_axes_of_another_relation_are_those_of_the_relation() -> None:
    class Swapped(Grown):
        @property
        def axes(self):  # type: ignore[no-untyped-def]  # noqa: ANN202
            return super().axes[::-1]

    space = model_of(AGE, BAND, SEX).space
    network = Network.from_layers([(np.ones((1, space.width)), [0.0])])
    model = Model(space, network, threshold=0.0, relation=Swapped(21))
    assert axes_of(model) == (
        SensitiveAxis(SEX, (), (3, 4)),
        SensitiveAxis(AGE, (BAND,), (0, 1, 2)),
    )


@given(case=cases(plain=False))
@settings(max_examples=40, deadline=None)
def test_axes_and_their_codes_equal_those_of_the_oracle(case: Case) -> None:
    axes = axes_of(case.model)
    others = np.stack(oracle.counterparts(case.model, case.people[0]))
    for axis in axes:
        low, high = axis.ends
        codes = axis.codes(low, high, np.arange(axis.n_values(low, high)))
        listed = {tuple(row) for row in others[:, list(axis.columns)].tolist()}
        assert {tuple(row) for row in codes.tolist()} == listed


def test_an_attribute_of_an_unknown_kind_is_rejected() -> None:
    axis = SensitiveAxis(BAND, (), (0, 1))  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="unreachable"):
        _ = axis.ends
    with pytest.raises(AssertionError, match="unreachable"):
        axis.codes(0.0, 1.0, np.arange(2))

    class Other(Model):
        def __post_init__(self, threshold: float | None) -> None:
            """Accept any attribute."""

    model = model_of(AGE)
    space = copy(model.space)
    object.__setattr__(space, "attributes", ("an attribute of another package",))
    with pytest.raises(AssertionError, match="unreachable"):
        axes_of(Other(space, model.scorer, relation=model.relation))
