"""Interval bounds: their ends are exact values minus or plus the error that float64 may make."""

from fractions import Fraction

import numpy as np
import pytest

import feta
from feta.bounds.interval import activate, affine, candidates, forward, magnitude, rounding
from feta.interval_box import IntervalBox
from feta.rounding import DIFFERENCE, FLOAT64, FLOOR
from feta.scorer.network.activation import (
    Activation,
    absolute,
    clip,
    leaky_relu,
    piecewise,
    prelu,
    relu,
)
from feta.scorer.network.layers import Affine
from tests import oracle
from tests.unit.bounds.exact_layers import dot, eighths, fraction, fractions, is_barely_above

BEND = piecewise("bend", [-1.0, 0.5], [0.25, 1.0, -3.0], [-0.75, 0.0, 2.0])
EACH = Activation(
    "each",
    np.array([[-1.0, 0.0], [0.5, 2.0]]),
    np.array([[0.0, -1.0], [0.5, 0.25], [-2.0, 1.0]]),
    np.array([[-0.5, 0.0], [0.0, 0.0], [1.25, -1.5]]),
)
ACTIVATIONS = (relu(), absolute(), clip(-0.5, 2.0), leaky_relu(0.125), prelu([-1.5, 0.25]), BEND)


def box_of(lower: object, upper: object) -> IntervalBox:
    return IntervalBox(np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64))


def exact_ends(layer: Affine, box: IntervalBox) -> tuple[list[Fraction], list[Fraction]]:
    """Return the exact ends of W·a + b over the first box."""
    lower, upper = fractions(box.lower[0]), fractions(box.upper[0])
    lows, highs = [], []
    for weights, bias in zip(layer.weight, fractions(layer.bias), strict=True):
        ends = [
            sorted((w * low, w * high))
            for w, low, high in zip(fractions(weights), lower, upper, strict=True)
        ]
        lows.append(bias + sum(low for low, _ in ends))
        highs.append(bias + sum(high for _, high in ends))
    return lows, highs


def affine_error(layer: Affine, box: IntervalBox, neuron: int) -> Fraction:
    """Return γ · Σ |terms|: each product counts, of a lower and of an upper end, and the bias."""
    gamma = fraction(FLOAT64.gamma(2 * layer.weight.shape[1]))
    sizes = [fraction(size) + fraction(FLOOR) for size in box.size[0]]
    weights = [abs(fraction(w)) + fraction(FLOOR) for w in layer.weight[neuron]]
    return gamma * (dot(sizes, weights) + abs(fraction(layer.bias[neuron])))


@pytest.mark.parametrize("seed", range(3))
def test_an_affine_layer_has_the_error_of_its_terms(seed: int) -> None:
    """The bias cancels one end exactly, so that the bound there is the error."""
    rng = np.random.default_rng(seed)
    lower = eighths(rng, 1, 3)
    box = IntervalBox(lower, lower + np.abs(eighths(rng, 1, 3)))
    layer = Affine(eighths(rng, 5, 3), np.zeros(5))
    lows, highs = exact_ends(layer, box)
    for ends, sign in ((lows, -1), (highs, 1)):
        centered = Affine(layer.weight, -np.array([float(end) for end in ends]))
        bound = affine(centered, box)
        errors = sign * (bound.lower if sign < 0 else bound.upper)[0]
        for neuron, error in enumerate(errors):
            assert is_barely_above(error, affine_error(centered, box, neuron))
        others = np.array([float(h - low) for low, h in zip(lows, highs, strict=True)])
        wide = bound.upper[0] if sign < 0 else -bound.lower[0]
        assert (others <= wide).all()
        assert (wide <= others + 1e-12).all()


@pytest.mark.parametrize(
    ("weight", "end"),
    [([[0.0, 0.0]], 0.0), ([[0.0, 0.0]], 3.0), ([[2.0**-60, 2.0**-99]], 0.0), ([[0.1, 0.3]], 1.0)],
)
def test_products_that_underflow_have_an_error(weight: list[list[float]], end: float) -> None:
    layer, box = Affine(np.array(weight), np.zeros(1)), box_of([[-end, -end]], [[end, end]])
    bound = affine(layer, box)
    exact = affine_error(layer, box, 0)
    if not exact_ends(layer, box)[1][0]:
        assert is_barely_above(bound.upper[0, 0], exact)
        assert bound.lower[0, 0] == -bound.upper[0, 0]
    assert fraction(bound.upper[0, 0]) >= exact_ends(layer, box)[1][0]
    # The error of float64 at the smallest numbers is far below that of FLOOR.
    assert exact > 1000 * fraction(FLOAT64.tiny)


