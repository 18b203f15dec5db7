"""Comparison of a reader's scores with those of the source."""

from dataclasses import replace
from typing import Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.rounding import AGREEMENT, FLOAT64
from feta.scorer.network import error_bounds
from feta.scorer.network.network import InverseLink, Network

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
    """Compare scores with the source's, and return the largest difference.

    Raise a NetworkError if they differ by more than 1e-9·(1 + Σ|terms|). `rounded` means that
    `theirs` were computed in the source's format, usually float32; then the bound on its rounding
    error is added. `squash` is the last function of the source, which `theirs` include.
    """
    values, sizes = network.first.terms(rows, range(network.width))
    arithmetic = network.arithmetic if rounded else FLOAT64
    first = error_bounds.first_layer(network.first, values, sizes, arithmetic)
    *hidden, scores = error_bounds.forward(network, first, arithmetic)
    terms = sizes + np.abs(network.first.bias)
    if hidden:
        last = network.layers[-1]
        activated = np.abs(network.activations[-1](hidden[-1].values))
        terms = activated @ np.abs(last.weight).T + np.abs(last.bias)
    allowed = AGREEMENT * (1 + terms) + (scores.errors if rounded else 0.0)
    ours = squashed(scores.values, squash)
    if theirs.size != ours.size:
        raise NetworkError(
            f"wrong number of outputs of the source: got {theirs.size / len(ours):g} per row; "
            f"expected {ours.shape[1]}"
        )
    difference = np.abs(ours - theirs.reshape(ours.shape))
    if not (difference <= allowed).all():
        excess = np.nan_to_num(difference - allowed, nan=np.inf)
        row, output = np.unravel_index(int(np.argmax(excess)), difference.shape)
        raise NetworkError(
            f"FETA's scores differ from {what} by {difference[row, output]:.3g}: got "
            f"{ours[row, output]:.6g} in row {row}, output {output}; expected a difference of at "
            f"most {allowed[row, output]:.3g}; please report this model"
        )
    return float(difference.max(initial=0.0))


def squashed(scores: Matrix, kind: Squash | None) -> Matrix:
    """Apply the last function of a source to scores."""
    if kind is None:
        return scores
    if kind == "sigmoid":
        return np.asarray((1 + np.tanh(scores / 2)) / 2)  # this form of σ cannot overflow
    below = scores - scores.max(axis=1, keepdims=True)
    total = np.exp(below).sum(axis=1, keepdims=True)
    return np.asarray(np.exp(below) / total if kind == "softmax" else below - np.log(total))


def with_log_softmax(network: Network) -> Network:
    """Add the rounding of a last LogSoftmax, which shifts all scores equally, to the last layer."""
    return with_magnitude(network, 2.0 + float(np.log(network.outputs)))


def with_magnitude(network: Network, size: float) -> Network:
    """Add a magnitude to the terms that the source rounds in its last layer."""
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


def with_inverse_link(network: Network, link: InverseLink) -> Network:
    """Return a network whose source predicts the inverse link of its score, rounded.

    The roundings of exp move a score by at most SIGMOID_ULPS units, as does one more term of size
    1. Those of Φ do so at a score of 0, where its slope is 0.4.
    """
    return replace(with_magnitude(network, 1.0), inverse_link=link)
