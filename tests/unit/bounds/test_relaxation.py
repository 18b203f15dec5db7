"""Lines that enclose an activation: valid, as close as they can be, and exact where possible."""

from fractions import Fraction

import numpy as np
import pytest

from feta.bounds.relaxation import relax, stable_pieces
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
    relu6,
)
from tests import oracle
from tests.unit.bounds.exact_layers import ROUNDING, eighths, fraction, fractions

BEND = piecewise("bend", [-1.0, 0.5], [0.25, 1.0, -3.0], [-0.75, 0.0, 2.0])
EACH = Activation(
    "each",
    np.array([[-1.0, 0.0], [0.5, 1.5]]),
    np.array([[0.0, -1.0], [0.5, 0.25], [-2.0, 1.0]]),
    np.array([[-0.5, 0.0], [0.0, 0.0], [1.25, -1.125]]),
)
# Two neurons with the breaks of BEND and other slopes.
PAIR = Activation(
    "pair",
    np.array([[-1.0, -1.0], [0.5, 0.5]]),
    np.array([[0.25, 0.0], [1.0, 2.0], [-3.0, 4.0]]),
    np.array([[-0.75, -2.0], [0.0, 0.0], [2.0, -1.0]]),
)
ACTIVATIONS = (
    relu(),
    leaky_relu(0.01),
    absolute(),
    clip(-0.5, 2.0),
    relu6(),
    prelu([-1.5, 0.5]),
    BEND,
    EACH,
)


def column_of(activation: Activation, neuron: int) -> int:
    return neuron if activation.width > 1 else 0


def points_of(activation: Activation, neuron: int, low: Fraction, high: Fraction) -> list[Fraction]:
    """Return the ends of an interval and the breaks between them."""
    breaks = fractions(activation.breaks[:, column_of(activation, neuron)])
    return [low, *(at for at in breaks if low < at < high), high]


def intercept(
    activation: Activation, neuron: int, points: list[Fraction], slope: Fraction, side: int
) -> Fraction:
    """Return where a line of this slope must start; the side is −1 below and 1 above."""
    column = column_of(activation, neuron)
    steepest = max(map(abs, fractions(activation.slopes[:, column])))
    lift = max(map(abs, fractions(activation.intercepts[:, column])))
    starts = []
    for point in points:
        size = (steepest + fraction(FLOOR)) * abs(point) + lift + abs(slope) * abs(point)
        error = fraction(DIFFERENCE) * size + fraction(FLOAT64.tiny)
        value = oracle.activate(activation, neuron, point)
        starts.append(side * (value - slope * point) + error)
    return side * max(starts)


def slopes_of(activation: Activation, neuron: int, points: list[Fraction]) -> list[Fraction]:
    """Return the slopes of the pieces and of the chord."""
    low, high = (oracle.activate(activation, neuron, point) for point in (points[0], points[-1]))
    chord = (high - low) / (points[-1] - points[0])
    return [*fractions(activation.slopes[:, column_of(activation, neuron)]), chord]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda activation: activation.name)
def test_lines_are_valid_and_the_closest_in_the_middle(activation: Activation) -> None:
    rng = np.random.default_rng(0)
    lower = eighths(rng, 25, 2)
    box = IntervalBox(lower, lower + np.abs(eighths(rng, 25, 2)) + 0.125)
    lines, stable = relax(activation, box), stable_pieces(activation, box)[1]
    for row, neuron in np.ndindex(box.lower.shape):
        low, high = fraction(box.lower[row, neuron]), fraction(box.upper[row, neuron])
        points, middle = points_of(activation, neuron, low, high), (low + high) / 2
        for side, (slopes, intercepts) in ((-1, lines.below), (1, lines.above)):
            slope, at = fraction(slopes[row, neuron]), fraction(intercepts[row, neuron])
            for point in points:
                value = oracle.activate(activation, neuron, point)
                assert side * (slope * point + at - value) >= 0
            best = min(
                side * (other * middle + intercept(activation, neuron, points, other, side))
                for other in slopes_of(activation, neuron, points)
            )
            assert side * (slope * middle + at) <= best + Fraction(1, 10**12)
            if not stable[row, neuron]:
                exact = intercept(activation, neuron, points, slope, side)
                slack = Fraction(2) ** -51 * max(abs(exact), abs(slope * low), abs(slope * high))
                assert abs(at - exact) <= slack


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 3.0), (-(2.0**40), 2.0**40), (-(2.0**-1040), 2.0**-1040), (-8.0, 1.0)]
)
@pytest.mark.parametrize("activation", [relu(), leaky_relu(0.25), absolute()], ids=lambda a: a.name)
def test_lines_through_the_origin_start_at_their_error(
    activation: Activation, low: float, high: float
) -> None:
    lines = relax(activation, IntervalBox(np.array([[low]]), np.array([[high]])))
    points = [fraction(low), Fraction(0), fraction(high)]
    slope, at = fraction(lines.below[0][0, 0]), fraction(lines.below[1][0, 0])
    exact = intercept(activation, 0, points, slope, -1)
    assert exact < 0
    assert exact * (1 + ROUNDING) <= at <= exact * (1 - ROUNDING)


