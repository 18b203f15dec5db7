# ruff: noqa: N803 - X is scikit-learn's own name for the table
import pickle
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimators_nan_inf, parametrize_with_checks

from feta import (
    Categorical,
    EngineError,
    Fair,
    FeatureSpace,
    Integer,
    Real,
    Schema,
    SchemaError,
    Tolerance,
    Unfair,
    VoteWeights,
)
from feta.estimators.fair_regressor import FairRegressor
from feta.io.schema_file import Decision, SchemaFile

pytestmark = pytest.mark.filterwarnings("ignore:the weaker guarantee holds")

SPACE = FeatureSpace(
    (
        Integer("age", 18, 25, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Real("income", 0, 100),
    )
)
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "age": RNG.integers(18, 26, 60),
        "sex": RNG.choice(["female", "male"], 60),
        "income": RNG.uniform(0, 100, 60).round(1),
    }
)
Y = 10 * X["income"] + 30 * X["age"] + 200 * (X["sex"] == "male") + RNG.normal(size=60)
SOME = X.head(10)


def perceptron(**options: object) -> MLPRegressor:
    """Return a small network with such a large tolerance that it stops early and never warns."""
    chosen = {"hidden_layer_sizes": (5,), "max_iter": 20, "tol": 1e9, "random_state": 0} | options
    return MLPRegressor(n_iter_no_change=10, **chosen)


def pipeline() -> BaseEstimator:
    """Return a pipeline: preprocessing and a linear regression."""
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["income", "age"]), ("texts", OneHotEncoder(), ["sex"])]
    )
    return make_pipeline(columns, LinearRegression())


KINDS = pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(LinearRegression(), id="linear"),
        pytest.param(perceptron(), id="relu"),
        pytest.param(perceptron(activation="tanh"), id="tanh"),
        pytest.param(pipeline(), id="pipeline"),
    ],
)


