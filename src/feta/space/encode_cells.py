"""Encoding attribute by attribute: it accepts every kind of cell, and words the errors.

`feta.space.row_plan` does the same faster for usual cells.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import DomainError, missing
from feta.space.attribute import Derived
from feta.space.derived_columns import compare_with_cells, derived_codes
from feta.space.limits import Limits, encode_open, is_open

if TYPE_CHECKING:
    from feta.space.feature_space import FeatureSpace


def encode_cells(
    space: "FeatureSpace",
    columns: Mapping[str, Sequence[object]],
    *,
    sensitive: Literal["check", "ignore"] = "check",
    limits: Limits = "check",
) -> Matrix:
    """Convert named columns of equal length; raise for the first column with an invalid cell."""
    n_people = len(next(iter(columns.values()), []))
    rows = np.full((n_people, space.width), np.nan)
    for attribute in space.attributes:
        ignored = sensitive == "ignore" and space.is_sensitive(attribute)
        if isinstance(attribute, Derived) or ignored:
            continue
        if attribute.name not in columns:
            raise DomainError(missing(attribute.name, columns), column=attribute.name)
        cells = columns[attribute.name]
        if limits == "open" and is_open(attribute, sensitive=space.is_sensitive(attribute)):
            rows[:, space.columns_of(attribute)] = encode_open(attribute, cells)
        else:
            rows[:, space.columns_of(attribute)] = attribute.encode(cells)
    for attribute in space.attributes:
        if not isinstance(attribute, Derived):
            continue
        if sensitive == "ignore" and space.is_sensitive(attribute):
            continue
        source = space.columns_of(space.attribute(attribute.source)).start
        codes = derived_codes(attribute, attribute.source, rows[:, source])
        rows[:, space.columns_of(attribute)] = codes
        if attribute.name in columns:
            compare_with_cells(attribute, codes, columns[attribute.name])
    return rows
