"""Combinations of scikit-learn's models against their own predict over all counterparts."""

import warnings
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import feta
from feta import Argmax, FairAt, FeatureSpace, Model, Tolerance
from feta.checker.prove import prove
from feta.errors import NetworkError
from feta.scorer.ensemble.ensemble import Ensemble, mean_weights

N_PEOPLE = 240
Estimator = Any  # scikit-learn ships no types


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 30, N_PEOPLE),
            "sex": rng.choice(["f", "m"], N_PEOPLE),
            "income": rng.integers(0, 80, N_PEOPLE),
            "job": rng.choice(["a", "b", "c"], N_PEOPLE),
        }
    )


TABLE = _table()
MERIT = (
    0.05 * TABLE["income"]
    + 0.1 * TABLE["age"]
    + 0.7 * (TABLE["sex"] == "m")
    + np.random.default_rng(1).normal(size=N_PEOPLE)
)
LABELS = np.where(MERIT.median() < MERIT, "yes", "no")
TIERS = np.digitize(MERIT, np.quantile(MERIT, [0.3, 0.7])).astype(str)
SPACE = FeatureSpace.from_frame(TABLE, sensitive=["age", "sex"])
PEOPLE = SPACE.encode(TABLE)
CHECKED = 12

LINE = LogisticRegression(C=0.5)
SVM = LinearSVC()
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0)
BOOSTED = GradientBoostingClassifier(n_estimators=4, random_state=0)
SMALL = MLPClassifier((3,), max_iter=40, random_state=0)
CURVED = MLPClassifier((2,), activation="tanh", max_iter=40, random_state=1)
MIXED = [("line", LINE), ("forest", FOREST), ("network", SMALL)]


def pipeline(last: Estimator) -> Estimator:
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["sex", "job"])
    )
    return make_pipeline(columns, last)


def fitted(model: Estimator, target: Estimator = LABELS) -> Estimator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short training
        return model.fit(TABLE, target)


def counterparts(row: int) -> pd.DataFrame:
    """List all counterparts from the table itself."""
    ages = range(int(TABLE["age"].min()), int(TABLE["age"].max()) + 1)
    rows = [
        {**TABLE.iloc[row].to_dict(), "age": age, "sex": sex} for age, sex in product(ages, "fm")
    ]
    return pd.DataFrame(rows)


@cache
def read(name: str) -> tuple[Estimator, Ensemble]:
    """Return an estimator and its scorer."""
    estimator = fitted(TWO_CLASSES[name])
    scorer = feta.read_model(estimator, SPACE, method="exact")
    assert isinstance(scorer, Ensemble)
    return estimator, scorer


def calibrated(member: Estimator, method: str, **options: Estimator) -> Estimator:
    return CalibratedClassifierCV(member, method=method, cv=2, **options)


