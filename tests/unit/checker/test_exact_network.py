from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feta import CertificateError, Network
from feta.arrays import Array
from feta.checker.exact_network import PIECEWISE_LINEAR, StoredLayer, StoredNetwork
from feta.checker.integers import exact
from feta.scorer.network.activation import clip, piecewise, prelu
from feta.scorer.network.layers import Columns, LookupTable
from feta.scorer.protocol import StoredScorer
from tests import oracle
from tests.examples import rescaled
from tests.strategies import Case, cases


def scores_of(network: Network, *rows: list[float]) -> list[Fraction]:
    return StoredNetwork.of(network.stored()).scores(np.array(rows)).fractions()


@given(case=cases(plain=False))
@settings(max_examples=80, deadline=None)
def test_scores_equal_those_of_the_oracle(case: Case) -> None:
    network = StoredNetwork.of(case.model.scorer.stored())
    for person in case.people:
        others = oracle.counterparts(case.model, person)
        expected = [oracle.scores(case.model, other) for other in others]
        found = network.scores(np.stack(others))
        assert found.radii is None
        assert found.fractions() == [score for row in expected for score in row]
    together = network.scores(case.people).fractions()
    assert together == [score for row in case.people for score in oracle.scores(case.model, row)]
    assert network.scores(case.people[:1]).fractions() == oracle.scores(case.model, case.people[0])


