import numpy as np

from feta import Spread


def test_the_span_is_the_distance_from_the_lowest_to_the_highest() -> None:
    found = Spread(
        np.array([1.0, np.nan]),
        np.array([-1.5, np.nan]),
        np.array([4.0, np.nan]),
        np.array([True, False]),
    )
    assert found.span[0] == 5.5
    assert np.isnan(found.span[1])
