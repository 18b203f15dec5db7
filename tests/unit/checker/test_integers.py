import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feta import CertificateError
from feta.checker.integers import exact

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=6))
def test_every_number_is_converted_without_rounding(numbers: list[float]) -> None:
    assert exact(numbers).fractions() == [Fraction(number) for number in numbers]


@pytest.mark.parametrize(
    ("numbers", "numerators", "exponent"),
    [
        ([0.0, -0.0, 1.0, -3.0], [0, 0, 1, -3], 0),
        ([0.5, 3.0], [1, 6], -1),
        ([0.75, -0.5, 0.25], [3, -2, 1], -2),
        ([2.0**70, 1.0], [2**70, 1], 0),
        ([5e-324, 1.0], [1, 2**1074], -1074),
        ([sys.float_info.max], [(2**53 - 1) * 2**971], 0),
        ([], [], 0),
    ],
)
def test_the_power_of_two_is_as_large_as_possible_but_at_most_one(
    numbers: list[float], numerators: list[int], exponent: int
) -> None:
    result = exact(numbers)
    assert result.numerators.tolist() == numerators
    assert result.exponent == exponent
    assert all(type(number) is int for number in result.numerators)


def test_the_shape_is_kept() -> None:
    matrix = exact(np.array([[1.0, 2.0, 3.0], [0.5, 0.25, 0.0]]))
    assert matrix.numerators.shape == (2, 3)
    assert matrix.numerators.tolist() == [[4, 8, 12], [2, 1, 0]]
    assert exact(1.5).numerators.shape == ()
    assert exact(np.zeros((2, 0))).numerators.shape == (2, 0)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_rejected(number: float) -> None:
    message = (
        r"^invalid number in what is re-checked: got NaN or infinity; expected finite numbers$"
    )
    with pytest.raises(CertificateError, match=message):
        exact([1.0, number])
