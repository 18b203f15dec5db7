"""Estimators of scikit-learn, in pipelines over mixed columns."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    RANSACRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC, LinearSVR
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)

from feta.arrays import Array
from tests.kinds.kind import Built, Kind, amount, number, several, two, value
from tests.kinds.people import AMOUNTS, MERIT, TABLE, THREE, WORDS

Estimator = Any  # scikit-learn ships no types


def columns() -> Estimator:
    """Return preprocessing of all columns."""
    numeric = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer(
        (numeric, ["age", "income"]), (OneHotEncoder(sparse_output=False), ["sex", "job"])
    )


def codes() -> Estimator:
    """Return preprocessing for trees: the numbers as they are, and numbers for the categories."""
    encoder = OrdinalEncoder()
    return make_column_transformer((SimpleImputer(), ["age", "income"]), (encoder, ["sex", "job"]))


def before(family: str) -> Estimator:
    """Return the preprocessing of a family."""
    return codes() if family == TREES else columns()


def classifier(family: str, model: Estimator, name: str = "", *, steps: Estimator = None) -> Kind:
    """Return a classifier of two classes behind preprocessing."""

    def build(folder: Path) -> Built:
        del folder
        pipeline = make_pipeline(clone(steps or before(family)), clone(model))
        return two(pipeline.fit(TABLE, WORDS), positive="yes")

    return Kind(family, name or type(model).__name__, build)


def classes(family: str, model: Estimator) -> Kind:
    """Return a classifier of three classes behind preprocessing."""

    def build(folder: Path) -> Built:
        del folder
        return several(make_pipeline(before(family), clone(model)).fit(TABLE, THREE))

    return Kind(family, f"{type(model).__name__}, several classes", build)


def regressor(family: str, model: Estimator, name: str = "") -> Kind:
    """Return a regressor whose predictions may differ by a tolerance."""

    def build(folder: Path) -> Built:
        del folder
        return value(make_pipeline(before(family), clone(model)).fit(TABLE, MERIT))

    return Kind(family, name or type(model).__name__, build)


def level(model: Estimator) -> Kind:
    """Return a linear regressor whose prediction is compared with a level."""

    def build(folder: Path) -> Built:
        del folder
        return number(make_pipeline(columns(), clone(model)).fit(TABLE, MERIT))

    return Kind(LINEAR, type(model).__name__, build)


def generalized(model: Estimator) -> Kind:
    """Return a linear model with a log link."""

    def build(folder: Path) -> Built:
        del folder
        return amount(make_pipeline(columns(), clone(model)).fit(TABLE, AMOUNTS))

    return Kind(LINEAR, f"{type(model).__name__}, log link", build)


def doubled(rows: Array) -> Array:
    """Return numbers times two: code of a user, which FETA samples."""
    return rows * 2


def squared(rows: Array) -> Array:
    """Return squares of numbers: code of a user, which is not linear."""
    return rows**2


def own_code(function: Any) -> Estimator:  # noqa: ANN401 - a function
    """Return preprocessing with a user's own function of the numbers."""
    own = make_pipeline(SimpleImputer(), FunctionTransformer(function))
    return make_column_transformer((own, ["age", "income"]), (OneHotEncoder(), ["sex", "job"]))


def indicators() -> Estimator:
    """Return preprocessing that marks missing values and numbers the categories."""
    numeric = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return make_column_transformer((numeric, ["age", "income"]), (OrdinalEncoder(), ["sex", "job"]))


def bins() -> Estimator:
    """Return preprocessing with bins and the means of the target."""
    return make_column_transformer(
        (KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ["age"]),
        (SimpleImputer(), ["income"]),
        (TargetEncoder(random_state=0), ["sex", "job"]),
    )


TREES, LINEAR, NETWORKS = "scikit-learn: trees", "scikit-learn: linear", "scikit-learn: networks"
PIPELINES, OTHER = "scikit-learn: pipelines", "scikit-learn: other"

FEW = {"n_estimators": 5, "max_depth": 3, "random_state": 0}
LOGISTIC = LogisticRegression()
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
VALUES = DecisionTreeRegressor(max_depth=3, random_state=0)
RELU = {"hidden_layer_sizes": (4,), "max_iter": 60, "random_state": 0}
MEMBERS = [("linear", LOGISTIC), ("tree", TREE)]

