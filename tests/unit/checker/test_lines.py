from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feta.checker.exact_network import StoredLayer
from feta.checker.integers import exact
from feta.checker.lines import Enclosed
from feta.dyadic import Dyadic
from feta.scorer.network.activation import Activation, clip, leaky_relu, piecewise, prelu, relu


def layer_of(activation: Activation, neurons: int = 1) -> StoredLayer:
    return StoredLayer.of(
        {
            "breaks": activation.breaks,
            "slopes": activation.slopes,
            "intercepts": activation.intercepts,
            "weight": np.ones((1, neurons)),
            "bias": np.zeros(1),
        }
    )


def enclosed(activation: Activation, low: float, high: float) -> Enclosed:
    return Enclosed.of(layer_of(activation), exact([low]), exact([high]))


def numbers(lines: Enclosed) -> list[Fraction]:
    """Return slope and intercept below, then above, then the range."""
    parts = (lines.low_slope, lines.low_intercept, lines.high_slope, lines.high_intercept)
    return [part.fractions()[0] for part in (*parts, lines.lowest, lines.highest)]


# Chords are rounded down to multiples of 2^−52.
CHORD = Fraction(int(Fraction(2, 3) * 2**52), 2**52)
THIRD = Fraction(int(Fraction(1, 3) * 2**52), 2**52)
FIFTHS = Fraction(int(Fraction(2, 5) * 2**52), 2**52)
HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("activation", "low", "high", "expected"),
    [
        # The chord of ReLU above; below, the piece that is larger in the middle.
        (relu(), -1.0, 3.0, [1, 0, Fraction(3, 4), Fraction(3, 4), 0, 3]),
        (relu(), -3.0, 1.0, [0, 0, Fraction(1, 4), Fraction(3, 4), 0, 1]),
        # 2/3 is rounded down, so the line is moved up to touch the left end.
        (relu(), -1.0, 2.0, [1, 0, CHORD, 2 - 2 * CHORD, 0, 2]),
        # A concave function has its chord below.
        (clip(-np.inf, 0.0), -1.0, 3.0, [Fraction(1, 4), Fraction(-3, 4), 0, 0, -1, 0]),
        # In |z| − 1, no piece is above.
        (piecewise("v", [0], [-1, 1], [-1, -1]), -2.0, 2.0, [-1, -1, 0, 1, -1, 1]),
        # The three pieces of a clip; the interval contains both breaks.
        (clip(0.0, 1.0), -1.0, 2.0, [THIRD, 0, THIRD, 1 - THIRD, 0, 1]),
        (clip(0.0, 1.0), -0.5, 1.5, [HALF, 0, HALF, HALF, 0, 1]),
        # One break only is inside.
        (clip(0.0, 1.0), 0.5, 2.5, [Fraction(1, 4), Fraction(3, 8), 0, 1, Fraction(1, 2), 1]),
        # The slope of a piece beyond the interval, 1/2, would be closer above; it is not used.
        (
            piecewise("steps", [0, 1, 10], [0, 2, 0, 0.5], [0, 0, 2, -3]),
            -3.0,
            2.0,
            [0, 0, FIFTHS, 2 - FIFTHS, 0, 2],
        ),
        (leaky_relu(0.25), -4.0, 4.0, [Fraction(1, 4), 0, Fraction(5, 8), Fraction(3, 2), -1, 4]),
    ],
)
def test_the_closest_lines_in_the_middle_are_chosen(
    activation: Activation, low: float, high: float, expected: list[Fraction]
) -> None:
    lines = enclosed(activation, low, high)
    assert numbers(lines) == expected
    assert not lines.is_affine


