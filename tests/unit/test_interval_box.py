import numpy as np
import pytest

from feta.interval_box import IntervalBox


def test_an_empty_box_and_nan_are_rejected() -> None:
    for lower, upper in [([1.0], [0.0]), ([np.nan], [1.0]), ([0.0], [np.nan])]:
        with pytest.raises(AssertionError):
            IntervalBox(np.array(lower), np.array(upper))


def test_the_intersection_of_two_boxes_and_its_size() -> None:
    intersection = IntervalBox(np.array([-3.0]), np.array([1.0])) & IntervalBox(
        np.array([-2.0]), np.array([5.0])
    )
    assert (intersection.lower[0], intersection.upper[0], intersection.size[0]) == (-2.0, 1.0, 2.0)
    assert (intersection * np.array([4.0])).upper[0] == 4.0
