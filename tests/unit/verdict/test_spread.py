import numpy as np

from feta import Spread


def test_the_span_is_the_distance_from_the_lowest_to_the_highest() -> None:
    spread = Spread(
        np.array([1.0, np.nan]),
        np.array([-1.5, np.nan]),
        np.array([4.0, np.nan]),
        np.array([True, False]),
    )
    assert spread.span[0] == 5.5
    assert np.isnan(spread.span[1])
