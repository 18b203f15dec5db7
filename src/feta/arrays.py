"""Array types, and read-only copies of arrays."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
# The outcomes of people: booleans (favorable or not), class indices or scores, by the rule.
Answers = NDArray[Any]
Array = NDArray[Any]  # of any type: the contents of a file
# Python integers of any size in an object array, for exact arithmetic.
BigIntegers = NDArray[Any]


def frozen(values: ArrayLike) -> NDArray[np.float64]:
    """Return a read-only float64 copy, with −0.0 replaced by 0.0."""
    array = np.asarray(values, dtype=np.float64, order="C") + 0.0
    array.setflags(write=False)
    return array