@pytest.mark.parametrize(
    ("low", "high", "slope", "intercept"),
    [
        (-3.0, -1.0, 0.0, -1.0),
        (-3.0, -1.5, 0.0, -1.0),
        (-1.0, 1.0, 1.0, 0.0),
        (-0.5, 0.5, 1.0, 0.0),
        (1.0, 5.0, 0.0, 1.0),
        (-1.0, -1.0, 1.0, 0.0),
        (1.0, 1.0, 0.0, 1.0),
        (0.25, 0.25, 1.0, 0.0),
    ],
)
def test_within_one_piece_both_lines_are_the_piece(
    low: float, high: float, slope: float, intercept: float
) -> None:
    """A clip to [−1, 1]; the ends of an interval may be on its breaks."""
    lines = enclosed(clip(-1.0, 1.0), low, high)
    ends = [max(-1.0, min(1.0, at)) for at in (low, high)]
    assert numbers(lines) == [slope, intercept, slope, intercept, min(ends), max(ends)]
    assert lines.is_affine


@pytest.mark.parametrize(("low", "high"), [(-1.0, np.nextafter(1.0, 2)), (-1 - 2**-52, 1.0)])
def test_one_float64_beyond_a_break_is_not_affine(low: float, high: float) -> None:
    assert not enclosed(clip(-1.0, 1.0), low, high).is_affine


def test_neurons_have_their_own_lines() -> None:
    lines = Enclosed.of(
        layer_of(prelu([0.5, -1.0, 0.25]), 3), exact([-4.0, -3.0, 1.0]), exact([-1.0, 1.0, 2.0])
    )
    assert lines.low_slope.fractions() == [Fraction(1, 2), -1, 1]
    assert lines.low_intercept.fractions() == [0, 0, 0]
    assert lines.high_slope.fractions() == [Fraction(1, 2), Fraction(-1, 2), 1]
    assert lines.high_intercept.fractions() == [0, Fraction(3, 2), 0]
    assert lines.lowest.fractions() == [-2, 0, 1]
    assert lines.highest.fractions() == [Fraction(-1, 2), 3, 2]
    assert not lines.is_affine
    stable = Enclosed.of(layer_of(relu(), 2), exact([0.0, -5.0]), exact([4.0, 0.0]))
    assert stable.is_affine


EIGHTHS = st.integers(-40, 40).map(lambda number: number / 8)


@st.composite
def activations(draw: st.DrawFn) -> Activation:
    """Draw any continuous function of up to four pieces, with breaks and slopes in eighths."""
    breaks = sorted(draw(st.sets(EIGHTHS, max_size=3)))
    slopes = draw(st.lists(EIGHTHS, min_size=len(breaks) + 1, max_size=len(breaks) + 1))
    intercepts = [draw(EIGHTHS)]
    for at, before, after in zip(breaks, slopes[:-1], slopes[1:], strict=True):
        intercepts.append(intercepts[-1] + (before - after) * at)
    return piecewise("any", breaks, slopes, intercepts)


@given(activation=activations(), ends=st.tuples(EIGHTHS, EIGHTHS), scale=st.integers(0, 80))
@settings(max_examples=150, deadline=None)
def test_the_lines_and_the_range_enclose_the_function(
    activation: Activation, ends: tuple[float, float], scale: int
) -> None:
    """The ends are moved by 2^−scale, so that they have other exponents than the breaks."""
    low, high = sorted(ends)
    low, high = low - 2.0**-scale, high + 2.0**-scale
    lines = enclosed(activation, low, high)
    below_slope, below, above_slope, above, lowest, highest = numbers(lines)
    layer, start, stop = layer_of(activation), Fraction(low), Fraction(high)
    inside = [Fraction(float(at)) for at in activation.breaks[:, 0] if low < at < high]
    points = [start, *inside, stop, (start + stop) / 2]
    values = []
    for point in points:
        # A point may have more bits than float64.
        exponent = 1 - point.denominator.bit_length()
        number = Dyadic(np.array([[point.numerator]], dtype=object), exponent)
        value = layer.activate(number).fractions()[0]
        assert below_slope * point + below <= value <= above_slope * point + above
        assert lowest <= value <= highest
        values.append(value)
    assert (lowest, highest) == (min(values), max(values))
    # No line is farther away than it must be: it touches the function.
    gaps = [
        value - below_slope * point - below for point, value in zip(points, values, strict=True)
    ]
    assert min(gaps) == 0
    gaps = [
        above_slope * point + above - value for point, value in zip(points, values, strict=True)
    ]
    assert min(gaps) == 0
    assert lines.is_affine == (not inside)
