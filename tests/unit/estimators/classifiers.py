# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""People and classifiers for the tests of FairClassifier."""

from collections.abc import Callable
from itertools import product
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from feta import Categorical, FairClassifier, FeatureSpace, Integer, Real

SEXES = ("female", "male")
SPACE = FeatureSpace(
    (
        Integer("age", 18, 25, sensitive=True),
        Categorical("sex", SEXES, sensitive=True),
        Categorical("town", ("Bonn", "Kiel", "Ulm")),
        Real("income", 0, 100),
    )
)
SENSITIVE = ["age", "sex"]
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "age": RNG.integers(18, 26, 60),
        "sex": RNG.choice(["female", "male"], 60),
        "town": RNG.choice(["Bonn", "Kiel"], 60),  # "Ulm" is in the space, but not in the table
        "income": RNG.uniform(0, 100, 60).round(1),
    }
)
SOME = X.head(10)
Y = np.where(X["income"] + 3 * X["age"] + 20 * (X["sex"] == "male") > 120, "yes", "no")


def majority(
    estimator: BaseEstimator | None = None,
    space: Any = None,  # noqa: ANN401 - also invalid ones
    **options: Any,  # noqa: ANN401 - parameters
) -> FairClassifier:
    """Return a classifier with the paper's vote: the majority of equal votes."""
    votes = {"vote": "majority", "weights": None, "level": None}
    return FairClassifier(estimator, space, **(votes | options))


def pipeline(*more: BaseEstimator) -> BaseEstimator:
    """Return a pipeline: preprocessing, optional further steps, and a logistic regression."""
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["income", "age"]),
            ("texts", OneHotEncoder(handle_unknown="ignore"), ["town", "sex"]),
        ]
    )
    return make_pipeline(columns, *more, LogisticRegression())


class Opaque(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A wrapper of an estimator that FETA cannot read."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: pd.DataFrame, y: NDArray[Any]) -> Self:
        self.fitted_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        return np.asarray(self.fitted_.predict(X))


def logistic() -> LogisticRegression:
    """Return a regression that converges in a few steps although the columns are not scaled."""
    return LogisticRegression(solver="newton-cholesky")


def perceptron(**options: object) -> MLPClassifier:
    """Return a small network with such a large tolerance that it stops early and never warns."""
    chosen = {"hidden_layer_sizes": (5,), "max_iter": 20, "tol": 1e9, "random_state": 0} | options
    return MLPClassifier(n_iter_no_change=10, **chosen)


KINDS = pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(logistic(), id="logistic"),
        pytest.param(perceptron(), id="relu"),
        pytest.param(perceptron(activation="tanh"), id="tanh"),
        pytest.param(pipeline(), id="pipeline"),
    ],
)


def counterparts(person: "pd.Series[Any]") -> pd.DataFrame:
    """Return everyone who differs from a person in age and sex at most."""
    rows = [{**person, "age": age, "sex": sex} for age, sex in product(range(18, 26), SEXES)]
    return pd.DataFrame(rows).astype(X.dtypes.to_dict())


class Rule(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier that decides by a function of the table, and records each table."""

    def __init__(self, favors: Callable[[Any], Any], classes: tuple[object, ...] = (0, 1)) -> None:
        self.favors = favors
        self.classes = classes
        self.seen: list[Any] = []

    def fit(self, X: object, y: object) -> Self:  # noqa: ARG002 - nothing to learn
        self.classes_ = np.array(self.classes)
        self.seen.append(X)
        return self

    def predict(self, X: object) -> NDArray[Any]:
        self.seen.append(X)
        return np.asarray(self.favors(X))


# A small table; an estimator must be fitted on two classes, even if all get the same decision.
TWO = pd.DataFrame({"s": [0, 1, 0, 1], "n": [0.0, 1.0, 2.0, 3.0]})
FLIP = FeatureSpace((Integer("s", 0, 1, sensitive=True), Real("n", 0, 9)))


def linear(slopes: list[float], bias: float) -> FrozenEstimator:
    """Return a trained logistic regression over TWO with these weights."""
    trained = LogisticRegression().fit(TWO.to_numpy(), [0, 0, 1, 1])
    trained.coef_, trained.intercept_ = np.array([slopes]), np.array([bias])
    return FrozenEstimator(trained)


THREE = np.array(["high", "low", "middle"])
Z = THREE[np.digitize(X["income"] + 3 * X["age"] + 20 * (X["sex"] == "male"), [100, 140])]
