"""Agreement: a reader's scores beside those of the source itself; where they differ, nothing is read."""

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.network import bounded
from feta.network.network import Network
from feta.rounding import AGREEMENT, FLOAT64


def check_agreement(
    network: Network, rows: Matrix, theirs: Matrix, what: str, *, rounded: bool = False
) -> float:
    """Raise unless scores equal the source's to 1e-9·(1 + Σ|terms|), and give the largest difference.

    `rounded` says that theirs were computed in the source's own format, usually float32: then the
    bound on that format's rounding error is allowed, too.
    """
    values, sizes = network.first.terms(rows, range(network.width))
    arithmetic = network.arithmetic if rounded else FLOAT64
    first = bounded.first_layer(network.first, values, sizes, arithmetic)
    *hidden, scores = bounded.forward(network, first, arithmetic)
    terms = sizes + np.abs(network.first.bias)
    if hidden:
        last = network.layers[-1]
        active = np.abs(network.activations[-1](hidden[-1].values))
        terms = active @ np.abs(last.weight).T + np.abs(last.bias)
    allowed = AGREEMENT * (1 + terms) + (scores.errors if rounded else 0.0)
    off = np.abs(scores.values - theirs.reshape(scores.values.shape))
    if not (off <= allowed).all():
        row, output = np.unravel_index(
            int(np.argmax(np.nan_to_num(off - allowed, nan=np.inf))), off.shape
        )
        message = f"FETA's scores must equal {what}, but differ by {off[row, output]:.3g} in row {row}, output {output} ({scores.values[row, output]:.6g} here); please report this model"
        raise NetworkError(message)
    return float(off.max(initial=0.0))
