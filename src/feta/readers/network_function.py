"""Networks that are counted: the network's own outputs for rows of encoded columns."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from feta.arrays import Array, Matrix, Vector
from feta.rounding import AGREEMENT_NETWORK_FLOAT32

# What the outputs of a network are, by its last function.
End = Literal["scores", "sigmoid", "softmax", "unknown"]


@dataclass(frozen=True, slots=True, eq=False)
class NetworkFunction:
    """The outputs of a network, as a function of encoded rows.

    A last sigmoid gives the probability p of the second of two classes. The function then returns
    1 − p and p, as `predict_proba` does.
    """

    label: str  # what is evaluated, for messages
    outputs: Callable[[Matrix], Matrix]  # (rows, outputs)
    end: End
    single: bool  # whether the network computes in float32
    reads_encoded_rows: bool = True

    @property
    def gives_shares(self) -> bool:
        """Whether the answers are one probability per class."""
        return self.end in ("sigmoid", "softmax")

    @property
    def rounding(self) -> float | None:
        """The relative error of the answers; None for that of float64."""
        return AGREEMENT_NETWORK_FLOAT32 if self.single else None

    def scaled(self, centers: Vector, scales: Vector) -> "NetworkFunction":
        """Return the function of raw columns, for a network of scaled ones."""
        outputs = self.outputs
        return replace(self, outputs=lambda rows: outputs((rows - centers) / scales))

    def __call__(self, rows: Matrix) -> Array:
        """Return the network's answers, (rows, answers)."""
        outputs = np.asarray(self.outputs(rows), dtype=np.float64)
        if self.end != "sigmoid" or outputs.shape[1] != 1:
            return outputs
        return np.concatenate([1 - outputs, outputs], axis=1)
