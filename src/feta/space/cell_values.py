"""Values of raw table cells: missing cells and numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Flags


def is_missing(value: object) -> bool:
    """Return whether a cell is missing: None, NaN or pandas' NA. An empty text is not missing."""
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124 - only NaN differs from itself
    except (TypeError, ValueError):  # pandas' NA has no truth value, and an array is not a cell
        return type(value).__name__ == "NAType"


def missing_cells(values: Sequence[object]) -> Flags:
    """Flag the missing cells."""
    return np.fromiter((is_missing(value) for value in values), bool, len(values))


def to_number(value: Any) -> float:  # noqa: ANN401 - any cell of a table
    """Return a cell as float64; NaN if it is not a number. Texts and booleans are not numbers."""
    if isinstance(value, bool | np.bool_ | str | bytes) or value is None:
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def to_numbers(values: Sequence[object]) -> NDArray[np.float64]:
    """Return cells as float64; NaN where a cell is not a number."""
    array = _numeric_array(values)
    if array is not None:
        return array.astype(np.float64)
    return np.fromiter((to_number(value) for value in values), np.float64, len(values))


def _numeric_array(values: Sequence[object]) -> NDArray[Any] | None:
    """Convert all cells at once; None if the cells must be converted one by one."""
    cells: object = values
    # numpy would turn a list of numbers and booleans into numbers.
    if not isinstance(cells, np.ndarray) and any(isinstance(cell, bool | str) for cell in values):
        return None
    try:
        array = np.asarray(values)
    except ValueError:  # cells of different lengths
        return None
    return array if array.ndim == 1 and array.dtype.kind in "iuf" else None


def plain_scalar(value: object) -> object:
    """Return a numpy scalar as a Python value, which messages show without its type."""
    return value.item() if isinstance(value, np.generic) else value