def test_rough_numbers_are_inside_of_an_interval_of_twice_the_error() -> None:
    rng = np.random.default_rng(0)
    middle, layer = rng.normal(size=(1, 6)), Affine(rng.normal(size=(40, 6)), rng.normal(size=40))
    box = IntervalBox(middle, middle)
    bound, exact = affine(layer, box), exact_ends(layer, box)[0]
    for neuron in range(40):
        low, high = fraction(bound.lower[0, neuron]), fraction(bound.upper[0, neuron])
        assert low < exact[neuron] < high
        error = affine_error(layer, box, neuron)
        assert abs(high - low - 2 * error) < error / 2


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda activation: activation.name)
def test_an_activation_has_its_extremes_at_ends_and_breaks(activation: Activation) -> None:
    rng = np.random.default_rng(0)
    lower = eighths(rng, 60, 2)
    box = IntervalBox(lower, lower + np.abs(eighths(rng, 60, 2)) * (rng.random((60, 2)) < 0.9))
    bound = activate(activation, box)
    for row in range(60):
        for neuron in range(2):
            low, high = fraction(box.lower[row, neuron]), fraction(box.upper[row, neuron])
            breaks = fractions(activation.breaks[:, neuron if activation.width > 1 else 0])
            points = [low, *(at for at in breaks if low < at < high), high]
            values = [oracle.activate(activation, neuron, point) for point in points]
            slack = Fraction(1, 10**12) if activation.rounds else Fraction(0)
            got = (fraction(bound.lower[row, neuron]), fraction(bound.upper[row, neuron]))
            assert min(values) - slack <= got[0] <= min(values)
            assert max(values) <= got[1] <= max(values) + slack


def test_candidates_are_the_ends_and_the_breaks_between_them() -> None:
    points = candidates(EACH, box_of([[-2.0, 1.0]], [[0.0, 4.0]]))
    assert points.tolist() == [[[-2.0, 1.0]], [[-1.0, 1.0]], [[0.0, 2.0]], [[0.0, 4.0]]]


@pytest.mark.parametrize("activation", [BEND, EACH], ids=lambda activation: activation.name)
def test_an_activation_rounds_by_the_terms_that_it_adds(activation: Activation) -> None:
    points = np.array([[[0.0, 0.0], [-0.1, 3.0]], [[1e10, -1e-5], [2.0**-1060, 1e300]]])
    errors, sizes = rounding(activation, points), magnitude(activation, points)
    for index in np.ndindex(points.shape):
        column = index[-1] if activation.width > 1 else 0
        steepest = max(abs(slope) for slope in fractions(activation.slopes[:, column]))
        lift = max(abs(at) for at in fractions(activation.intercepts[:, column]))
        size = (steepest + fraction(FLOOR)) * abs(fraction(points[index])) + lift
        assert sizes[index] == pytest.approx(float(size), rel=1e-12, abs=0.0)
        error = fraction(DIFFERENCE) * size + fraction(FLOAT64.tiny)
        assert errors[index] == pytest.approx(float(error), rel=1e-12, abs=0.0)


def test_small_slopes_and_numbers_have_an_error_too() -> None:
    flat = piecewise("flat", [0.0], [0.0, 2.0**-120], [0.0, 0.0])
    points = np.array([[[0.0, 1.0, -8.0]]])
    floor = 2.0**-100 + 2.0**-120
    assert magnitude(flat, points).tolist() == [[[0.0, floor, 8 * floor]]]
    assert rounding(flat, points)[0, 0, 0] == FLOAT64.tiny


def test_the_values_of_an_activation_that_rounds_are_widened_by_its_error() -> None:
    zero = activate(leaky_relu(0.125), box_of([[0.0, -8.0]], [[0.0, 0.0]]))
    assert zero.lower[0, 0] == -FLOAT64.tiny
    assert zero.upper[0, 0] == FLOAT64.tiny
    assert zero.upper[0, 1] == pytest.approx(FLOAT64.tiny)
    assert -1.0 - 9 * DIFFERENCE < zero.lower[0, 1] < -1.0 - 7 * DIFFERENCE


@pytest.mark.parametrize("activation", [relu(), absolute(), clip(-0.5, 2.0)], ids=lambda a: a.name)
def test_an_activation_that_copies_numbers_does_not_round(activation: Activation) -> None:
    points = np.array([[[1.0, 1e300]]])
    assert not rounding(activation, points).any()
    assert rounding(activation, points).shape == points.shape


def test_each_layer_is_bounded_from_the_box_before_it() -> None:
    rng = np.random.default_rng(1)
    layers = [(eighths(rng, 2, 2), eighths(rng, 2)) for _ in range(4)]
    network = feta.Network.from_layers(
        [(w.tolist(), b.tolist()) for w, b in layers], activation=EACH
    )
    boxes = forward(network, box_of([[-1.0, 0.25], [0.0, 0.0]], [[1.0, 2.0], [0.0, 3.0]]))
    assert len(boxes) == 4
    for before, after, layer in zip(boxes, boxes[1:], network.layers, strict=False):
        expected = affine(layer, activate(EACH, before))
        np.testing.assert_allclose(after.lower, expected.lower, rtol=1e-12)
        np.testing.assert_allclose(after.upper, expected.upper, rtol=1e-12)
