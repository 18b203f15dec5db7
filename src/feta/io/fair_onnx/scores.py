"""The scores of all counterparts, with one error bound per person, as ONNX operators.

The bound is the one of `scorer/network/error_bounds.py`, which docs/explanation/rounding.md proves
(lemmas 16 and 17), applied to the largest absolute value
that any counterpart has in a neuron. The formulas grow with these values, so the bound holds for
every counterpart. It is computed in the graph's own arithmetic; the same factors cover its
rounding, with the unit of that arithmetic.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Counts, Vector
from feta.errors import NetworkError
from feta.io.fair_onnx.graph import Graph, rounded
from feta.io.fair_onnx.people import SharedColumns
from feta.relation.protocol import Relation
from feta.rounding import FLOOR, upward
from feta.scorer.network.activation import Activation
from feta.scorer.network.error_bounds import largest_activations
from feta.scorer.network.evaluation import Tabulated
from feta.scorer.network.layers import Affine, LookupTable
from feta.scorer.network.network import Network


@dataclass(frozen=True, slots=True)
class GraphScores:
    """Names of values: scores (rows, counterparts, outputs) and their errors (rows, outputs)."""

    values: str
    errors: str
    listed: tuple[str, ...]  # flags (rows,): the values of tabled columns are in their tables


def counterpart_scores(
    graph: Graph, network: Network, relation: Relation, *, columns: SharedColumns, ids: Counts
) -> GraphScores:
    """Add the scores of the counterparts with these assignments, and their error bounds."""
    values, errors, listed = _first_layer(graph, network, relation, columns, ids)
    for activation, layer in network.piecewise_steps:
        width = layer.weight.shape[1]
        values, errors = _activate(graph, activation, values, errors, width=width)
        values, errors = _affine(graph, layer, values, errors)
    return GraphScores(values, errors, listed)


def _first_layer(
    graph: Graph, network: Network, relation: Relation, columns: SharedColumns, ids: Counts
) -> tuple[str, str, tuple[str, ...]]:
    """Add c + T: the terms of the shared columns, and a table of all assignments."""
    first, arithmetic = network.first, graph.arithmetic
    assignment_values, assignment_sizes = Tabulated(network.exact, relation).terms(ids)
    slopes = first.slopes[:, columns.columns]
    shared = graph.apply("Gemm", "people", graph.nearest(slopes.T), graph.nearest(first.bias))
    sizes = graph.plus(graph.apply("Abs", "people"), graph.upward(FLOOR))
    sizes = graph.apply("MatMul", sizes, graph.above((np.abs(slopes) + FLOOR).T))
    listed: list[str] = []
    for table in first.tables:
        position = np.flatnonzero(columns.columns == table.column)
        if position.size:
            chosen, found = _lookup(graph, table, int(position[0]))
            listed.append(found)
            shared = graph.apply(
                "Add", shared, graph.apply("MatMul", chosen, graph.nearest(table.rows))
            )
            more = graph.apply("MatMul", chosen, graph.above(np.abs(table.rows)))
            sizes = graph.apply("Add", sizes, more)
    constant = assignment_sizes.max(axis=0) + np.abs(first.bias) + first.cancelled_magnitude
    total = graph.plus(sizes, graph.upward(constant))
    underflow = 5 * (first.width + 1) * arithmetic.tiny
    errors = _times(graph, total, arithmetic.gamma(first.width), width=first.outputs)
    errors = graph.plus(errors, graph.upward(underflow))
    errors = _covered(graph, errors, first.width, width=first.outputs)
    values = graph.apply("Unsqueeze", shared, graph.store([1]))
    values = graph.plus(values, graph.rounded(assignment_values[None]))
    return values, errors, tuple(listed)


def _lookup(graph: Graph, table: LookupTable, position: int) -> tuple[str, str]:
    """Return the row of a table as 1 and 0, and whether the value is one of the table."""
    numbers = rounded(table.numbers, graph.precision)
    if (np.diff(numbers) <= 0).any():
        raise NetworkError(
            f"{graph.precision} does not distinguish the values of column {table.column}; "
            "write the graph in float64"
        )
    cell = graph.apply("Gather", "people", graph.store([position]), axis=1)
    chosen = graph.numbers(graph.apply("Equal", cell, graph.store(numbers[None])))
    found = graph.apply("ReduceMax", chosen, axes=[1], keepdims=0)
    return chosen, graph.apply("Greater", found, graph.nearest(np.array(0.5)))


def _activate(
    graph: Graph, activation: Activation, values: str, errors: str, *, width: int
) -> tuple[str, str]:
    """Add an activation; its pieces are evaluated as `Activation` does."""
    arithmetic, before = graph.arithmetic, values
    values = _pieces(graph, activation, values, width)
    if (activation.steepest == 1.0).all():
        widened = errors
    else:
        steepest = activation.steepest * (1 + 4 * arithmetic.unit) + FLOOR
        widened = _times(graph, errors, steepest, width=width)
    if not activation.rounds and _holds(graph, activation):
        return values, widened
    # FLOOR covers slopes and breaks that are subnormal in the format: they have few digits there,
    # or none, whatever they are multiplied by.
    size = graph.plus(_largest(graph, before), graph.upward(FLOOR))
    radius = _times(
        graph, graph.apply("Add", size, errors), activation.steepest + FLOOR, width=width
    )
    radius = graph.plus(radius, graph.upward(activation.lift))
    # γ(1) covers ten roundings, twice: also those of slopes, intercepts and breaks to the format.
    added = _times(graph, radius, arithmetic.gamma(1), width=width)
    added = graph.plus(added, graph.upward(5 * arithmetic.tiny))
    return values, _covered(graph, graph.apply("Add", widened, added), 1, width=width)


def _pieces(graph: Graph, activation: Activation, values: str, width: int) -> str:
    if activation.is_relu:
        return graph.apply("Relu", values)
    slopes, intercepts = activation.slopes, activation.intercepts
    result = _line(graph, values, slopes[0], intercepts[0], width=width)
    for at, slope, intercept in zip(activation.breaks, slopes[1:], intercepts[1:], strict=True):
        beyond = graph.apply("GreaterOrEqual", values, graph.nearest(at))
        line = _line(graph, values, slope, intercept, width=width)
        result = graph.apply("Where", beyond, line, result)
    return result


def _line(graph: Graph, values: str, slope: Vector, intercept: Vector, *, width: int) -> str:
    product = graph.times(values, graph.rounded(slope), width=width)
    return graph.plus(product, graph.rounded(intercept))


def _holds(graph: Graph, activation: Activation) -> bool:
    """Return whether the format holds every number of an activation, and none is subnormal."""
    numbers = np.concatenate(
        [activation.breaks.ravel(), activation.slopes.ravel(), activation.intercepts.ravel()]
    )
    normal = (numbers == 0) | (np.abs(numbers) >= np.finfo(graph.precision).smallest_normal)
    return bool(normal.all()) and np.array_equal(graph.rounded(numbers), numbers)


def _affine(graph: Graph, layer: Affine, values: str, errors: str) -> tuple[str, str]:
    """Add a layer W·a + b."""
    arithmetic, (width, n_terms) = graph.arithmetic, layer.weight.shape
    gamma = arithmetic.gamma(n_terms)
    twice = graph.apply("Add", errors, errors)
    radius = graph.apply("Add", _largest(graph, values), twice)
    added = graph.apply("Add", errors, _times(graph, radius, gamma, width=n_terms))
    inner = graph.plus(added, graph.upward(arithmetic.tiny))
    weights = graph.above((np.abs(layer.weight) + FLOOR).T)
    constant = gamma * (np.abs(layer.bias) + layer.cancelled_magnitude)
    constant = constant + 5 * (n_terms + 1) * arithmetic.tiny
    total = graph.plus(graph.apply("MatMul", inner, weights), graph.upward(constant))
    product = graph.apply("MatMul", values, graph.nearest(layer.weight.T))
    values = graph.plus(product, graph.rounded(layer.bias))
    return values, _covered(graph, total, n_terms, width=width)


def _largest(graph: Graph, values: str) -> str:
    """Return the largest absolute value of any counterpart, (rows, neurons)."""
    return graph.apply("ReduceMax", graph.apply("Abs", values), axes=[1], keepdims=0)


def _times(graph: Graph, values: str, factors: ArrayLike, *, width: int) -> str:
    """Multiply a bound by numbers, rounded up."""
    return graph.times(values, graph.upward(factors), width=width)


def _covered(graph: Graph, errors: str, n_terms: int, *, width: int) -> str:
    """Return a bound that exceeds the rounding of its own n terms."""
    return _times(graph, errors, upward(n_terms, graph.arithmetic), width=width)


def check_overflow(network: Network, magnitudes: Vector, graph: Graph) -> None:
    """Raise unless no value of any counterpart can overflow the graph's arithmetic."""
    with np.errstate(over="ignore"):  # infinite sizes are refused
        layers = list(largest_activations(network, magnitudes))
        activations = [
            activation.steepest * size + activation.lift
            for activation, size in zip(network.activations, layers, strict=False)
        ]
    arrays = [magnitudes, network.first.cancelled_magnitude, *layers, *activations]
    largest, huge = max(float(array.max()) for array in arrays), graph.arithmetic.huge
    if not largest < huge:
        raise NetworkError(
            f"{graph.precision} could overflow: got values up to {largest:.3g}; expected less than "
            f"{huge:.3g}; write the graph in float64, or use feta serve"
        )
