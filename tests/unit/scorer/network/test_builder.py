from fractions import Fraction

import numpy as np
import pytest

from feta import NetworkError
from feta.scorer.network.activation import Maxout, Step, clip, hardsigmoid, prelu, relu
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.exact import ExactNetwork
from feta.scorer.network.fold import BatchNorm

ONE = np.ones(1)


def test_an_empty_builder_is_refused() -> None:
    builder = NetworkBuilder()
    assert builder.width is None
    with pytest.raises(NetworkError, match="needs at least one affine layer: got none"):
        builder.network()
    with pytest.raises(
        NetworkError, match=r"invalid position of the step: .*; expected an affine layer"
    ):
        builder.activate(relu(), "the step")


def test_adjacent_layers_have_the_identity_between() -> None:
    builder = NetworkBuilder()
    builder.linear(np.array([[2.0], [1.0]]), np.array([-1.0, 3.0]))
    builder.linear(np.array([[3.0, 1.0]]), ONE)
    network = builder.network()
    assert [activation.name for activation in network.activations] == ["identity"]
    assert network(np.array([[0.0], [-1.0]])).tolist() == [[1.0], [-6.0]]


def test_a_scaling_before_a_layer_is_folded_into_it() -> None:
    builder = NetworkBuilder()
    builder.linear(np.diag([2.0, 0.5]), np.array([-1.0, 3.0]))
    builder.linear(np.array([[3.0, 1.0]]), ONE)
    network = builder.network()
    assert network.layers == ()
    assert network(np.array([[1.0, 2.0]])).tolist() == [[3.0 + 4.0 + 1.0]]


@pytest.mark.parametrize("pool", [2, 3, 4, 6])
def test_maxout_takes_the_largest_of_each_group(pool: int) -> None:
    builder = NetworkBuilder()
    builder.linear(np.eye(12), np.zeros(12))
    builder.activate(Maxout(pool), "maxout")
    values = np.random.default_rng(0).integers(-99, 99, (50, 12)).astype(np.float64)
    expected = values.reshape(50, -1, pool).max(axis=2)
    np.testing.assert_array_equal(builder.network()(values), expected)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Maxout(5), "invalid groups of the step: got 2 values and groups of 5"),
        (Maxout(0), "invalid groups of the step: got 2 values and groups of 0"),
        (Maxout(1), "invalid groups of the step: got 2 values and groups of 1"),
        (prelu([0.1, 0.2, 0.3]), "wrong width of the step: got 3 neurons; expected 1 or 2"),
    ],
)
def test_an_activation_must_fit_the_values_before_it(step: Step, message: str) -> None:
    builder = NetworkBuilder()
    builder.linear(np.ones((2, 1)), np.zeros(2))
    with pytest.raises(NetworkError, match=message):
        builder.activate(step, "the step")


def test_an_activation_at_the_end_is_kept() -> None:
    builder = NetworkBuilder()
    builder.linear(np.array([[1.0]]), 0 * ONE)
    builder.activate(relu(), "relu")
    builder.activate(relu(), "relu")
    network = builder.network(source="float64", sigmoid=True, equality="below")
    assert network(np.array([[-1.0], [2.0]])).tolist() == [[0.0], [2.0]]
    assert (network.source, network.sigmoid, network.equality) == ("float64", True, "below")


def test_a_batch_norm_must_fit_the_values_before_it() -> None:
    builder = NetworkBuilder()
    builder.linear(np.ones((2, 1)), np.zeros(2))
    with pytest.raises(
        NetworkError, match="wrong width of the batch norm: got 1 values; expected 2"
    ):
        builder.batch_norm(BatchNorm(ONE, ONE, ONE, ONE, 0.0))


@pytest.mark.parametrize("pool", [2, 3, 5])
def test_maxout_is_exact_even_if_float64_would_round(pool: int) -> None:
    """In float64, (a − b) + b differs from a if b is much larger."""
    builder = NetworkBuilder()
    builder.linear(np.eye(2 * pool), np.zeros(2 * pool))
    builder.activate(Maxout(pool), "maxout")
    rng = np.random.default_rng(pool)
    values = rng.normal(size=(40, 2 * pool)) * 10.0 ** rng.integers(-20, 20, (40, 2 * pool))
    values[0] = 7.0  # all tie
    scores = ExactNetwork(builder.network()).scores(values).fractions()
    expected = values.reshape(40, 2, pool).max(axis=2).ravel()
    assert scores == [Fraction(value) for value in expected.tolist()]


def test_maxout_has_breaks_only_in_its_comparisons() -> None:
    builder = NetworkBuilder()
    builder.linear(np.eye(3), np.zeros(3))
    builder.activate(Maxout(3), "maxout")
    names = [activation.name for activation in builder.network().activations]
    assert names == ["identity", "relu_or_identity"] * 2
    for layer in builder.network().layers:
        assert np.isin(layer.weight, (-1.0, 0.0, 1.0)).all()


def test_layers_and_activations_may_follow_a_maxout() -> None:
    builder = NetworkBuilder()
    builder.linear(np.array([[1.0], [-1.0], [3.0], [0.0]]), np.zeros(4))
    builder.activate(Maxout(2), "maxout")
    builder.activate(clip(0.0, 5.0), "clip")
    builder.linear(np.array([[1.0, 10.0]]), ONE)
    assert builder.width == 1
    values = np.array([[-2.0], [1.0], [7.0]])
    assert builder.network()(values).tolist() == [[2.0 + 0.0 + 1], [1 + 30 + 1], [5 + 50 + 1]]


def test_hardsigmoid_is_folded_into_the_layer_before_it() -> None:
    builder = NetworkBuilder()
    builder.linear(np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([6.0, -1.0]))
    builder.activate(hardsigmoid(), "hardsigmoid")
    network = builder.network()
    assert network.first.slopes.tolist() == [[0.5, 0.0], [0.0, float(Fraction(1, 6))]]
    assert network.first.bias.tolist() == [1.5, float(Fraction(1, 3))]
    assert [activation.name for activation in network.activations] == ["clip"]
    assert network(np.array([[-3.0, 9.0], [-2.0, -9.0], [9.0, 1.0]]))[:, 0].tolist() == [
        0.0,
        0.5,
        1.0,
    ]
    # Terms that the source adds before it divides, and that cancel, are part of its rounding error.
    assert (network.first.cancelled_magnitude >= [1.0 + 0.5, 1 / 6 + 0.5]).all()


def test_an_affine_layer_must_fit_the_batch_norm_before_it() -> None:
    builder = NetworkBuilder()
    builder.batch_norm(BatchNorm(np.zeros(3), np.ones(3), np.ones(3), np.zeros(3), 0.0))
    with pytest.raises(NetworkError, match=r"wrong (number|width) of .*: got 4.*; expected 3"):
        builder.linear(np.ones((1, 4)), ONE)


def test_the_cancelled_magnitude_of_a_batch_norm_is_kept_by_the_next() -> None:
    """The source still adds 10^6 and subtracts it again, so its rounding error is large."""
    builder = NetworkBuilder()
    builder.linear(np.ones((1, 2)), 1e6 * ONE)
    builder.batch_norm(BatchNorm(1e6 * ONE, ONE, ONE, 0 * ONE, 0.0))
    assert builder.network().first.cancelled_magnitude[0] >= 2e6
    builder.batch_norm(BatchNorm(0 * ONE, ONE, 0.5 * ONE, 0 * ONE, 0.0))
    assert builder.network().first.cancelled_magnitude[0] >= 1e6
