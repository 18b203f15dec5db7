"""Fair estimators of trees, which FETA reads exactly, against the estimators themselves."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from feta import (
    Fair,
    FairClassifier,
    FairRegressor,
    FeatureSpace,
    Integer,
    Real,
    Unfair,
    VoteWeights,
)
from tests.unit.estimators.classifiers import SPACE as TEXTS
from tests.unit.estimators.classifiers import X as TEXT_TABLE
from tests.unit.estimators.classifiers import Y as TEXT_LABELS
from tests.unit.estimators.classifiers import majority

SPACE = FeatureSpace(
    (
        Integer("age", 18, 25, sensitive=True),
        Integer("sex", 0, 1, sensitive=True),
        Integer("rooms", 1, 4),
        Real("income", 0, 100),
    )
)
RNG = np.random.default_rng(5)
SIZE = 80
X = pd.DataFrame(
    {
        "age": RNG.integers(18, 26, SIZE),
        "sex": RNG.integers(0, 2, SIZE),
        "rooms": RNG.integers(1, 5, SIZE),
        "income": RNG.uniform(0, 100, SIZE).round(1),
    }
)
MERIT = X["income"] + 3 * X["age"] + 20 * X["sex"] + 5 * X["rooms"]
LABELS = {2: np.digitize(MERIT, [135]), 3: np.digitize(MERIT, [110, 150])}
PEOPLE = X.head(12)


def boosters() -> list[Any]:
    """Return the wrappers of the libraries of boosted trees that are installed."""
    xgboost = pytest.importorskip("xgboost")
    lightgbm = pytest.importorskip("lightgbm")
    return [
        xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1),
        lightgbm.LGBMClassifier(n_estimators=6, min_child_samples=4, n_jobs=1, verbose=-1),
    ]


ESTIMATORS = (
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(8, max_depth=3, random_state=0),  # even, so that votes tie
    ExtraTreesClassifier(6, max_depth=4, random_state=0),
    GradientBoostingClassifier(n_estimators=5, random_state=0),
    HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, random_state=0),
)


def counterparts(person: "pd.Series[Any]") -> pd.DataFrame:
    """Return everyone who differs from a person in age and sex at most."""
    rows = [{**person, "age": age, "sex": sex} for age, sex in product(range(18, 26), (0, 1))]
    return pd.DataFrame(rows).astype(X.dtypes.to_dict())


def own_votes(fair: Any, person: "pd.Series[Any]") -> np.ndarray:  # noqa: ANN401 - any estimator
    """Count the answers of the fitted estimator itself, by class."""
    answers = fair.estimator_.predict(counterparts(person))
    return np.array([int(np.sum(answers == label)) for label in fair.classes_])


def assert_decided_as_counted(estimator: BaseEstimator, n_classes: int) -> None:
    """Compare decisions, shares and verdicts with the estimator's own predictions."""
    fair = majority(estimator, SPACE).fit(X, LABELS[n_classes])
    assert fair.model_ is not None
    assert fair.model_.scorer.provenance == "proved"
    assert fair.guarantee_.startswith("fair by construction")
    votes = np.array([own_votes(fair, person) for _, person in PEOPLE.iterrows()])
    favored = votes[:, 1] >= votes[:, 0] if n_classes == 2 else votes.argmax(axis=1)
    assert fair.predict(PEOPLE.drop(columns=["age", "sex"])).tolist() == favored.tolist()
    np.testing.assert_array_equal(fair.predict_proba(PEOPLE), votes / 16)
    for verdict, counts in zip(fair.explain(PEOPLE), votes, strict=True):
        assert isinstance(verdict, Fair if counts.max() == 16 else Unfair)
        assert verdict.provenance == "proved"
        assert isinstance(verdict, Fair) or verdict.replayed


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_trees_are_read_exactly(estimator: BaseEstimator, n_classes: int) -> None:
    assert_decided_as_counted(estimator, n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosted_trees_of_libraries_are_read_exactly(n_classes: int) -> None:
    for estimator in boosters():
        assert_decided_as_counted(estimator, n_classes)


@pytest.mark.filterwarnings("ignore:the level is kept roughly")  # few different means
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_mean_probabilities_are_those_of_the_estimator(estimator: BaseEstimator) -> None:
    """The default vote, with empirical weights and the level that keeps the share."""
    fair = FairClassifier(estimator, SPACE).fit(X, LABELS[2])
    assert fair.model_ is not None
    assert fair.votes_.vote == "mean_probability"
    weights = fair.votes_.weights
    assert isinstance(weights, VoteWeights)
    error = 1e-9 if fair.votes_.ballot is None else 1e-3  # the grades of a ballot are rounded
    level = fair.votes_.level
    assert level is not None
    means = fair.predict_proba(PEOPLE)[:, 1]
    people = SPACE.encode(PEOPLE)
    for mean, person in zip(means.tolist(), people, strict=True):
        ids = weights.assignment_ids
        rows = SPACE.lattice.moved(np.repeat(person[None], len(ids), axis=0), ids)
        own = fair.estimator_.predict_proba(pd.DataFrame(rows, columns=list(X)))
        expected = np.average(own[:, 1], weights=weights.votes)
        assert mean == pytest.approx(expected, abs=error)
    decided = fair.predict(PEOPLE)
    clear = np.abs(means - level) > error
    assert (decided[clear] == (means >= level)[clear]).all()


def test_a_pipeline_before_trees_is_absorbed() -> None:
    texts = ColumnTransformer([("hot", OneHotEncoder(), ["sex"])], remainder="drop")
    forest = make_pipeline(texts, RandomForestClassifier(5, random_state=0))
    fair = majority(forest, TEXTS).fit(TEXT_TABLE, TEXT_LABELS)
    assert fair.model_ is not None
    assert fair.model_.scorer.provenance == "proved"
    answers = [fair.estimator_.predict(TEXT_TABLE.assign(sex=sex)) for sex in ("female", "male")]
    favorable = sum((own == fair.classes_[1]).astype(int) for own in answers) >= 1
    assert (fair.predict(TEXT_TABLE) == fair.classes_[favorable.astype(int)]).all()


def test_a_regression_of_trees_is_read_exactly() -> None:
    fair = FairRegressor(RandomForestRegressor(4, max_depth=3, random_state=0), SPACE)
    fair.fit(X, MERIT.to_numpy())
    assert fair.model_ is not None
    for (_, person), median in zip(PEOPLE.iterrows(), fair.predict(PEOPLE), strict=True):
        own = np.sort(fair.estimator_.predict(counterparts(person)))
        assert median == pytest.approx(own[7], rel=1e-12)


def test_an_estimator_that_cannot_be_read_is_counted_with_a_notice() -> None:
    with pytest.warns(UserWarning, match="the weaker guarantee holds"):
        fair = majority(KNeighborsClassifier(3), SPACE).fit(X, LABELS[2])
    assert fair.model_ is None
    votes = np.array([own_votes(fair, person) for _, person in PEOPLE.iterrows()])
    assert fair.predict(PEOPLE).tolist() == (votes[:, 1] >= votes[:, 0]).tolist()
    assert {verdict.provenance for verdict in fair.explain(PEOPLE)} == {"counted"}