def test_the_upper_line_is_moved_up_by_its_error() -> None:
    """Of −|z| over [−4, 1], the line of slope 1 passes through the origin."""
    activation = piecewise("peak", [0.0], [1.0, -1.0], [0.0, 0.0])
    lines = relax(activation, IntervalBox(np.array([[-4.0]]), np.array([[1.0]])))
    slope, at = fraction(lines.above[0][0, 0]), fraction(lines.above[1][0, 0])
    exact = intercept(activation, 0, fractions([-4.0, 0.0, 1.0]), slope, 1)
    assert slope == 1
    assert 0 < exact * (1 - ROUNDING) <= at <= exact * (1 + ROUNDING)


def test_a_relu_has_the_lines_of_the_paper() -> None:
    lines = relax(relu(), IntervalBox(np.array([[-1.0]]), np.array([[3.0]])))
    assert lines.above[0][0, 0] == 0.75
    assert lines.above[1][0, 0] == pytest.approx(0.75)
    assert lines.below[0][0, 0] == 1.0


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda activation: activation.name)
def test_an_activation_lies_between_lines_over_any_interval(activation: Activation) -> None:
    rng = np.random.default_rng(0)
    ends = np.sort(rng.normal(size=(50, 2, 2)) * 10.0 ** rng.integers(-9, 9, (50, 2, 1)), axis=2)
    ends[:5, :, 1] = ends[:5, :, 0]  # points
    lower, upper = ends[:, :, 0], ends[:, :, 1]
    lines = relax(activation, IntervalBox(lower, upper))
    shares = [np.clip(lower + share * (upper - lower), lower, upper) for share in (0.1, 0.9)]
    breaks = [np.clip(at, lower, upper) for at in activation.breaks]
    for inside in (lower, *shares, *breaks, upper):
        for row, neuron in np.ndindex(inside.shape):
            point = fraction(inside[row, neuron])
            value = oracle.activate(activation, neuron, point)
            for side, (slopes, starts) in ((-1, lines.below), (1, lines.above)):
                line = fraction(slopes[row, neuron]) * point + fraction(starts[row, neuron])
                assert side * (line - value) >= 0


def test_a_chord_may_be_as_steep_as_the_largest_number() -> None:
    """Where the rise is rounded up, its quotient overflows; the slope stays within the pieces."""
    steep = float(np.finfo(np.float64).max)
    activation = piecewise("steep", [0.0], [0.0, steep], [0.0, 0.0])
    lines = relax(activation, IntervalBox(np.array([[-5e-324]]), np.array([[5e-324]])))
    for slopes, _ in (lines.below, lines.above):
        assert 0 <= slopes[0, 0] <= steep


@pytest.mark.parametrize(
    ("low", "high", "piece", "stable"),
    [
        (-3.0, -2.0, 0, True),
        (-3.0, -1.0, 0, True),  # both pieces agree at a break
        (-3.0, -0.5, 0, False),
        (-1.0, -1.0, 1, True),
        (-1.0, 0.5, 1, True),
        (-1.0, 0.75, 1, False),
        (-0.5, 0.25, 1, True),
        (-2.0, 7.0, 0, False),
        (0.5, 0.5, 2, True),
        (0.5, 9.0, 2, True),
        (3.0, 4.0, 2, True),
    ],
)
def test_a_stable_neuron_is_its_piece_without_rounding(
    low: float, high: float, piece: int, *, stable: bool
) -> None:
    box = IntervalBox(np.array([[low, low]]), np.array([[high, high]]))
    for activation in (BEND, PAIR):
        pieces, is_stable = stable_pieces(activation, box)
        assert pieces.tolist() == [[piece, piece]]
        assert is_stable.tolist() == [[stable, stable]]
        lines = relax(activation, box)
        for neuron in range(2):
            column = column_of(activation, neuron)
            exact = (activation.slopes[piece, column], activation.intercepts[piece, column])
            for slopes, starts in (lines.below, lines.above):
                if stable:
                    assert (slopes[0, neuron], starts[0, neuron]) == exact


def test_each_neuron_has_its_own_breaks() -> None:
    box = IntervalBox(np.full((1, 2), -0.5), np.full((1, 2), 1.0))
    pieces, stable = stable_pieces(EACH, box)
    assert pieces.tolist() == [[1, 0]]
    assert stable.tolist() == [[False, False]]
    pieces, stable = stable_pieces(EACH, IntervalBox(np.full((1, 2), 0.0), np.full((1, 2), 1.0)))
    assert pieces.tolist() == [[1, 1]]
    assert stable.tolist() == [[False, True]]
