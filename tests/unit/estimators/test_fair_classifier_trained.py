"""Estimators that FairClassifier reads or evaluates, and its verdicts about them."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from feta import (
    DomainError,
    EngineError,
    Fair,
    FeatureSpace,
    Integer,
    NetworkError,
    Real,
    SchemaError,
    Unfair,
)
from feta.estimators.fair_classifier import FairClassifier
from tests.unit.estimators.classifiers import (
    SOME,
    SPACE,
    THREE,
    Opaque,
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


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (pipeline(Normalizer()), "the predict of Pipeline is deterministic"),
    ],
)
def test_an_unreadable_estimator_states_its_guarantee(
    estimator: BaseEstimator, message: str
) -> None:
    fair = majority(estimator, SPACE).fit(X, Y)
    assert fair.model_ is None
    assert fair.guarantee_.startswith("fair if the predict of")
    assert message in fair.guarantee_
    trained = fair.estimator_
    for row, verdict in enumerate(fair.explain(SOME)):
        assert verdict.provenance == "counted"
        rows = counterparts(SOME.iloc[row])
        raw = isinstance(trained, Pipeline)
        answers = set(trained.predict(rows if raw else SPACE.encode(rows)))
        assert isinstance(verdict, Unfair if len(answers) == 2 else Fair)
        if isinstance(verdict, Unfair):
            assert verdict.replayed


def test_an_estimator_whose_answers_cannot_be_counted_has_no_verdicts() -> None:
    fair = majority(Rule(lambda table: table["age"] > 40), SPACE).fit(X, Y)
    fair.estimator_.favors = repr  # one text for all rows
    message = r"explain needs an estimator that FETA can read or evaluate: .+ cannot be evaluated: "
    with pytest.raises(EngineError, match=message):
        fair.explain(SOME)


def test_a_smooth_perceptron_is_proved() -> None:
    fair = majority(perceptron(activation="tanh"), SPACE).fit(X, Y)
    assert fair.model_ is not None
    assert {verdict.provenance for verdict in fair.explain(SOME)} == {"proved"}


def test_the_warning_does_not_advise_the_class_that_gives_it() -> None:
    message = r"got Rule; .* in one; train one of those$"
    with pytest.warns(UserWarning, match=message):
        majority(Rule(lambda table: table["age"] > 40), SPACE).fit(X, Y)


@pytest.mark.filterwarnings("error")
def test_a_trained_pipeline_gets_its_columns_by_name_in_any_order() -> None:
    trained = pipeline().fit(X, Y)
    numbers = ["age", "income"]
    passing = make_pipeline(ColumnTransformer([("all", "passthrough", numbers)]), logistic())
    passing.fit(X[numbers], Y)
    expected = majority(FrozenEstimator(trained), SPACE).fit(X)
    reordered = X[X.columns[::-1]].assign(note="not in the space")
    fair = majority(FrozenEstimator(trained), SPACE).fit(reordered)
    plain = majority(FrozenEstimator(passing), SPACE.with_sensitive(["age"])).fit(reordered)
    for classifier in (fair, plain):
        assert classifier.guarantee_ == FairClassifier.promise
    assert fair.predict_proba(reordered).tolist() == expected.predict_proba(X).tolist()
    verdicts = fair.explain(reordered)
    assert all(verdict.replayed for verdict in verdicts if isinstance(verdict, Unfair))
    decisions = passing.predict(counterparts(X.iloc[3])[numbers])[::2]  # one row per age
    assert plain.predict_proba(reordered.iloc[[3]])[0, 1] == np.mean(decisions == "yes")


@pytest.mark.filterwarnings("error")
def test_integers_in_a_real_valued_column_do_not_weaken_the_guarantee() -> None:
    integers = X.assign(income=X["income"].round().astype(int))
    fair = majority(FrozenEstimator(pipeline().fit(integers, Y)), SPACE).fit(integers)
    assert fair.guarantee_ == FairClassifier.promise
    assert fair.predict(X).shape == (60,)


def test_a_column_that_a_trained_pipeline_drops_need_not_be_in_the_space() -> None:
    trained = pipeline().fit(X.assign(id="p1")[["id", *X.columns]], Y)
    fair = majority(FrozenEstimator(trained), SPACE).fit(X)
    assert fair.predict(X).tolist() == majority(pipeline(), SPACE).fit(X, Y).predict(X).tolist()
    less = FeatureSpace(tuple(a for a in SPACE.attributes if a.name != "town"))
    with pytest.raises(
        SchemaError, match="reads a column that the space does not have: got 'town'"
    ):
        majority(FrozenEstimator(trained), less).fit(X)


def test_a_bare_estimator_gets_encoded_rows() -> None:
    fair = majority(logistic(), SPACE).fit(X, Y)
    expected = logistic().fit(SPACE.encode(X), Y)
    np.testing.assert_allclose(fair.estimator_.coef_, expected.coef_, rtol=1e-9)


def test_a_pipeline_gets_the_original_table() -> None:
    fair = majority(pipeline(), SPACE).fit(X, Y)
    expected = clone(pipeline()).fit(X, Y)
    np.testing.assert_allclose(fair.estimator_[-1].coef_, expected[-1].coef_, rtol=1e-9)
    assert fair.estimator_.feature_names_in_.tolist() == list(X.columns)


def test_several_classes_have_verdicts() -> None:
    fair = majority(logistic(), SPACE).fit(X, Z)
    assert fair.model_ is not None
    assert fair.model_.outcomes == tuple(THREE)
    for verdict, shares in zip(fair.explain(SOME), fair.predict_proba(SOME), strict=True):
        assert isinstance(verdict, Fair if shares.max() == 1 else Unfair)


def test_explain_returns_one_verdict_per_person() -> None:
    fair = majority(logistic(), SPACE).fit(X, Y)
    verdicts = fair.explain(X)
    shares = fair.predict_proba(X)[:, 1]
    assert len(verdicts) == len(X)
    for verdict, share in zip(verdicts, shares, strict=True):
        assert isinstance(verdict, Fair if share in (0, 1) else Unfair)
    assert {type(verdict) for verdict in verdicts} == {Fair, Unfair}


def test_explain_needs_the_sensitive_columns() -> None:
    fair = majority(logistic(), SPACE).fit(X, Y)
    with pytest.raises(DomainError, match="the table must have the column 'age'"):
        fair.explain(X.drop(columns="age"))


def test_a_frozen_estimator_is_not_fitted_again() -> None:
    trained = logistic().fit(SPACE.encode(X), Y)
    before = trained.coef_.copy()
    fair = majority(FrozenEstimator(trained), SPACE).fit(X.head(5), Y[:5][::-1])
    assert fair.estimator_.estimator is trained
    np.testing.assert_array_equal(trained.coef_, before)
    assert fair.model_ is not None
    assert fair.classes_.tolist() == ["no", "yes"]
    unfrozen = majority(logistic(), SPACE).fit(X, Y)
    assert fair.predict(X).tolist() == unfrozen.predict(X).tolist()


def test_a_frozen_pipeline_is_read_and_not_fitted_again() -> None:
    trained = pipeline().fit(X, Y)
    fair = majority(FrozenEstimator(trained), SPACE).fit(X)
    assert fair.predict(X).tolist() == majority(pipeline(), SPACE).fit(X, Y).predict(X).tolist()
    assert fair.guarantee_.startswith("fair by construction")


def test_a_pipeline_gets_the_same_votes_whether_read_or_evaluated() -> None:
    readable = majority(pipeline(), SPACE).fit(X, Y)
    unreadable = majority(Opaque(pipeline()), SPACE).fit(X, Y)
    assert readable.model_ is not None
    assert unreadable.model_ is None
    assert readable.predict(X).tolist() == unreadable.predict(X).tolist()
    np.testing.assert_array_equal(readable.predict_proba(X), unreadable.predict_proba(X))


def test_counterexamples_of_a_pipeline_are_replayed_in_its_predict() -> None:
    fair = majority(pipeline(), SPACE).fit(X, Y)
    verdicts = fair.explain(X)
    unfair = [verdict for verdict in verdicts if isinstance(verdict, Unfair)]
    assert unfair
    assert all(verdict.replayed for verdict in unfair)
    wrong = majority(pipeline(), SPACE).fit(X, Y)
    last = wrong.estimator_.steps[-1][1]
    last.coef_, last.intercept_ = -last.coef_, -last.intercept_  # after FETA has read it
    (again,) = wrong.explain(X.iloc[[verdicts.index(unfair[0])]])
    assert isinstance(again, Unfair)
    assert again.replayed is False
    assert again.runtime == "sensitive"


def test_a_pipeline_with_custom_code_is_labeled_as_sampled() -> None:
    halved = FunctionTransformer(lambda numbers: numbers / 2)
    fair = majority(pipeline(halved), SPACE).fit(X, Y)
    assert fair.model_ is not None
    assert "its preprocessing was sampled, not proved" in fair.guarantee_
    assert {verdict.provenance for verdict in fair.explain(SOME)} == {"sampled"}


def test_a_frozen_estimator_with_column_names_gets_named_columns() -> None:
    space = FeatureSpace((Integer("age", 18, 25, sensitive=True), Real("income", 0, 100)))
    numbers = X[["age", "income"]].astype(float)
    for activation in ("relu", "tanh"):
        trained = perceptron(activation=activation).fit(numbers, Y)
        fair = majority(FrozenEstimator(trained), space).fit(numbers)
        assert set(fair.predict(numbers)) <= {"yes", "no"}


def test_a_frozen_estimator_with_columns_in_another_order_is_rejected() -> None:
    space = FeatureSpace((Integer("age", 18, 25, sensitive=True), Real("income", 0, 100)))
    trained = logistic().fit(X[["income", "age"]], Y)
    with pytest.raises(
        NetworkError,
        match=r"'age' is in the wrong position: got column 0 .*; expected column 1, as in the "
        r"estimator's training; put the attributes in that order",
    ):
        majority(FrozenEstimator(trained), space).fit(X)


def test_a_frozen_estimator_must_be_fitted() -> None:
    with pytest.raises(NotFittedError):
        majority(FrozenEstimator(LogisticRegression()), SPACE).fit(X, Y)


def test_a_frozen_estimator_of_another_width_is_rejected() -> None:
    with pytest.raises(SchemaError, match="wrong number of network inputs: got 2; expected 7"):
        majority(linear([1.0, 1.0], 0.0), SPACE).fit(X)
