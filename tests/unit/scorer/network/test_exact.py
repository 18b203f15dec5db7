from fractions import Fraction

import numpy as np
import pytest

from feta import Categorical, FeatureSpace, Integer, Model, Network, Real
from feta.arrays import Counts, Matrix
from feta.scorer.network import evaluation as points
from feta.scorer.network import exact
from feta.scorer.network.activation import piecewise
from feta.scorer.network.evaluation import Counterparts
from feta.scorer.network.exact import ExactNetwork
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
