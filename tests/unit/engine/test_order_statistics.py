from fractions import Fraction

import numpy as np
import pytest

from feta import FeatureSpace, Integer, Model, Network, Tolerance
from feta.engine.order_statistics import OrderStatistics
from feta.rounding import FLOAT64
from feta.scorer.protocol import Enclosure

SPACE = FeatureSpace((Integer("n", 0, 9, sensitive=True),))
MODEL = Model(SPACE, Network.from_layers([([[-0.1]], [0.0])]), Tolerance(0.0))
POINTS = MODEL.restricted.counterparts(np.zeros((1, 1)), np.arange(10))


@pytest.mark.parametrize("errors", ["small", "large", "infinite"])
@pytest.mark.parametrize("n_points", [1, 2, 9, 10])
def test_the_ranks_are_exact_for_any_error_bounds(errors: str, n_points: int) -> None:
    scores = POINTS.scores(FLOAT64, np.arange(n_points))
    if errors == "large":
        scores = Enclosure(scores.values + 0.25, np.full_like(scores.errors, 0.26))
    if errors == "infinite":
        scores = Enclosure(np.full_like(scores.values, np.nan), np.full_like(scores.errors, np.inf))
    statistics = OrderStatistics()
    for index in range(n_points):  # one block per counterpart
        chosen = np.array([index])
        statistics.add(chosen, np.ones(1, dtype=np.int64), scores[chosen])
    exact = sorted(Fraction(-0.1) * n for n in range(n_points))
    expected = exact[(n_points - 1) // 2], exact[0], exact[-1]
    assert statistics.spread(POINTS) == tuple(float(score) for score in expected)
