"""The scores of all counterparts, with one error bound per person, as ONNX operators.

The bound is the one of `scorer/network/error_bounds.py`, applied to the largest absolute value
that any counterpart has in a neuron. The formulas grow with these values, so the bound holds for
every counterpart. It is computed in the graph's own arithmetic; the same factors cover its
rounding, with the unit of that arithmetic.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix
from feta.errors import NetworkError
from feta.io.fair_onnx.graph import Graph, rounded
from feta.io.fair_onnx.people import SharedColumns
from feta.relation.protocol import Relation
from feta.rounding import FLOOR, Arithmetic, upward
from feta.scorer.network.activation import Activation
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
    for activation, layer in network.steps:
        values, errors = _activate(graph, activation, values, errors)
        values, errors = _affine(graph, layer, values, errors)
    return GraphScores(values, errors, listed)


def _first_layer(
    graph: Graph, network: Network, relation: Relation, columns: SharedColumns, ids: Counts
) -> tuple[str, str, tuple[str, ...]]:
    """Add c + T: the terms of the shared columns, and a table of all assignments."""
    first, arithmetic = network.first, graph.arithmetic
    assignment_values, assignment_sizes = Tabulated(network.exact, relation).terms(ids)
    slopes = first.slopes[:, columns.columns]
    floor = graph.above(FLOOR)
    shared = graph.apply("Gemm", "people", graph.nearest(slopes.T), graph.nearest(first.bias))
    sizes = graph.apply("Add", graph.apply("Abs", "people"), floor)
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
    total = graph.apply("Add", sizes, graph.above(constant))
    gamma = arithmetic.gamma(first.width)
    underflow = 5 * (first.width + 1) * arithmetic.tiny
    errors = graph.apply(
        "Add", graph.apply("Mul", total, graph.above(gamma)), graph.above(underflow)
    )
    errors = graph.apply("Mul", errors, _covered(graph, first.width))
    values = graph.apply("Unsqueeze", shared, graph.store([1]))
    values = graph.apply("Add", values, graph.nearest(assignment_values[None]))
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


def _activate(graph: Graph, activation: Activation, values: str, errors: str) -> tuple[str, str]:
    """Add an activation; its pieces are evaluated as `Activation` does."""
    arithmetic, before = graph.arithmetic, values
    values = _pieces(graph, activation, values)
    if (activation.steepest != 1.0).any():
        steepest = activation.steepest * (1 + 4 * arithmetic.unit)
        widened = graph.apply("Mul", errors, graph.above(steepest))
    else:
        widened = errors
    if not activation.rounds and _holds(graph, activation):
        return values, widened
    radius = graph.apply("Add", _largest(graph, before), errors)
    radius = graph.apply("Mul", radius, graph.above(activation.steepest))
    radius = graph.apply("Add", radius, graph.above(activation.lift))
    # γ(1) covers ten roundings, twice: also those of slopes, intercepts and breaks to the format.
    added = graph.apply("Mul", radius, graph.above(arithmetic.gamma(1)))
    added = graph.apply("Add", added, graph.above(5 * arithmetic.tiny))
    errors = graph.apply("Add", widened, added)
    return values, graph.apply("Mul", errors, _covered(graph, 1))


def _pieces(graph: Graph, activation: Activation, values: str) -> str:
    if activation.is_relu:
        return graph.apply("Relu", values)
    result = _line(graph, values, activation.slopes[0], activation.intercepts[0])
    for at, slope, intercept in zip(
        activation.breaks, activation.slopes[1:], activation.intercepts[1:], strict=True
    ):
        beyond = graph.apply("GreaterOrEqual", values, graph.nearest(at))
        result = graph.apply("Where", beyond, _line(graph, values, slope, intercept), result)
    return result


def _line(graph: Graph, values: str, slope: Matrix, intercept: Matrix) -> str:
    product = graph.apply("Mul", values, graph.nearest(slope))
    return graph.apply("Add", product, graph.nearest(intercept))


def _holds(graph: Graph, activation: Activation) -> bool:
    """Return whether the format holds every number of an activation."""
    arrays = (activation.breaks, activation.slopes, activation.intercepts)
    return all(np.array_equal(rounded(array, graph.precision), array) for array in arrays)


def _affine(graph: Graph, layer: Affine, values: str, errors: str) -> tuple[str, str]:
    """Add a layer W·a + b."""
    arithmetic, n_terms = graph.arithmetic, layer.weight.shape[1]
    gamma = arithmetic.gamma(n_terms)
    twice = graph.apply("Mul", errors, graph.above(2.0))
    radius = graph.apply("Add", _largest(graph, values), twice)
    added = graph.apply("Mul", radius, graph.above(gamma))
    inner = graph.apply("Add", graph.apply("Add", errors, added), graph.above(arithmetic.tiny))
    weights = graph.above((np.abs(layer.weight) + FLOOR).T)
    constant = gamma * (np.abs(layer.bias) + layer.cancelled_magnitude)
    constant = constant + 5 * (n_terms + 1) * arithmetic.tiny
    total = graph.apply("Add", graph.apply("MatMul", inner, weights), graph.above(constant))
    product = graph.apply("MatMul", values, graph.nearest(layer.weight.T))
    values = graph.apply("Add", product, graph.nearest(layer.bias))
    return values, graph.apply("Mul", total, _covered(graph, n_terms))


def _largest(graph: Graph, values: str) -> str:
    """Return the largest absolute value of any counterpart, (rows, neurons)."""
    return graph.apply("ReduceMax", graph.apply("Abs", values), axes=[1], keepdims=0)


def _covered(graph: Graph, n_terms: int) -> str:
    return graph.above(upward(n_terms, graph.arithmetic))


def check_overflow(
    network: Network, largest: list[float], arithmetic: Arithmetic, *, precision: str
) -> None:
    """Raise unless no value of any counterpart can overflow the arithmetic."""
    sizes = [*largest, float(network.first.cancelled_magnitude.max())]
    if not max(sizes) < arithmetic.huge:
        raise NetworkError(
            f"{precision} could overflow: got values up to {max(sizes):.3g}; expected less than "
            f"{arithmetic.huge:.3g}; write the graph in float64, or use feta serve"
        )
