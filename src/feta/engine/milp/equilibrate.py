"""Equilibrate: neurons rescaled by powers of two, so that all of them are about as large as 1.

It is the same function, exactly, and the solvers' absolute tolerances mean something again: on networks
whose neurons differ by 2^±30 all of them "prove" what is false.
"""

from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.model import Model
from feta.rounding import FLOOR
from feta.scorer.network.activation import Activation
from feta.scorer.network.network import Affine, Network

# Exponents are kept here, so that no factor and no quotient of two overflows.
LARGEST_EXPONENT = 400


@dataclass(frozen=True, slots=True, eq=False)
class Equilibrated:
    """A network, and by which factors its layers' values were multiplied; the last one is a number."""

    network: Network
    factors: tuple[Vector, ...]

    @property
    def output(self) -> float:
        """The factor of all scores."""
        return float(self.factors[-1][0])


def equilibrate(model: Model) -> Equilibrated:
    """Rescale a model's network; where a number would fall below float64, it stays as it is."""
    network = model.network
    sizes = _typical_sizes(model)
    factors = [_power(size) for size in sizes[:-1]]
    factors.append(np.full(network.outputs, _power(sizes[-1].max(keepdims=True))[0]))
    unscaled = Equilibrated(network, tuple(np.ones_like(factor) for factor in factors))
    try:
        with np.errstate(over="ignore"):
            scaled = _rescaled(network, factors)
            exact = _same(network, _rescaled(scaled, [1 / factor for factor in factors]))
    except NetworkError:  # a number beyond float64
        return unscaled
    return Equilibrated(scaled, tuple(factors)) if exact else unscaled


def _typical_sizes(model: Model) -> list[Vector]:
    """Guess how large each neuron gets, as if its terms were independent of each other."""
    first = model.network.first
    rows = [(first.slopes * model.space.magnitudes).T, first.bias[None, :]]
    rows += [np.abs(table.rows).max(axis=0)[None, :] for table in first.tables]
    sizes = [_norms(np.vstack(rows))]
    for activation, layer in model.network.steps:
        radius = activation.steepest * sizes[-1] + activation.lift
        sizes.append(_norms(np.vstack([(layer.weight * radius).T, layer.bias])))
    return sizes


def _norms(rows: Matrix) -> Vector:
    """Give each column's Euclidean norm, without overflow."""
    largest = np.maximum(np.abs(rows).max(axis=0), FLOOR)
    return np.asarray(largest * np.sqrt(((rows / largest) ** 2).sum(axis=0)))


def _power(sizes: Vector) -> Vector:
    """Give the powers of two that bring sizes near 1."""
    usable = np.isfinite(sizes) & (sizes > 0)
    exponents = np.round(np.log2(np.where(usable, sizes, 1.0)))
    return np.ldexp(1.0, -np.clip(exponents, -LARGEST_EXPONENT, LARGEST_EXPONENT).astype(np.int64))


def _rescaled(network: Network, factors: list[Vector]) -> Network:
    first = network.first
    tables = tuple(replace(one, rows=one.rows * factors[0]) for one in first.tables)
    slopes = first.slopes * factors[0][:, None]
    first = replace(first, bias=first.bias * factors[0], slopes=slopes, tables=tables)
    layers, activations = [], []
    for index, (activation, layer) in enumerate(network.steps):
        before, after = factors[index], factors[index + 1]
        activations.append(_bent(activation, before))
        layers.append(Affine(layer.weight / before * after[:, None], layer.bias * after))
    return replace(network, first=first, activations=tuple(activations), layers=tuple(layers))


def _bent(activation: Activation, factors: Vector) -> Activation:
    """Move breaks and intercepts with their neurons; slopes stay."""
    slopes = np.broadcast_to(activation.slopes, (activation.n_pieces, len(factors)))
    return Activation(
        activation.name, activation.breaks * factors, slopes, activation.intercepts * factors
    )


def _same(one: Network, other: Network) -> bool:
    pairs: list[tuple[Matrix, Matrix]] = [
        (one.first.slopes, other.first.slopes),
        (one.first.bias, other.first.bias),
        *((a.rows, b.rows) for a, b in zip(one.first.tables, other.first.tables, strict=True)),
    ]
    for (bend, layer), (bent, moved) in zip(one.steps, other.steps, strict=True):
        pairs += [(layer.weight, moved.weight), (layer.bias, moved.bias)]
        pairs += [
            (bend.breaks + 0 * bent.breaks, bent.breaks),
            (bend.intercepts + 0 * bent.intercepts, bent.intercepts),
        ]
    return all(np.array_equal(left, right) for left, right in pairs)
