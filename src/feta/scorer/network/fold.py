"""Scaling and batch norm folded into the weights, rounded once; the stored weights are the model.

The source still computes these steps one by one. The magnitudes of the terms that cancel are
therefore stored with the biases, for the bound on its rounding error.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError, SchemaError
from feta.scorer.network.embedding import embedded_inputs, expanded
from feta.scorer.network.layers import Affine, Columns
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace


def fold_scaling(network: Network, centers: Sequence[float], scales: Sequence[float]) -> Network:
    """Return a network of raw x from a network that expects (x − center) / scale."""
    first = network.first
    if not len(centers) == len(scales) == first.width:
        raise NetworkError(
            f"wrong number of centers or scales: got {len(centers)} and {len(scales)}; expected "
            f"{first.width} of each, one per column"
        )
    for column, (center, scale) in enumerate(zip(centers, scales, strict=True)):
        if not (np.isfinite(center) and np.isfinite(scale) and scale != 0):
            raise NetworkError(
                f"invalid scaling of column {column}: got the center {float(center)!r} and the "
                f"scale {float(scale)!r}; expected finite numbers, and a scale other than 0"
            )
    for column in (table.column for table in first.tables):
        if centers[column] != 0 or scales[column] != 1:
            raise NetworkError(
                f"invalid scaling of column {column}: got the center {float(centers[column])!r} "
                f"and the scale {float(scales[column])!r}; expected neither, "
                "because the network looks up the column in a table"
            )
    exact_centers = [Fraction(float(center)) for center in centers]
    exact_scales = [Fraction(float(scale)) for scale in scales]
    slopes, bias = np.array(first.slopes), np.array(first.bias)
    cancelled = np.zeros(first.outputs) + first.cancelled_magnitude
    for neuron in range(first.outputs):
        offset = Fraction(float(bias[neuron]))
        for column in range(first.width):
            if exact_centers[column] == 0 and exact_scales[column] == 1:
                continue
            slope = Fraction(float(slopes[neuron, column])) / exact_scales[column]
            offset -= slope * exact_centers[column]
            cancelled[neuron] += 2 * abs(float(slope * exact_centers[column]))
            slopes[neuron, column] = rounded(slope)
        cancelled[neuron] += abs(bias[neuron])
        bias[neuron] = rounded(offset)
    changed = [n for n in range(first.width) if exact_centers[n] != 0 or exact_scales[n] != 1]
    measured = network.measured and network.measured.without(changed)  # their units change
    return replace(network, first=Columns(bias, slopes, first.tables, cancelled), measured=measured)


def unscaled(
    network: Network, space: FeatureSpace, centers: Sequence[float], scales: Sequence[float]
) -> Network:
    """Return the network for the raw columns of a space; raise if it does not fit them."""
    inputs = embedded_inputs(network)
    network = expanded(network, space)
    if network.width != space.width:
        raise SchemaError(
            "the network has the wrong number of inputs for the schema: "
            f"got {network.width}; expected {space.width}, one per number and one per "
            f"value of a category{inputs}"
        )
    _check_embedded(network, space, centers, scales)
    try:
        return fold_scaling(network, centers, scales)
    except OverflowError:
        raise SchemaError(
            "center and scale are too extreme: some weights of the network grow beyond "
            "float64; correct them"
        ) from None


def _check_embedded(
    network: Network, space: FeatureSpace, centers: Sequence[float], scales: Sequence[float]
) -> None:
    """Reject the scaling of a column that the network embeds: a table has no slope to scale."""
    for table in network.first.tables:
        center, scale = centers[table.column], scales[table.column]
        if center != 0 or scale != 1:
            starts = {
                space.columns_of(attribute).start: attribute.name for attribute in space.attributes
            }
            raise SchemaError(
                f"column {starts[table.column]!r} is scaled: got center {center!r} and scale "
                f"{scale!r}; expected neither center nor scale, because the network embeds "
                "the column; remove them"
            )


def fold_after(layer: Affine, factor: Fraction, shift: Fraction) -> Affine:
    """Fold factor·z + shift into the layer before it."""
    weight = [[rounded(Fraction(float(w)) * factor) for w in row] for row in layer.weight]
    bias = [rounded(Fraction(float(b)) * factor + shift) for b in layer.bias]
    sizes = float(abs(factor)) * (np.abs(layer.bias) + layer.cancelled_magnitude) + float(
        abs(shift)
    )
    return Affine(np.array(weight), np.array(bias), 2 * sizes)


def fold_before(scaling: Affine, weight: Matrix, bias: Vector) -> Affine:
    """Fold an elementwise layer d·x + s into the layer W·a + b after it."""
    factors = [Fraction(float(factor)) for factor in np.diag(scaling.weight)]
    shifts = [Fraction(float(shift)) for shift in scaling.bias]
    layer = Affine(weight, bias)  # checks that all numbers are finite
    new_weight, new_bias = np.array(layer.weight), np.array(layer.bias)
    for row in range(len(new_bias)):
        slopes = [Fraction(float(slope)) for slope in weight[row]]
        new_weight[row] = [rounded(w * d) for w, d in zip(slopes, factors, strict=True)]
        offset = sum((w * s for w, s in zip(slopes, shifts, strict=True)), Fraction(0))
        new_bias[row] = rounded(Fraction(float(bias[row])) + offset)
    before = np.abs(scaling.bias) + scaling.cancelled_magnitude
    sizes = np.abs(weight) @ np.broadcast_to(before, len(factors)) + np.abs(bias)
    return Affine(new_weight, new_bias, 2 * sizes)


def fold_batch_norm(layer: Affine, norm: "BatchNorm") -> Affine:
    """Fold γ·(z − μ) / √(σ² + ε) + β into the layer before it."""
    weight, bias = np.array(layer.weight), np.array(layer.bias)
    before = np.abs(layer.bias) + layer.cancelled_magnitude + np.abs(norm.mean)
    sizes = np.zeros(len(bias))
    for neuron in range(len(bias)):
        factor, shift = norm.factor(neuron), Fraction(float(norm.shift[neuron]))
        centered = Fraction(float(layer.bias[neuron])) - Fraction(float(norm.mean[neuron]))
        weight[neuron] = [rounded(Fraction(float(w)) * factor) for w in layer.weight[neuron]]
        bias[neuron] = rounded(centered * factor + shift)
        sizes[neuron] = 2 * (rounded(abs(factor)) * before[neuron] + float(abs(shift)))
    return Affine(weight, bias, sizes)


def rounded(number: Fraction) -> float:
    """Round to float64; raise a NetworkError if the number is too large."""
    try:
        return float(number)
    except OverflowError:
        raise NetworkError(
            "invalid weight after folding the scaling: got a number beyond float64; rescale the "
            "weights"
        ) from None


class BatchNorm:
    """The parameters of a batch norm in evaluation mode."""

    def __init__(
        self, mean: Vector, variance: Vector, gain: Vector, shift: Vector, epsilon: float
    ) -> None:
        self.mean, self.variance, self.gain, self.shift = mean, variance, gain, shift
        self.epsilon = epsilon
        for name in ("mean", "variance", "gain", "shift", "epsilon"):
            numbers = np.ravel(getattr(self, name))
            if not np.isfinite(numbers).all():
                got = float(numbers[~np.isfinite(numbers)][0])
                raise NetworkError(
                    f"invalid {name} of a batch norm: got {got!r}; expected finite numbers; "
                    "train the network again"
                )

    def factor(self, neuron: int) -> Fraction:
        """Return γ / √(σ² + ε) to 60 digits, so that the fold rounds only once."""
        spread = Fraction(float(self.variance[neuron])) + Fraction(self.epsilon)
        if spread <= 0:
            raise NetworkError(
                f"invalid batch norm: got variance + epsilon = {float(spread):g}; expected more "
                "than 0"
            )
        with localcontext() as context:
            context.prec = 60
            root = (Decimal(spread.numerator) / Decimal(spread.denominator)).sqrt()
            return Fraction(float(self.gain[neuron])) / Fraction(root)
