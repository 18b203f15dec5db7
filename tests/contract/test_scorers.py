"""One suite for all scorers: enclosures contain exact scores, and counterparts are people."""

import numpy as np
import pandas as pd
import pytest

from feta import Categorical, FeatureSpace, Integer, Network
from feta.readers.callable.read import read_callable
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.relation.consequences import Consequences
from feta.relation.constrained import Constrained
from feta.relation.constraints import read_constraints
from feta.relation.protocol import Relation
from feta.rounding import FLOAT64
from feta.scorer.counted.options import CountingOptions
from feta.scorer.ensemble.curves import Interpolation, Pair, SideVote
from feta.scorer.ensemble.ensemble import Ensemble, Member
from feta.scorer.ensemble.probability import Sigmoid
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure, Scorer
from tests.extensions.toys import Blurred, Grown, Square

SPACE = FeatureSpace(
    (
        Integer("age", 18, 25, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Integer("income", 0, 40),
    )
)
LAYERS = [
    (np.array([[0.5, 0.0, 1.0, -0.75], [-0.25, 1.0, 0.0, 0.5]]), np.array([1.0, -2.0])),
    (np.array([[1.0, -1.0]]), np.array([0.125])),
]


def _merit(frame: pd.DataFrame) -> np.ndarray:
    male = (frame["sex"] == "male").to_numpy()
    return np.asarray(frame["income"] - 0.75 * frame["age"] + np.where(male, 0.125, 0.0))


COUNTED = read_callable(_merit, SPACE, options=CountingOptions(batch=5, timeout=None))
SQUARE = Square((0.5, 0.0, 1.0, -0.75), 4.0)
COMBINED = Ensemble(
    (
        Member(Network.from_layers(LAYERS), (Sigmoid(-0.5, 0.25), Pair())),
        Member(SQUARE, (Interpolation(np.array([-3.0, 2.0]), np.array([0.0, 0.75])), Pair())),
        Member(SQUARE, (SideVote("below"), Pair())),
    ),
    np.hstack([np.eye(2), 2 * np.eye(2), np.eye(2)]),
    np.zeros(2),
    4,
).difference()
SCORERS = [
    pytest.param(Network.from_layers(LAYERS), id="network"),
    pytest.param(Square((0.5, 0.0, 1.0, -0.75), 4.0), id="square"),
    pytest.param(Blurred((0.5, 0.0, 1.0, -0.75), 4.0), id="intervals"),
    pytest.param(COUNTED, id="counted"),
    pytest.param(COMBINED, id="ensemble"),
]
ENTRIES = [{"condition": "age >= 21"}, {"forbidden": {"sex": "male", "age": [24, 25]}}]
CONSTRAINED = Constrained(read_constraints(ENTRIES, SPACE.attributes)).over(SPACE)
CONSEQUENCES = Consequences.of(
    SPACE, {"column": "income", "slopes": {"age": 1}, "shifts": {"sex": {"male": 3}}}
)
RELATIONS = [
    pytest.param(AllSensitiveValues(SPACE), id="all"),
    pytest.param(Grown(21, SPACE), id="grown"),
    pytest.param(CONSTRAINED, id="constrained"),
    pytest.param(CONSEQUENCES, id="consequences"),
]
PEOPLE = np.array(
    [
        [age, sex, 1 - sex, income]
        for age in (18, 22, 25)
        for sex in (0, 1)
        for income in (0, 7, 40)
    ],
    dtype=np.float64,
)


def contains(scores: Enclosure, exact: ExactScores) -> bool:
    """Return whether every float64 interval contains its exact one."""
    distance = np.abs(scores.values - exact.floats())
    return bool((distance + exact.radius.floats() <= scores.errors * (1 + 1e-9)).all())


@pytest.mark.parametrize("scorer", SCORERS)
def test_enclosures_contain_the_exact_scores(scorer: Scorer) -> None:
    points = scorer.over(SPACE).points(PEOPLE)
    everyone = np.arange(len(PEOPLE))
    exact = points.exact_scores(everyone)
    assert len(points) == len(exact) == len(PEOPLE)
    for arithmetic in (FLOAT64, scorer.arithmetic):
        assert contains(points.scores(arithmetic), exact)
    some = np.array([4, 0, 4])
    assert points.exact_scores(some).fractions() == [exact.fractions()[row] for row in some]
    np.testing.assert_allclose(points.scores(FLOAT64, some).values, exact[some].floats())
    np.testing.assert_allclose(scorer.over(SPACE)(PEOPLE), exact.floats())


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_restricted_scorer_scores_counterparts_as_people(
    scorer: Scorer, relation: Relation
) -> None:
    scorer = scorer.over(SPACE)
    ids = relation.assignment_ids(PEOPLE[0])
    ids = np.arange(relation.size) if ids is None else ids
    hidden = np.array(PEOPLE[:2])
    if not relation.reads_sensitive:
        hidden[:, SPACE.sensitive_columns] = np.nan
    points = scorer.restrict(relation).counterparts(hidden, ids)
    rows = np.array([relation.counterpart(person, int(n)) for person in PEOPLE[:2] for n in ids])
    exact = points.exact_scores(np.arange(len(points)))
    assert points.assignment_ids.tolist() == ids.tolist()
    assert exact.fractions() == scorer.points(rows).exact_scores(np.arange(len(rows))).fractions()
    assert contains(points.scores(FLOAT64), exact)


@pytest.mark.parametrize("scorer", SCORERS)
def test_what_a_restricted_scorer_cannot_do_is_an_error_in_words(scorer: Scorer) -> None:
    restricted = scorer.over(SPACE).restrict(Grown(21, SPACE))
    assert not restricted.bounds_cells
    assert not restricted.fits_kernel(SPACE)
    assert not restricted.fits_line(SPACE)
    with pytest.raises(ValueError, match=r"can only be evaluated: .*use the engine 'exhaustive'"):
        restricted.line(source_error=0.0, simd=True)


@pytest.mark.parametrize("scorer", SCORERS)
def test_stored_arrays_and_fingerprints_identify_the_scorer(scorer: Scorer) -> None:
    fitted = scorer.over(SPACE)
    assert fitted.stored().kind
    assert all(np.isfinite(array).all() for array in fitted.stored().arrays.values())
    assert fitted.fingerprint == scorer.over(SPACE).fingerprint
    assert fitted.width == SPACE.width
