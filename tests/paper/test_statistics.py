"""Tests of statistics with values computed by hand."""

import math

import pytest

from feta_paper.paper import Published
from feta_paper.statistics import Difference, paired, place, summarize

PAPER = Published("76.70 ± 2.78")


def test_the_deviation_is_that_of_the_population() -> None:
    summary = summarize([70.5, 69.5, 67.0, 72.0, 71.0])
    assert summary is not None
    assert summary.mean == pytest.approx(70)
    assert summary.std == pytest.approx(math.sqrt((0.25 + 0.25 + 9 + 4 + 1) / 5))
    assert summary.n == 5


def test_a_fold_without_a_number_is_not_counted() -> None:
    summary = summarize([1.0, math.nan, 3.0])
    assert summary is not None
    assert (summary.mean, summary.n) == (2, 2)
    assert summarize([]) is None
    assert summarize([math.nan, math.inf]) is None


def test_pairs_are_taken_fold_by_fold() -> None:
    gap = paired([3.0, 5.0, 4.0], [1.0, 6.0, 1.0], seed=0)
    assert gap is not None
    assert gap.mean == pytest.approx(4 / 3)
    squares = [(value - 4 / 3) ** 2 for value in (2, -1, 3)]
    assert gap.std == pytest.approx(math.sqrt(sum(squares) / 3))
    assert (gap.positive, gap.n) == (2, 3)


def test_the_interval_of_two_folds_ends_at_their_values() -> None:
    # Of the four resamples of (0, 4), one is (0, 0), one (4, 4): a quarter each, above 2.5 %.
    gap = paired([1.0, 5.0], [1.0, 1.0], seed=3)
    assert gap is not None
    assert gap.interval == pytest.approx((0, 4))
    assert gap.sign == 0


def test_the_interval_excludes_a_fortieth_at_each_end() -> None:
    # The mean of a resample of (0, 0, 6) is 6 in one case of 27: less than 1/20, more than 1/40.
    gap = paired([1.0, 1.0, 7.0], [1.0, 1.0, 1.0], seed=0)
    assert gap is not None
    assert gap.interval == pytest.approx((0, 6))


def test_a_standard_error_is_of_a_sample() -> None:
    summary = summarize([1.0, 2.0, 3.0])
    assert summary is not None
    assert summary.error == pytest.approx(1 / math.sqrt(3))


def test_a_constant_difference_has_an_interval_of_no_width() -> None:
    gap = paired([2.0, 3.0, 4.0], [1.0, 2.0, 3.0], seed=0)
    assert gap is not None
    assert gap.interval == pytest.approx((1, 1))
    assert gap.sign == 1


def test_the_interval_depends_on_the_seed_alone() -> None:
    left, right = [1.0, 2.5, 3.0, 7.0, 4.5], [0.5, 3.0, 1.0, 2.0, 4.0]
    assert paired(left, right, seed=7) == paired(left, right, seed=7)


def test_one_fold_has_no_interval_and_no_sign() -> None:
    assert paired([5.0], [1.0], seed=0) == Difference(4, 0, 1, 1, None)
    assert Difference(4, 0, 1, 1, None).sign == 0


def test_different_numbers_of_folds_are_not_paired() -> None:
    assert paired([1.0, 2.0], [1.0], seed=0) is None
    assert paired([], [], seed=0) is None
    assert paired([math.nan], [1.0], seed=0) is None


@pytest.mark.parametrize(
    ("mean", "placement"),
    [
        (76.70, "within"),
        (82.26, "within"),
        (71.14, "within"),
        (82.2601, "above"),
        (71.1399, "below"),
    ],
)
def test_two_deviations_are_within_and_more_are_not(mean: float, placement: str) -> None:
    assert place(mean, PAPER) == placement


def test_a_figure_without_a_deviation_or_by_construction_is_not_compared() -> None:
    assert place(75.53, Published("75.53")) is None
    assert place(0.0, Published("0.0 ± 0.0")) is None
