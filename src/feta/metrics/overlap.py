"""Overlap: whether people of all groups exist with the same other columns.

Where the other columns reveal the group, nobody shows how the other groups would be scored there:
a vote of counterparts extrapolates.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix
from feta.metrics.bands import Bands
from feta.metrics.estimate import Estimate
from feta.metrics.logistic import cross_fitted
from feta.metrics.regression_columns import RegressionColumns
from feta.space.attribute import Derived
from feta.space.feature_space import FeatureSpace

# Outside these limits, the other columns reveal the group.
LOWEST, HIGHEST = 0.01, 0.99

# Groups with a smaller share are joined: a rare group is improbable for everybody.
MIN_SHARE = 0.02

REST = "all others"


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """The share of people whose other columns reveal a sensitive attribute."""

    attribute: str
    groups: tuple[str, ...]  # that were compared
    outside: Estimate

    def as_json(self) -> dict[str, object]:
        """Return the figures as plain values."""
        return {"attribute": self.attribute, "groups": list(self.groups)} | {
            "outside": self.outside.as_json()
        }


def overlaps(space: FeatureSpace, people: Matrix) -> tuple[Overlap, ...]:
    """Measure the overlap of each sensitive attribute that has two groups among the people."""
    columns = RegressionColumns(space, people, sensitive=False)(people)
    results = []
    for bands in quartered(space, people):
        indices = bands.indices(people[:, space.columns_of(bands.attribute)])
        names, groups = _joined(bands.names, indices)
        if len(names) > 1:
            likely = cross_fitted(columns, groups, len(names))
            checked = np.bincount(groups) >= MIN_SHARE * len(people)
            revealed = (likely < LOWEST) & checked | (likely > HIGHEST)
            outside = Estimate.share(np.asarray(revealed.any(axis=1)))
            results.append(Overlap(bands.attribute.name, names, outside))
    return tuple(results)


def quartered(space: FeatureSpace, people: Matrix) -> list[Bands]:
    """Return the groups of each sensitive attribute; a derived one has those of its source."""
    return [
        Bands.quarters(attribute, people[:, space.columns_of(attribute)])
        for attribute in space.sensitive
        if not isinstance(attribute, Derived)
    ]


def _joined(names: tuple[str, ...], indices: Counts) -> tuple[tuple[str, ...], Counts]:
    """Join the groups that have few people, and renumber the groups."""
    counts = np.bincount(indices, minlength=len(names))
    large = [index for index in range(len(names)) if counts[index] >= MIN_SHARE * len(indices)]
    numbers = np.full(len(names), len(large), dtype=np.int64)
    numbers[large] = np.arange(len(large))
    groups = numbers[indices]
    rest = (REST,) if (groups == len(large)).any() else ()
    return (*(names[index] for index in large), *rest), groups
