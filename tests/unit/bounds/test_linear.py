"""Linear bounds, compared with the same propagation and its error bound in exact arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import feta
from feta.arrays import Matrix, Vector
from feta.bounds import interval, linear
from feta.bounds.first_layer import FirstLayer, Sloped, Terms
from feta.bounds.linear import Layer, highest, next_box, pull_back
from feta.bounds.relaxation import Lines
from feta.cells.cells import Cells
from feta.interval_box import IntervalBox
from feta.rounding import DIFFERENCE, FLOAT64, FLOOR
from feta.scorer.network.activation import absolute, clip, identity, leaky_relu, piecewise, relu
from feta.scorer.network.layers import Affine, Columns
from feta.scorer.network.network import Network
from feta.space.attribute import Real
from feta.space.feature_space import FeatureSpace
from tests.unit.bounds.exact_layers import (
    ROUNDING,
    dot,
    eighths,
    fraction,
    fractions,
    is_barely_above,
)

SPACE = FeatureSpace((Real("a", -1, 1, sensitive=True), Real("b", 0, 2, sensitive=True)))
CELLS = Cells(
    SPACE.axes,
    np.array([[-1.0, 0.0], [0.5, 1.0], [0.25, 0.5]]),
    np.array([[1, 2], [0.5, 2], [1, 1]]),
)
SMALLEST = fraction(FLOOR)


@dataclass(frozen=True)
class Chain:
    """A first layer, and lines instead of each activation; all numbers in eighths."""

    network: Network
    first: FirstLayer
    layers: list[Layer]

    @classmethod
    def of(cls, rng: np.random.Generator, widths: Sequence[int]) -> "Chain":
        """Draw a chain of layers with these widths."""
        columns = Columns(eighths(rng, widths[0]), eighths(rng, widths[0], 2))
        network, layers = Network(columns, (), ()), []
        shape = (len(CELLS), widths[0])
        # The size and the error need not be those of the terms: only their sum is tested.
        size, error = np.abs(eighths(rng, *shape)) + 1, np.abs(eighths(rng, *shape)) * 2.0**-48
        terms = Terms.of(columns, SPACE.axes)
        first = FirstLayer(terms, CELLS, np.array(columns.bias), size, error)
        for before, after in pairwise(widths):
            network = network.then(relu(), Affine(eighths(rng, after, before), eighths(rng, after)))
            layers.append(drawn_layer(rng, before))
        return cls(network, first, layers)

    def with_bias(self, bias: Vector) -> "Chain":
        """Return the chain with another bias of its last layer."""
        *rest, last = self.network.layers
        layers = (*rest, Affine(last.weight, bias))
        return replace(self, network=replace(self.network, layers=layers))


def drawn_layer(rng: np.random.Generator, width: int) -> Layer:
    shape = (len(CELLS), width)
    below, above = ((eighths(rng, *shape), eighths(rng, *shape)) for _ in range(2))
    zeros = IntervalBox(np.zeros(shape), np.zeros(shape))
    return Layer(zeros, zeros, Lines(below, above), np.abs(eighths(rng, *shape)) + 0.125)


def exact_bound(chain: Chain, row: Vector, cell: int) -> tuple[Fraction, Fraction, list[Fraction]]:
    """Return the lower bound of a row without rounding, the error, and the first-layer row."""
    weights, constant, error = fractions(row), Fraction(0), Fraction(0)
    steps = list(zip(chain.layers, chain.network.layers, strict=True))
    for layer, affine in reversed(steps):
        error += step_error(affine, fractions(layer.radius[cell]), weights)
        constant += dot(weights, fractions(affine.bias))
        columns = [dot(weights, fractions(column)) for column in affine.weight.T]
        weights = []
        for neuron, weight in enumerate(columns):
            slopes, intercepts = layer.lines.below if weight > 0 else layer.lines.above
            constant += weight * fraction(intercepts[cell, neuron])
            weights.append(weight * fraction(slopes[cell, neuron]))
    n_terms = len(weights) + len(SPACE.axes) + len(chain.layers) + 2
    gamma = fraction(FLOAT64.gamma(n_terms))
    radii = [
        fraction(error_) + gamma * fraction(size)
        for error_, size in zip(chain.first.error[cell], chain.first.size[cell], strict=True)
    ]
    error += dot([abs(weight) + SMALLEST for weight in weights], radii)
    error += gamma * abs(constant) + n_terms * fraction(FLOAT64.tiny)
    return first_minimum(chain, weights, cell) + constant, error, weights


def step_error(affine: Affine, radii: list[Fraction], rows: list[Fraction]) -> Fraction:
    """Return γ·|rows|·(|W|·radius + |b|); every absolute value is increased by FLOOR."""
    gamma = fraction(FLOAT64.gamma(sum(affine.weight.shape) + 4))
    sizes = [
        dot([abs(fraction(w)) + SMALLEST for w in weights], radii) + abs(fraction(bias)) + SMALLEST
        for weights, bias in zip(affine.weight, affine.bias, strict=True)
    ]
    return gamma * dot([abs(row) + SMALLEST for row in rows], sizes)


def first_minimum(chain: Chain, weights: list[Fraction], cell: int) -> Fraction:
    total = dot(weights, fractions(chain.first.constant))
    for index, term in enumerate(chain.first.terms.each):
        assert isinstance(term, Sloped)
        slope = dot(weights, fractions(term.slope))
        ends = (CELLS.lower[cell, index], CELLS.upper[cell, index])
        total += min(slope * fraction(end) for end in ends)
    return total


def powers(rng: np.random.Generator, *shape: int) -> Matrix:
    """Draw powers of two; some but the first of each row are zero."""
    signs = rng.integers(-1, 2, shape)
    signs[..., 0] = 1
    return np.asarray(signs * 2.0 ** rng.integers(-2, 3, shape))


def center(chain: Chain, row: Vector, exact: Fraction) -> Chain:
    """Move the last bias so that the bound of a row is 0."""
    vector = np.array(chain.network.layers[-1].bias if chain.layers else chain.first.constant)
    vector[0] -= float(exact) / row[0]
    if chain.layers:
        return chain.with_bias(vector)
    return replace(chain, first=replace(chain.first, constant=vector))


@pytest.mark.parametrize("widths", [(3,), (2, 4), (4, 1, 3), (3, 2, 2, 5), (2, 3, 1, 2, 2)])
def test_rows_are_propagated_with_the_error_of_every_step(widths: tuple[int, ...]) -> None:
    """The last bias cancels the bound exactly, so that the float64 bound is the error."""
    rng = np.random.default_rng(widths)
    chain = Chain.of(rng, widths)
    for row in powers(rng, 3, widths[-1]):
        for cell in range(len(CELLS)):
            exact, _, first_row = exact_bound(chain, row, cell)
            centered = center(chain, row, exact)
            both = np.vstack([row, np.zeros_like(row)])
            lowest, rows = pull_back(centered.network, centered.first, centered.layers, both)
            assert lowest.shape == (len(CELLS), 2)
            assert rows[cell, 0].tolist() == [float(weight) for weight in first_row]
            bound, error, _ = exact_bound(centered, row, cell)
            assert bound == 0
            assert is_barely_above(-lowest[cell, 0], error)
            _, error, _ = exact_bound(centered, both[1], cell)
            assert is_barely_above(-lowest[cell, 1], error)


def test_the_bound_of_a_whole_row_is_not_rounded_up() -> None:
    rng = np.random.default_rng(0)
    chain = Chain.of(rng, (3, 2, 4))
    rows = eighths(rng, 5, 4)
    lowest, _ = pull_back(chain.network, chain.first, chain.layers, rows)
    for cell, number in np.ndindex(lowest.shape):
        exact, error, _ = exact_bound(chain, rows[number], cell)
        assert exact - 2 * error <= fraction(lowest[cell, number]) < exact


@pytest.mark.parametrize("weight", [0.0, 2.0**-110])
def test_weights_that_underflow_have_an_error(weight: float) -> None:
    chain = Chain.of(np.random.default_rng(0), (2, 2))
    small = Affine(np.full((2, 2), weight), np.full(2, weight))
    layers = [replace(layer, radius=np.full((3, 2), 4.0)) for layer in chain.layers]
    network = replace(chain.network, layers=(small,))
    rows = np.array([[1.0, 1.0], [0.0, 0.0], [weight, 0.0]])
    nothing = replace(chain.first, size=np.zeros((3, 2)), error=np.zeros((3, 2)))
    for first in (chain.first, nothing):
        chain = Chain(network, first, layers)
        lowest, _ = pull_back(network, first, layers, rows)
        for cell, number in np.ndindex(lowest.shape):
            exact, error, _ = exact_bound(chain, rows[number], cell)
            tolerance = error * ROUNDING + abs(exact) * Fraction(2) ** -52
            assert abs(fraction(lowest[cell, number]) - (exact - error)) <= tolerance
            assert fraction(lowest[cell, number]) < exact


def test_underflow_has_an_error_where_all_terms_are_zero() -> None:
    chain = Chain.of(np.random.default_rng(0), (2,))
    zeros = np.zeros((3, 2))
    first = replace(chain.first, size=zeros, error=zeros, constant=np.zeros(2))
    lowest, _ = pull_back(chain.network, first, [], np.zeros((1, 2)))
    for number in lowest.ravel():
        assert is_barely_above(-number, (2 + 2 + 2) * fraction(FLOAT64.tiny))


def test_errors_of_many_layers_are_rounded_up() -> None:
    """Each of thirty sums of errors is rounded; the constant cancels exactly."""
    rng = np.random.default_rng(0)
    chain = Chain.of(rng, [1] * 31)
    ones = np.ones((3, 1))
    biases = eighths(rng, 30)
    affine = [Affine(np.ones((1, 1)), np.array([bias])) for bias in biases]
    network = replace(chain.network, layers=tuple(affine))
    lines = Lines((ones, 0 * ones), (ones, 0 * ones))
    layers = [
        Layer(layer.box, layer.box, lines, rng.random((3, 1)) + 0.1) for layer in chain.layers
    ]
    first = replace(chain.first, size=rng.random((3, 1)), error=rng.random((3, 1)) * 2.0**-50)
    for cell in range(3):
        exact, _, _ = exact_bound(Chain(network, first, layers), np.ones(1), cell)
        centered = replace(first, constant=first.constant - float(exact))
        lowest, _ = pull_back(network, centered, layers, np.ones((1, 1)))
        bound, error, _ = exact_bound(Chain(network, centered, layers), np.ones(1), cell)
        assert bound == 0
        assert is_barely_above(-lowest[cell, 0], error)


def huge_chain(scale: float) -> Chain:
    chain = Chain.of(np.random.default_rng(1), (2, 2, 2))
    layers = tuple(Affine(layer.weight * scale, layer.bias) for layer in chain.network.layers)
    return replace(chain, network=replace(chain.network, layers=layers))


@pytest.mark.parametrize("scale", [1e150, 1e200, 1e300])
def test_nothing_is_known_after_an_overflow(scale: float) -> None:
    """The bound is −∞ where float64 overflows, and never NaN."""
    chain = huge_chain(scale)
    rows = np.array([[1e10, 1e10], [1e300, -1e300], [0.0, 0.0]])
    lowest, _ = pull_back(chain.network, chain.first, chain.layers, rows)
    assert not np.isnan(lowest).any()
    for cell, number in np.ndindex(lowest.shape):
        exact = exact_bound(chain, rows[number], cell)[0]
        low = lowest[cell, number]
        assert low == -np.inf or fraction(low) <= exact
    highs, _ = highest(chain.network, chain.first, chain.layers, rows, np.zeros(3), least=False)
    assert (highs == np.inf).all()


OBJECTIVE = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, -1.0]])


@pytest.mark.parametrize("least", [False, True])
def test_the_objective_is_the_largest_direction_or_the_smallest(*, least: bool) -> None:
    rng = np.random.default_rng(3)
    chain = Chain.of(rng, (4, 2, 3))
    for _ in range(4):
        offsets = eighths(rng, 4)
        highs, rows = highest(
            chain.network, chain.first, chain.layers, OBJECTIVE, offsets, least=least
        )
        assert highs.shape == (3,)
        for cell in range(3):
            bounds = []
            for direction, offset in zip(OBJECTIVE, fractions(offsets), strict=True):
                low, _, first_row = exact_bound(chain, -direction, cell)
                bounds.append((offset - low, [-float(weight) for weight in first_row]))
            bounds.sort()
            exact, weights = bounds[0] if least else bounds[-1]
            assert exact < fraction(highs[cell]) < exact + Fraction(1, 10**9)
            if bounds[0][0] < bounds[1][0] and bounds[-2][0] < bounds[-1][0]:
                assert rows[cell].tolist() == weights


def test_the_objective_is_rounded_up() -> None:
    """The offset equals the bound in float64, so that what remains is the added error."""
    chain = Chain.of(np.random.default_rng(5), (4, 2, 3))
    lowest, _ = pull_back(chain.network, chain.first, chain.layers, -OBJECTIVE)
    for cell, number in np.ndindex(lowest.shape):
        for factor in (1.0, 1 - 2.0**-53, 0.0, -1.0):
            offset = np.full(1, lowest[cell, number] * factor)
            highs, _ = highest(
                chain.network,
                chain.first,
                chain.layers,
                OBJECTIVE[number : number + 1],
                offset,
                least=False,
            )
            low = fraction(lowest[cell, number])
            error = fraction(DIFFERENCE) * (abs(fraction(offset[0])) + abs(low))
            exact = fraction(offset[0]) - low + error
            assert abs(fraction(highs[cell]) - exact) <= error / 3  # an ulp is an eighth of it


def test_a_radius_covers_values_lines_and_intercepts() -> None:
    """|a| + |slope|·|z| + |intercept|, each over the whole interval."""
    activation = piecewise("bend", [-1.0, 0.5], [0.25, 1.0, -3.0], [-0.75, 0.0, 2.0])
    lower = eighths(np.random.default_rng(0), 20, 2)
    box = IntervalBox(lower, lower + np.abs(eighths(np.random.default_rng(1), 20, 2)))
    for each in (activation, relu(), absolute(), clip(-0.5, 1.0), leaky_relu(0.1)):
        layer = Layer.of(each, box)
        assert layer.box is box
        below, above = layer.lines.below, layer.lines.above
        slope = np.maximum(np.abs(below[0]), np.abs(above[0]))
        start = np.maximum(np.abs(below[1]), np.abs(above[1]))
        ends = np.maximum(np.abs(box.lower), np.abs(box.upper))
        values = interval.activate(each, box)
        sizes = np.maximum(np.abs(values.lower), np.abs(values.upper))
        np.testing.assert_allclose(layer.radius, sizes + slope * ends + start + FLOOR, rtol=1e-12)


def test_a_radius_is_never_zero() -> None:
    zero = IntervalBox(np.zeros((1, 1)), np.zeros((1, 1)))
    for activation in (relu(), identity()):
        assert Layer.of(activation, zero).radius.tolist() == [[FLOOR]]


def model_of(*layers: tuple[Matrix, Vector]) -> tuple[Network, FirstLayer]:
    network = feta.Network.from_layers([(w.tolist(), b.tolist()) for w, b in layers])
    return network, Terms.of(network.first, SPACE.axes).at(np.zeros(2), CELLS)


def test_each_box_is_the_intersection_of_linear_and_interval_bounds() -> None:
    rng = np.random.default_rng(0)
    shapes = ((4, 2), (3, 4), (4, 3), (2, 4))
    network, first = model_of(*((eighths(rng, *shape), eighths(rng, shape[0])) for shape in shapes))
    layers = linear.forward(network, first)
    assert len(layers) == 3
    np.testing.assert_allclose(layers[0].box.lower, first.box().lower, rtol=1e-12)
    boxes = [*(layer.box for layer in layers[1:]), next_box(network, first, layers)]
    tighter = {"linear": 0, "interval": 0}
    for depth, box in enumerate(boxes):
        before = layers[: depth + 1]
        loose = interval.affine(network.layers[depth], before[-1].relaxed)
        eye = np.eye(box.lower.shape[1])
        lower, _ = pull_back(network, first, before, eye)
        upper, _ = pull_back(network, first, before, -eye)
        np.testing.assert_allclose(box.lower, np.maximum(loose.lower, lower), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(box.upper, np.minimum(loose.upper, -upper), rtol=1e-9, atol=1e-9)
        tighter["linear"] += int((lower > loose.lower + 0.1).sum())
        tighter["interval"] += int((lower < loose.lower - 0.1).sum())
    assert min(tighter.values()) > 0  # neither is always the tighter one
