"""Agreement: a reader's scores beside those of the source itself; where they differ, nothing is read."""

from dataclasses import replace
from typing import Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.rounding import AGREEMENT, FLOAT64
from feta.scorer.network import error_bounds
from feta.scorer.network.network import Network

Squash = Literal["sigmoid", "softmax", "log_softmax"]


def check_agreement(
    network: Network,
    rows: Matrix,
    theirs: Matrix,
    what: str,
    *,
    rounded: bool = False,
    squash: Squash | None = None,
) -> float:
    """Raise unless scores equal the source's to 1e-9·(1 + Σ|terms|), and give the largest difference.

    `rounded` says that theirs were computed in the source's own format, usually float32: then the
    bound on that format's rounding error is allowed, too. `squash` is what the source does to its
    scores at the end; all of them move by no more than the scores do.
    """
    values, sizes = network.first.terms(rows, range(network.width))
    arithmetic = network.arithmetic if rounded else FLOAT64
    first = error_bounds.first_layer(network.first, values, sizes, arithmetic)
    *hidden, scores = error_bounds.forward(network, first, arithmetic)
    terms = sizes + np.abs(network.first.bias)
    if hidden:
        last = network.layers[-1]
        active = np.abs(network.activations[-1](hidden[-1].values))
        terms = active @ np.abs(last.weight).T + np.abs(last.bias)
    allowed = AGREEMENT * (1 + terms) + (scores.errors if rounded else 0.0)
    ours = squashed(scores.values, squash)
    if theirs.size != ours.size:
        message = (
            f"the source must give {ours.shape[1]} outputs a row, got {theirs.size / len(ours):g}"
        )
        raise NetworkError(message)
    off = np.abs(ours - theirs.reshape(ours.shape))
    if not (off <= allowed).all():
        row, output = np.unravel_index(
            int(np.argmax(np.nan_to_num(off - allowed, nan=np.inf))), off.shape
        )
        message = f"FETA's scores must equal {what}, but differ by {off[row, output]:.3g} in row {row}, output {output} ({ours[row, output]:.6g} here); please report this model"
        raise NetworkError(message)
    return float(off.max(initial=0.0))


def squashed(scores: Matrix, kind: Squash | None) -> Matrix:
    """Do to scores what a source does to them at its end."""
    if kind is None:
        return scores
    if kind == "sigmoid":
        return np.asarray((1 + np.tanh(scores / 2)) / 2)  # σ, which cannot overflow like this
    below = scores - scores.max(axis=1, keepdims=True)
    total = np.exp(below).sum(axis=1, keepdims=True)
    return np.asarray(np.exp(below) / total if kind == "softmax" else below - np.log(total))


def with_log_softmax(network: Network) -> Network:
    """Count the rounding of a last LogSoftmax, which moves all scores alike, beside the last bias."""
    size = 2.0 + np.log(network.outputs)
    if not network.layers:
        first = network.first
        return replace(
            network, first=replace(first, cancelled_magnitude=first.cancelled_magnitude + size)
        )
    *before, last = network.layers
    return replace(
        network,
        layers=(*before, replace(last, cancelled_magnitude=last.cancelled_magnitude + size)),
    )
