"""Draw: random people of a space, to compare a model with its source on."""

import numpy as np

from feta.arrays import Matrix
from feta.space.attribute import Derived, Real
from feta.space.feature_space import FeatureSpace


def draw_people(space: FeatureSpace, rng: np.random.Generator, n_people: int) -> Matrix:
    """Draw people evenly: every value of a finite column is as likely as another."""
    people = np.zeros((n_people, space.width))
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            continue
        if isinstance(attribute, Real):
            numbers = rng.uniform(attribute.low, attribute.high, n_people)
            if attribute.missing:
                numbers[rng.random(n_people) < 0.1] = np.nan  # noqa: PLR2004 - often enough to be met
            codes = attribute.encode(numbers.tolist())
        else:
            codes = attribute.codes(rng.integers(0, attribute.n_values, n_people))
        people[:, space.columns_of(attribute)] = codes
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            source = people[:, space.columns_of(space.attribute(attribute.source)).start]
            people[:, space.columns_of(attribute)] = attribute.derive(source)
    return people
