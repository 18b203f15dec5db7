"""FairClassifier's votes: the recommended defaults, how they adapt, and what is refused."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVC

from feta import (
    Categorical,
    FairClassifier,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Real,
    Schema,
    SchemaError,
    read_model,
)
from feta.io.schema_file import parse_schema
from tests.unit.estimators.classifiers import Opaque, Rule

SPACE = FeatureSpace(
    (
        Categorical("sex", ("female", "male"), sensitive=True),
        Integer("age", 20, 22, sensitive=True),
        Integer("income", 0, 30),
    )
)
RNG = np.random.default_rng(0)
SIZE = 120
X = pd.DataFrame(
    {
        "sex": RNG.choice(["female", "male"], SIZE, p=[0.3, 0.7]),
        "age": RNG.integers(20, 23, SIZE),
        "income": RNG.integers(0, 31, SIZE),
    }
)
MERIT = X["income"] + 8 * (X["sex"] == "male") + 2 * (X["age"] - 20) + RNG.normal(0, 3, SIZE)
Y = np.where(MERIT > 24, "yes", "no")
Z = np.where(MERIT > 28, "high", np.where(MERIT > 15, "middle", "low"))
ANONYMOUS = X[["income"]]


class Probable(Opaque):
    """A wrapper that FETA cannot read, with probabilities."""

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:  # noqa: N803 - scikit-learn's name
        return np.asarray(self.fitted_.predict_proba(_numbers(X)))

    def predict(self, X: pd.DataFrame) -> np.ndarray:  # noqa: N803 - scikit-learn's name
        return np.asarray(self.fitted_.predict(_numbers(X)))

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "Probable":  # noqa: N803 - scikit-learn's name
        self.fitted_ = clone(self.estimator).fit(_numbers(X), y)
        self.classes_ = self.fitted_.classes_
        return self


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    return frame.assign(sex=frame["sex"] == "male").to_numpy(dtype=np.float64)


def fitted(*arguments: object, labels: np.ndarray = Y, **options: object) -> FairClassifier:
    fair = FairClassifier(*arguments, **options)  # type: ignore[arg-type]
    return fair.fit(X, labels)


def ridge() -> Pipeline:
    """Return a classifier whose scores are no probabilities."""
    texts = ColumnTransformer([("texts", OneHotEncoder(), ["sex"])], remainder="passthrough")
    return make_pipeline(texts, RidgeClassifier())


def mean_probabilities(fair: FairClassifier, incomes: list[int]) -> np.ndarray:
    """Return the means over all six combinations, weighted by the people who have them."""
    counts = X.groupby(["sex", "age"]).size()
    means = []
    for income in incomes:
        frame = pd.DataFrame([(s, a, income) for s, a in counts.index], columns=list(X))
        own = fair.estimator_.predict_proba(SPACE.encode(frame))
        means.append(counts.to_numpy() @ own / SIZE)
    return np.array(means)


def test_the_mean_probability_with_empirical_weights_and_a_kept_level_is_the_default() -> None:
    fair = fitted(LogisticRegression(), SPACE)
    assert fair.votes_.vote == "mean_probability"
    assert fair.votes_.weights is not None
    assert fair.votes_.weights.votes.tolist() == X.groupby(["sex", "age"]).size().tolist()
    own = (fair.estimator_.predict(SPACE.encode(X)) == "yes").sum()
    by_income = X.groupby("income").size().max()  # people with one income get one decision
    assert abs((fair.predict(X) == "yes").sum() - own) <= by_income
    expected = mean_probabilities(fair, X["income"].tolist())
    assert fair.predict_proba(ANONYMOUS) == pytest.approx(expected, abs=2e-3)
    level = fair.votes_.level
    assert level is not None
    certain = np.abs(expected[:, 1] - level) > 2e-3
    found = fair.predict(ANONYMOUS)[certain]
    assert found.tolist() == np.where(expected[certain, 1] > level, "yes", "no").tolist()


SCHEMA = """
[decision]
favorable = "no"
unfavorable = "yes"
favors = "below"
[votes]
vote = "mean_probability"
least = 1
[columns]
sex = { type = "category", values = ["female", "male"], sensitive = true }
age = { type = "integer", min = 20, max = 22, sensitive = true }
income = { type = "integer", min = 0, max = 30 }
"""


def test_probabilities_are_in_the_order_of_the_classes() -> None:
    fair = fitted(LogisticRegression(), Schema(parse_schema(SCHEMA)))
    expected = mean_probabilities(fair, X["income"].tolist())
    assert fair.predict_proba(ANONYMOUS) == pytest.approx(expected, abs=2e-3)
    own = (fair.estimator_.predict(SPACE.encode(X)) == "no").sum()
    by_income = X.groupby("income").size().max()
    assert abs((fair.predict(X) == "no").sum() - own) <= by_income
    assert fair.votes_.level is not None
    certain = np.abs(expected[:, 1] - fair.votes_.level) > 2e-3
    low = np.where(expected[:, 1] < fair.votes_.level, "no", "yes")
    assert (fair.predict(X) == low)[certain].all()


def test_sensitive_values_never_change_a_decision() -> None:
    fair = fitted(LogisticRegression(), SPACE)
    first = fair.predict(ANONYMOUS)
    assert len(set(first)) == 2
    for sex in ("female", "male"):
        assert (fair.predict(X.assign(sex=sex, age=20)) == first).all()


def test_the_predictor_of_the_paper_can_be_asked_for() -> None:
    fair = fitted(LogisticRegression(), SPACE, vote="majority", weights=None, level=None)
    assert fair.model_ is not None
    expected = FairPredictor(fair.model_).decide(SPACE.encode(X))
    assert (fair.predict(X) == np.where(expected, "yes", "no")).all()
    assert fair.votes_.is_default


def test_scores_without_probabilities_take_the_mean_score() -> None:
    with pytest.warns(UserWarning, match="the vote is the mean score"):
        fair = fitted(ridge(), SPACE)
    assert fair.votes_.vote == "mean_score"
    assert fair.votes_.level is not None
    shares = fair.predict_proba(ANONYMOUS)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    with pytest.raises(SchemaError, match="the model has no probabilities"):
        fitted(ridge(), SPACE, vote="mean_probability")


@pytest.mark.filterwarnings("ignore:the weaker guarantee holds")
def test_labels_take_the_weighted_majority() -> None:
    rule = Rule(lambda table: table["income"] + 9 * (table["sex"] == "male") > 20)
    with pytest.warns(UserWarning, match="the weighted majority: the estimator returns labels"):
        fair = fitted(rule, SPACE, labels=(MERIT > 24).to_numpy())
    n_men = int((X["sex"] == "male").sum())
    assert 2 * n_men > SIZE
    assert fair.predict(ANONYMOUS).tolist() == (X["income"] + 9 > 20).tolist()
    with pytest.raises(SchemaError, match="'mean_score' does not fit the estimator: got labels"):
        fitted(rule, SPACE, labels=(MERIT > 24).to_numpy(), vote="mean_score")


def test_several_classes_take_the_largest_mean_without_a_level() -> None:
    with pytest.warns(UserWarning, match="no level: the model has several classes"):
        fair = fitted(LogisticRegression(max_iter=1000), SPACE, labels=Z)
    expected = mean_probabilities(fair, X["income"].tolist())
    assert fair.predict_proba(ANONYMOUS) == pytest.approx(expected, abs=1e-5)
    top = np.sort(expected, axis=1)
    certain = top[:, -1] - top[:, -2] > 1e-5
    assert (fair.predict(X) == fair.classes_[expected.argmax(axis=1)])[certain].all()
    with pytest.raises(SchemaError, match="the level does not fit: got level='keep'"):
        fitted(LogisticRegression(max_iter=1000), SPACE, labels=Z, level="keep")


def test_shares_of_trees_are_averaged_exactly() -> None:
    frame = X.assign(sex=(X["sex"] == "male").astype(int))
    space = FeatureSpace((Integer("sex", 0, 1, sensitive=True), *SPACE.attributes[1:]))
    forest = RandomForestClassifier(8, max_depth=3, random_state=0)
    fair = FairClassifier(forest, space).fit(frame, Y)
    model = Model(space, read_model(fair.estimator_, space))
    predictor = FairPredictor.fitted(model, space.encode(frame))
    assert fair.votes_.vote == predictor.vote == "mean_probability"
    assert fair.votes_.ballot is predictor.ballot is None
    counts = frame.groupby(["sex", "age"]).size()
    for income in (5, 17, 29):
        rows = pd.DataFrame([(s, a, income) for s, a in counts.index], columns=list(X))
        own = fair.estimator_.predict_proba(rows)[:, 1]
        total = sum(Fraction(float(p)) * int(n) for p, n in zip(own, counts, strict=True))
        one = pd.DataFrame({"income": [income]})
        expected = pytest.approx(float(total / SIZE), abs=1e-9)
        assert fair.predict_proba(one)[0, 1] == expected
        person = space.encode({"income": income}, sensitive="ignore")
        assert predictor.means(person).means[0] == expected


@pytest.mark.filterwarnings("ignore:the weaker guarantee holds")
def test_an_estimator_that_cannot_be_read_is_evaluated() -> None:
    readable = fitted(LogisticRegression(), SPACE)
    with pytest.warns(UserWarning, match="the mean score"):
        counted = fitted(make_pipeline(FunctionTransformer(_numbers), SVC()), SPACE)
    assert counted.model_ is None
    assert counted.votes_.vote == "mean_score"
    opaque = fitted(Probable(LogisticRegression()), SPACE)
    assert opaque.model_ is None
    assert readable.votes_.vote == opaque.votes_.vote == "mean_probability"
    for fair in (counted, opaque):
        stored = pickle.loads(pickle.dumps(fair))
        assert (stored.predict(ANONYMOUS[:9]) == fair.predict(ANONYMOUS[:9])).all()


def test_defaults_survive_cloning_and_pickling() -> None:
    default = FairClassifier(ridge(), SPACE)
    for fair in (default, clone(default)):
        again = pickle.loads(pickle.dumps(fair))
        with pytest.warns(UserWarning, match="the vote is the mean score"):
            again.fit(X, Y)
    explicit = clone(FairClassifier(ridge(), SPACE, vote="mean_probability"))
    with pytest.raises(SchemaError, match="the model has no probabilities"):
        pickle.loads(pickle.dumps(explicit)).fit(X, Y)
    whole = pickle.loads(pickle.dumps(fitted(LogisticRegression(), SPACE)))
    assert (whole.predict(X) == fitted(LogisticRegression(), SPACE).predict(X)).all()


def test_rare_combinations_need_an_explicit_request() -> None:
    few = X.drop_duplicates(["sex", "age"])
    labels = np.array(["no", "yes"] * 3)[: len(few)]
    with pytest.raises(SchemaError, match=r"no sensitive assignment has 5 people: got at most 1"):
        FairClassifier(LogisticRegression(), SPACE).fit(few, labels)
    exact = FairClassifier(LogisticRegression(), SPACE, least=1).fit(few, labels)
    assert exact.votes_.weights is not None
    assert exact.votes_.weights.total == len(few)


def test_votes_are_fitted_to_people_outside_the_limits() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 200), "income": rng.uniform(0, 60, 200).round(1)}
    )
    labels = frame.income + 5 * (frame.sex == "m") + rng.normal(0, 5, 200) > 30
    space = FeatureSpace(
        (Categorical("sex", ("f", "m"), sensitive=True), Real("income", 0.0, 40.0))
    )
    encoder = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
    estimator = make_pipeline(encoder, LogisticRegression())
    n_outside = int((frame.income > 40).sum())
    with pytest.warns(UserWarning, match=f"{n_outside} people have income above .* maximum 40"):
        fair = FairClassifier(estimator, space).fit(frame, labels)
    assert fair.votes_.weights is not None
    assert fair.votes_.weights.total == len(frame)
    wide = FeatureSpace((*space.attributes[:1], Real("income", 0.0, 60.0)))
    expected = FairClassifier(estimator, wide).fit(frame, labels)
    inside = frame[frame.income <= 40]
    assert (fair.predict(inside) == expected.predict(inside)).all()
