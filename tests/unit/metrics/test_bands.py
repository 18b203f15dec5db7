import numpy as np
import pytest

from feta import Categorical, Integer, Levels, Real
from feta.metrics.bands import Bands


def test_a_number_is_divided_at_its_quartiles() -> None:
    ages = np.arange(20.0, 60.0)[:, None]  # ten people per quarter
    bands = Bands.quarters(Integer("age", 18, 90), ages)
    assert bands.names == ("20 to 29", "30 to 39", "40 to 49", "50 to 59")
    assert np.bincount(bands.indices(ages)).tolist() == [10, 10, 10, 10]
    assert bands.indices(np.array([[18.0], [90.0]])).tolist() == [0, 3]  # nobody there was seen


def test_few_values_are_groups_of_their_own() -> None:
    bands = Bands.quarters(Levels("size", (1.0, 2.0, 5.0)), np.array([[1.0], [5.0], [5.0]]))
    assert bands.names == ("1", "5")


def test_a_frequent_value_leaves_fewer_groups() -> None:
    values = np.array([0.0] * 80 + list(range(1, 21)))[:, None]
    bands = Bands.quarters(Real("pay", 0, 99), values)
    assert bands.names == ("0 to 20",)


def test_missing_numbers_are_one_more_group() -> None:
    codes = np.array([[1.0, 0], [2.0, 0], [0.0, 1.0]])
    bands = Bands.quarters(Integer("age", 0, 9, missing=True), codes)
    assert bands.names == ("1", "2", "missing")
    assert bands.indices(codes).tolist() == [0, 1, 2]


@pytest.mark.parametrize("values", [("f", "m"), ("a", "b", "c")])
def test_a_category_has_one_group_per_value(values: tuple[str, ...]) -> None:
    bands = Bands.quarters(Categorical("sex", values), np.eye(len(values)))
    assert bands.names == values
