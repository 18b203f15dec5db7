"""Scores of networks with smooth activations, as intervals of up to 1,024 bits (extra `smooth`).

Arb computes with balls whose radii contain all roundings. Without python-flint nothing is known:
the radii are so large that no comparison is decided.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Matrix
from feta.dyadic import Dyadic
from feta.scorer.exact_scores import ExactScores
from feta.scorer.network.activation import Activation
from feta.scorer.network.smooth.activation import Smooth

if TYPE_CHECKING:
    from feta.scorer.network.network import Network

PRECISION = 1024

# A radius beyond all scores, as a power of two.
UNKNOWN = 2000

Balls = Any  # python-flint ships no types


def is_available() -> bool:
    """Return whether python-flint is installed."""
    return find_spec("flint") is not None


def has_balls(network: "Network") -> bool:
    """Return whether the scores of a network are balls, and python-flint is installed."""
    return not network.piecewise_linear and is_available()


def smooth_scores(network: "Network", people: Matrix, bits: int = PRECISION) -> ExactScores:
    """Enclose the scores of people in balls of so many bits, (people, outputs)."""
    shape = (len(people), network.outputs)
    if not is_available():
        ones = np.ones(shape, dtype=np.int64).astype(object)
        return ExactScores(Dyadic(ones * 0, 0), Dyadic(ones, UNKNOWN))
    from feta.scorer.network.smooth.arb_functions import (  # noqa: PLC0415 - flint is an extra
        working_precision,
    )

    exact = network.exact
    values = exact.terms(people, np.arange(network.width)) + exact.bias
    with working_precision(bits):
        return _to_scores(_propagate(network, _to_balls(values)), shape)


def _propagate(network: "Network", columns: Balls) -> Balls:
    """Return the scores, one column per person, from the inputs of the first activation."""
    from flint import arb, arb_mat  # noqa: PLC0415 - an extra

    for activation, layer in network.steps:
        activated = [
            list(map(_function(activation, neuron), row))
            for neuron, row in enumerate(columns.tolist())
        ]
        weights = arb_mat([[arb(w) for w in row] for row in layer.weight.tolist()])
        biases = arb_mat([[arb(b)] * columns.ncols() for b in layer.bias.tolist()])
        columns = weights * arb_mat(activated) + biases
    return columns


def _function(activation: Activation | Smooth, neuron: int) -> Callable[[Balls], Balls]:
    """Return the function of one neuron's balls."""
    if not isinstance(activation, Smooth):
        return partial(_on_pieces, activation, neuron)
    from flint import arb  # noqa: PLC0415 - an extra

    from feta.scorer.network.smooth.arb_functions import FUNCTIONS  # noqa: PLC0415

    if not activation.applies[neuron % activation.width]:
        return lambda value: value
    function, parameter = FUNCTIONS[activation.name], arb(activation.parameter)
    return lambda value: function(value, parameter)


def _on_pieces(activation: Activation, neuron: int, value: Balls) -> Balls:
    from flint import arb  # noqa: PLC0415 - an extra

    column = neuron if activation.width > 1 else 0
    slopes, intercepts = activation.slopes[:, column], activation.intercepts[:, column]
    breaks = activation.breaks[:, column].tolist()
    first = sum(1 for at in breaks if value >= at)  # the pieces that the ball may reach
    last = sum(1 for at in breaks if not value < at)
    ends = [*breaks, float("inf")]
    result = None
    for piece in range(first, last + 1):
        part = value
        if piece > first:
            part = part.max(arb(breaks[piece - 1]))
        if piece < last:
            part = part.min(arb(ends[piece]))
        line = arb(float(slopes[piece])) * part + arb(float(intercepts[piece]))
        result = line if result is None else result.union(line)
    return result


def _to_balls(values: Dyadic) -> Balls:
    """Return exact numbers, (people, neurons), as one column per person."""
    from flint import arb, arb_mat, fmpz  # noqa: PLC0415 - an extra

    scale = arb((fmpz(1), fmpz(values.exponent)))
    return arb_mat([[arb(fmpz(int(n))) * scale for n in column] for column in values.numerators.T])


def _to_scores(columns: Balls, shape: tuple[int, int]) -> ExactScores:
    people, outputs = shape
    balls = [columns[output, person] for person in range(people) for output in range(outputs)]
    centers = [_parts(ball.mid()) if ball.is_finite() else (0, 0) for ball in balls]
    radii = [_parts(ball.rad()) if ball.is_finite() else (1, UNKNOWN) for ball in balls]
    return ExactScores(_dyadic(centers, shape), _dyadic(radii, shape))


def _parts(number: Balls) -> tuple[int, int]:
    mantissa, exponent = number.man_exp()
    return int(mantissa), int(exponent)


def _dyadic(parts: list[tuple[int, int]], shape: tuple[int, int]) -> Dyadic:
    smallest = min((exponent for mantissa, exponent in parts if mantissa), default=0)
    numbers = [mantissa << (exponent - smallest) if mantissa else 0 for mantissa, exponent in parts]
    array = np.empty(len(numbers), dtype=object)
    array[:] = numbers
    return Dyadic(array.reshape(shape), smallest)
