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
    about = np.finfo(dtype)
    assert arithmetic.name == about.dtype.name
    assert arithmetic.unit == float(about.eps) / 2
    assert arithmetic.tiny >= 2 * float(about.smallest_normal)
    assert arithmetic.huge < float(about.max)
    assert arithmetic.tiny / arithmetic.unit <= FLOOR


def test_a_source_is_found_by_its_name() -> None:
    assert {name: arithmetic.name for name, arithmetic in SOURCES.items()} == {
        name: name for name in SOURCES
    }
    assert FLOAT64.huge > LARGEST_ACTIVATION


@pytest.mark.parametrize("arithmetic", [SOURCE_FLOAT32, SOURCE_FLOAT64])
@pytest.mark.parametrize("threshold", [-30.0, -2.0, 0.0, 1.5, 6.0])
def test_beyond_its_error_a_rounded_sigmoid_keeps_the_decision(
    arithmetic: Arithmetic, threshold: float
) -> None:
    source_error = sigmoid_error(threshold, arithmetic)
    off = SIGMOID_ULPS * Fraction(arithmetic.unit)
    at = _sigmoid(threshold)
    once = Fraction(arithmetic.unit)  # the probability of the threshold is a rounded number
    assert _sigmoid(threshold + source_error) * (1 - off) > at * (1 + once)
    assert _sigmoid(threshold - source_error) * (1 + off) < at * (1 - once)


def _sigmoid(score: float) -> Fraction:
    from decimal import Decimal, localcontext  # noqa: PLC0415

    with localcontext() as context:
        context.prec = 60
        return Fraction(1 / (1 + (-Decimal(score)).exp()))


@pytest.mark.parametrize(
    ("threshold", "arithmetic"),
    [(20.0, SOURCE_FLOAT32), (40.0, SOURCE_FLOAT64), (1e308, SOURCE_FLOAT64)],
)
def test_a_saturated_sigmoid_leaves_every_score_in_doubt(
    threshold: float, arithmetic: Arithmetic
) -> None:
    assert sigmoid_error(threshold, arithmetic) == float("inf")
    assert sigmoid_error(-threshold, arithmetic) < 1e-5


@pytest.mark.parametrize("arithmetic", ALL)
def test_sums_that_no_bound_covers_have_an_infinite_one(arithmetic: Arithmetic) -> None:
    most = int(0.5 / arithmetic.unit)
    assert 0 < arithmetic.gamma(most // 2) < np.inf
    assert arithmetic.gamma(most) == arithmetic.gamma(4 * most) == np.inf
