"""The rows of a first layer's tables that people read."""

import numpy as np

from feta.arrays import Counts, Matrix
from feta.scorer.network.layers import Columns


def table_rows(first: Columns, people: Matrix) -> Counts:
    """Return the index of the row in each table, (people, tables)."""
    rows = np.zeros((len(people), len(first.tables)), dtype=np.int64)
    for index, table in enumerate(first.tables):
        rows[:, index] = table.indices(people[:, table.column])
    return rows
