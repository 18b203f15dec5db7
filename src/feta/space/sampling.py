"""Random people of a space, on which a model is compared with its source."""

import numpy as np

from feta.arrays import Matrix
from feta.space.attribute import Derived, Real
from feta.space.feature_space import FeatureSpace

# Missing numbers must be frequent enough to occur in a small sample.
MISSING_SHARE = 0.1


def draw_people(space: FeatureSpace, rng: np.random.Generator, n_people: int) -> Matrix:
    """Draw people uniformly: all values of a finite column are equally likely."""
    people = np.zeros((n_people, space.width))
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            continue
        if isinstance(attribute, Real):
            numbers = rng.uniform(attribute.low, attribute.high, n_people)
            if attribute.missing:
                numbers[rng.random(n_people) < MISSING_SHARE] = np.nan
            codes = attribute.encode(numbers.tolist())
        else:
            codes = attribute.codes(rng.integers(0, attribute.n_values, n_people))
        people[:, space.columns_of(attribute)] = codes
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            source = people[:, space.columns_of(space.attribute(attribute.source)).start]
            people[:, space.columns_of(attribute)] = attribute.derive(source)
    return people
