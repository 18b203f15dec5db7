from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from feta import Network, NetworkError
from feta.scorer.network.activation import (
    NAMED,
    SMOOTH,
    Activation,
    Scaled,
    absolute,
    clip,
    hardsigmoid,
    identity,
    leaky_relu,
    piecewise,
    prelu,
    relu,
    relu6,
)
from feta.scorer.network.exact import ExactNetwork
from feta.scorer.network.smooth.activation import NAMED_SMOOTH

CLIP = piecewise("clip", [-1.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: piecewise("p", [np.nan], [0, 1], [0, 0]),
            "invalid numbers of activation 'p': .*; expected finite",
        ),
        (
            lambda: piecewise("p", [0], [0, np.inf], [0, 0]),
            "invalid numbers of activation 'p': .*; expected finite",
        ),
        (
            lambda: piecewise("p", [0], [0, 1], [0, np.nan]),
            "invalid numbers of activation 'p': .*; expected finite",
        ),
        (
            lambda: piecewise("p", [1, 0], [0, 0, 0], [0, 0, 0]),
            "invalid breaks of activation 'p': .*; expected ascending",
        ),
        (
            lambda: piecewise("p", [0, 0], [0, 0, 0], [0, 0, 0]),
            "invalid breaks of activation 'p': .*; expected ascending",
        ),
        (
            lambda: Activation("p", np.zeros((0, 1)), np.zeros((0, 1)), np.zeros((0, 1))),
            "invalid pieces of activation 'p': .*; expected 1 to 100 slopes and as many",
        ),
        (
            lambda: piecewise("p", range(100), [0] * 101, [0] * 101),
            "invalid pieces of activation 'p': .*; expected 1 to 100 slopes and as many",
        ),
        (
            lambda: piecewise("p", [0], [0, 1], [0]),
            "invalid pieces of activation 'p': .*; expected 1 to 100 slopes and as many",
        ),
        (
            lambda: piecewise("p", [], [0, 1], [0, 0]),
            r"invalid breaks of activation 'p': got the shape .*; expected \(1, 1\)",
        ),
        (
            lambda: piecewise("p", [0, 1], [0, 1], [0, 0]),
            r"invalid breaks of activation 'p': got the shape .*; expected \(1, 1\)",
        ),
        (
            lambda: Activation("p", np.zeros((1, 1)), np.zeros((2, 3)), np.zeros((2, 3))),
            r"invalid breaks of activation 'p': got the shape \(1, 1\); expected \(1, 3\)",
        ),
        (
            lambda: prelu([[0.1, 0.2]]),
            r"invalid arrays of activation 'prelu': got the shapes .*; expected \(pieces, ",
        ),
        (lambda: leaky_relu(np.nan), "invalid numbers of activation 'leaky_relu'"),
        (lambda: prelu([0.1, np.inf]), "invalid numbers of activation 'prelu'"),
        (lambda: clip(np.inf, np.inf), "invalid limits of a clip: got inf and inf; expected"),
        (lambda: clip(2.0, 1.0), r"invalid limits of a clip: got 2\.0 and 1\.0; expected"),
        (
            lambda: clip(1.0, 1.0),
            "invalid limits of a clip: got 1.0 and 1",
        ),
        (lambda: clip(np.nan, 1.0), "invalid limits of a clip: got nan and 1.0; expected"),
        (
            lambda: piecewise("p", [2], [0, 1], [0, 0]),
            "activation 'p' is not continuous: got a jump at 2",
        ),
        (lambda: piecewise("p", [0.1], [0, 10], [1, 0]), "is not continuous: got a jump at 0.1"),
        (
            lambda: Activation(
                "two", np.zeros((1, 2)), np.array([[0, 0], [1, 1]]), np.array([[0, 0], [0, 5e-324]])
            ),
            "activation 'two' is not continuous: got a jump at 0",
        ),
    ],
)
def test_an_invalid_activation_is_rejected(make: Callable[[], Activation], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        make()


@pytest.mark.parametrize(
    ("activation", "value", "result"),
    [
        (relu(), -0.0, 0.0),
        (relu(), -5e-324, 0.0),
        (relu(), 5e-324, 5e-324),
        (identity(), -3.5, -3.5),
        (CLIP, -1.0, -1.0),
        (CLIP, np.nextafter(1.0, 0), np.nextafter(1.0, 0)),
        (CLIP, 1.0, 1.0),
        (CLIP, 1e300, 1.0),
        (leaky_relu(0.25), -4.0, -1.0),
        (prelu([0.5]), -4.0, -2.0),
        (absolute(), -4.0, 4.0),
        (clip(), -4.0, -1.0),
        (clip(-np.inf, 2.0), -1e300, -1e300),
        (clip(2.0, np.inf), -1.0, 2.0),
        (clip(-np.inf, np.inf), -7.0, -7.0),
        (relu6(), 6.5, 6.0),
        (relu6(), 6.0, 6.0),
        (relu6(), -1.0, 0.0),
        (leaky_relu(), -100.0, -1.0),
        (leaky_relu(2.0), -5e-324, -1e-323),
        (absolute(), -5e-324, 5e-324),
        (clip(-np.inf, 2.0), np.nextafter(2.0, 3), 2.0),
        (clip(2.0, np.inf), 1e300, 1e300),
    ],
)
def test_a_piece_starts_at_its_break(activation: Activation, value: float, result: float) -> None:
    assert activation(np.array([[value]])).tolist() == [[result]]


@pytest.mark.parametrize("activation", [relu(), identity(), CLIP])
def test_nan_remains_nan(activation: Activation) -> None:
    assert np.isnan(activation(np.array([[np.nan]]))).all()


@pytest.mark.parametrize(
    ("activation", "pieces", "width", "steepest", "rounds"),
    [
        (relu(), 2, 1, 1.0, False),
        (identity(), 1, 1, 1.0, False),
        (CLIP, 3, 1, 1.0, False),
        (piecewise("leaky", [0], [0.01, 1], [0, 0]), 2, 1, 1.0, True),
        (leaky_relu(), 2, 1, 1.0, True),
        (leaky_relu(-3.0), 2, 1, 3.0, True),
        (absolute(), 2, 1, 1.0, False),
        (prelu([0.5]), 2, 1, 1.0, True),
        (clip(), 3, 1, 1.0, False),
        (clip(-np.inf, 2.0), 2, 1, 1.0, False),
        (clip(2.0, np.inf), 2, 1, 1.0, False),
        (clip(-np.inf, np.inf), 1, 1, 1.0, False),
        (relu6(), 3, 1, 1.0, False),
        (piecewise("shift", [], [1], [3]), 1, 1, 1.0, True),
        (piecewise("steep", [0], [-4, 2], [0, 0]), 2, 1, 4.0, True),
    ],
)
def test_properties_follow_from_the_pieces(
    activation: Activation, pieces: int, width: int, steepest: float, *, rounds: bool
) -> None:
    assert activation.n_pieces == pieces
    assert activation.width == width
    assert activation.steepest.tolist() == [steepest]
    assert activation.rounds is rounds


def test_a_value_within_its_error_of_a_break_is_undecided() -> None:
    values = np.array([[-2.0, -1.0, 0.0, 1.0, 3.0, 0.5]])
    errors = np.array([[1.0, 0.0, 0.0, 0.0, 1.999, np.inf]])
    assert CLIP.pieces(values, errors).tolist() == [[-1, -1, 1, -1, 2, -1]]


def test_neurons_may_have_different_pieces() -> None:
    activation = Activation(
        "two",
        np.array([[0.0, 1.0]]),
        np.array([[0.0, 0.0], [1.0, 2.0]]),
        [[0, 0], [0, -2]],  # type: ignore[arg-type]
    )
    assert activation.width == 2
    assert activation(np.array([[0.5, 0.5], [2.0, 2.0]])).tolist() == [[0.5, 0.0], [2.0, 2.0]]
    assert activation.pieces(np.array([[0.5, 0.5]]), np.zeros((1, 2))).tolist() == [[1, 0]]


ALL = [
    relu(),
    identity(),
    leaky_relu(0.25),
    leaky_relu(-2.0),
    prelu([0.5]),
    absolute(),
    clip(),
    clip(-0.5, np.inf),
    clip(-np.inf, 0.25),
    clip(-np.inf, np.inf),
    relu6(),
    piecewise("steps", [-1.0, 0.0, 1.0], [0, 2, -2, 0], [-2, 0, 0, -2]),
]


@pytest.mark.parametrize("activation", ALL, ids=lambda case: case.name)
def test_float64_is_exact_on_simple_numbers(activation: Activation) -> None:
    network = Network.from_layers([([[1.0]], [0.0]), ([[1.0]], [0.0])], activation=activation)
    values = np.arange(-64, 65).reshape(-1, 1) / 8  # every break is among them
    exact = ExactNetwork(network).scores(values)
    assert exact.fractions() == [Fraction(value) for value in activation(values)[:, 0].tolist()]
    assert network(values).tolist() == activation(values).tolist()


@pytest.mark.parametrize("activation", ALL, ids=lambda case: case.name)
def test_a_break_belongs_to_the_piece_above_it(activation: Activation) -> None:
    for piece, break_ in enumerate(activation.breaks[:, 0].tolist()):
        around = np.array(
            [[np.nextafter(break_, -np.inf)], [break_], [np.nextafter(break_, np.inf)]]
        )
        expected = [[piece], [piece + 1], [piece + 1]]
        pieces = activation.pieces(around, np.full((3, 1), -1.0))  # nothing is undecided
        assert pieces.tolist() == expected
        assert activation.pieces(around[1:2], np.zeros((1, 1))).tolist() == [[-1]]


def test_a_hundred_pieces_are_accepted() -> None:
    stairs = piecewise("stairs", range(99), [0, 1] * 50, _stair_intercepts())
    values = np.array([[-1.0], [97.5], [1000.0]])
    assert stairs.n_pieces == 100
    assert stairs.pieces(values, np.zeros((3, 1))).tolist() == [[0], [98], [99]]


def _stair_intercepts() -> list[int]:
    """Return intercepts of a continuous stair that rises by 1 on every other piece."""
    heights = [piece // 2 for piece in range(100)]
    return [height - (piece - 1) if piece % 2 else height for piece, height in enumerate(heights)]


def test_prelu_has_one_slope_per_neuron() -> None:
    activation = prelu([0.5, -1.0, 0.0])
    assert activation.width == 3
    assert activation.steepest.tolist() == [1.0, 1.0, 1.0]
    assert activation(np.array([[-4.0, -4.0, -4.0], [4.0, 4.0, 4.0]])).tolist() == [
        [-2.0, 4.0, 0.0],
        [4.0, 4.0, 4.0],
    ]
    network = Network.from_layers(
        [(np.eye(3), [0.0] * 3), ([[1, 10, 100]], [0])], activation=activation
    )
    assert ExactNetwork(network).scores(np.full((1, 3), -4.0)).fractions() == [38]


def test_hardsigmoid_is_a_clip_of_a_scaled_layer() -> None:
    step = hardsigmoid()
    assert isinstance(step, Scaled)
    assert (step.factor, step.shift) == (Fraction(1, 6), Fraction(1, 2))
    assert step.activation.n_pieces == 3


@pytest.mark.parametrize("name", sorted(SMOOTH))
def test_a_smooth_activation_is_refused_with_an_alternative(name: str) -> None:
    message = (
        f"the activation {name!r} is not piecewise-linear, nor an activation that FETA encloses; "
        f"retrain with {SMOOTH[name]!r} in its place"
    )
    with pytest.raises(NetworkError, match=message):
        Network.from_layers([([[1.0]], [0.0]), ([[1.0]], [0.0])], activation=name)
    assert SMOOTH[name] in {**NAMED, **NAMED_SMOOTH}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_an_activation_may_be_named(name: str) -> None:
    width = 1 if name == "maxout" else 2
    layers = [(np.array([[1.0], [-1.0]]), [0.0, 0.0]), (np.ones((1, width)), [0.0])]
    expected = {
        "abs": 4.0,
        "hardsigmoid": 5 / 6 + 1 / 6,
        "hardtanh": 0.0,
        "identity": 0.0,
        "leaky_relu": 2.0 - 0.02,
        "maxout": 2.0,
        "relu": 2.0,
        "relu6": 2.0,
    }
    network = Network.from_layers(layers, activation=name)
    np.testing.assert_allclose(network(np.array([[2.0]])), [[expected[name]]], rtol=1e-12)


def test_arrays_without_a_column_are_refused() -> None:
    with pytest.raises(NetworkError, match="invalid arrays of activation 'flat'"):
        Activation("flat", np.zeros(1), np.array([0.0, 1.0]), np.zeros(2))


@pytest.mark.parametrize(
    ("activation", "low", "high"),
    [
        (relu(), 0.0, np.inf),
        (clip(-1.0, 2.5), -1.0, 2.5),
        (absolute(), 0.0, np.inf),
        (identity(), -np.inf, np.inf),
    ],
)
def test_values_are_limited_or_unlimited(activation: Activation, low: float, high: float) -> None:
    least, largest = activation.limits
    assert (least.tolist(), largest.tolist()) == ([low], [high])
