"""Cuts of float64 numbers against the comparison x < t in float32."""

import numpy as np

from feta.readers.trees.float32_cut import float32_cuts

TINY = np.float32(1.401298464324817e-45)
LARGEST = np.finfo(np.float32).max


def goes_left(number: float, threshold: np.float32) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.float32(number) < threshold)


def test_the_cut_is_the_last_number_that_goes_left() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 4000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = [0.0, -0.0, TINY, -TINY, 2 * TINY, LARGEST, -LARGEST, 1.0, 2.0**24, 2.0**24 + 2]
    normal = np.finfo(np.float32).tiny
    special += [normal, -normal, np.nextafter(normal, np.float32(0)), -(2.0**24), 0.5, 3.0]
    thresholds = np.concatenate([bits[np.isfinite(bits)], np.array(special, dtype=np.float32)])
    cuts = float32_cuts(thresholds)
    for threshold, cut in zip(thresholds, cuts.tolist(), strict=True):
        assert goes_left(cut, threshold)
        assert not goes_left(float(np.nextafter(cut, np.inf)), threshold)
        assert not goes_left(float(threshold), threshold)


def test_integers_that_are_equal_in_float32_get_the_same_side() -> None:
    cut = float(float32_cuts(np.array([2.0**24 + 2]))[0])
    assert 2**24 <= cut < 2**24 + 1.5  # 2^24 + 1 rounds to 2^24
    assert cut >= 2**24 + 1
    cut = float(float32_cuts(np.array([2.0**24 + 4]))[0])
    assert 2**24 + 2 <= cut < 2**24 + 3  # 2^24 + 3 rounds to 2^24 + 4


def test_infinite_thresholds_separate_numbers_that_overflow() -> None:
    below, above = float32_cuts(np.array([-np.inf, np.inf], dtype=np.float32))
    assert below == -np.inf
    assert goes_left(above, np.float32(np.inf))
    assert not goes_left(np.nextafter(above, np.inf), np.float32(np.inf))
