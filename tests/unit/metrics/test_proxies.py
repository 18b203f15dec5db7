import numpy as np
import pytest

from feta import Categorical, FeatureSpace, Integer, Real
from feta.metrics.proxies import cramers_v, proxies
from feta.space.sampling import draw_people

SPACE = FeatureSpace(
    (
        Categorical("sex", ("f", "m"), sensitive=True),
        Categorical("title", ("Mr", "Ms")),
        Integer("shoe", 35, 48),
        Real("luck", 0, 1, missing=True),
    )
)


def test_a_determined_column_has_strength_1_and_an_independent_one_0() -> None:
    people = draw_people(SPACE, np.random.default_rng(0), 4000)
    people[:, 2:4] = people[:, [1, 0]]  # Mr for m
    people[:, 4] = np.where(people[:, 1] == 1, 42 + people[:, 4] % 5, 36 + people[:, 4] % 5)
    results = proxies(SPACE, people)
    strengths = {(proxy.column, proxy.sensitive): proxy.strength for proxy in results}
    assert strengths["title", "sex"] == pytest.approx(1.0, abs=1e-3)
    assert strengths["shoe", "sex"] == pytest.approx(1.0, abs=1e-2)
    assert strengths["luck", "sex"] < 0.1
    assert results[-1].column == "luck"


def test_strength_equals_cramers_v_computed_by_hand() -> None:
    # 30 30 / 10 50 of 120: chi² = 15, V² = 15 / 120 before the bias correction.
    left = [0] * 60 + [1] * 60
    right = [0] * 30 + [1] * 30 + [0] * 10 + [1] * 50
    raw = 15 / 120 - 1 / 119
    assert cramers_v(left, right) == pytest.approx(np.sqrt(raw / (2 - 1 / 119 - 1)))
    assert cramers_v([0, 0, 0], [0, 1, 1]) == 0.0