TWO_CLASSES = {
    "sigmoid of a line": pipeline(calibrated(LINE, "sigmoid")),
    "isotonic line": pipeline(calibrated(LINE, "isotonic")),
    "isotonic forest": pipeline(calibrated(FOREST, "isotonic")),
    "isotonic, one curve": pipeline(calibrated(SVM, "isotonic", ensemble=False)),
    "sigmoid of boosting": pipeline(calibrated(BOOSTED, "sigmoid")),
    "sigmoid of a network": pipeline(calibrated(SMALL, "sigmoid")),
    "temperature": pipeline(calibrated(SVM, "temperature")),
    "around a pipeline": CalibratedClassifierCV(pipeline(LINE), cv=2),
    "soft vote": pipeline(VotingClassifier(MIXED, voting="soft")),
    "soft vote, weights": pipeline(VotingClassifier(MIXED, voting="soft", weights=[0.5, 0.3, 0.2])),
    "hard vote": pipeline(VotingClassifier([("svm", SVM), ("tree", TREE), ("line", LINE)])),
    "hard vote, ties": pipeline(VotingClassifier([("svm", SVM), ("tree", TREE)])),
    "hard vote, weights": pipeline(VotingClassifier(MIXED, weights=[1, 2, 1])),
    "vote of pipelines": VotingClassifier(
        [("line", pipeline(LINE)), ("trees", pipeline(TREE))], voting="soft"
    ),
    "vote of calibrated": pipeline(
        VotingClassifier([("one", calibrated(LINE, "sigmoid")), ("two", TREE)], voting="soft")
    ),
    "bagging": pipeline(BaggingClassifier(LINE, 3, random_state=0)),
    "bagging of networks": pipeline(BaggingClassifier(SMALL, 3, random_state=0)),
    "vote of networks": pipeline(VotingClassifier([("a", SMALL), ("b", CURVED)], voting="soft")),
    "bagging of votes": pipeline(BaggingClassifier(SVM, 4, random_state=0)),
    "boosting by votes": pipeline(AdaBoostClassifier(n_estimators=3, random_state=0)),
    "stack": pipeline(StackingClassifier([("svm", SVM), ("forest", FOREST)], LINE, cv=2)),
    "stack with ridge": pipeline(
        StackingClassifier([("svm", SVM), ("line", LINE)], RidgeClassifier(), cv=2)
    ),
}


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_decisions_and_verdicts_are_those_of_the_estimator(name: str) -> None:
    estimator, scorer = read(name)
    assert scorer.provenance == "proved"
    model = Model(SPACE, scorer, outcomes=("no", "yes"))
    assert (model.decide(PEOPLE) == (estimator.predict(TABLE) == "yes")).all()
    for row in range(CHECKED):
        query = FairAt(model, PEOPLE[row])
        verdict = feta.verify(query)
        answers = estimator.predict(counterparts(row))
        assert isinstance(verdict, feta.Fair) == (len(set(answers)) == 1)
        if row < 3:  # the checker evaluates in fractions
            prove(verdict, query)


@pytest.mark.parametrize(
    "last",
    [
        VotingClassifier(MIXED, voting="soft"),
        VotingClassifier([("one", LINE), ("two", FOREST)], weights=[2, 1]),
        BaggingClassifier(LINE, 3, random_state=0),
        calibrated(LINE, "temperature"),
        StackingClassifier([("line", LINE), ("forest", FOREST)], LINE, cv=2),
    ],
    ids=["soft", "hard", "bagging", "temperature", "stack"],
)
def test_several_classes(last: Estimator) -> None:
    estimator = fitted(pipeline(last), TIERS)
    scorer = feta.read_model(estimator, SPACE, method="exact")
    model = Model(SPACE, scorer, Argmax(("0", "1", "2")))
    assert (model.decide(PEOPLE).astype(str) == estimator.predict(TABLE)).all()
    for row in range(4):
        verdict = feta.verify(FairAt(model, PEOPLE[row]))
        answers = estimator.predict(counterparts(row))
        assert isinstance(verdict, feta.Fair) == (len(set(answers)) == 1)


@pytest.mark.parametrize(
    "last",
    [
        VotingRegressor([("ridge", Ridge()), ("line", LinearRegression())], weights=[0.1, 0.7]),
        BaggingRegressor(Ridge(), 3, random_state=0),
        StackingRegressor([("ridge", Ridge()), ("line", LinearRegression())], Ridge(), cv=2),
    ],
    ids=["vote", "bagging", "stack"],
)
def test_regressors(last: Estimator) -> None:
    estimator = fitted(pipeline(last), MERIT)
    scorer = feta.read_model(estimator, SPACE, method="exact")
    np.testing.assert_allclose(scorer(PEOPLE)[:, 0], estimator.predict(TABLE), rtol=1e-12)
    model = Model(SPACE, scorer, Tolerance(0.5))
    predictions = estimator.predict(counterparts(0))
    worst = feta.worst(model, PEOPLE[0])
    assert isinstance(worst, feta.Unfair)
    assert worst.counterexample.gap == pytest.approx(np.ptp(predictions))


