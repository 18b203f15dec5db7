"""Layout: what people may come as where they are decided."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import pandas as pd
from numpy.typing import ArrayLike, NDArray

from feta.space.records import Record

Table = pd.DataFrame | NDArray[Any]

# What people may come as where they are decided.
People = pd.DataFrame | ArrayLike | Record | Sequence[Record]


def is_records(table: object) -> TypeGuard[Record | Sequence[Record]]:
    """Say whether people come as a dict, or as a list of dicts, as in a service."""
    if isinstance(table, Mapping):
        return True
    return (
        isinstance(table, list) and bool(table) and all(isinstance(one, Mapping) for one in table)
    )


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """Call columns by texts, as a space does; numbered ones as those of an array."""
    given: list[object] = list(frame.columns)
    names = [f"x{name}" if isinstance(name, int) else str(name) for name in given]
    return frame.set_axis(names, axis=1)
