"""Columns that a bare estimator was trained on, by their names, are those of encoded people."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import feta
from feta import Categorical, Derived, FeatureSpace, Integer, NetworkError, Real
from feta.estimators.fair_classifier import FairClassifier
from feta.readers.sklearn.column_names import check_columns

JOBS = ("boss", "clerk", "worker")
PEOPLE = pd.DataFrame({"age": np.tile(np.arange(20, 30), 60), "job": np.repeat(JOBS, 200)})
LABELS = ((PEOPLE["job"] == "boss") & (PEOPLE["age"] > 24)).astype(int)
KINDS = ("tree", "forest", "boosting", "linear", "perceptron", "xgboost", "lightgbm")


def space(*jobs: str) -> FeatureSpace:
    return FeatureSpace((Integer("age", 20, 29, sensitive=True), Categorical("job", jobs)))


def dummies() -> pd.DataFrame:
    """Return the columns of the training: jobs in alphabetical order."""
    return pd.get_dummies(PEOPLE, dtype=float)


def unfitted(kind: str) -> Any:  # noqa: ANN401 - estimators ship no types
    if kind == "xgboost":
        return pytest.importorskip(kind).XGBClassifier(n_estimators=5, n_jobs=1)
    if kind == "lightgbm":
        return pytest.importorskip(kind).LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1)
    return {
        "tree": DecisionTreeClassifier(random_state=0),
        "forest": RandomForestClassifier(5, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=5),
        "linear": LogisticRegression(max_iter=1000),
        "perceptron": MLPClassifier((4,), random_state=0, solver="lbfgs", max_iter=9, tol=9),
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_values_in_another_order_than_in_the_training_are_refused(kind: str) -> None:
    trained = unfitted(kind).fit(dummies(), LABELS)
    expected = (
        "the estimator was trained on other columns than those of 'job': got 'job_boss', "
        "'job_clerk', 'job_worker' in their place; expected 'job_worker', 'job_clerk', 'job_boss'"
    )
    with pytest.raises(NetworkError, match=expected):
        feta.read_model(trained, space("worker", "clerk", "boss"), method="exact")


@pytest.mark.parametrize("kind", KINDS)
def test_values_in_the_order_of_the_training_decide_as_the_library(kind: str) -> None:
    trained = unfitted(kind).fit(dummies(), LABELS)
    people = space(*JOBS)
    model = feta.Model(people, feta.read_model(trained, people, method="exact"))
    decided = model.decide(people.encode(PEOPLE))
    assert decided.tolist() == (trained.predict(dummies()) == 1).tolist()
    verdict = feta.verify(feta.FairAt(model, people.encode({"age": 22, "job": "boss"})[0]))
    own = trained.predict(dummies()[PEOPLE["job"] == "boss"])
    assert isinstance(verdict, feta.Fair) == (len(set(own)) == 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dropped_first_value_is_refused(kind: str) -> None:
    frame = pd.get_dummies(PEOPLE, dtype=float, drop_first=True)  # clerk, worker
    trained = unfitted(kind).fit(frame.assign(extra=0.0), LABELS)
    with pytest.raises(NetworkError, match="got 'job_clerk', 'job_worker', 'extra' in their place"):
        feta.read_model(trained, space(*JOBS), method="exact")
    two = FeatureSpace((Integer("age", 20, 29, sensitive=True), Integer("job", 0, 1)))
    trained = unfitted(kind).fit(frame[["age", "job_clerk"]], LABELS)
    with pytest.raises(NetworkError, match=r"'job': got 'job_clerk' in their place; .* 'job';"):
        feta.read_model(trained, two, method="exact")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_without_names_are_taken_in_order(kind: str) -> None:
    people = space(*JOBS)
    for names in (None, ["x0", "x1", "x2", "x3"]):
        frame = dummies() if names is None else dummies().set_axis(names, axis=1)
        trained = unfitted(kind).fit(frame.to_numpy() if names is None else frame, LABELS)
        model = feta.Model(people, feta.read_model(trained, people, method="exact"))
        decided = model.decide(people.encode(PEOPLE))
        rows = frame.to_numpy() if names is None else frame
        assert decided.tolist() == (trained.predict(rows) == 1).tolist()


@pytest.mark.filterwarnings("ignore:the level is kept roughly")
def test_a_fair_classifier_passes_no_rows_to_other_columns() -> None:
    trained = LogisticRegression(max_iter=1000).fit(dummies(), LABELS)
    with pytest.raises(NetworkError, match="trained on other columns than those of 'job'"):
        FairClassifier(FrozenEstimator(trained), space("worker", "clerk", "boss")).fit(PEOPLE)
    other = LogisticRegression(max_iter=1000).fit(PEOPLE[["age"]], LABELS)
    fair = FairClassifier(other, space(*JOBS)).fit(PEOPLE, LABELS)  # trains it again
    assert fair.model_ is not None


class Named:
    def __init__(self, *names: str) -> None:
        self.feature_names_in_ = np.array(names, dtype=object)


SPACE = FeatureSpace(
    (
        Integer("age", 20, 29, sensitive=True),
        Categorical("old job", ("senior clerk", "clerk"), missing=True),
        Categorical("vip", (False, True)),
        Categorical("band", (-1, 1, 11)),
        Real("income", 0, 10, missing=True),
        Derived("group", "age", (("young", 20, 24), ("old", 25, 29))),
    )
)
NAMES = [
    ["age"],
    ["old job_senior clerk", "old job_clerk", "old job_nan"],
    ["vip_False", "vip_True"],
    ["band_-1", "band_1", "band_11"],
    ["income", "missingindicator_income"],
    ["group_young", "group_old"],
]


def names_with(place: int, *changed: str) -> list[str]:
    parts = [*NAMES[:place], list(changed), *NAMES[place + 1 :]]
    return [name for part in parts for name in part]


@pytest.mark.parametrize(
    ("place", "names"),
    [
        (0, ["num__age"]),
        (1, ["old_job_senior_clerk", "old_job_clerk", "old_job_None"]),
        (1, ["cat__old job=senior clerk", "cat__old job=clerk", "cat__old job=nan"]),
        (2, ["vip_0", "vip_1"]),
        (2, ["x_vip__0.0", "x_vip__1.0"]),
        (3, ["band: -1", "band: 1", "band: 11"]),
        (3, ["band_-1.0", "band_1.0", "band_11.0"]),
        (4, ["remainder__income", "income_is_missing"]),
        (5, ["groupyoung", "groupold"]),
    ],
)
def test_names_of_other_encoders_fit(place: int, names: list[str]) -> None:
    check_columns(SPACE, Named(*names_with(place, *names)))


@pytest.mark.parametrize(
    ("place", "names"),
    [
        (0, ["wage"]),
        (0, ["log_age"]),
        (0, ["age_30"]),
        (1, ["old job_clerk", "old job_senior clerk", "old job_nan"]),
        (1, ["old job_senior clerk", "job_clerk", "old job_nan"]),
        (1, ["job_senior clerk", "job_clerk", "job_nan"]),
        (1, ["senior clerk", "clerk", "nan"]),
        (1, ["old job_senior clerk", "old job_senior clerk", "old job_nan"]),
        (2, ["vip_True", "vip_False"]),
        (2, ["vip_False", "vip_False"]),
        (3, ["band_1", "band_-1", "band_11"]),
        (3, ["band_-1", "band_11", "band_1"]),
        (3, ["band_-1", "band_-1", "band_-11"]),
        (4, ["income_missing", "income_missing"]),
        (4, ["income", "age_missing"]),
        (5, ["group_old", "group_young"]),
    ],
)
def test_names_of_other_columns_do_not_fit(place: int, names: list[str]) -> None:
    check_columns(SPACE, Named(*names_with(0, "age")))
    name = SPACE.attributes[place].name
    with pytest.raises(NetworkError, match=f"trained on other columns than those of '{name}': got"):
        check_columns(SPACE, Named(*names_with(place, *names)))


def test_names_that_the_libraries_make_fit() -> None:
    people = space(*JOBS)
    encoder = OneHotEncoder().fit(PEOPLE[["job"]])
    made = DictVectorizer().fit(PEOPLE.to_dict("records")).get_feature_names_out()
    for jobs in (dummies().columns[1:], encoder.get_feature_names_out(), made[1:]):
        check_columns(people, Named("age", *jobs))
        with pytest.raises(NetworkError, match="in the order of the training, with no value left"):
            check_columns(people, Named("age", *jobs[::-1]))


def test_counted_names_state_nothing_unless_they_are_columns() -> None:
    numbers = FeatureSpace((Integer("x1", 0, 9, sensitive=True), Integer("x0", 0, 9)))
    check_columns(numbers, Named("f1", "f2"))
    with pytest.raises(NetworkError, match="'x1' is in the wrong position: got column 0"):
        check_columns(numbers, Named("x0", "x1"))
    with pytest.raises(NetworkError, match="than those of 'x1': got 'f2' in their place"):
        check_columns(numbers, Named("f2", "f1"))
