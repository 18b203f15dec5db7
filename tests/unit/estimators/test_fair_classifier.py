"""Decisions of FairClassifier: votes, ties, classes, weights and schemas."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimators_nan_inf, parametrize_with_checks

from feta import (
    EngineError,
    FeatureSpace,
    Integer,
    Real,
    Schema,
    SchemaError,
    VoteWeights,
)
from feta.estimators.fair_classifier import FairClassifier
from feta.io.schema_file import Decision, SchemaFile
from feta.space.attribute import Value
from tests.unit.estimators.classifiers import (
    FLIP,
    KINDS,
    SENSITIVE,
    SOME,
    SPACE,
    THREE,
    TWO,
    Rule,
    X,
    Y,
    Z,
    counterparts,
    linear,
    logistic,
    majority,
    perceptron,
    pipeline,
)

# `fit` warns about every estimator that FETA cannot read.
pytestmark = pytest.mark.filterwarnings("ignore:the weaker guarantee holds")


@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    [
        majority(LogisticRegression(), sensitive=["x0"]),
        majority(DecisionTreeClassifier(random_state=0), sensitive=["x0"]),
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
    check_estimators_nan_inf("FairClassifier", majority(LogisticRegression(), sensitive=["x1"]))


@KINDS
def test_all_counterparts_get_the_same_decision(estimator: BaseEstimator) -> None:
    fair = majority(estimator, SPACE).fit(X, Y)
    for _, person in X.head(8).iterrows():
        assert len(set(fair.predict(counterparts(person)))) == 1


@KINDS
def test_the_decision_is_the_majority_of_the_estimators_decisions(
    estimator: BaseEstimator,
) -> None:
    fair = majority(estimator, SPACE).fit(X, Y)
    takes_rows = not hasattr(estimator, "steps")
    for _, person in X.head(8).iterrows():
        everyone = counterparts(person)
        decisions = fair.estimator_.predict(SPACE.encode(everyone) if takes_rows else everyone)
        row, share = person.to_frame().T, np.mean(decisions == "yes")
        assert fair.predict_proba(row)[0, 1] == share
        assert fair.predict(row)[0] == ("yes" if share >= 0.5 else "no")


@KINDS
def test_it_can_be_pickled(estimator: BaseEstimator) -> None:
    fair = majority(estimator, SPACE).fit(X, Y)
    again = pickle.loads(pickle.dumps(fair))
    assert again.predict(SOME).tolist() == fair.predict(SOME).tolist()


def test_fit_sets_the_documented_attributes() -> None:
    fair = majority(logistic(), SPACE).fit(X, Y)
    assert fair.classes_.tolist() == ["no", "yes"]
    assert fair.n_features_in_ == 4
    assert fair.feature_names_in_.tolist() == list(X.columns)
    assert fair.columns_ == tuple(X.columns)
    assert fair.n_counterparts_ == 16
    assert fair.space_ is SPACE
    assert fair.model_ is not None
    assert fair.model_.outcomes == ("no", "yes")
    assert fair.guarantee_.startswith("fair by construction")


def test_a_tie_goes_to_the_second_class_of_a_readable_estimator() -> None:
    # n + s − 1.5 > 0: at n = 1 the two counterparts get different decisions.
    fair = majority(linear([1.0, 1.0], -1.5), FLIP).fit(TWO)
    assert fair.predict(pd.DataFrame({"n": [0.0, 1.0, 2.0]})).tolist() == [0, 1, 1]
    assert fair.predict_proba(pd.DataFrame({"n": [1.0]})).tolist() == [[0.5, 0.5]]


def test_a_tie_goes_to_the_second_class_of_an_unreadable_estimator() -> None:
    rule = Rule(lambda table: (table["s"] + table["n"] > 1.5).astype(int))
    fair = majority(rule, FLIP).fit(TWO, [0, 0, 1, 1])
    assert fair.predict(pd.DataFrame({"n": [0.0, 1.0, 2.0]})).tolist() == [0, 1, 1]
    assert fair.predict_proba(pd.DataFrame({"n": [1.0]})).tolist() == [[0.5, 0.5]]


def test_a_score_of_exactly_zero_is_a_vote_for_the_first_class() -> None:
    # n − 1 does not depend on s: at n = 1 both counterparts score exactly 0, and 0 > 0 is false.
    trained = linear([0.0, 1.0], -1.0)
    fair = majority(trained, FLIP).fit(TWO)
    people = pd.DataFrame({"n": [0.5, 1.0, 1.5]})
    assert fair.predict(people).tolist() == [0, 0, 1]
    assert trained.predict([[0.0, 0.5], [0.0, 1.0], [0.0, 1.5]]).tolist() == [0, 0, 1]
    assert fair.predict_proba(people)[1].tolist() == [1.0, 0.0]


@KINDS
def test_the_class_with_most_votes_wins(estimator: BaseEstimator) -> None:
    fair = majority(estimator, SPACE).fit(X, Z)
    assert fair.classes_.tolist() == THREE.tolist()
    takes_rows = not hasattr(estimator, "steps")
    shares, answers = fair.predict_proba(SOME), fair.predict(SOME)
    assert shares.shape == (10, 3)
    for row, (_, person) in enumerate(SOME.iterrows()):
        everyone = counterparts(person)
        decisions = fair.estimator_.predict(SPACE.encode(everyone) if takes_rows else everyone)
        expected = [np.mean(decisions == label) for label in THREE]
        assert shares[row].tolist() == expected
        assert answers[row] == THREE[int(np.argmax(expected))]
    assert fair.predict(SOME.drop(columns=SENSITIVE)).tolist() == answers.tolist()


def test_a_tie_of_several_classes_goes_to_the_first_of_them() -> None:
    rule = Rule(lambda table: np.array([2, 1])[table["s"].to_numpy()], classes=(0, 1, 2))
    fair = majority(rule, FLIP).fit(TWO, [0, 1, 2, 2])
    assert fair.predict(TWO).tolist() == [1] * 4


@KINDS
def test_votes_may_be_weighted(estimator: BaseEstimator) -> None:
    votes: dict[tuple[Value, ...], int] = {(18, "female"): 3, (25, "male"): 1}
    fair = majority(estimator, SPACE, weights=VoteWeights.of(SPACE, votes)).fit(X, Z)
    takes_rows = not hasattr(estimator, "steps")
    shares = fair.predict_proba(SOME)
    for row, (_, person) in enumerate(SOME.iterrows()):
        two = pd.DataFrame([{**person, "age": age, "sex": sex} for age, sex in votes])
        table = SPACE.encode(two) if takes_rows else two.astype(X.dtypes)
        first, second = fair.estimator_.predict(table)
        expected = [(3 * (first == label) + (second == label)) / 4 for label in THREE]
        assert shares[row].tolist() == expected
        assert fair.predict(SOME)[row] == first


def schema(**decision: Any) -> Schema:  # noqa: ANN401 - the fields of [decision]
    return Schema(SchemaFile(SPACE, {}, {}, {}, Decision(**decision)))


@pytest.mark.parametrize(
    ("decision", "is_second_class"),
    [
        ({"probability": 0.8, "unfavorable": "no"}, lambda p: p > 0.8),
        ({"probability": 0.8, "favorable": "yes"}, lambda p: p > 0.8),
        ({"probability": 0.3, "favorable": "no", "favors": "below"}, lambda p: ~(p < 0.3)),
    ],
)
def test_the_threshold_of_a_schema_is_used(
    decision: dict[str, Any], is_second_class: Callable[[NDArray[Any]], NDArray[Any]]
) -> None:
    fair = clone(majority(pipeline(), schema(**decision))).fit(X, Y)
    fair = pickle.loads(pickle.dumps(fair))
    shares, answers = fair.predict_proba(SOME), fair.predict(SOME)
    for row, (_, person) in enumerate(SOME.iterrows()):
        probabilities = fair.estimator_.predict_proba(counterparts(person))[:, 1]
        share = np.mean(is_second_class(probabilities))
        assert shares[row].tolist() == [1 - share, share]
        favorable = 1 - share if decision.get("favors") else share
        assert answers[row] == fair.classes_[int((favorable >= 0.5) != ("favors" in decision))]
    half = majority(pipeline(), SPACE).fit(X, Y)
    assert half.predict_proba(X).tolist() != fair.predict_proba(X).tolist()


def test_a_tie_goes_to_the_class_that_the_schema_favors() -> None:
    below = Schema(SchemaFile(FLIP, {}, {}, {}, Decision(favors="below")))
    people = pd.DataFrame({"n": [0.0, 1.0, 2.0]})
    readable = majority(linear([1.0, 1.0], -1.5), below).fit(TWO)
    rule = Rule(lambda table: (table["s"] + table["n"] > 1.5).astype(int))
    unreadable = majority(rule, below).fit(TWO, [0, 0, 1, 1])
    for fair in (readable, unreadable):
        assert fair.predict(people).tolist() == [0, 0, 1]
        assert fair.predict_proba(people).tolist() == [[1, 0], [0.5, 0.5], [0, 1]]


@pytest.mark.parametrize(
    ("make_schema", "message"),
    [
        (lambda: schema(favorable="no"), 'favorable = "no" needs favors = "below"'),
        (lambda: schema(), "not clear which class is favorable: .* high scores mean 'yes'"),
        (lambda: schema(tolerance=1.0), "decides between all classes"),
        (lambda: schema(classes=("a", "b", "c")), "lists 3 classes, but the network has 1 output"),
        (lambda: Schema(SchemaFile(SPACE, {"age": 1.0}, {}, {}, Decision())), "center or scale"),
    ],
)
def test_an_unsuitable_schema_is_rejected(make_schema: Callable[[], Schema], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        majority(pipeline(), make_schema()).fit(X, Y)


def test_classes_in_another_order_than_the_estimators_are_rejected() -> None:
    wrong_order = schema(classes=("low", "middle", "high"))
    with pytest.raises(SchemaError, match=r'write classes = \["high", "low", "middle"\]'):
        majority(pipeline(), wrong_order).fit(X, Z)
    right_order = schema(classes=("high", "low", "middle"))
    fair = majority(pipeline(), right_order).fit(X, Z)
    assert fair.predict(X).tolist() == majority(pipeline(), SPACE).fit(X, Z).predict(X).tolist()


def test_a_threshold_that_predict_would_ignore_is_rejected() -> None:
    with pytest.raises(SchemaError, match="threshold does not apply"):
        majority(pipeline(Normalizer()), schema(favorable="yes", probability=0.8)).fit(X, Y)


def test_a_grid_search_sets_parameters_of_the_estimator() -> None:
    grid = {"estimator__alpha": [1e-4, 1.0], "engine": ["exhaustive"]}
    search = GridSearchCV(majority(perceptron(), SPACE), grid, cv=2).fit(X, Y)
    assert search.best_estimator_.estimator_.alpha in (1e-4, 1.0)
    assert search.predict(X.drop(columns=SENSITIVE)).shape == (60,)


def test_cross_validation_and_pipelines_accept_it() -> None:
    fair = majority(logistic(), SPACE)
    scores = cross_val_score(make_pipeline(FunctionTransformer(), fair), X, Y, cv=3)
    assert scores.min() > 0.5


def test_a_clone_has_the_same_parameters_and_is_not_fitted() -> None:
    fair = majority(logistic(), SPACE, engine="exhaustive").fit(X, Y)
    copy = clone(fair)
    assert copy.space == SPACE
    assert copy.engine == "exhaustive"
    assert copy.get_params()["estimator__solver"] == "newton-cholesky"
    assert copy.set_params(estimator__C=2.0).estimator.C == 2.0
    with pytest.raises(NotFittedError):
        copy.predict(X)


OTHER_AGES = FeatureSpace((Integer("age", 17, 24, sensitive=True), *SPACE.attributes[1:]))
REALS = FeatureSpace((Real("income", 0, 100, sensitive=True),))


@pytest.mark.parametrize(
    ("fair", "labels", "message"),
    [
        (
            majority(space=SPACE),
            Y,
            r"got None; expected a classifier; "
            r"for example FairClassifier\(LogisticRegression\(\), sp",
        ),
        (
            majority(LogisticRegression()),
            Y,
            r"got neither a space nor .*; pass sensitive=",
        ),
        (
            majority(LogisticRegression(), sensitive="age"),
            Y,
            r"invalid sensitive: got 'age'; expected a list of column names; write \['age'\]",
        ),
        (
            majority(LogisticRegression(), "schema.toml"),
            Y,
            "invalid space: got str; expected a FeatureSpace or a Schema",
        ),
        (
            majority(LogisticRegression(), SPACE),
            None,
            "fit requires y to be passed, but the target y is None",
        ),
        (
            majority(LogisticRegression(), SPACE),
            np.full(60, "yes"),
            "invalid y: got 1 class, .*'yes'.*; expected two classes or more",
        ),
        (
            majority(LinearRegression(), FLIP),
            Y == "yes",
            r"got LinearRegression with the classes \(\); expected a classifier of two or more",
        ),
        (
            majority(Rule(len, classes=("a",)), SPACE),
            Y,
            "got Rule with the classes .*'a'",
        ),
        (
            majority(LogisticRegression(), SPACE, weights={(18, "male"): 1}),
            Y,
            r"invalid weights: got dict; expected VoteWeights; "
            r"use feta\.VoteWeights\.of\(space, votes\)",
        ),
        (
            majority(
                LogisticRegression(),
                SPACE,
                weights=VoteWeights(np.array([15]), np.array([1]), OTHER_AGES),
            ),
            Y,
            "vote weights belong to another space",
        ),
        (
            majority(LogisticRegression(), REALS),
            Y,
            "'income' has uncountably many values: got a real number; .*; declare it integer, or "
            "give a step",
        ),
    ],
)
def test_invalid_arguments_of_fit_are_rejected(
    fair: FairClassifier, labels: NDArray[Any] | None, message: str
) -> None:
    table = X if fair.space is not FLIP else X.assign(s=X["age"] % 2, n=1.0)
    with pytest.raises(SchemaError, match=message):
        fair.fit(table, labels)


def test_an_unknown_engine_is_rejected() -> None:
    fair = majority(logistic(), SPACE, engine="exhaustiv").fit(X, Y)
    with pytest.raises(EngineError, match="did you mean 'exhaustive'"):
        fair.predict(X)
