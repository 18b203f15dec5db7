import numpy as np
import pytest

from feta import NetworkError
from feta.network.activation import Maxout, Step, prelu, relu
from feta.network.builder import NetworkBuilder
from feta.network.fold import BatchNorm

ONE = np.ones(1)


def test_nothing_makes_no_network() -> None:
    builder = NetworkBuilder()
    assert builder.width is None
    with pytest.raises(NetworkError, match="must have at least one affine layer, got none"):
        builder.network()
    with pytest.raises(NetworkError, match="the bend must follow an affine layer"):
        builder.activate(relu(), "the bend")


def test_layers_in_a_row_have_the_identity_between() -> None:
    builder = NetworkBuilder()
    builder.linear(np.array([[2.0], [1.0]]), np.array([-1.0, 3.0]))
    builder.linear(np.array([[3.0, 1.0]]), ONE)
    network = builder.network()
    assert [one.name for one in network.activations] == ["identity"]
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
    due = values.reshape(50, -1, pool).max(axis=2)
    np.testing.assert_array_equal(builder.network()(values), due)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Maxout(5), "the bend must have groups of 5 values, got 2 values"),
        (Maxout(1), "the bend must have groups of 1 values, got 2 values"),
        (prelu([0.1, 0.2, 0.3]), "the bend must fit 2 neurons, got 3"),
    ],
)
def test_an_activation_must_fit_the_values_before_it(step: Step, message: str) -> None:
    builder = NetworkBuilder()
    builder.linear(np.ones((2, 1)), np.zeros(2))
    with pytest.raises(NetworkError, match=message):
        builder.activate(step, "the bend")


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
    with pytest.raises(NetworkError, match=r"2 .*, got 1"):
        builder.batch_norm(BatchNorm(ONE, ONE, ONE, ONE, 0.0))
