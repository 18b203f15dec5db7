"""Error bounds of the kernel, compared with those of numpy and with exact scores."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

from feta import Network
from feta.rounding import FLOAT64, SOURCE_FLOAT32, SOURCE_FLOAT64, Arithmetic
from feta.scorer.native import native
from feta.scorer.network import error_bounds, evaluation
from feta.scorer.network.activation import absolute, clip, piecewise, prelu, relu
from feta.scorer.network.exact import ExactNetwork
from feta.scorer.network.layers import Affine, Columns, LookupTable
from feta.scorer.network.native_bounds import NativeBounds
from feta.scorer.protocol import Enclosure

pytestmark = pytest.mark.skipif(native is None, reason="the kernel was not built")

BEND = piecewise("bend", [-1.0, 0.5], [0.25, 1.0, -3.0], [-0.75, 0.0, 2.0])
ACTIVATIONS = [relu(), absolute(), clip(), prelu([0.1]), BEND]


def random_network(random: np.random.Generator, scale: float) -> Network:
    """Return a network with a table, any activations, and cancelled magnitudes."""
    widths = random.integers(1, 9, 3).tolist()
    table = LookupTable(1, np.array([0.0, 1.0, 2.0]), random.normal(size=(3, widths[0])) * scale)
    slopes = random.normal(size=(widths[0], 3)) * scale
    slopes[:, 1] = 0.0
    first = Columns(random.normal(size=widths[0]), slopes, (table,), np.array([0.5]))
    layers = [
        Affine(random.normal(size=(after, before)), random.normal(size=after), np.array([0.25]))
        for before, after in zip(widths, [*widths[1:], 2], strict=True)
    ]
    chosen = random.integers(0, len(ACTIVATIONS), len(layers)).tolist()
    return Network(first, tuple(ACTIVATIONS[index] for index in chosen), tuple(layers))


def by_numpy(network: Network, people: np.ndarray, arithmetic: Arithmetic) -> Enclosure:
    values, sizes = network.first.terms(people, range(network.width))
    first = error_bounds.first_layer(network.first, values, sizes, arithmetic)
    return error_bounds.scores(network, first, arithmetic)


@pytest.mark.parametrize("arithmetic", [FLOAT64, SOURCE_FLOAT64, SOURCE_FLOAT32])
@pytest.mark.parametrize("seed", range(12))
def test_bounds_contain_exact_scores_and_are_those_of_numpy(
    seed: int, arithmetic: Arithmetic
) -> None:
    random = np.random.default_rng(seed)
    network = random_network(random, 10.0 ** random.integers(-3, 4))
    people = random.normal(size=(9, 3)) * 10.0 ** random.integers(-2, 3, (9, 3))
    people[:, 1] = random.integers(0, 3, 9)
    found = NativeBounds(network).scores(people, arithmetic)
    assert found is not None
    expected = by_numpy(network, people, arithmetic)
    # Both computations err by less than the bound; the bounds differ by their rounding.
    assert (np.abs(found.values - expected.values) <= expected.errors).all()
    np.testing.assert_allclose(found.errors, expected.errors, rtol=1e-9)
    exact = ExactNetwork(network).scores_in_python(people).fractions()
    pairs = zip(exact, found.values.ravel(), found.errors.ravel(), strict=True)
    for score, value, error in pairs:
        assert abs(score - Fraction(float(value))) <= Fraction(float(error))


def test_nothing_is_known_where_a_sum_may_overflow_or_a_number_is_none() -> None:
    network = Network.from_layers([([[1e30]], [0.0]), ([[1e30]], [0.0])])
    people = np.array([[1e5], [np.nan], [-1.0]])
    for arithmetic in (SOURCE_FLOAT32, FLOAT64):
        found = NativeBounds(network).scores(people, arithmetic)
        expected = by_numpy(network, people, arithmetic)
        assert found is not None
        assert np.isinf(found.errors).tolist() == np.isinf(expected.errors).tolist()
        assert np.isinf(found.errors[1, 0])
        assert np.isnan(found.values[1, 0])


def test_few_rows_use_the_kernel_and_many_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_network(np.random.default_rng(0), 1.0)
    people = np.zeros((evaluation.FEW_ROWS + 1, 3))
    asked: list[int] = []
    original = NativeBounds.scores

    def count(self: NativeBounds, rows: np.ndarray, arithmetic: Arithmetic) -> Enclosure | None:
        asked.append(len(rows))
        return original(self, rows, arithmetic)

    monkeypatch.setattr(NativeBounds, "scores", count)
    points = network.points(people)
    points.scores(FLOAT64)
    points.scores(FLOAT64, np.arange(2))
    assert asked == [2]


def test_arrays_of_other_shapes_are_refused() -> None:
    network = random_network(np.random.default_rng(1), 1.0)
    bounds = pickle.loads(pickle.dumps(NativeBounds(network)))
    with pytest.raises(ValueError, match="invalid people"):
        bounds.scores(np.zeros((2, 4)), FLOAT64)
    chain = native.BoundedChain(
        np.zeros((2, 3)), np.zeros((2, 3)), 0.0, np.zeros(3), np.zeros(3), np.zeros(4)
    )
    with pytest.raises(ValueError, match="invalid matrix"):
        chain.add_table(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="invalid constants"):
        native.BoundedChain(
            np.zeros((2, 3)), np.zeros((2, 3)), 0.0, np.zeros(3), np.zeros(2), np.zeros(4)
        )
