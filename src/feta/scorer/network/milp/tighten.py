"""Bounds of neurons by linear programs over the layers before them, as in Planet.

There are two programs per neuron, one for each side. A solver's optimum is not taken as a bound.
Weak duality gives one for any duals; it is computed here and rounded outward.
"""

from collections.abc import Callable

import numpy as np

from feta.arrays import Flags, Vector
from feta.bounds import linear
from feta.bounds.first_layer import FirstLayer
from feta.bounds.linear import Layer
from feta.bounds.relaxation import stable_pieces
from feta.interval_box import IntervalBox
from feta.program import Indices, Program, ProgramBuilder
from feta.rounding import FLOAT64, FLOOR, upward
from feta.scorer.network.milp.encoding import encode_attribute, encode_layers
from feta.scorer.network.milp.equilibrate import Equilibrated
from feta.scorer.network.network import Network
from feta.scorer.program_encoder import LpSession


def tighten(
    network: Network,
    scaled: Equilibrated,
    first: FirstLayer,
    hidden: list[IntervalBox],
    lp_session: Callable[[], LpSession],
) -> list[IntervalBox]:
    """Bound all layers over one cell: linear bounds, then programs for unstable neurons."""
    boxes, layers = hidden[:1], []
    for depth, activation in enumerate(network.activations, start=1):
        layers.append(Layer.of(activation, boxes[-1]))
        box = linear.next_box(network, first, layers)
        box = box & hidden[depth] if depth < len(hidden) else box
        program, z = _relaxation(scaled, first, [*boxes, box])
        unstable = _unstable(network, box, depth)
        boxes.append(
            _tightened(
                lp_session(), program, z, box, factors=scaled.factors[depth], unstable=unstable
            )
        )
    return boxes


def _unstable(network: Network, box: IntervalBox, depth: int) -> Flags:
    """Return the neurons worth a program: those that may be on several pieces, and all scores."""
    if depth == len(network.layers):
        return np.ones(box.lower.shape[1], dtype=bool)
    return ~np.asarray(stable_pieces(network.activations[depth], box)[1][0], dtype=bool)


def _relaxation(
    scaled: Equilibrated, first: FirstLayer, boxes: list[IntervalBox]
) -> tuple[Program, Indices]:
    builder = ProgramBuilder()
    attributes = range(len(first.terms.each))
    inputs = tuple(encode_attribute(builder, first, index, listed=False) for index in attributes)
    z, _ = encode_layers(builder, scaled, first, boxes, inputs)
    return builder.program(), z


def _tightened(
    session: LpSession,
    program: Program,
    z: Indices,
    box: IntervalBox,
    *,
    factors: Vector,
    unstable: Flags,
) -> IntervalBox:
    lower, upper = np.array(box.lower), np.array(box.upper)
    keep = False
    for neuron in np.flatnonzero(unstable):
        for sign in (1.0, -1.0):
            cost = np.zeros(len(program.cost))
            cost[z[neuron]] = sign
            duals = session.solve_lp(program, cost, keep=keep)
            keep = True
            bound = dual_bound(program, cost, duals) / factors[neuron]
            if sign > 0:
                lower[0, neuron] = max(lower[0, neuron], bound)
            else:
                upper[0, neuron] = min(upper[0, neuron], -bound)
    return IntervalBox(lower, upper)


def dual_bound(program: Program, cost: Vector, duals: Vector) -> float:
    """Return a lower bound of cost · x over all x that the program represents, for any duals y.

    cost · x = y · (A·x) + (cost − Aᵀ·y) · x, and the limits bound both terms. A dual whose limit is
    infinite is set to 0.
    """
    limits, box = program.limits, program.columns
    if duals.shape != program.slack.shape or not np.isfinite(duals).all():
        return -np.inf
    y = np.where(np.isfinite(np.where(duals > 0, limits.lower, limits.upper)), duals, 0.0)
    at = np.where(y > 0, limits.lower, limits.upper)
    at = np.where(y == 0, 0.0, at)
    weights = program.entries * y[program.entry_rows]
    products = np.bincount(program.entry_columns, weights, len(cost))  # Aᵀ·y
    sizes = np.bincount(program.entry_columns, np.abs(weights), len(cost)) + np.abs(cost)
    rest = cost - products
    lowest = y @ at + np.minimum(rest * box.lower, rest * box.upper).sum()
    # Every sum above has at most this many terms, each with its own rounding error.
    n_terms = len(y) + len(cost) + 4
    size = (np.abs(y) + FLOOR) @ (np.abs(at) + FLOOR) + (sizes + FLOOR) @ (box.size + FLOOR)
    error = np.abs(y) @ program.slack * upward(n_terms) + FLOAT64.gamma(n_terms) * size
    return float(lowest - (error + n_terms * FLOAT64.tiny) * upward(n_terms))
