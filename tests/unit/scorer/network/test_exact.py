from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from feta import Categorical, FeatureSpace, Integer, Model, Network, Real
from feta.arrays import Counts, Matrix
from feta.dyadic import Dyadic
from feta.scorer.network import evaluation as points
from feta.scorer.network import exact
from feta.scorer.network.activation import (
    Activation,
    Pieces,
    absolute,
    clip,
    identity,
    piecewise,
    prelu,
    relu,
)
from feta.scorer.network.evaluation import Counterparts
from feta.scorer.network.exact import (
    MAX_CACHED_AXIS,
    ExactActivation,
    ExactNetwork,
    ExactRestriction,
    live_neurons,
)
from feta.scorer.network.layers import Affine, Columns, LookupTable
from tests import oracle
from tests.strategies import random_case

ACTIVATION = piecewise("bend", [-1.0, 0.5], [0.25, 1.0, -3.0], [-0.75, 0.0, 2.0])


def counterparts_of(model: Model, people: Matrix, assignment_ids: Counts) -> Counterparts:
    points = model.restricted.counterparts(people, assignment_ids)
    assert isinstance(points, Counterparts)
    return points


@pytest.mark.parametrize(
    ("weights", "score"),
    [
        ([0.1, 0.2, -0.3], Fraction(0.1) + Fraction(0.2) - Fraction(0.3)),
        ([1e300, 5e-324, -1e300], Fraction(5e-324)),
        ([2.0**53, 1.0, -(2.0**53)], Fraction(1)),
        ([-0.0, 0.0, 0.0], Fraction(0)),
    ],
)
def test_a_score_is_the_exact_sum(weights: list[float], score: Fraction) -> None:
    network = ExactNetwork(Network.from_layers([([weights], [0.0])]))
    assert network.scores(np.ones((1, 3))).fractions() == [score]


@pytest.mark.parametrize("seed", range(8))
def test_exact_scores_match_the_oracle(seed: int) -> None:
    case = random_case(np.random.default_rng(seed), "free")
    scores = case.model.network.exact.scores(case.people).fractions()
    assert scores == [oracle.score(case.model, person) for person in case.people]


def test_pieces_change_exactly_at_their_breaks() -> None:
    network = Network.from_layers([([[1.0]], [0.0]), ([[1.0]], [0.0])], activation=ACTIVATION)
    values = np.array([[-1.0], [np.nextafter(-1.0, -2)], [0.5], [2.0]])
    below = Fraction(1, 4) * Fraction(float(values[1, 0])) - Fraction(3, 4)
    assert ExactNetwork(network).scores(values).fractions() == [-1, below, Fraction(1, 2), -4]


def test_a_piece_starts_at_its_break() -> None:
    activation = ExactActivation(
        ACTIVATION.breaks, ACTIVATION.slopes, ACTIVATION.intercepts, width=2
    )
    values = [-2.0, np.nextafter(-1.0, -2), -1.0, 0.0, np.nextafter(0.5, 0), 0.5, 1.0]
    pieces = activation.pieces(Dyadic.of([[value, 7.0] for value in values]), np.arange(2))
    assert pieces.tolist() == [[piece, 2] for piece in (0, 0, 1, 1, 1, 2, 2)]


def model_and_people() -> tuple[Model, Matrix]:
    """Return a model with a table, breaks and an unused neuron over 5 × 3 counterparts."""
    space = FeatureSpace(
        (
            Integer("age", 0, 4, sensitive=True),
            Categorical("sex", ("f", "m", "x"), sensitive=True),
            Real("income", 0, 9),
        )
    )
    rng = np.random.default_rng(5)
    slopes = rng.integers(-8, 9, (3, 5)) / 8
    slopes[:, 0] = 0.0
    table = LookupTable(0, np.arange(5.0), rng.integers(-8, 9, (5, 3)) / 8)
    network = Network(Columns(np.zeros(3), slopes, (table,)), (), ())
    network = network.then(ACTIVATION, Affine(rng.normal(size=(4, 3)), rng.normal(size=4)))
    network = network.then(ACTIVATION, Affine(np.array([[1.0, 0.0, -1.0, 0.5]]), np.zeros(1)))
    people = np.array([[2.0, 0.0, 1.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0, 3.0]])
    return Model(space, network), people


@pytest.mark.parametrize("max_cached", [exact.MAX_CACHED_AXIS, 2])
@pytest.mark.parametrize("tabulated", [points.TABULATED_AXIS, 2])
def test_counterparts_have_the_scores_of_single_rows(
    max_cached: int, tabulated: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "MAX_CACHED_AXIS", max_cached)
    monkeypatch.setattr(points, "TABULATED_AXIS", tabulated)
    monkeypatch.setattr(points, "FEW_POINTS", 0)
    model, people = model_and_people()
    size = model.space.lattice.size
    rows = np.concatenate(
        [block for person in people for block in model.space.lattice.counterparts(person)]
    )
    counterparts = counterparts_of(model, people, np.arange(size))
    assert len(counterparts) == 2 * size
    grouped = counterparts.exact_scores(np.arange(2 * size)).fractions()
    assert grouped == model.network.exact.scores(rows).fractions()
    assert grouped == [oracle.score(model, row) for row in rows]


