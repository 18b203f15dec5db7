"""Proxies: how much each other column tells about a sensitive one, measured on a table of people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix
from feta.io.raw_table import raw_values
from feta.space.attribute import Attribute, Categorical, Derived
from feta.space.feature_space import FeatureSpace

# Numbers are compared by the tenth of the people that they fall into.
N_BINS = 10

# From here on a column is worth a look; by convention, 0.3 is a medium association.
NOTABLE = 0.3


@dataclass(frozen=True, slots=True)
class Proxy:
    """A column, a sensitive one, and Cramér's V between them: 0 tells nothing, 1 tells all."""

    column: str
    sensitive: str
    strength: float


def proxies(space: FeatureSpace, people: Matrix) -> list[Proxy]:
    """Measure every column that is not sensitive against every one that is, the strongest first."""
    groups = {one.name: _groups(one, people[:, space.columns_of(one)]) for one in space.attributes}
    found = [
        Proxy(other.name, one.name, cramers_v(groups[other.name], groups[one.name]))
        for one in space.sensitive
        for other in space.attributes
        if not space.is_sensitive(other)
    ]
    return sorted(found, key=lambda one: -one.strength)


def _groups(attribute: Attribute, codes: Matrix) -> Counts:
    """Give numbers to the people's values, or to the tenths that they fall into."""
    values = raw_values(attribute, codes)
    if isinstance(attribute, Categorical | Derived):
        return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)
    numbers = np.nan_to_num(values.astype(np.float64), nan=np.inf)  # missing is a group of its own
    finite = numbers[np.isfinite(numbers)]
    if len(np.unique(finite)) <= N_BINS or not finite.size:
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    edges = np.unique(np.quantile(finite, np.linspace(0, 1, N_BINS + 1)[1:-1]))
    indices = np.searchsorted(edges, numbers, side="right")
    return np.where(np.isinf(numbers), len(edges) + 1, indices).astype(np.int64)


def cramers_v(left: Sequence[int] | Counts, right: Sequence[int] | Counts) -> float:
    """Compute Cramér's V with Bergsma's correction, so that small tables do not look like proxies."""
    first, second = (np.unique(one, return_inverse=True)[1] for one in (left, right))
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)
    n_people = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n_people
    rows, columns = table.shape
    if n_people < 2 or min(rows, columns) < 2:  # noqa: PLR2004 - one value tells nothing
        return 0.0
    share = ((table - expected) ** 2 / expected).sum() / n_people
    share = max(0.0, share - (rows - 1) * (columns - 1) / (n_people - 1))
    rows_, columns_ = (one - (one - 1) ** 2 / (n_people - 1) for one in (rows, columns))
    most = min(rows_, columns_) - 1
    return float(min(1.0, np.sqrt(share / most))) if most > 0 else 0.0