KINDS = (
    classifier(TREES, TREE),
    classifier(TREES, RandomForestClassifier(**FEW)),
    classes(TREES, RandomForestClassifier(**FEW)),
    classifier(TREES, ExtraTreesClassifier(**FEW)),
    classifier(TREES, GradientBoostingClassifier(**FEW)),
    classes(TREES, GradientBoostingClassifier(**FEW)),
    classifier(TREES, HistGradientBoostingClassifier(max_iter=5, max_depth=3)),
    classifier(TREES, BaggingClassifier(TREE, 5, random_state=0)),
    classifier(TREES, AdaBoostClassifier(n_estimators=5, random_state=0)),
    regressor(TREES, VALUES),
    regressor(TREES, RandomForestRegressor(**FEW)),
    regressor(TREES, ExtraTreesRegressor(**FEW)),
    regressor(TREES, GradientBoostingRegressor(**FEW)),
    regressor(TREES, HistGradientBoostingRegressor(max_iter=5, max_depth=3)),
    regressor(TREES, BaggingRegressor(VALUES, 5, random_state=0)),
    regressor(TREES, AdaBoostRegressor(n_estimators=5, random_state=0)),
    classifier(LINEAR, LOGISTIC),
    classes(LINEAR, LOGISTIC),
    classifier(LINEAR, LinearSVC(random_state=0)),
    classifier(LINEAR, SGDClassifier(random_state=0)),
    classifier(LINEAR, RidgeClassifier()),
    classifier(LINEAR, Perceptron(random_state=0)),
    classifier(LINEAR, LinearDiscriminantAnalysis()),
    classifier(LINEAR, FixedThresholdClassifier(LOGISTIC, threshold=0.3)),
    classifier(LINEAR, TunedThresholdClassifierCV(LOGISTIC, thresholds=20, cv=2)),
    level(LinearRegression()),
    level(Ridge()),
    level(Lasso(0.1)),
    level(ElasticNet(0.1)),
    level(HuberRegressor()),
    level(LinearSVR(random_state=0)),
    level(RANSACRegressor(random_state=0)),
    generalized(PoissonRegressor()),
    generalized(GammaRegressor()),
    generalized(TweedieRegressor(power=1.5, link="log")),
    classifier(NETWORKS, MLPClassifier(**RELU), "MLPClassifier, ReLU"),
    classes(NETWORKS, MLPClassifier(**RELU)),
    regressor(NETWORKS, MLPRegressor(**RELU), "MLPRegressor, ReLU"),
    classifier(NETWORKS, MLPClassifier(activation="tanh", **RELU), "MLPClassifier, tanh"),
    classifier(PIPELINES, TREE, "Scaling and one-hot encoding, before a tree"),
    classifier(PIPELINES, LOGISTIC, "Indicators of missing values", steps=indicators()),
    classifier(PIPELINES, LOGISTIC, "Bins and target encoding", steps=bins()),
    classifier(PIPELINES, LOGISTIC, "A linear function of one's own", steps=own_code(doubled)),
    classifier(PIPELINES, LOGISTIC, "Another function of one's own", steps=own_code(squared)),
    classifier(
        PIPELINES,
        LOGISTIC,
        "PolynomialFeatures",
        steps=make_pipeline(columns(), PolynomialFeatures()),
    ),
    classifier(PIPELINES, GridSearchCV(LOGISTIC, {"C": [0.1, 1.0]}, cv=2), "GridSearchCV"),
    classifier(OTHER, CalibratedClassifierCV(LOGISTIC, cv=2)),
    classifier(OTHER, VotingClassifier(MEMBERS, voting="soft")),
    regressor(OTHER, VotingRegressor([("linear", Ridge()), ("tree", VALUES)])),
    classifier(OTHER, StackingClassifier(MEMBERS, cv=2)),
    classifier(OTHER, SVC(), "SVC, RBF kernel"),
    classifier(OTHER, KNeighborsClassifier()),
    regressor(OTHER, KNeighborsRegressor()),
    classifier(OTHER, GaussianNB()),
    classifier(OTHER, QuadraticDiscriminantAnalysis(reg_param=0.1)),
    classifier(OTHER, GaussianProcessClassifier(random_state=0)),
    classes(OTHER, OneVsRestClassifier(LOGISTIC)),
    regressor(OTHER, TransformedTargetRegressor(Ridge(), func=np.cbrt, inverse_func=np.exp)),
)
