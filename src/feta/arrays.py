"""Arrays: the few array types FETA passes around, and how one is made read-only."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
# What people get: booleans (favorable or not), class numbers or scores, as the rule has it.
Answers = NDArray[Any]
Array = NDArray[Any]  # of any type: the contents of a file
# Python integers of any size in an object array: what exact arithmetic computes with.
BigIntegers = NDArray[Any]


def frozen(values: ArrayLike) -> NDArray[np.float64]:
    """Return a float64 copy that nobody can write to, with −0.0 turned into 0.0."""
    array = np.asarray(values, dtype=np.float64, order="C") + 0.0
    array.setflags(write=False)
    return array
