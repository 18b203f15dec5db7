"""Centering and scaling of numbers for training, folded into the network afterwards."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.scorer.network.layers import Columns
from feta.scorer.network.network import Network
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace

# A network learns little from a column whose mean is this many standard deviations from 0: on
# Law School, unscaled test scores cost seven points of accuracy.
FAR_FROM_ZERO = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """(x − center) / scale, column by column; categories stay 0 and 1."""

    centers: Vector
    scales: Vector

    @classmethod
    def of(cls, space: FeatureSpace, people: Matrix) -> Self:
        """Return the scaling by mean and standard deviation of each number over some people."""
        centers, scales = np.zeros(space.width), np.ones(space.width)
        for attribute in space.attributes:
            if not isinstance(attribute, Categorical | Derived):
                column = space.columns_of(attribute).start
                spread = float(people[:, column].std())
                centers[column] = float(people[:, column].mean())
                scales[column] = spread if spread > 0 else 1.0
        return cls(centers, scales)

    @classmethod
    def none(cls, space: FeatureSpace) -> Self:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(space.width), np.ones(space.width))

    def enlarged(self, columns: Flags, factor: float) -> "Scaling":
        """Return the scaling with some columns multiplied by a factor."""
        return Scaling(self.centers, np.where(columns, self.scales / factor, self.scales))

    def __call__(self, people: Matrix) -> Matrix:
        """Scale people."""
        return np.asarray((people - self.centers) / self.scales)

    def inside(self, network: Network) -> Network:
        """Rewrite a network in raw units for scaled people."""
        first = network.first
        slopes = first.slopes * self.scales
        bias = first.bias + (first.slopes * self.centers).sum(axis=1)
        return replace(network, first=Columns(bias, slopes))

    def outside(self, slopes: Matrix, bias: Vector) -> Columns:
        """Fold the scaling into a first layer, which then takes raw units."""
        raw_slopes = slopes / self.scales
        shifts = raw_slopes * self.centers
        # The terms that cancel in the bias, for the bound on a runtime's rounding error.
        cancelled = 2 * np.abs(shifts).sum(axis=1) + np.abs(bias)
        return Columns(bias - shifts.sum(axis=1), raw_slopes, (), cancelled)


def unscaled(space: FeatureSpace, people: Matrix) -> list[str]:
    """Return the numbers that are too far from 0 for a network to learn from them."""
    scaling = Scaling.of(space, people)
    far = np.abs(scaling.centers) > FAR_FROM_ZERO * scaling.scales
    return [a.name for a in space.attributes if far[space.columns_of(a).start]]
