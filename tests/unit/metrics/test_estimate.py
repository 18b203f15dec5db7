import numpy as np
import pytest

from feta.metrics.estimate import Estimate, rate_difference

RNG = np.random.default_rng(0)


def test_a_share_has_an_interval_even_if_nobody_has_the_flag() -> None:
    nobody = Estimate.share(np.zeros(100, bool))
    assert (nobody.value, nobody.interval[0]) == (0.0, 0.0)
    assert nobody.interval[1] == pytest.approx(3.8415 / 103.8415, rel=1e-3)  # z² / (n + z²)
    half = Estimate.share(np.arange(100) < 50)
    assert half.interval == pytest.approx((0.4038, 0.5962), abs=1e-4)  # Wilson's, from a table


def test_a_paired_difference_is_narrower_than_an_unpaired_one() -> None:
    first = RNG.random(1000) < 0.5
    second = first ^ (np.arange(1000) < 20)  # they differ for 20 people
    difference = Estimate.share(first).minus(Estimate.share(second))
    differences = first.astype(float) - second
    assert difference.value == pytest.approx(differences.mean())
    assert difference.error == pytest.approx(differences.std() / np.sqrt(1000))
    assert difference.error < Estimate.share(first).error / 3
    low, high = difference.interval
    assert difference.as_json() == {"value": difference.value, "low": low, "high": high}


def test_intervals_of_a_difference_of_rates_cover_the_truth() -> None:
    covered = 0
    for _ in range(400):
        group = RNG.random(300) < 0.3
        answers = RNG.random(300) < np.where(group, 0.6, 0.4)
        low, high = rate_difference(answers, group, ~group).interval
        covered += low <= 0.2 <= high
    assert 0.91 <= covered / 400 <= 0.98  # 95 %, give or take four standard errors
