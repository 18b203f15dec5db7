import numpy as np
import pytest

from feta.interval_box import IntervalBox


def test_an_empty_box_and_nan_cannot_be_built() -> None:
    for lower, upper in [([1.0], [0.0]), ([np.nan], [1.0]), ([0.0], [np.nan])]:
        with pytest.raises(AssertionError):
            IntervalBox(np.array(lower), np.array(upper))


def test_what_two_boxes_share_and_how_large_it_is() -> None:
    both = IntervalBox(np.array([-3.0]), np.array([1.0])) & IntervalBox(
        np.array([-2.0]), np.array([5.0])
    )
    assert (both.lower[0], both.upper[0], both.size[0]) == (-2.0, 1.0, 2.0)
    assert (both * np.array([4.0])).upper[0] == 4.0
