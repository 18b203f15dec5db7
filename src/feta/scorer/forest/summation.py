"""How a library adds the leaf values of its trees; replayed bit for bit."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from feta.arrays import Array, Matrix, Vector

Format = Literal["float32", "float64"]


@dataclass(frozen=True, slots=True, eq=False)
class Summation:
    """The order and the format of the sums: start, then one tree after the other.

    `start` is added first. With `weights` (DART), the leaf values of tree t contain the factor
    `weights[t]`, which the library multiplies in its own format: it adds v · w, or
    ((start + v) − start) · w if `around_start`. With `divide`, the sum is divided by the
    denominator of the ensemble at the end.
    """

    library: str  # for whom this order is known, with its version if that matters
    format: Format
    start: Vector  # (outputs,)
    weights: Vector | None = None  # (trees,), in the format
    divide: bool = False
    around_start: bool = False

    @property
    def facts(self) -> list[object]:
        """Everything that the replay depends on, as plain values."""
        weights = None if self.weights is None else self.weights.tolist()
        flags = [self.divide, self.around_start]
        return [self.library, self.format, self.start.tolist(), weights, *flags]

    def replay(self, values: Matrix, denominator: int = 1) -> Matrix:
        """Add leaf values, (people, trees, outputs), as the library does; return float64."""
        kind: Any = np.float32 if self.format == "float32" else np.float64
        start: Array = self.start.astype(kind)
        terms = np.empty((len(values), values.shape[1] + 1, len(start)), dtype=kind)
        terms[:, 0] = start
        if self.weights is None:
            terms[:, 1:] = values
        else:
            for tree in range(values.shape[1]):
                terms[:, tree + 1] = self.term(values[:, tree], tree, start)
        # Accumulation adds one term after the other in this format; a sum adds them in pairs.
        total: Array = np.add.accumulate(terms, axis=1)[:, -1]
        if self.divide:
            total = total / kind(denominator)
        return np.asarray(total, dtype=np.float64)

    def term(self, values: Matrix, tree: int, start: Array) -> Array:
        """Return what the library adds for one tree."""
        if self.weights is None:
            return values.astype(start.dtype)
        weight = self.weights[tree]
        if weight == 0:
            return np.zeros_like(values, dtype=start.dtype)
        # Exact: the product of two float32 numbers fits in float64, and so does the quotient.
        leaves = (values / weight).astype(start.dtype)
        if self.around_start:
            leaves = (start + leaves) - start
        return leaves * start.dtype.type(weight)