@given(case=cases(plain=False), power=st.sampled_from([30, 200]), seed=st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_neurons_of_very_different_size_are_exact(case: Case, power: int, seed: int) -> None:
    network = rescaled(case.model.network, np.random.default_rng(seed), power)
    found = StoredNetwork.of(network.stored()).scores(case.people[:1])
    assert found.fractions() == oracle.scores(case.model, case.people[0])


def test_numbers_are_never_rounded() -> None:
    """0.1 · 30 in float64 is 3; exactly it is more."""
    network = Network.from_layers([([[0.1, 5e-324]], [-3.0])])
    expected = Fraction(0.1) * 30 - 3
    assert expected > 0
    assert scores_of(network, [30.0, 0.0], [30.0, -0.0]) == [expected, expected]
    assert scores_of(network, [30.0, 1.0], [30.0, 2.0**60]) == [
        expected + Fraction(5e-324),
        expected + Fraction(5e-324) * 2**60,
    ]


def test_a_piece_starts_at_its_break() -> None:
    """Slopes 2, 3 and −1, which meet at −1 and 2; per neuron with other numbers."""
    shared = piecewise("steps", [-1.0, 2.0], [2.0, 3.0, -1.0], [0.0, 1.0, 9.0])
    network = Network.from_layers([([[1.0]], [0.0]), ([[1.0]], [0.0])], activation=shared)
    points = [-2.0, -1.0, 0.0, 2.0, 3.0]
    assert scores_of(network, *([point] for point in points)) == [-4, -2, 1, 7, 6]
    wide = Network.from_layers(
        [([[1.0], [1.0]], [0.0, 0.0]), ([[1.0, 100.0]], [0.5])], activation=prelu([-1.0, 0.25])
    )
    assert scores_of(wide, [-4.0], [4.0]) == [4 - 100 + Fraction(1, 2), 404 + Fraction(1, 2)]


def test_tables_are_looked_up_and_added() -> None:
    tables = (
        LookupTable(1, np.array([-1.0, 0.0, 2.5]), np.array([[10.0], [20.0], [30.0]])),
        LookupTable(2, np.array([7.0]), np.array([[1000.0]])),
    )
    first = Columns(np.array([0.5]), np.array([[2.0, 0.0, 0.0]]), tables)
    network = Network(first, (), ())
    found = scores_of(network, [3.0, 2.5, 7.0], [3.0, -1.0, 7.0], [3.0, -0.0, 7.0])
    assert found == [1036 + Fraction(1, 2), 1016 + Fraction(1, 2), 1026 + Fraction(1, 2)]
    assert StoredNetwork.of(network.stored()).tabled == {1, 2}
    message = r"^unknown value in column 1: got 3\.0; expected a value of the stored table$"
    with pytest.raises(CertificateError, match=message):
        scores_of(network, [3.0, 2.5, 7.0], [3.0, 3.0, 7.0])


def test_terms_of_some_columns() -> None:
    table = LookupTable(1, np.array([5.0]), np.array([[100.0, 200.0]]))
    first = Columns(np.ones(2), np.array([[1.0, 0.0, 3.0], [4.0, 0.0, 6.0]]), (table,))
    network = StoredNetwork.of(Network(first, (), ()).stored())
    assert network.terms(np.array([[10.0, 5.0]]), [2, 1]).numerators.tolist() == [[130, 260]]
    assert network.terms(np.array([[10.0]]), [0]).numerators.tolist() == [[10, 40]]
    assert network.terms(np.zeros((2, 0)), []).numerators.tolist() == [[0, 0], [0, 0]]


def layer(**arrays: list[list[float]]) -> StoredLayer:
    stored: dict[str, Array] = {
        "breaks": np.array([[0.0], [1.0]]),
        "slopes": np.array([[0.0], [1.0], [0.0]]),
        "intercepts": np.array([[0.0], [0.0], [1.0]]),
        "weight": np.ones((1, 2)),
        "bias": np.zeros(1),
    }
    return StoredLayer.of(stored | {name: np.array(array) for name, array in arrays.items()})


def test_one_function_serves_all_neurons() -> None:
    values = layer().activate(exact(np.array([[-1.0, 0.5], [0.25, 7.0]])))
    assert values.fractions() == [0, Fraction(1, 2), Fraction(1, 4), 1]


@pytest.mark.parametrize(
    "arrays",
    [
        {"breaks": [[1.0], [0.0]], "intercepts": [[0.0], [-1.0], [0.0]]},  # descending
        {"breaks": [[0.0], [0.0]], "intercepts": [[0.0], [0.0], [0.0]]},  # equal
        {"intercepts": [[2.0**-60], [0.0], [1.0]]},  # a jump at the first break
        {"intercepts": [[0.0], [0.0], [float(np.nextafter(1.0, 2))]]},  # at the last one
        {"slopes": [[0.0, 0.0], [1.0, 1.0], [0.0, 0.5]]},  # of the second neuron
    ],
)
def test_an_activation_that_is_not_continuous_is_rejected(
    arrays: dict[str, list[list[float]]],
) -> None:
    message = (
        "^invalid activation in what is re-checked: got breaks that do not ascend, or pieces that "
        "do not meet at a break; expected a continuous function$"
    )
    with pytest.raises(CertificateError, match=message):
        layer(**arrays)


DEEP = Network.from_layers(
    [([[1.0, 2.0]], [0.0]), ([[1.0]], [0.0]), ([[2.0]], [1.0])], activation=["relu", clip(-1, 1)]
)


def test_all_layers_are_read_in_order() -> None:
    stored = StoredNetwork.of(DEEP.stored())
    assert [layer.bias.numerators.tolist() for layer in stored.layers] == [[0], [1]]
    assert scores_of(DEEP, [3.0, 0.0], [0.25, 0.0]) == [3, Fraction(3, 2)]
    assert DEEP.stored().kind == PIECEWISE_LINEAR


@pytest.mark.parametrize("dropped", ["layer1.", "layer2.bias", "layer1.breaks"])
def test_missing_arrays_are_detected(dropped: str) -> None:
    arrays = {
        name: array for name, array in DEEP.stored().arrays.items() if not name.startswith(dropped)
    }
    if dropped == "layer1.":
        message = (
            r"^unknown arrays in what is re-checked: got \['bias', 'layer2\.bias', .*"
            r"'slopes'\]; expected 0 table\(s\) and 0 layer\(s\), numbered without gaps$"
        )
        with pytest.raises(CertificateError, match=message):
            StoredNetwork.of(StoredScorer(PIECEWISE_LINEAR, arrays))
        return
    with pytest.raises(KeyError):
        StoredNetwork.of(StoredScorer(PIECEWISE_LINEAR, arrays))


def test_unknown_arrays_are_detected() -> None:
    table = LookupTable(0, np.array([1.0]), np.ones((1, 1)))
    first = replace(DEEP.first, slopes=np.array([[0.0, 1.0]]), tables=(table,))
    stored = replace(DEEP, first=first).stored()
    assert len(StoredNetwork.of(stored).tables) == 1
    message = r"expected 1 table\(s\) and 2 layer\(s\), numbered without gaps$"
    with pytest.raises(CertificateError, match=message):
        StoredNetwork.of(replace(stored, arrays={**stored.arrays, "scale": np.ones(1)}))
