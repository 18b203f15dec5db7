from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from feta import Network, NetworkError
from feta.scorer.network.fold import (
    BatchNorm,
    fold_after,
    fold_batch_norm,
    fold_before,
    fold_scaling,
)
from feta.scorer.network.layers import Affine, Columns, LookupTable

NETWORK = Network.from_layers(
    [([[0.1, -0.7, 3.0], [1.3, 0.0, -2.0]], [0.3, -0.9]), ([[1.0, 1.0]], [0.0])]
)


def test_scaling_is_folded_with_one_rounding() -> None:
    centers, scales = [35.5, 0.1, 0.0], [49.0, -7.7, 1.0]
    first = fold_scaling(NETWORK, centers, scales).first
    for neuron in range(2):
        slopes = [
            Fraction(float(w)) / Fraction(s)
            for w, s in zip(NETWORK.first.slopes[neuron], scales, strict=True)
        ]
        assert first.slopes[neuron].tolist() == [float(slope) for slope in slopes]
        cancelled = sum(
            slope * Fraction(center) for slope, center in zip(slopes, centers, strict=True)
        )
        assert first.bias[neuron] == float(Fraction(float(NETWORK.first.bias[neuron])) - cancelled)
        assert first.cancelled_magnitude[neuron] >= abs(float(cancelled)) + abs(
            NETWORK.first.bias[neuron]
        )


def test_the_identity_scaling_changes_no_number() -> None:
    folded = fold_scaling(NETWORK, [0, 0, 0], [1, 1, 1])
    assert folded.first.slopes.tobytes() == NETWORK.first.slopes.tobytes()
    assert folded.first.bias.tobytes() == NETWORK.first.bias.tobytes()
    assert folded.layers == NETWORK.layers


def test_a_folded_network_scores_people_in_raw_units() -> None:
    centers, scales = np.array([40.0, -1.0, 5.0]), np.array([10.0, 0.3, 2.0])
    people = np.random.default_rng(0).normal(size=(20, 3)) * scales + centers
    folded = fold_scaling(NETWORK, centers.tolist(), scales.tolist())
    np.testing.assert_allclose(folded(people), NETWORK((people - centers) / scales), rtol=1e-12)


@pytest.mark.parametrize(
    ("centers", "scales", "message"),
    [
        (
            [0.0] * 2,
            [1.0] * 3,
            "wrong number of centers or scales: got 2 and 3; expected 3 of each",
        ),
        ([], [], "wrong number of centers or scales: got 0 and 0; expected 3 of each"),
        ([0.0, np.nan, 0.0], [1.0] * 3, "invalid scaling of column 1: got the center nan"),
        ([0.0] * 3, [1.0, 0.0, 1.0], "column 1: .* the scale 0.0; .* a scale other than 0"),
        ([0.0] * 3, [1.0, 1.0, np.inf], "column 2: .* inf; expected finite numbers"),
    ],
)
def test_an_invalid_scaling_is_rejected(
    centers: list[float], scales: list[float], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        fold_scaling(NETWORK, centers, scales)


def test_a_batch_norm_with_an_exact_root_folds_exactly() -> None:
    norm = BatchNorm(
        np.array([1.0]), np.array([3.75]), np.array([-1.0]), np.array([3.0]), epsilon=0.25
    )
    folded = fold_batch_norm(Affine(np.array([[8.0, -2.0]]), np.array([5.0])), norm)
    assert folded.weight.tolist() == [[-4.0, 1.0]]
    assert folded.bias.tolist() == [1.0]
    assert folded.cancelled_magnitude[0] >= 0.5 * (5.0 + 1.0) + 3.0


def test_the_factor_of_a_batch_norm_has_many_correct_digits() -> None:
    norm = BatchNorm(np.zeros(1), np.array([2.0]), np.ones(1), np.zeros(1), epsilon=0.0)
    assert abs(norm.factor(0) ** 2 * 2 - 1) < Fraction(1, 10**55)


def test_folding_a_batch_norm_does_not_change_its_layer() -> None:
    layer, ones = Affine(np.ones((1, 1)), np.ones(1)), np.ones(1)
    fold_batch_norm(layer, BatchNorm(ones, ones, 3 * ones, ones, epsilon=0.0))
    assert layer.weight.tolist() == [[1.0]]
    assert layer.bias.tolist() == [1.0]


@pytest.mark.parametrize(("variance", "epsilon"), [(0.0, 0.0), (-1.0, 0.5)])
def test_a_batch_norm_without_spread_is_refused(variance: float, epsilon: float) -> None:
    ones = np.ones(1)
    norm = BatchNorm(ones, np.array([variance]), ones, ones, epsilon)
    with pytest.raises(
        NetworkError, match=r"got variance \+ epsilon = -?0.*; expected more than 0"
    ):
        fold_batch_norm(Affine(np.ones((1, 1)), ones), norm)


def test_a_factor_after_a_layer_is_folded_with_one_rounding() -> None:
    layer = Affine(np.array([[0.1, -3.0]]), np.array([0.7]), np.array([5.0]))
    factor, shift = Fraction(1, 6), Fraction(1, 2)
    folded = fold_after(layer, factor, shift)
    assert folded.weight.tolist() == [[float(Fraction(0.1) / 6), -0.5]]
    assert folded.bias.tolist() == [float(Fraction(0.7) / 6 + shift)]
    assert folded.cancelled_magnitude[0] >= (0.7 + 5.0) / 6 + 0.5


def test_a_scaling_before_a_layer_is_folded_with_one_rounding() -> None:
    scaling = Affine(np.diag([0.1, 3.0]), np.array([0.3, -1e6]), np.array([2.0]))
    folded = fold_before(scaling, np.array([[0.7, 1.0]]), np.array([1e6]))
    assert folded.weight.tolist() == [[float(Fraction(0.7) * Fraction(0.1)), 3.0]]
    assert folded.bias.tolist() == [float(Fraction(0.7) * Fraction(0.3))]
    assert folded.cancelled_magnitude[0] >= 0.7 * 2.3 + 1e6 + 2.0 + 1e6


@pytest.mark.parametrize(
    "fold",
    [
        lambda: fold_scaling(NETWORK, [0.0] * 3, [1e-310, 1.0, 1.0]),
        lambda: fold_after(Affine(np.array([[1e200]]), np.zeros(1)), Fraction(10**200), Fraction()),
        lambda: fold_before(
            Affine(np.array([[1e200]]), np.zeros(1)), np.array([[1e200]]), np.zeros(1)
        ),
        lambda: fold_batch_norm(
            Affine(np.array([[1e308]]), np.zeros(1)),
            BatchNorm(np.zeros(1), np.array([1e-300]), np.ones(1), np.zeros(1), 0.0),
        ),
    ],
)
def test_a_weight_that_overflows_float64_is_refused(fold: Callable[[], object]) -> None:
    with pytest.raises(NetworkError, match="got a number beyond float64; rescale the weights"):
        fold()


def test_a_column_of_a_table_is_not_scaled() -> None:
    table = LookupTable(0, np.array([0.0, 1.0]), np.array([[1.0], [2.0]]))
    network = Network(Columns(np.zeros(1), np.zeros((1, 2)), (table,)), (), ())
    with pytest.raises(NetworkError, match="expected neither, because the network looks up"):
        fold_scaling(network, [18.0, 0.0], [1.0, 1.0])
    with pytest.raises(NetworkError, match="expected neither, because the network looks up"):
        fold_scaling(network, [0.0, 0.0], [2.0, 1.0])
    assert fold_scaling(network, [0.0, 3.0], [1.0, 2.0]).first.tables == (table,)
