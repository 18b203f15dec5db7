from fractions import Fraction

import numpy as np
import pytest

from feta.rounding import (
    FLOAT64,
    FLOOR,
    LARGEST_ACTIVATION,
    SIGMOID_ULPS,
    SOURCE_FLOAT32,
    SOURCE_FLOAT64,
    SOURCES,
    Arithmetic,
    sigmoid_error,
)

ALL = [FLOAT64, SOURCE_FLOAT32, SOURCE_FLOAT64]


@pytest.mark.parametrize("arithmetic", ALL)
@pytest.mark.parametrize("n_terms", [1, 100, 100_000])
def test_gamma_is_above_highams_bound_computed_exactly(
    arithmetic: Arithmetic, n_terms: int
) -> None:
    ku = (n_terms + 1 + arithmetic.extra) * Fraction(arithmetic.unit)
    assert Fraction(arithmetic.gamma(n_terms)) > ku / (1 - ku)
    assert arithmetic.gamma(n_terms + 1) > arithmetic.gamma(n_terms)


@pytest.mark.parametrize(
    ("arithmetic", "dtype"),
    [(FLOAT64, np.float64), (SOURCE_FLOAT64, np.float64), (SOURCE_FLOAT32, np.float32)],
)
def test_the_constants_are_those_of_the_format(arithmetic: Arithmetic, dtype: type) -> None:
    info = np.finfo(dtype)
    assert arithmetic.name == info.dtype.name
    assert arithmetic.unit == float(info.eps) / 2
    assert arithmetic.tiny >= 2 * float(info.smallest_normal)
    assert arithmetic.huge < float(info.max)
    assert arithmetic.tiny / arithmetic.unit <= FLOOR


def test_sources_are_listed_by_name() -> None:
    assert {name: arithmetic.name for name, arithmetic in SOURCES.items()} == {
        name: name for name in SOURCES
    }
    assert FLOAT64.huge > LARGEST_ACTIVATION


@pytest.mark.parametrize("arithmetic", [SOURCE_FLOAT32, SOURCE_FLOAT64])
@pytest.mark.parametrize("threshold", [-30.0, -2.0, 0.0, 1.5, 6.0])
def test_a_rounded_sigmoid_keeps_decisions_beyond_its_error(
    arithmetic: Arithmetic, threshold: float
) -> None:
    source_error = sigmoid_error(threshold, arithmetic)
    error = SIGMOID_ULPS * Fraction(arithmetic.unit)
    probability = _sigmoid(threshold)
    rounding = Fraction(arithmetic.unit)  # the probability of the threshold is a rounded number
    assert _sigmoid(threshold + source_error) * (1 - error) > probability * (1 + rounding)
    assert _sigmoid(threshold - source_error) * (1 + error) < probability * (1 - rounding)


def _sigmoid(score: float) -> Fraction:
    from decimal import Decimal, localcontext  # noqa: PLC0415

    with localcontext() as context:
        context.prec = 60
        return Fraction(1 / (1 + (-Decimal(score)).exp()))


@pytest.mark.parametrize(
    ("threshold", "arithmetic"),
    [(20.0, SOURCE_FLOAT32), (40.0, SOURCE_FLOAT64), (1e308, SOURCE_FLOAT64)],
)
def test_a_saturated_sigmoid_has_an_infinite_error(
    threshold: float, arithmetic: Arithmetic
) -> None:
    assert sigmoid_error(threshold, arithmetic) == float("inf")
    assert sigmoid_error(-threshold, arithmetic) < 1e-5


@pytest.mark.parametrize("arithmetic", ALL)
def test_sums_without_a_valid_bound_have_an_infinite_one(arithmetic: Arithmetic) -> None:
    n_terms = int(0.5 / arithmetic.unit)
    assert 0 < arithmetic.gamma(n_terms // 2) < np.inf
    assert arithmetic.gamma(n_terms) == arithmetic.gamma(4 * n_terms) == np.inf
