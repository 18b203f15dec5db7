"""Columns of people for a regression: categories as they are, numbers as broken lines."""

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.space.attribute import Attribute, Categorical, Derived
from feta.space.feature_space import FeatureSpace

# A number may bend at these quantiles, so that a regression is linear in between only.
BENDS = (0.25, 0.5, 0.75)


class RegressionColumns:
    """Columns for a regression: scaled by some people, then computed for any people.

    Every column has mean 0 and variance 1 over those people; a constant one is left out.
    """

    def __init__(self, space: FeatureSpace, people: Matrix, *, sensitive: bool) -> None:
        read = [a for a in space.attributes if sensitive or not space.is_sensitive(a)]
        self.parts = [(a, space.columns_of(a), _bends(a, people, space)) for a in read]
        raw = self._raw(people)
        scales = raw.std(axis=0)
        self.varies: Flags = scales > 0
        self.centers: Vector = raw.mean(axis=0)[self.varies]
        self.scales: Vector = scales[self.varies]

    def __call__(self, people: Matrix) -> Matrix:
        """Return the columns of people; the first one is constant."""
        scaled = (self._raw(people)[:, self.varies] - self.centers) / self.scales
        return np.hstack([np.ones((len(people), 1)), scaled])

    def _raw(self, people: Matrix) -> Matrix:
        columns = [np.zeros((len(people), 0))]
        for _, part, bends in self.parts:
            columns.append(people[:, part])
            columns += [np.maximum(people[:, [part.start]] - bend, 0.0) for bend in bends]
        return np.hstack(columns)


def _bends(attribute: Attribute, people: Matrix, space: FeatureSpace) -> list[float]:
    """Return the numbers at which the line of an attribute bends."""
    if isinstance(attribute, Categorical | Derived):
        return []
    values = people[:, space.columns_of(attribute).start]
    return [float(bend) for bend in np.unique(np.quantile(values, BENDS))]
