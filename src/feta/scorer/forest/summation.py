"""How a library adds the leaf values of its trees; replayed bit for bit."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from feta.arrays import Array, Matrix, Vector

Format = Literal["float32", "float64"]


@dataclass(frozen=True, slots=True, eq=False)
class Summation:
    """The order and the format of the sums: start, then one tree after the other.

    `start` is added first. With `weights` (DART), XGBoost adds ((start + v) − start) · w per tree.
    With `divide`, the sum is divided by the number of trees at the end.
    """

    library: str  # for whom this order is known, with its version if that matters
    format: Format
    start: Vector  # (outputs,)
    weights: Vector | None = None  # (trees,), in the format
    divide: bool = False

    def replay(self, values: Matrix) -> Matrix:
        """Add leaf values, (people, trees, outputs), as the library does; return float64."""
        kind: Any = np.float32 if self.format == "float32" else np.float64
        leaves: Array = values.astype(kind)
        start: Array = self.start.astype(kind)
        total: Array = np.broadcast_to(start, (len(values), len(start))).astype(kind)
        for tree in range(values.shape[1]):
            if self.weights is None:
                total = total + leaves[:, tree]
            else:
                rounded = (start + leaves[:, tree]) - start
                total = total + rounded * kind(self.weights[tree])
        if self.divide:
            total = total / kind(values.shape[1])
        return np.asarray(total, dtype=np.float64)