def test_any_selection_of_counterparts_has_the_same_scores() -> None:
    model, people = model_and_people()
    counterparts = counterparts_of(model, people, np.arange(15))
    all_scores = counterparts.exact_scores(np.arange(30)).fractions()
    part = counterparts_of(model, people, np.arange(4, 11))
    chosen = np.array([13, 0, 6, 7, 0])  # of seven counterparts per person, in any order
    owners, assignment_ids = part.split(chosen)
    assert part.exact_scores(chosen).fractions() == [
        all_scores[15 * owner + number]
        for owner, number in zip(owners, assignment_ids, strict=True)
    ]
    assert part.exact_scores(np.zeros(0, dtype=np.int64)).fractions() == []


def test_sensitive_columns_of_the_person_are_never_read() -> None:
    model, people = model_and_people()
    hidden = np.array(people)
    hidden[:, model.space.sensitive_columns] = np.nan
    scores = [
        model.network.restrict(model.relation)
        .counterparts(rows, np.arange(15))
        .exact_scores(np.arange(30))
        .fractions()
        for rows in (people, hidden)
    ]
    assert scores[0] == scores[1]


@pytest.mark.parametrize("columns", [[0], [3, 1], [4, 2, 0], [2, 3], [0, 1], [0, 1, 2, 3, 4]])
def test_terms_are_those_of_the_chosen_columns(columns: list[int]) -> None:
    rng = np.random.default_rng(3)
    slopes = rng.normal(size=(2, 5))
    slopes[:, [1, 4]] = 0.0
    tables = (
        LookupTable(1, np.array([0.0, 2.0, 7.0]), rng.normal(size=(3, 2))),
        LookupTable(4, np.array([-1.0, 0.1]), rng.normal(size=(2, 2))),
    )
    network = ExactNetwork(Network(Columns(np.ones(2), slopes, tables), (), ()))
    people = np.array([[0.1, 7.0, 2.0, -1.0, 0.1], [3.0, 0.0, 0.0, 1e300, -1.0]])
    expected = []
    for person, neuron in product(people, range(2)):
        total = Fraction(0)
        for column in columns:
            total += Fraction(person[column]) * Fraction(slopes[neuron, column])
            for table in tables:
                if table.column == column:
                    row = table.numbers.tolist().index(person[column])
                    total += Fraction(table.rows[row, neuron])
        expected.append(total)
    assert network.terms(people[:, columns], np.array(columns)).fractions() == expected


def network_of(first: Matrix, *steps: tuple[Activation, Matrix]) -> Network:
    network = Network(Columns(np.zeros(len(first)), first), (), ())
    for activation, weight in steps:
        network = network.then(activation, Affine(weight, np.zeros(len(weight))))
    return network


def is_live(network: Network, pieces: list[Pieces], depth: int, row: int, neuron: int) -> bool:
    """Follow all paths to the scores through neurons that are not known to be constant."""
    weights = network.layers[depth].weight[:, neuron]
    if depth == len(network.layers) - 1:
        return bool(weights.any())
    activation, known = network.activations[depth + 1], pieces[depth + 1][row]
    for after in np.flatnonzero(weights):
        slope = activation.slopes[known[after], after if activation.width > 1 else 0]
        if (known[after] < 0 or slope) and is_live(network, pieces, depth + 1, row, int(after)):
            return True
    return False


@pytest.mark.parametrize(
    "activation",
    [
        relu(),
        absolute(),
        clip(-1.0, 0.5),
        prelu([0.0, -0.5, 0.0, 2.0]),
        piecewise("flat", [0, 1], [0.25, 0, -1], [0, 0, 1]),
    ],
    ids=lambda activation_: activation_.name,
)
def test_a_neuron_is_live_if_a_path_leads_to_a_score(activation: Activation) -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        weights = [rng.integers(-1, 2, (n, 4)).astype(np.float64) / 4 for n in (4, 4, 2)]
        network = network_of(np.ones((4, 1)), *((activation, weight) for weight in weights))
        pieces = [rng.integers(-1, activation.n_pieces, (5, 4)).astype(np.int8) for _ in weights]
        live = live_neurons(network, pieces)
        assert [flags.shape for flags in live] == [(5, 4)] * 3
        for depth, row, neuron in product(range(3), range(5), range(4)):
            assert live[depth][row, neuron] == is_live(network, pieces, depth, row, neuron)


