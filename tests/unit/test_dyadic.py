from fractions import Fraction

import numpy as np
import pytest

from feta.dyadic import Dyadic, join_rows

LARGEST = float(np.finfo(np.float64).max)
EDGES = [0.0, -0.0, 1.0, -1.5, 0.1, 2.0**53 + 2, 5e-324, -2.5e-320, 2.0**-1022, LARGEST, -LARGEST]


@pytest.mark.parametrize("value", EDGES)
def test_every_float64_is_represented_exactly(value: float) -> None:
    assert Dyadic.of([value]).fractions() == [Fraction(value)]
    assert Dyadic.of(value).floats() == value


def test_numbers_of_different_magnitudes_share_one_power_of_two() -> None:
    assert Dyadic.of(EDGES).fractions() == [Fraction(value) for value in EDGES]
    assert Dyadic.of(EDGES).floats().tolist() == EDGES


@pytest.mark.parametrize("left", EDGES)
def test_sums_differences_and_products_are_exact(left: float) -> None:
    a, b = Dyadic.of(np.full(len(EDGES), left)), Dyadic.of(EDGES)
    pairs = [(Fraction(left), Fraction(right)) for right in EDGES]
    assert (a + b).fractions() == [x + y for x, y in pairs]
    assert (a - b).fractions() == [x - y for x, y in pairs]
    assert (a * b).fractions() == [x * y for x, y in pairs]
    assert a.compare(b).tolist() == [(x > y) - (x < y) for x, y in pairs]


def test_a_matrix_product_cancels_exactly() -> None:
    row = Dyadic.of([[1e300, 1e-300, -1e300]])
    ones = Dyadic.of([[1.0], [1.0], [1.0]])
    assert (row @ ones).fractions() == [Fraction(1e-300)]
    assert (ones.mT @ row.mT).fractions() == [Fraction(1e-300)]


@pytest.mark.parametrize("value", [0.1, 1.0, -3e-310, 1e300])
def test_a_difference_of_one_ulp_is_kept(value: float) -> None:
    above = Dyadic.of([np.nextafter(value, np.inf)])
    assert above.compare(Dyadic.of([value])).tolist() == [1]
    assert Dyadic.of([value]).compare(above).tolist() == [-1]
    assert Dyadic.of([value]).compare(Dyadic.of([value])).tolist() == [0]


@pytest.mark.parametrize(
    ("integer", "nearest"),
    [
        (2**53 + 1, 2.0**53),  # halfway, to even
        (2**53 + 3, 2.0**53 + 4),
        (2**54 + 3, 2.0**54 + 4),
        (-(2**53) - 1, -(2.0**53)),
    ],
)
def test_floats_are_rounded_once_to_the_nearest(integer: int, nearest: float) -> None:
    assert Dyadic(np.array([integer], dtype=object), 0).floats().tolist() == [nearest]
    assert Dyadic(np.array([integer * 2**60], dtype=object), -60).floats().tolist() == [nearest]


def test_a_zero_does_not_lengthen_the_other_numbers() -> None:
    numbers = Dyadic.of([0.0, 2.0**1000, 0.0, -(2.0**990)])
    assert max(abs(numerator) for numerator in numbers.numerators) < 2**64


def test_numerators_are_scaled_to_a_smaller_exponent_only() -> None:
    numbers = Dyadic(np.array([3, -5, 0], dtype=object), 4)
    assert numbers.at(4) is numbers.numerators
    assert numbers.at(3).tolist() == [6, -10, 0]
    assert numbers.at(1).tolist() == [24, -40, 0]
    with pytest.raises(ValueError, match="negative shift count"):
        numbers.at(5)


def test_a_part_keeps_its_shape() -> None:
    numbers = Dyadic.of([[1.0, 2.0], [3.0, 4.0]])
    assert numbers[1].floats().tolist() == [3.0, 4.0]
    assert numbers[:, 1].floats().tolist() == [2.0, 4.0]
    assert numbers[np.array([1, 0, 1])].floats().shape == (3, 2)


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_empty_arrays_are_accepted(shape: tuple[int, ...]) -> None:
    assert Dyadic.of(np.zeros(shape)).floats().shape == shape


def test_rows_computed_in_groups_keep_their_order() -> None:
    parts = [
        (np.array([2, 0]), Dyadic.of([[0.125], [3.0]])),
        (np.array([1]), Dyadic.of([[2.0**70]])),
    ]
    assert join_rows(parts, (3, 1)).floats().tolist() == [[3.0], [2.0**70], [0.125]]
    assert join_rows([], (0, 1)).floats().shape == (0, 1)
    assert join_rows(parts[1:], (3, 1)).floats().tolist() == [[0.0], [2.0**70], [0.0]]