def test_a_threshold_on_the_probability_is_compared_with_the_calibrated_one() -> None:
    estimator = fitted(pipeline(calibrated(LINE, "isotonic")))
    scorer = feta.read_model(estimator, SPACE)
    model = Model(SPACE, scorer, feta.Threshold.at_probability(0.3))
    probabilities = estimator.predict_proba(TABLE)[:, 1]
    assert (model.decide(PEOPLE) == (probabilities >= 0.3)).all()


@pytest.mark.parametrize("name", ["isotonic line", "hard vote, ties", "stack"])
def test_a_stored_ensemble_is_the_same_model(name: str, tmp_path: Path) -> None:
    model = Model(SPACE, read(name)[1])
    feta.save_model(model, tmp_path / "model.feta")
    loaded = feta.load_model(tmp_path / "model.feta")
    assert loaded.fingerprint == model.fingerprint
    ours, theirs = (m.exact_scores(PEOPLE[:3]).fractions() for m in (model, loaded))
    assert ours == theirs


def test_a_changed_ensemble_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.feta"
    feta.save_model(Model(SPACE, read("sigmoid of a line")[1]), path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'\\"denominator\\": \\"2\\"', b'\\"denominator\\": \\"1\\"'))
    assert path.read_bytes() != content
    with pytest.raises(NetworkError, match="does not match its fingerprint"):
        feta.load_model(path)


OBSTACLES = [
    (StackingClassifier(MIXED, LINE, cv=2, passthrough=True), LABELS, "passthrough=False"),
    (StackingClassifier(MIXED, FOREST, cv=2), LABELS, "the last model .* is not linear"),
    (VotingClassifier([("svm", SVC())]), LABELS, "is not supported: got SVC"),
    (calibrated(LINE, "sigmoid"), TIERS, "divided by their sum: got 3 classes"),
    (calibrated(FOREST, "temperature"), LABELS, "RandomForestClassifier without decision_function"),
    (BaggingClassifier(LINE, 2, max_features=0.5), LABELS, "only some of the features"),
    (AdaBoostClassifier(n_estimators=2), TIERS, "AdaBoostClassifier of several classes"),
    (VotingRegressor([("rate", PoissonRegressor())]), MERIT - MERIT.min(), "that are its scores"),
]


@pytest.mark.parametrize(("last", "target", "expected"), OBSTACLES)
def test_what_is_not_read_exactly_says_why(
    last: Estimator, target: Estimator, expected: str
) -> None:
    with pytest.raises(NetworkError, match=expected):
        feta.read_model(fitted(pipeline(last), target), SPACE, method="exact")


def test_a_frozen_member_is_read() -> None:
    columns = pipeline("passthrough").fit(TABLE)
    inside = FrozenEstimator(LogisticRegression().fit(columns.transform(TABLE), LABELS))
    estimator = fitted(pipeline(CalibratedClassifierCV(inside)))
    scorer = feta.read_model(estimator, SPACE, method="exact")
    model = Model(SPACE, scorer)
    assert (model.decide(PEOPLE) == (estimator.predict(TABLE) == "yes")).all()


def test_histogram_boosting_inside_a_vote_keeps_its_own_columns() -> None:
    numbers = TABLE.assign(sex=(TABLE["sex"] == "m").astype(int), job=0)[["age", "sex", "income"]]
    space = FeatureSpace.from_frame(numbers, sensitive=["age", "sex"])
    members = [
        ("boost", HistGradientBoostingClassifier(max_iter=4)),
        ("line", LogisticRegression()),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = VotingClassifier(members, voting="soft").fit(numbers, LABELS)
    model = Model(space, feta.read_model(estimator, space, method="exact"))
    people = space.encode(numbers)
    assert (model.decide(people) == (estimator.predict(numbers) == "yes")).all()


@pytest.mark.parametrize("weights", [[1.0, 2.0], [0.1, 0.3, 0.7], [3.0], [1e-20, 5.0]])
def test_weights_of_a_mean_are_exact(weights: list[float]) -> None:
    integers, total = mean_weights(weights)
    shares = [Fraction(number) / total for number in integers]
    assert shares == [Fraction(weight) / sum(map(Fraction, weights)) for weight in weights]
