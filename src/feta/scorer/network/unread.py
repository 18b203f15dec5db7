"""Unread: attributes that a network never looks at; whatever they are, no decision can hang on them."""

import numpy as np

from feta.scorer.network.network import Columns
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace


def unread(first: Columns, space: FeatureSpace) -> tuple[str, ...]:
    """Name the attributes on which nothing in the first layer hangs, but for bands of others."""
    moved = {table.column for table in first.tables if np.ptp(table.rows, axis=0).any()}
    names = []
    for attribute in space.attributes:
        columns = space.columns_of(attribute)
        slopes = first.slopes[:, columns]
        one_hot = isinstance(attribute, Categorical | Derived)
        # Of a category's columns exactly one is 1: equal slopes are a constant.
        still = not (np.ptp(slopes, axis=1) if one_hot else slopes).any()
        if still and not moved & set(range(columns.start, columns.stop)):
            names.append(attribute.name)
    return tuple(names)
