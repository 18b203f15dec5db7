"""Proxies: the association of each other column with each sensitive one, in a table of people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix
from feta.io.raw_table import raw_values
from feta.space.attribute import Attribute, Categorical, Derived
from feta.space.feature_space import FeatureSpace

# Numbers are compared by their decile.
N_BINS = 10

# Associations from here on are worth reporting; by convention, 0.3 is a medium one.
NOTABLE = 0.3


@dataclass(frozen=True, slots=True)
class Proxy:
    """A column, a sensitive column, and Cramér's V: 0 for independent, 1 for determined."""

    column: str
    sensitive: str
    strength: float


def proxies(space: FeatureSpace, people: Matrix) -> list[Proxy]:
    """Measure every shared column against every sensitive one, the strongest first."""
    groups = {
        attribute.name: _groups(attribute, people[:, space.columns_of(attribute)])
        for attribute in space.attributes
    }
    pairs = [
        Proxy(other.name, sensitive.name, cramers_v(groups[other.name], groups[sensitive.name]))
        for sensitive in space.sensitive
        for other in space.attributes
        if not space.is_sensitive(other)
    ]
    return sorted(pairs, key=lambda proxy: -proxy.strength)


def _groups(attribute: Attribute, codes: Matrix) -> Counts:
    """Return the index of each person's value, or of its decile; missing is a separate group."""
    values = raw_values(attribute, codes)
    if isinstance(attribute, Categorical | Derived):
        return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)
    numbers = np.nan_to_num(values.astype(np.float64), nan=np.inf)
    finite = numbers[np.isfinite(numbers)]
    if len(np.unique(finite)) <= N_BINS or not finite.size:
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    edges = np.unique(np.quantile(finite, np.linspace(0, 1, N_BINS + 1)[1:-1]))
    indices = np.searchsorted(edges, numbers, side="right")
    return np.where(np.isinf(numbers), len(edges) + 1, indices).astype(np.int64)


def cramers_v(left: Sequence[int] | Counts, right: Sequence[int] | Counts) -> float:
    """Compute Cramér's V with Bergsma's bias correction for small tables."""
    first, second = (np.unique(values, return_inverse=True)[1] for values in (left, right))
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)
    n_people = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n_people
    rows, columns = table.shape
    if n_people < 2 or min(rows, columns) < 2:  # noqa: PLR2004 - a single value has no association
        return 0.0
    phi_squared = ((table - expected) ** 2 / expected).sum() / n_people
    phi_squared = max(0.0, phi_squared - (rows - 1) * (columns - 1) / (n_people - 1))
    corrected = (size - (size - 1) ** 2 / (n_people - 1) for size in (rows, columns))
    limit = min(corrected) - 1
    return float(min(1.0, np.sqrt(phi_squared / limit))) if limit > 0 else 0.0
