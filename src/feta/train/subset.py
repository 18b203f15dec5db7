"""Subset: which people an epoch goes over."""

from typing import Literal

import numpy as np

from feta.arrays import Counts

Subset = Literal["fresh", "fixed"]


def draw(
    n_people: int, share: float, subset: Subset, seed: int, rng: np.random.Generator
) -> Counts:
    """Draw a share of the people, at least one: afresh each time, or the same by the seed."""
    size = max(1, round(share * n_people))
    if size == n_people:
        return np.arange(n_people)
    source = rng if subset == "fresh" else np.random.default_rng([seed, 4])
    return np.sort(source.choice(n_people, size, replace=False))
