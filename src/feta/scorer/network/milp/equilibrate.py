"""Rescaling of neurons by powers of two, so that all values have a magnitude of about 1.

The function stays exactly the same, and the solvers' absolute tolerances become meaningful. On
networks whose neurons differ by 2^±30, all solvers "prove" false claims.
"""

from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.rounding import FLOOR
from feta.scorer.network.activation import Activation
from feta.scorer.network.layers import Affine
from feta.scorer.network.network import Network

# Exponents are limited, so that no factor and no quotient of two factors overflows.
LARGEST_EXPONENT = 400


@dataclass(frozen=True, slots=True, eq=False)
class Equilibrated:
    """A rescaled network and the factors of its layers' values; all scores have one factor."""

    network: Network
    factors: tuple[Vector, ...]

    @property
    def output(self) -> float:
        """The factor of all scores."""
        return float(self.factors[-1][0])


def equilibrate(network: Network, magnitudes: Vector) -> Equilibrated:
    """Rescale a network for columns of these magnitudes; unscaled if that would round a number."""
    sizes = _typical_sizes(network, magnitudes)
    factors = [_power(size) for size in sizes[:-1]]
    factors.append(np.full(network.outputs, _power(sizes[-1].max(keepdims=True))[0]))
    unscaled = Equilibrated(network, tuple(np.ones_like(factor) for factor in factors))
    try:
        with np.errstate(over="ignore"):
            scaled = _rescaled(network, factors)
            restored = _rescaled(scaled, [1 / factor for factor in factors])
            exact = _has_equal_numbers(network, restored)
    except NetworkError:  # a number overflowed
        return unscaled
    return Equilibrated(scaled, tuple(factors)) if exact else unscaled


def _typical_sizes(network: Network, magnitudes: Vector) -> list[Vector]:
    """Estimate the magnitude of each neuron, as if its terms were independent."""
    first = network.first
    rows = [(first.slopes * magnitudes).T, first.bias[None, :]]
    rows += [np.abs(table.rows).max(axis=0)[None, :] for table in first.tables]
    sizes = [_norms(np.vstack(rows))]
    for activation, layer in network.steps:
        radius = activation.steepest * sizes[-1] + activation.lift
        sizes.append(_norms(np.vstack([(layer.weight * radius).T, layer.bias])))
    return sizes


def _norms(rows: Matrix) -> Vector:
    """Return each column's Euclidean norm, without overflow."""
    largest = np.maximum(np.abs(rows).max(axis=0), FLOOR)
    return np.asarray(largest * np.sqrt(((rows / largest) ** 2).sum(axis=0)))


def _power(sizes: Vector) -> Vector:
    """Return the powers of two that scale sizes to about 1."""
    usable = np.isfinite(sizes) & (sizes > 0)
    exponents = np.round(np.log2(np.where(usable, sizes, 1.0)))
    return np.ldexp(1.0, -np.clip(exponents, -LARGEST_EXPONENT, LARGEST_EXPONENT).astype(np.int64))


def _rescaled(network: Network, factors: list[Vector]) -> Network:
    first = network.first
    tables = tuple(replace(table, rows=table.rows * factors[0]) for table in first.tables)
    slopes = first.slopes * factors[0][:, None]
    first = replace(first, bias=first.bias * factors[0], slopes=slopes, tables=tables)
    layers, activations = [], []
    for index, (activation, layer) in enumerate(network.piecewise_steps):
        before, after = factors[index], factors[index + 1]
        activations.append(_rescaled_activation(activation, before))
        layers.append(Affine(layer.weight / before * after[:, None], layer.bias * after))
    return replace(network, first=first, activations=tuple(activations), layers=tuple(layers))


def _rescaled_activation(activation: Activation, factors: Vector) -> Activation:
    """Scale breaks and intercepts with their neurons; slopes do not change."""
    slopes = np.broadcast_to(activation.slopes, (activation.n_pieces, len(factors)))
    return Activation(
        activation.name, activation.breaks * factors, slopes, activation.intercepts * factors
    )


def _has_equal_numbers(network: Network, other: Network) -> bool:
    first, other_first = network.first, other.first
    pairs: list[tuple[Matrix, Matrix]] = [
        (first.slopes, other_first.slopes),
        (first.bias, other_first.bias),
        *((a.rows, b.rows) for a, b in zip(first.tables, other_first.tables, strict=True)),
    ]
    for (before, layer), (after, other_layer) in zip(network.steps, other.steps, strict=True):
        pairs += [(layer.weight, other_layer.weight), (layer.bias, other_layer.bias)]
        # Adding zeros gives both the same shape.
        pairs += [
            (before.breaks + 0 * after.breaks, after.breaks),
            (before.intercepts + 0 * after.intercepts, after.intercepts),
        ]
    return all(np.array_equal(left, right) for left, right in pairs)
