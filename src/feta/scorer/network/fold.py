"""Fold: scaling and batch norm made part of the weights, rounded once; what is stored is the model.

The source keeps doing it step by step, so the sizes of the terms that cancel are kept beside the
biases, for the bound on its rounding error.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.scorer.network.network import Affine, Columns, Network


def fold_scaling(network: Network, centers: Sequence[float], scales: Sequence[float]) -> Network:
    """Make a network that expects (x − center) / scale take x itself, in people's own units."""
    first = network.first
    if not len(centers) == len(scales) == first.width:
        message = f"there must be a center and a scale for each of {first.width} columns, got {len(centers)} and {len(scales)}"
        raise NetworkError(message)
    if not (
        np.isfinite(centers).all() and np.isfinite(scales).all() and (np.array(scales) != 0).all()
    ):
        raise NetworkError("centers must be finite, and scales finite and not 0")
    tabled = [one.column for one in first.tables]
    if any(centers[column] != 0 or scales[column] != 1 for column in tabled):
        raise NetworkError(
            "a column that the network looks up in a table has neither center nor scale"
        )
    exact_centers = [Fraction(float(center)) for center in centers]
    exact_scales = [Fraction(float(scale)) for scale in scales]
    slopes, bias = np.array(first.slopes), np.array(first.bias)
    folded = np.zeros(first.outputs) + first.cancelled_magnitude
    for neuron in range(first.outputs):
        offset = Fraction(float(bias[neuron]))
        for column in range(first.width):
            if exact_centers[column] == 0 and exact_scales[column] == 1:
                continue
            slope = Fraction(float(slopes[neuron, column])) / exact_scales[column]
            offset -= slope * exact_centers[column]
            folded[neuron] += 2 * abs(float(slope * exact_centers[column]))
            slopes[neuron, column] = rounded(slope)
        folded[neuron] += abs(bias[neuron])
        bias[neuron] = rounded(offset)
    changed = [n for n in range(first.width) if exact_centers[n] != 0 or exact_scales[n] != 1]
    measured = network.measured and network.measured.without(changed)  # in other units there
    return replace(network, first=Columns(bias, slopes, first.tables, folded), measured=measured)


def fold_after(layer: Affine, factor: Fraction, shift: Fraction) -> Affine:
    """Fold factor·z + shift, which follows a layer, into that layer."""
    weight = [[rounded(Fraction(float(w)) * factor) for w in row] for row in layer.weight]
    bias = [rounded(Fraction(float(b)) * factor + shift) for b in layer.bias]
    sizes = float(abs(factor)) * (np.abs(layer.bias) + layer.cancelled_magnitude) + float(
        abs(shift)
    )
    return Affine(np.array(weight), np.array(bias), 2 * sizes)


def fold_before(scaling: Affine, weight: Matrix, bias: Vector) -> Affine:
    """Fold a layer d·x + s, value by value, into the layer W·a + b that follows it."""
    factors = [Fraction(float(one)) for one in np.diag(scaling.weight)]
    shifts = [Fraction(float(one)) for one in scaling.bias]
    layer = Affine(weight, bias)  # finite, or refused
    new_weight, new_bias = np.array(layer.weight), np.array(layer.bias)
    for row in range(len(new_bias)):
        slopes = [Fraction(float(one)) for one in weight[row]]
        new_weight[row] = [rounded(w * d) for w, d in zip(slopes, factors, strict=True)]
        moved = sum((w * s for w, s in zip(slopes, shifts, strict=True)), Fraction(0))
        new_bias[row] = rounded(Fraction(float(bias[row])) + moved)
    before = np.abs(scaling.bias) + scaling.cancelled_magnitude
    sizes = np.abs(weight) @ np.broadcast_to(before, len(factors)) + np.abs(bias)
    return Affine(new_weight, new_bias, 2 * sizes)


def fold_batch_norm(layer: Affine, norm: "BatchNorm") -> Affine:
    """Fold γ·(z − μ) / √(σ² + ε) + β, which follows a layer, into that layer."""
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
    """Round once; a number beyond float64 has no place in a network."""
    try:
        return float(number)
    except OverflowError:
        raise NetworkError(
            "folding the scaling gives a weight beyond float64; rescale the weights"
        ) from None


class BatchNorm:
    """The numbers of a batch norm in evaluation mode."""

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
                    f"a batch norm's {name} must be finite, got {got!r}; train the network again"
                )

    def factor(self, neuron: int) -> Fraction:
        """Give γ / √(σ² + ε) to 60 digits, so that the fold rounds only once."""
        spread = Fraction(float(self.variance[neuron])) + Fraction(self.epsilon)
        if spread <= 0:
            raise NetworkError(
                f"a batch norm must have variance + epsilon above 0, got {float(spread):g}"
            )
        with localcontext() as context:
            context.prec = 60
            root = (Decimal(spread.numerator) / Decimal(spread.denominator)).sqrt()
            return Fraction(float(self.gain[neuron])) / Fraction(root)
