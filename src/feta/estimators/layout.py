"""The forms in which people are passed to `predict`."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import pandas as pd
from numpy.typing import ArrayLike, NDArray

from feta.space.records import Record

Table = pd.DataFrame | NDArray[Any]

# The accepted forms of people.
People = pd.DataFrame | ArrayLike | Record | Sequence[Record]


def is_records(table: object) -> TypeGuard[Record | Sequence[Record]]:
    """Return whether people are a dict or a nonempty list of dicts."""
    if isinstance(table, Mapping):
        return True
    return (
        isinstance(table, list) and bool(table) and all(isinstance(row, Mapping) for row in table)
    )


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with text names; column 0 becomes "x0", as for an array."""
    columns: list[object] = list(frame.columns)
    names = [f"x{name}" if isinstance(name, int) else str(name) for name in columns]
    return frame.set_axis(names, axis=1)
