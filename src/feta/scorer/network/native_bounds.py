"""Scores with error bounds from the compiled kernel: `error_bounds.py` for few people.

The kernel multiplies and adds what is computed here. The bounds hold for any order of summation, so
both ways are correct; their last bits may differ.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Array, Matrix, Vector
from feta.rounding import FLOOR, Arithmetic, upward
from feta.scorer.native import native
from feta.scorer.network.table_rows import table_rows
from feta.scorer.protocol import Enclosure

if TYPE_CHECKING:
    from feta.scorer.network.activation import Activation
    from feta.scorer.network.layers import Affine, Columns
    from feta.scorer.network.network import Network


class NativeBounds:
    """A network in the float64 arithmetic of the kernel, for each arithmetic of a source."""

    def __init__(self, network: "Network") -> None:
        self.network = network
        self._chains: dict[Arithmetic, Any] = {}

    def __reduce__(self) -> "tuple[type[NativeBounds], tuple[Network]]":
        """Leave out the compiled objects, which a copy builds again."""
        return NativeBounds, (self.network,)

    def scores(self, people: Matrix, arithmetic: Arithmetic) -> Enclosure | None:
        """Compute the scores of people; None without a kernel, or if an activation is smooth."""
        if native is None or not self.network.piecewise_linear:
            return None
        chain = self._chains.get(arithmetic)
        if chain is None:
            chain = self._chains[arithmetic] = _chain(self.network, arithmetic)
        people = np.ascontiguousarray(people, dtype=np.float64)
        values, errors = chain.scores(people, table_rows(self.network.first, people))
        return Enclosure(values, errors)


def _chain(network: "Network", arithmetic: Arithmetic) -> Any:  # noqa: ANN401 - compiled
    first = network.first
    slopes = np.ascontiguousarray(first.slopes.T)
    chain = native.BoundedChain(
        slopes,
        np.abs(slopes) + FLOOR,
        FLOOR,
        first.bias,
        *_first_bound(first, arithmetic),
    )
    for table in first.tables:
        chain.add_table(np.ascontiguousarray(table.rows))
    for activation, layer in network.piecewise_steps:
        chain.add_layer(*_activation(activation, layer, arithmetic), *_affine(layer, arithmetic))
    return chain


def _first_bound(first: "Columns", arithmetic: Arithmetic) -> tuple[Vector, Vector]:
    n_terms, gamma = first.width, arithmetic.gamma(first.width)
    constants = gamma * (np.abs(first.bias) + first.cancelled_magnitude)
    constants = constants + 5 * (n_terms + 1) * arithmetic.tiny
    largest = float(np.abs(first.slopes).max(initial=0.0))
    return constants, _numbers(n_terms, largest, arithmetic)


def _activation(activation: "Activation", layer: "Affine", arithmetic: Arithmetic) -> list[object]:
    width = layer.weight.shape[1]
    steepest = _wide(activation.steepest, width)
    factors = np.ones(width)
    if (activation.steepest != 1.0).any():
        factors = steepest * (1 + 4 * arithmetic.unit)
    reach, lift = np.zeros(0), np.zeros(0)
    if activation.rounds:
        reach, lift = steepest + FLOOR, _wide(activation.lift, width)
    pieces = (activation.breaks, activation.slopes, activation.intercepts)
    arrays = [_wide(array, (len(array), width)) for array in pieces]
    bounds = (factors, reach, lift, arithmetic.gamma(1), 5 * arithmetic.tiny)
    return [activation.is_relu, *arrays, *bounds]


def _affine(layer: "Affine", arithmetic: Arithmetic) -> list[object]:
    n_terms = layer.weight.shape[1]
    weights = np.ascontiguousarray(layer.weight.T)
    constants = arithmetic.gamma(n_terms) * (np.abs(layer.bias) + layer.cancelled_magnitude)
    constants = constants + 5 * (n_terms + 1) * arithmetic.tiny
    numbers = _numbers(n_terms, float(np.abs(weights).max()), arithmetic)
    return [weights, np.abs(weights) + FLOOR, layer.bias, constants, numbers]


def _numbers(n_terms: int, largest: float, arithmetic: Arithmetic) -> Vector:
    """Return gamma, tiny, the factor upward, and the limit above which a sum may overflow."""
    gamma = arithmetic.gamma(n_terms)
    limit = gamma * arithmetic.huge if largest <= arithmetic.huge else -1.0
    return np.array([gamma, arithmetic.tiny, upward(n_terms), limit])


def _wide(array: Array, shape: int | tuple[int, int]) -> Array:
    return np.ascontiguousarray(np.broadcast_to(array, shape))
