from collections.abc import Callable

import numpy as np
import pytest

from feta import DomainError, Network, NetworkError
from feta.scorer.network.activation import Activation, identity, relu
from feta.scorer.network.layers import Affine, Columns, LookupTable

TWO = Activation("two", np.zeros((1, 2)), np.array([[0, 0], [1, 1]]), np.zeros((2, 2)))
FIRST = ([[1.0, -1.0], [0.5, 2.0]], [0.0, 1.0])
LAST = ([[1.0, -3.0]], [0.25])
THREE = (np.ones((1, 3)), np.zeros(1))
NETWORK = Network.from_layers([FIRST, LAST])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Network.from_layers([]), "a network needs at least one layer: got none"),
        (
            lambda: Network.from_layers([([1.0, 2.0], [0.0])]),
            r"invalid shapes of layer 1: got \(2,\) and \(1,\); expected a weight matrix",
        ),
        (
            lambda: Network.from_layers([FIRST, ([[1.0, 1.0]], 0.0)]),
            r"invalid shapes of layer 2: got \(1, 2\) and \(\); expected",
        ),
        (
            lambda: Network.from_layers([(np.zeros((0, 2)), [])]),
            r"invalid shapes of layer 1: got \(0, 2\) and \(0,\); expected",
        ),
        (
            lambda: Network.from_layers([([[1.0, np.nan]], [0.0])]),
            r"invalid weights of layer 1: got nan at \(0, 1\); expected finite",
        ),
        (
            lambda: Network.from_layers([FIRST, ([[1.0, 1.0]], [-np.inf])]),
            r"invalid bias of layer 2: got -inf at \(0,\); expected finite",
        ),
        (
            lambda: Network.from_layers([FIRST, LAST], activation=[]),
            "wrong number of activations: got 0; expected 1 for 2 layers",
        ),
        (
            lambda: Network.from_layers([FIRST, LAST], activation="Relu"),
            r"unknown activation: got 'Relu'; expected one of .*; did you mean 'relu'\?",
        ),
        (
            lambda: Network.from_layers([FIRST, LAST], activation="exp"),
            "the activation 'exp' is not piecewise-linear.* retrain with 'softplus'",
        ),
        (
            lambda: Network(Columns(np.zeros(3), np.ones((3, 1))), (TWO,), (Affine(*THREE),)),
            "wrong width of the activation 'two' before layer 2: got 2 neurons; expected 1 or 3",
        ),
        (
            lambda: Network.from_layers([FIRST, ([[1.0]], [0.0])]),
            "wrong number of inputs of layer 2: got 1; expected 2",
        ),
        (
            lambda: Network.from_layers(
                [([[1.0]] * 3, [0.0] * 3), ([[1.0] * 3], [0.0])], activation=TWO
            ),
            "wrong width of the activation before layer 2: got 2 neurons; expected 1 or 3",
        ),
        (
            lambda: Network.from_layers([LAST], source="float16"),  # type: ignore[arg-type]
            r"invalid source: got 'float16'; expected one of 'float32', 'float64'; "
            r"did you mean 'float\d\d'\?",
        ),
        (
            lambda: Network.from_layers([LAST], equality="abov"),  # type: ignore[arg-type]
            r"invalid equality: got 'abov'; expected one of 'above', 'below', None; "
            r"did you mean 'above'\?",
        ),
        (
            lambda: Network.from_layers([([[1.0, 2.0], [3.0]], [0.0, 0.0])]),
            "invalid arrays of layer 1: expected rows of numbers of equal length",
        ),
        (
            lambda: Network.from_layers([FIRST, FIRST, LAST], activation=["relu"]),
            "wrong number of activations: got 1; expected 2 for 3 layers",
        ),
        (
            lambda: Network(NETWORK.first, (relu(), relu()), NETWORK.layers),
            "wrong number of activations: got .*, one before each layer but the first",
        ),
        (
            lambda: Columns(np.zeros(2), np.zeros((1, 2))),
            r"invalid shapes of the first layer: got \(1, 2\) and \(2,\); expected",
        ),
        (
            lambda: Affine(np.zeros((1, 2)), np.array([np.inf])),
            r"invalid bias of a layer: got inf at \(0,\); expected finite",
        ),
        (
            lambda: LookupTable(3, np.zeros(2), np.zeros((2, 1))),
            "invalid table of column 3: got .*; expected ascending values and one row per value",
        ),
        (
            lambda: LookupTable(3, np.arange(2.0), np.zeros((3, 1))),
            "invalid table of column 3: got .*; expected ascending values and one row per value",
        ),
        (
            lambda: LookupTable(3, np.arange(2.0), np.array([[0.0], [np.nan]])),
            r"invalid table of column 3: got nan at \(1, 0\); expected finite",
        ),
        (
            lambda: Columns(
                np.zeros(1), np.ones((1, 2)), (LookupTable(1, np.arange(2.0), np.zeros((2, 1))),)
            ),
            "invalid table of column 1: .* that has a slope or a table of 1 outputs",
        ),
        (
            lambda: Columns(
                np.zeros(1), np.zeros((1, 2)), (LookupTable(1, np.arange(2.0), np.zeros((2, 2))),)
            ),
            "invalid table of column 1: .* that has a slope or a table of 1 outputs",
        ),
    ],
)
def test_an_invalid_network_is_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        make()