class Spy:
    """Records which neurons are evaluated exactly, and how many patterns each layer has."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decided: list[tuple[int, ...]] = []
        self.patterns: list[int] = []
        decide, evaluate = ExactActivation.pieces, ExactRestriction._evaluate_pattern

        def pieces(activation: ExactActivation, values: Dyadic, neurons: Counts) -> Pieces:
            self.decided.append(values.numerators.shape)
            return decide(activation, values, neurons)

        def evaluate_pattern(
            restriction: ExactRestriction, ids: Counts, pattern: list[Pieces], neurons: Counts
        ) -> Dyadic:
            self.patterns.append(len(pattern))
            result: Dyadic = evaluate(restriction, ids, pattern, neurons)
            return result

        monkeypatch.setattr(points, "FEW_POINTS", 0)  # the kernel does not group by pattern
        monkeypatch.setattr(ExactActivation, "pieces", pieces)
        monkeypatch.setattr(ExactRestriction, "_evaluate_pattern", evaluate_pattern)


def age_and_sex(network: Network) -> tuple[Model, Matrix]:
    """Return a model over 5 × 3 counterparts, and one person."""
    space = FeatureSpace(
        (
            Integer("age", 0, 4, sensitive=True),
            Categorical("sex", ("f", "m", "x"), sensitive=True),
        )
    )
    return Model(space, network), np.array([[0.0, 1.0, 0.0, 0.0]])


FIRST = np.array(
    [
        [1.0, -2.5, -2.5, -2.5],  # age − 2.5
        [0.0, -1.0, 2.0, 3.0],  # changes its sign between sexes
        [1.0, -1.5, -1.5, -1.5],  # unused below
    ]
)


def test_counterparts_with_the_same_pattern_are_evaluated_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = network_of(FIRST, (relu(), np.array([[1.0, 0.5, 0.0]])))
    model, people = age_and_sex(network)
    spy = Spy(monkeypatch)
    ids = np.random.default_rng(0).permutation(15)
    scores = counterparts_of(model, people, ids).exact_scores(np.arange(15)).fractions()
    rows = [model.space.lattice.counterpart(people[0], int(number)) for number in ids]
    assert scores == [oracle.score(model, row) for row in rows]
    assert spy.decided == []  # float64 decides every piece
    assert spy.patterns == [1] * 4  # the unused neuron splits none of them


def test_only_undecided_neurons_are_evaluated_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    first = np.array(FIRST)
    first[0, 1:] = [-2.0, -2.5, -2.0]  # 0 at age 2, unless sex is "m"
    network = network_of(first, (relu(), np.array([[1.0, 0.5, 0.0], [-1.0, 1.0, 0.0]])))
    network = network.then(relu(), Affine(np.array([[1.0, 1.0]]), np.zeros(1)))
    model, people = age_and_sex(network)
    spy = Spy(monkeypatch)
    scores = counterparts_of(model, people, np.arange(15)).exact_scores(np.arange(15))
    others = oracle.counterparts(model, people[0])
    assert scores.fractions() == [oracle.score(model, other) for other in others]
    assert spy.decided[0] == (2, 1)  # two counterparts, one neuron
    assert spy.patterns.count(0) == 1


def test_an_unused_neuron_may_have_a_single_piece() -> None:
    network = network_of(FIRST, (identity(), np.array([[1.0, 0.5, 0.0]])))
    model, people = age_and_sex(network)
    scores = counterparts_of(model, people, np.arange(15)).exact_scores(np.arange(15))
    others = oracle.counterparts(model, people[0])
    assert scores.fractions() == [oracle.score(model, other) for other in others]


@pytest.mark.parametrize("n_values", [3, MAX_CACHED_AXIS, MAX_CACHED_AXIS + 1])
def test_terms_of_an_axis_are_cached_up_to_a_length(
    n_values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = FeatureSpace((Integer("age", 0, n_values - 1, sensitive=True), Real("x", 0, 1)))
    model = Model(space, Network.from_layers([([[0.1, 1.0]], [0.0])]))
    computed: list[int] = []
    terms = ExactNetwork.terms

    def count(network: ExactNetwork, codes: Matrix, columns: Counts) -> Dyadic:
        computed.append(len(codes))
        return terms(network, codes, columns)

    monkeypatch.setattr(ExactNetwork, "terms", count)
    monkeypatch.setattr(points, "FEW_POINTS", 0)
    chosen = counterparts_of(model, np.array([[0.0, 0.5], [0.0, 0.25]]), np.array([2, 1]))
    tenth = Fraction(0.1)
    assert chosen.exact_scores(np.arange(4)).fractions() == [
        2 * tenth + Fraction(1, 2),
        tenth + Fraction(1, 2),
        2 * tenth + Fraction(1, 4),
        tenth + Fraction(1, 4),
    ]
    cached = n_values <= 4096  # a few hundred bytes each: about a megabyte
    assert list(chosen.tabulated.exact_tables) == [0] * cached
    assert computed == ([1, n_values, 1] if cached else [1, 2, 1, 2])
