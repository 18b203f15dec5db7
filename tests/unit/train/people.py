"""Generated people for training; their labels depend on income, but also on age and sex."""

import numpy as np

from feta import Categorical, FeatureSpace, Integer, Real

SPACE = FeatureSpace(
    (
        Integer("age", 18, 30, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Real("income", 0, 100),
    )
)
RNG = np.random.default_rng(0)
RECORDS = [
    {
        "age": int(RNG.integers(18, 31)),
        "sex": ("female", "male")[RNG.integers(2)],
        "income": float(RNG.uniform(0, 100)),
    }
    for _ in range(160)
]
PEOPLE = SPACE.encode(RECORDS)
LABELS = PEOPLE[:, 3] + 25 * PEOPLE[:, 2] + 2 * PEOPLE[:, 0] > 110
CLASSES = np.digitize(PEOPLE[:, 3] + 25 * PEOPLE[:, 2], [40, 80])
SCORES = PEOPLE[:, 3] / 50 + PEOPLE[:, 2]