def test_a_network_is_first_then_activation_then_layer() -> None:
    people = np.array([[1.0, 2.0], [3.0, -1.0]])
    assert NETWORK(people).tolist() == [[0 - 3 * 5.5 + 0.25], [4.0 - 3 * 0.5 + 0.25]]
    assert (NETWORK.width, NETWORK.outputs) == (2, 1)
    linear = Network.from_layers([FIRST, LAST], activation="identity")
    assert linear(people).tolist() == [[-1 - 3 * 5.5 + 0.25], [4.0 - 3 * 0.5 + 0.25]]


def test_a_network_is_read_only() -> None:
    weight = np.ones((1, 2))
    network = Network.from_layers([(weight, [-0.0])])
    weight[0, 0] = 7.0
    assert network.first.slopes.tolist() == [[1.0, 1.0]]
    assert not network.first.slopes.flags.writeable
    assert not np.signbit(network.first.bias).any()


def test_the_difference_is_the_second_output_minus_the_first() -> None:
    network = Network.from_layers([([[1.0, 0.0], [0.0, 3.0]], [0.0, 0.5])], equality="below")
    difference = network.difference()
    assert difference(np.array([[2.0, 1.0]])).tolist() == [[1.5]]
    assert (difference.outputs, difference.equality) == (1, "below")


def test_a_table_gives_the_stored_row_of_each_value() -> None:
    table = LookupTable(1, np.array([0.0, 0.5, 2.0]), np.array([[1.0], [-1.0], [10.0]]))
    network = Network(Columns(np.array([0.25]), np.array([[1.0, 0.0]]), (table,)), (), ())
    people = np.array([[1.0, 2.0], [1.0, -0.0], [2.0, 0.5]])
    assert network(people).tolist() == [[11.25], [2.25], [1.25]]
    values, sizes = network.first.terms(people, [0, 1])
    assert (sizes >= np.abs(values)).all()
    assert network.first.terms(people[:, :1], [0])[0].tolist() == [[1.0], [1.0], [2.0]]


@pytest.mark.parametrize("value", [-1.0, 0.25, np.nextafter(2.0, 3), 3.0, np.nan])
def test_a_value_that_is_not_in_the_table_is_refused(value: float) -> None:
    table = LookupTable(7, np.array([0.0, 0.5, 2.0]), np.zeros((3, 1)))
    with pytest.raises(DomainError, match="unknown value in column 7: got"):
        table.indices(np.array([0.5, value]))


@pytest.mark.parametrize(
    "other",
    [
        Network.from_layers([FIRST, LAST], source="float64"),
        Network.from_layers([FIRST, LAST], equality="above"),
        Network.from_layers([FIRST, LAST], sigmoid=True),
        Network.from_layers([FIRST, LAST], activation="identity"),
        Network.from_layers([FIRST, ([[1.0, np.nextafter(-3.0, 0)]], [0.25])]),
        Network.from_layers([FIRST, (LAST[0], [0.5])]),
        NETWORK.then(identity(), Affine(np.eye(1), np.zeros(1))),
        Network(
            Columns(NETWORK.first.bias, NETWORK.first.slopes, (), np.ones(2)),
            NETWORK.activations,
            NETWORK.layers,
        ),
    ],
)
def test_any_two_networks_have_different_fingerprints(other: Network) -> None:
    assert other.fingerprint != NETWORK.fingerprint
    assert Network.from_layers([FIRST, LAST]).fingerprint == NETWORK.fingerprint


def test_a_fingerprint_depends_on_tables_and_shapes() -> None:
    rows = np.array([[1.0], [2.0]])
    prints = {
        Network(
            Columns(np.zeros(1), np.zeros((1, 2)), (LookupTable(column, numbers, rows),)), (), ()
        ).fingerprint
        for column in (0, 1)
        for numbers in (np.array([0.0, 1.0]), np.array([0.0, 2.0]))
    }
    assert len(prints) == 4
    wide, tall = np.zeros((1, 2)), np.zeros((2, 1))
    assert (
        Network.from_layers([(wide, [0.0])]).fingerprint
        != Network.from_layers([(tall, [0.0, 0.0])]).fingerprint
    )


@pytest.mark.parametrize("cancelled_magnitude", [[-1e25], [np.nan], [0.0, 0.0, 0.0], [[0.0]]])
def test_magnitudes_that_would_shrink_an_error_bound_are_refused(
    cancelled_magnitude: list[float],
) -> None:
    with pytest.raises(
        NetworkError, match=r"invalid cancelled magnitude of .*; expected 0 or more"
    ):
        Columns(np.zeros(2), np.ones((2, 1)), (), np.array(cancelled_magnitude))
    with pytest.raises(
        NetworkError, match=r"invalid cancelled magnitude of .*; expected 0 or more"
    ):
        Affine(np.ones((2, 1)), np.zeros(2), np.array(cancelled_magnitude))
