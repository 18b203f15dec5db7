from collections.abc import Callable

import numpy as np
import pytest

from feta import NetworkError
from feta.network.activation import (
    Activation,
    absolute,
    clip,
    identity,
    leaky_relu,
    piecewise,
    prelu,
    relu,
    relu6,
)

CLIP = piecewise("clip", [-1.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: piecewise("p", [np.nan], [0, 1], [0, 0]), "'p' must have finite numbers"),
        (lambda: piecewise("p", [0], [0, np.inf], [0, 0]), "'p' must have finite numbers"),
        (lambda: piecewise("p", [0], [0, 1], [0, np.nan]), "'p' must have finite numbers"),
        (lambda: piecewise("p", [1, 0], [0, 0, 0], [0, 0, 0]), "'p' must have ascending breaks"),
        (lambda: piecewise("p", [0, 0], [0, 0, 0], [0, 0, 0]), "'p' must have ascending breaks"),
        (
            lambda: clip(1.0, 1.0),
            "a clip must have its low limit below its high one, got 1.0 and 1",
        ),
        (lambda: clip(np.nan, 1.0), "a clip must have its low limit below its high one, got nan"),
        (lambda: piecewise("p", [2], [0, 1], [0, 0]), "'p' must be continuous, but jumps at 2"),
        (lambda: piecewise("p", [0.1], [0, 10], [1, 0]), "must be continuous, but jumps at 0.1"),
        (
            lambda: Activation(
                "two", np.zeros((1, 2)), np.array([[0, 0], [1, 1]]), np.array([[0, 0], [0, 5e-324]])
            ),
            "'two' must be continuous, but jumps at 0",
        ),
    ],
)
def test_an_activation_that_cannot_be_is_refused(
    make: Callable[[], Activation], message: str
) -> None:
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
    ],
)
def test_a_piece_holds_from_its_break_on(
    activation: Activation, value: float, result: float
) -> None:
    assert activation(np.array([[value]])).tolist() == [[result]]


@pytest.mark.parametrize("activation", [relu(), identity(), CLIP])
def test_nan_stays_nan(activation: Activation) -> None:
    assert np.isnan(activation(np.array([[np.nan]]))).all()


@pytest.mark.parametrize(
    ("activation", "pieces", "width", "steepest", "rounds"),
    [
        (relu(), 2, 1, 1.0, False),
        (identity(), 1, 1, 1.0, False),
        (CLIP, 3, 1, 1.0, False),
        (piecewise("leaky", [0], [0.01, 1], [0, 0]), 2, 1, 1.0, True),
        (piecewise("shift", [], [1], [3]), 1, 1, 1.0, True),
        (piecewise("steep", [0], [-4, 2], [0, 0]), 2, 1, 4.0, True),
    ],
)
def test_the_pieces_tell_the_rest(
    activation: Activation, pieces: int, width: int, steepest: float, *, rounds: bool
) -> None:
    assert activation.n_pieces == pieces
    assert activation.width == width
    assert activation.steepest.tolist() == [steepest]
    assert activation.rounds is rounds


def test_a_value_within_its_error_of_a_break_is_open() -> None:
    values = np.array([[-2.0, -1.0, 0.0, 1.0, 3.0, 0.5]])
    errors = np.array([[1.0, 0.0, 0.0, 0.0, 1.999, np.inf]])
    assert CLIP.pieces(values, errors).tolist() == [[-1, -1, 1, -1, 2, -1]]


def test_each_neuron_may_have_its_own_pieces() -> None:
    two = Activation(
        "two",
        np.array([[0.0, 1.0]]),
        np.array([[0.0, 0.0], [1.0, 2.0]]),
        [[0, 0], [0, -2]],  # type: ignore[arg-type]
    )
    assert two.width == 2
    assert two(np.array([[0.5, 0.5], [2.0, 2.0]])).tolist() == [[0.5, 0.0], [2.0, 2.0]]
    assert two.pieces(np.array([[0.5, 0.5]]), np.zeros((1, 2))).tolist() == [[1, 0]]
