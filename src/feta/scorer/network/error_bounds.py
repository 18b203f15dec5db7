"""Float64 values with a proved error bound, layer by layer.

The bound covers two computations: FETA's in float64, and one in the given arithmetic with any order
of summation. The bound itself is rounded up. See `rounding.py` for the constants, and
docs/explanation/rounding.md for the proofs (lemmas 16 and 17).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Matrix, Vector
from feta.rounding import FLOOR, Arithmetic, upward
from feta.scorer.network.layers import Affine, Columns
from feta.scorer.protocol import Enclosure

if TYPE_CHECKING:
    from feta.scorer.network.network import Network


def first_layer(
    columns: Columns, values: Matrix, sizes: Matrix, arithmetic: Arithmetic
) -> Enclosure:
    """Bound a first layer, given the sums of its terms and of their absolute values."""
    n_terms = columns.width
    gamma = arithmetic.gamma(n_terms)
    total = sizes + np.abs(columns.bias) + columns.cancelled_magnitude
    errors = (gamma * total + 5 * (n_terms + 1) * arithmetic.tiny) * upward(n_terms)
    largest = np.abs(columns.slopes).max(initial=0.0)
    return _without_overflow(values + columns.bias, errors, gamma, largest, arithmetic)


def forward(network: "Network", first: Enclosure, arithmetic: Arithmetic) -> Iterator[Enclosure]:
    """Yield the inputs of each activation, and last the scores."""
    bounded = first
    yield bounded
    for activation, layer in network.steps:
        bounded = affine(layer, activation.enclose(bounded, arithmetic), arithmetic)
        yield bounded


def scores(network: "Network", first: Enclosure, arithmetic: Arithmetic) -> Enclosure:
    """Compute the scores."""
    bounded = first
    for bounded in forward(network, first, arithmetic):  # noqa: B007 - the last one is returned
        pass
    return bounded


def affine(layer: Affine, inputs: Enclosure, arithmetic: Arithmetic) -> Enclosure:
    """Bound the values of a layer; the errors depend on absolute values only."""
    n_terms = layer.weight.shape[1]
    gamma = arithmetic.gamma(n_terms)
    values = inputs.values @ layer.weight.T + layer.bias
    # |W|·e is the error of the inputs, γ·(|W|·|a| + |b|) the error that this layer adds. The
    # inputs of the source may have the error e in the other direction, hence 2·e.
    weights = np.abs(layer.weight)
    radius = np.abs(inputs.values) + 2 * inputs.errors
    errors = (inputs.errors + gamma * radius + arithmetic.tiny) @ (weights + FLOOR).T
    errors += (
        gamma * (np.abs(layer.bias) + layer.cancelled_magnitude)
        + 5 * (n_terms + 1) * arithmetic.tiny
    )
    errors *= upward(n_terms)
    return _without_overflow(values, errors, gamma, weights.max(), arithmetic)


def _without_overflow(
    values: Matrix, errors: Matrix, gamma: float, largest: float, arithmetic: Arithmetic
) -> Enclosure:
    """Make the bound infinite where a partial sum or a weight may overflow the arithmetic.

    errors ≥ γ·Σ|terms|, so errors / γ bounds every partial sum.
    """
    if largest > arithmetic.huge:
        return Enclosure(values, np.full_like(errors, np.inf))
    return Enclosure(values, np.where(errors <= gamma * arithmetic.huge, errors, np.inf))


def largest_activations(network: "Network", magnitudes: Vector) -> Iterator[Vector]:
    """Bound the absolute values in each layer, from the magnitudes of the columns."""
    first = network.first
    largest = np.abs(first.slopes) @ magnitudes + np.abs(first.bias)
    for table in first.tables:
        largest = largest + np.abs(table.rows).max(axis=0)
    yield largest
    for activation, layer in network.steps:
        radius = activation.steepest * largest + activation.lift
        largest = np.abs(layer.weight) @ radius + np.abs(layer.bias)
        yield largest


def largest_error(network: "Network", magnitudes: Vector, arithmetic: Arithmetic) -> float:
    """Bound the error of all scores over a whole space, from the magnitudes of the columns.

    Each layer has one bound, the largest of its neurons'. This is coarse, but it takes a few sums
    for any number of points.
    """
    first = network.first
    terms = (np.abs(first.slopes) + FLOOR) @ (magnitudes + FLOOR)
    for table in first.tables:
        terms = terms + np.abs(table.rows).max(axis=0)
    size = float((terms + np.abs(first.bias) + first.cancelled_magnitude).max())
    error = arithmetic.gamma(first.width) * size + 5 * (first.width + 1) * arithmetic.tiny
    error *= upward(first.width)
    for activation, layer in network.steps:
        steepest, n_terms = float(activation.steepest.max()), layer.weight.shape[1]
        size = (steepest + FLOOR) * (size + error) + float(activation.lift.max())
        error *= steepest * (1 + 4 * arithmetic.unit)
        if activation.rounds:
            error += arithmetic.gamma(1) * size + 5 * arithmetic.tiny
        weights = float((np.abs(layer.weight) + FLOOR).sum(axis=1).max()) * upward(n_terms)
        bias = float((np.abs(layer.bias) + layer.cancelled_magnitude).max())
        gamma = arithmetic.gamma(n_terms)
        error = (error + gamma * (size + 2 * error) + arithmetic.tiny) * weights + gamma * bias
        error = (error + 5 * (n_terms + 1) * arithmetic.tiny) * upward(n_terms)
        size = weights * size + bias
    return error