class Scorer(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A regressor that scores by a function of the table."""

    def __init__(self, by: Callable[[Any], Any]) -> None:
        self.by = by

    def fit(self, X: object, y: object) -> Self:  # noqa: ARG002 - nothing to learn
        self.fitted_ = True
        return self

    def predict(self, X: object) -> NDArray[Any]:
        return np.asarray(self.by(X))


@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    [
        FairRegressor(LinearRegression(), sensitive=["x0"]),
        FairRegressor(DecisionTreeRegressor(random_state=0), sensitive=["x0"]),
    ],
    expected_failed_checks=lambda _: {
        "check_estimators_nan_inf": "predict does not read sensitive values, so it cannot "
        "reject invalid ones"
    },
)
def test_it_is_a_scikit_learn_estimator(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)


def test_nan_and_infinity_are_rejected_in_columns_that_are_read() -> None:
    check_estimators_nan_inf("FairRegressor", FairRegressor(LinearRegression(), sensitive=["x1"]))


def estimator_scores(fair: FairRegressor, table: pd.DataFrame) -> NDArray[Any]:
    """Return the scores of the fitted estimator."""
    takes_rows = not hasattr(fair.estimator, "steps")
    return np.asarray(fair.estimator_.predict(SPACE.encode(table) if takes_rows else table))


@KINDS
def test_each_person_gets_the_lower_median_of_their_counterparts(estimator: BaseEstimator) -> None:
    fair = FairRegressor(estimator, SPACE).fit(X, Y)
    scores = fair.predict(SOME)
    for row, (_, person) in enumerate(SOME.iterrows()):
        rows = [
            {**person, "age": a, "sex": s} for a, s in product(range(18, 26), ["female", "male"])
        ]
        ordered = np.sort(estimator_scores(fair, pd.DataFrame(rows).astype(X.dtypes)))
        assert scores[row] == pytest.approx(ordered[7], rel=1e-12)  # the eighth of sixteen


@KINDS
def test_sensitive_columns_may_be_missing_or_invalid(estimator: BaseEstimator) -> None:
    fair = FairRegressor(estimator, SPACE).fit(X, Y)
    scores = fair.predict(SOME).tolist()
    for table in (SOME[["income"]], SOME.assign(age="who knows", sex=np.nan)):
        assert fair.predict(table).tolist() == scores
    assert [fair.predict(SOME.iloc[[row]])[0] for row in range(10)] == scores
    assert fair.predict(X.head(0)).shape == (0,)
    assert pickle.loads(pickle.dumps(fair)).predict(SOME).tolist() == scores


@KINDS
def test_votes_may_be_weighted(estimator: BaseEstimator) -> None:
    weights = VoteWeights.of(SPACE, {(18, "female"): 1, (20, "male"): 3, (25, "male"): 1})
    fair = FairRegressor(estimator, SPACE, weights=weights).fit(X, Y)
    expected = estimator_scores(fair, SOME.assign(age=20, sex="male"))
    np.testing.assert_allclose(fair.predict(SOME), expected, rtol=1e-12)


def test_of_two_scores_with_equal_votes_the_lower_one_is_the_median() -> None:
    weights = VoteWeights.of(SPACE, {(18, "female"): 2, (18, "male"): 2})
    scorer = Scorer(lambda table: np.where(table["sex"] == "male", 1.0, 5.0))
    fair = FairRegressor(scorer, SPACE, weights=weights).fit(X, Y)
    assert set(fair.predict(SOME)) == {1.0}


def test_explain_compares_with_epsilon() -> None:
    narrow = FairRegressor(LinearRegression(), SPACE, epsilon=100.0).fit(X, Y)
    wide = FairRegressor(LinearRegression(), SPACE, epsilon=500.0).fit(X, Y)
    assert {type(verdict) for verdict in narrow.explain(SOME)} == {Unfair}
    assert {type(verdict) for verdict in wide.explain(SOME)} == {Fair}
    assert narrow.model_ is not None
    assert narrow.model_.rule == Tolerance(100.0)
    assert "each score is chosen exactly" in narrow.guarantee_
    scorer = Scorer(lambda table: table["income"].to_numpy())
    unreadable = FairRegressor(scorer, SPACE).fit(X, Y)
    assert unreadable.model_ is None
    assert "the predict of Scorer" in unreadable.guarantee_
    verdicts = unreadable.explain(SOME)
    assert {(type(verdict), verdict.provenance) for verdict in verdicts} == {(Fair, "counted")}
    by_age = Scorer(lambda table: table["age"].to_numpy() * 10.0)
    (unfair,) = FairRegressor(by_age, SPACE, epsilon=69.0).fit(X, Y).explain(SOME[:1])
    assert isinstance(unfair, Unfair)
    assert (unfair.counterexample.gap, unfair.optimal, unfair.replayed) == (70.0, True, True)


def test_the_tolerance_of_a_schema_is_used() -> None:
    schema = Schema(SchemaFile(SPACE, {}, {}, {}, Decision(tolerance=100.0)))
    fair = FairRegressor(LinearRegression(), schema).fit(X, Y)
    assert fair.model_ is not None
    assert fair.model_.rule == Tolerance(100.0)
    with pytest.raises(
        SchemaError, match=r"two tolerances: got epsilon 5\.0 and 100\.0 in the schema"
    ):
        FairRegressor(LinearRegression(), schema, epsilon=5.0).fit(X, Y)
    schema = Schema(SchemaFile(SPACE, {}, {}, {}, Decision()))
    with pytest.raises(SchemaError, match="got classes or a threshold; expected a tolerance"):
        FairRegressor(LinearRegression(), schema).fit(X, Y)


def test_a_frozen_estimator_is_not_fitted_again() -> None:
    trained = LinearRegression().fit(SPACE.encode(X), Y)
    fair = FairRegressor(FrozenEstimator(trained), SPACE).fit(X)
    again = FairRegressor(LinearRegression(), SPACE).fit(X, Y)
    assert fair.estimator_.estimator is trained
    assert fair.predict(SOME).tolist() == again.predict(SOME).tolist()


def test_a_grid_search_sets_parameters_of_the_estimator_and_epsilon() -> None:
    grid = {"estimator__alpha": [1e-4, 1.0], "epsilon": [1.0]}
    search = GridSearchCV(FairRegressor(perceptron(), SPACE), grid, cv=2).fit(X, Y)
    assert search.best_estimator_.estimator_.alpha in (1e-4, 1.0)


@pytest.mark.parametrize(
    ("fair", "targets", "message"),
    [
        (
            FairRegressor(space=SPACE),
            Y,
            r"got None; expected a regressor; "
            r"for example FairRegressor\(LinearRegression\(\), space\)",
        ),
        (
            FairRegressor(LinearRegression()),
            Y,
            r"got neither a space nor .*; pass sensitive=",
        ),
        (
            FairRegressor(LogisticRegression(), SPACE),
            Y > 900,
            "got LogisticRegression; expected a regressor; use FairClassifier for classifiers",
        ),
        (FairRegressor(LinearRegression(), SPACE), None, "but the target y is None"),
        (
            FairRegressor(LinearRegression(), SPACE),
            X["sex"],
            "invalid y: got '.*'; expected numbers",
        ),
        (
            FairRegressor(LinearRegression(), SPACE, epsilon=-1.0),
            Y,
            r"invalid tolerance: got -1\.0; expected a finite number, 0 or more",
        ),
    ],
)
def test_invalid_arguments_of_fit_are_rejected(
    fair: FairRegressor, targets: "pd.Series[Any] | None", message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        fair.fit(X, targets)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda _: [1.0], "got 1 answers, the first .*; expected one answer for each of 16 rows"),
        (
            lambda table: np.full(len(table), np.nan),
            r"got 16 answers, the first \[nan, nan, nan\]; expected a finite number for each of 16",
        ),
        (lambda table: ["x"] * len(table), r"\['x', 'x', 'x'\]; expected a finite number"),
    ],
)
def test_invalid_answers_of_predict_are_rejected(
    score: Callable[[Any], object], message: str
) -> None:
    fair = FairRegressor(Scorer(score), SPACE).fit(X, Y)
    with pytest.raises(EngineError, match=message):
        fair.predict(SOME)


def mean_of_counterparts(fair: FairRegressor, income: float, votes: pd.Series) -> float:
    """Return the weighted mean of the estimator's own predictions."""
    frame = pd.DataFrame([(*key, income) for key in votes.index], columns=list(X))
    rows = frame if fair._ballot.table is not None else SPACE.encode(frame)
    return float(np.average(fair.estimator_.predict(rows), weights=votes))


@KINDS
@pytest.mark.parametrize("weights", [None, "empirical"])
def test_the_mean_is_that_of_all_counterparts(
    estimator: BaseEstimator, weights: Literal["empirical"] | None
) -> None:
    fair = FairRegressor(estimator, SPACE, vote="mean", weights=weights, least=1).fit(X, Y)
    votes = X.groupby(["age", "sex"]).size()
    if weights is None:
        votes = pd.Series(1, index=pd.MultiIndex.from_product([range(18, 26), ["female", "male"]]))
    incomes = [0.0, 33.3, 100.0]
    expected = [mean_of_counterparts(fair, income, votes) for income in incomes]
    found = fair.predict(pd.DataFrame({"income": incomes}))
    assert found == pytest.approx(expected, rel=1e-6)
    assert fair.predict(X.assign(age=25, sex="male")) == pytest.approx(
        fair.predict(X[["income"]]), rel=0, abs=0
    )


def test_a_mean_of_answers_is_rounded_once() -> None:
    fair = FairRegressor(Scorer(lambda table: table["income"] * 0.1 + table["age"]), SPACE)
    fair = fair.set_params(vote="mean").fit(X, Y)
    ages = [Fraction(0.7 * 0.1 + age) for age in range(18, 26)]
    assert fair.predict({"income": 0.7}).tolist() == [float(sum(ages) / 8)]


def test_an_unknown_vote_is_refused() -> None:
    with pytest.raises(SchemaError, match="invalid vote: got 'mode'; expected"):
        FairRegressor(LinearRegression(), SPACE, vote="mode").fit(X, Y)  # type: ignore[arg-type]
