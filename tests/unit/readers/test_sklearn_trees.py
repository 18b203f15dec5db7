"""Forests read from scikit-learn equal the estimators bit for bit."""

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
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
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import feta
from feta import (
    Argmax,
    Categorical,
    FairAt,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Real,
    Threshold,
)
from feta.arrays import Matrix
from feta.datasets.german import load_german
from feta.errors import NetworkError
from feta.io.raw_table import RawTable
from feta.readers.sklearn import tree_agreement
from feta.readers.sklearn.trees import read_sklearn_trees
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.trees import CUT
from feta.space.sampling import draw_people

SPACE = FeatureSpace(
    (
        Integer("age", 18, 29, sensitive=True),
        Categorical("town", ("Bonn", "Ulm", "Trier"), sensitive=True),
        Real("income", -10, 100),
        Levels("hours", (10.0, 20.5, 40.0)),
        Integer("rooms", 1, 6),
    )
)
GAPS = FeatureSpace(
    (
        Integer("age", 18, 29, sensitive=True, missing=True),
        Categorical("town", ("Bonn", "Ulm", "Trier"), sensitive=True, missing=True),
        Real("income", -10, 100, missing=True),
        Levels("hours", (10.0, 20.5, 40.0), missing=True),
        Integer("rooms", 1, 6),
    )
)
NUMBERS = ["age", "income", "hours", "rooms"]
NAMES = ("age", "town", "income", "hours", "rooms")

CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=5, random_state=0),
    ExtraTreeClassifier(max_depth=5, random_state=0),
    RandomForestClassifier(6, random_state=0),
    RandomForestClassifier(4, max_leaf_nodes=9, n_jobs=2, random_state=0),
    ExtraTreesClassifier(5, random_state=0),
    GradientBoostingClassifier(n_estimators=7, learning_rate=0.3, random_state=0),
    GradientBoostingClassifier(n_estimators=4, init="zero", random_state=0),
    HistGradientBoostingClassifier(max_iter=7, min_samples_leaf=5, random_state=0),
    BaggingClassifier(n_estimators=5, max_features=0.5, random_state=0),
    BaggingClassifier(n_estimators=4, max_samples=5, random_state=3),
]
REGRESSORS = [
    DecisionTreeRegressor(max_depth=5, random_state=0),
    RandomForestRegressor(6, random_state=0),
    ExtraTreesRegressor(5, random_state=0),
    GradientBoostingRegressor(n_estimators=7, loss="huber", random_state=0),
    HistGradientBoostingRegressor(max_iter=7, min_samples_leaf=5, random_state=0),
    BaggingRegressor(n_estimators=5, max_features=0.5, random_state=0),
]


def people(space: FeatureSpace = SPACE, count: int = 160, seed: int = 1) -> Matrix:
    return draw_people(space, np.random.default_rng(seed), count)


def frame(rows: Matrix, space: FeatureSpace = SPACE) -> pd.DataFrame:
    table = RawTable(space, NAMES)(rows)
    assert isinstance(table, pd.DataFrame)
    return table


def target(rows: Matrix, estimator: BaseEstimator, n_classes: int = 2) -> np.ndarray:
    """Return labels or numbers that depend on all columns, and on chance."""
    slopes = np.linspace(-1, 1, rows.shape[1]) / (1 + np.abs(rows).max(axis=0))
    score = rows @ slopes + np.random.default_rng(5).normal(size=len(rows)) / 4
    if "Regressor" in type(estimator).__name__:
        return np.asarray(100 * score)
    cuts = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return np.array(["no", "so", "yes"])[np.searchsorted(cuts, score)]


def own_scores(estimator: BaseEstimator, table: object) -> Matrix:
    """Return the scores by the estimator's public methods, in the order of its trees."""
    bare = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if hasattr(bare, "n_jobs"):
        bare.n_jobs = None
    if not hasattr(bare, "classes_"):
        scores = estimator.predict(table)
    elif "Boosting" in type(bare).__name__:
        scores = estimator.decision_function(table)
    else:
        scores = estimator.predict_proba(table)
    return np.asarray(scores).reshape(len(scores), -1)


def near_cuts(forest: Forest, space: FeatureSpace, seed: int = 2) -> Matrix:
    """Return people whose income is at a cut, or one number before or after it."""
    rows = people(space, 300, seed)
    column = space.columns_of(space.attribute("income"))
    cuts = forest.trees.cut[(forest.trees.kind == CUT) & (forest.trees.source == column.start)]
    cuts = cuts[np.abs(cuts) < 1e9]
    if len(cuts):
        numbers = np.concatenate([cuts, np.nextafter(cuts, -1e9), np.nextafter(cuts, 1e9)])
        numbers = numbers[(numbers >= -10) & (numbers <= 100)]
        rows[:, column] = 0.0
        rows[:, column.start] = np.resize(numbers, len(rows)) if len(numbers) else 0.0
    return rows


def compare(forest: Forest, estimator: BaseEstimator, rows: Matrix, table: object) -> None:
    """Compare scores bit for bit, and decisions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing values of encoders, names of features
        expected = own_scores(estimator, table)
        labels = estimator.predict(table)
    np.testing.assert_array_equal(forest(rows), expected)
    if not hasattr(estimator, "classes_"):
        return
    classes = estimator.classes_
    rule = Argmax(tuple(classes)) if len(classes) > 2 else Threshold(0.0)
    model = Model(forest_space(forest), forest, rule)
    decided = model.decide(rows).astype(int)
    assert (classes[decided] == labels).all()


def forest_space(forest: Forest) -> FeatureSpace:
    return SPACE if forest.width == SPACE.width else GAPS


def ident(estimator: BaseEstimator) -> str:
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *REGRESSORS], ids=ident)
def test_scores_on_encoded_people_are_the_estimators_bit_for_bit(estimator: BaseEstimator) -> None:
    rows = people(GAPS)
    estimator.fit(rows, target(rows, estimator))
    forest = read_sklearn_trees(estimator, GAPS)
    assert "scikit-learn" in forest.summation.library
    for checked in (people(GAPS, 300, seed=9), near_cuts(forest, GAPS)):
        compare(forest, estimator, checked, checked)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(max_depth=4, random_state=0),
        RandomForestClassifier(4, random_state=0),
        GradientBoostingClassifier(n_estimators=4, random_state=0),
        HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5, random_state=0),
        BaggingClassifier(n_estimators=4, max_samples=5, random_state=0),
    ],
    ids=ident,
)
def test_three_classes_have_a_score_each(estimator: BaseEstimator) -> None:
    rows = people()
    estimator.fit(rows, target(rows, estimator, 3))
    forest = read_sklearn_trees(estimator, SPACE)
    assert forest.outputs == 3
    compare(forest, estimator, people(seed=9), people(seed=9))


def columns(**steps: object) -> ColumnTransformer:
    """Return preprocessing of all columns; `steps` replace those of some columns."""
    chosen = {
        "age": StandardScaler(),
        "town": OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
        "income": make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
        "hours": RobustScaler(),
        "rooms": "passthrough",
    } | steps
    parts = [(name, step, [name]) for name, step in chosen.items()]
    return ColumnTransformer(parts, sparse_threshold=0)


SCALED = columns(income=make_pipeline(MinMaxScaler(), StandardScaler()))
FILLED = columns(
    age=make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
    hours=SimpleImputer(add_indicator=True),
)


# Preprocessing without gaps does not depend on the estimator, so two of them are enough.
@pytest.mark.parametrize(
    ("space", "estimator"),
    [
        *((GAPS, estimator) for estimator in [*CLASSIFIERS[2:8], *REGRESSORS[1:5]]),
        *((SPACE, estimator) for estimator in (CLASSIFIERS[2], REGRESSORS[4])),
    ],
    ids=lambda value: ident(value) if isinstance(value, BaseEstimator) else str(value.width),
)
def test_pipelines_are_absorbed_bit_for_bit(estimator: BaseEstimator, space: FeatureSpace) -> None:
    rows = people(space, seed=3)
    pipeline = make_pipeline(SCALED if space is SPACE else FILLED, estimator)
    pipeline.fit(frame(rows, space), target(rows, estimator))
    forest = read_sklearn_trees(pipeline, space)
    for checked in (people(space, 200, seed=9), near_cuts(forest, space)):
        compare(forest, pipeline, checked, frame(checked, space))


@pytest.mark.parametrize(
    "steps",
    [
        columns(town=OrdinalEncoder()),
        columns(town=TargetEncoder(target_type="binary")),
        columns(age=KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")),
        columns(age=OneHotEncoder(sparse_output=False), rooms=PowerTransformer()),
        columns(hours=FunctionTransformer(np.log1p)),
    ],
)
def test_finite_columns_pass_through_any_known_step(steps: ColumnTransformer) -> None:
    rows = people()
    estimator = RandomForestClassifier(4, random_state=0)
    pipeline = make_pipeline(steps, estimator).fit(frame(rows), target(rows, estimator))
    forest = read_sklearn_trees(pipeline, SPACE)
    assert forest.provenance == "proved"
    compare(forest, pipeline, people(seed=9), frame(people(seed=9)))


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_missing_numbers_go_where_the_tree_sends_them(kind: type[BaseEstimator]) -> None:
    space = FeatureSpace(tuple(a for a in GAPS.attributes if a.name != "town"))
    rows = people(space)
    names = tuple(NUMBERS)
    table = RawTable(space, names)
    estimator = kind(random_state=0, max_depth=4).fit(table(rows), target(rows, kind()))
    forest = read_sklearn_trees(estimator, space)
    assert forest.trees.missing_left[forest.trees.flag >= 0].any()
    checked = people(space, 300, seed=9)
    np.testing.assert_array_equal(forest(checked), own_scores(estimator, table(checked)))


@pytest.mark.parametrize(
    "kind",
    [HistGradientBoostingClassifier, HistGradientBoostingRegressor],
    ids=lambda k: k.__name__,
)
@pytest.mark.parametrize("space", [SPACE, GAPS], ids=["complete", "gaps"])
def test_native_categories_of_histogram_boosting(
    kind: type[BaseEstimator], space: FeatureSpace
) -> None:
    rows = people(space)
    estimator = kind(max_iter=6, min_samples_leaf=4, categorical_features=["town", "rooms"])
    estimator.fit(frame(rows, space), target(rows, estimator))
    forest = read_sklearn_trees(estimator, space)
    checked = people(space, 300, seed=9)
    compare(forest, estimator, checked, frame(checked, space))


def test_a_float32_cast_merges_large_integers() -> None:
    space = FeatureSpace(
        (Integer("number", 2**24 - 3, 2**24 + 5), Integer("age", 1, 3, sensitive=True))
    )
    rows = np.array([[2.0**24 + number, 1.0 + number % 3] for number in range(-3, 6)])
    estimator = DecisionTreeClassifier().fit(rows, rows[:, 0] > 2**24 + 2)
    forest = read_sklearn_trees(estimator, space)
    assert (forest(rows)[:, 1] > 0.5).tolist() == (estimator.predict(rows) == 1).tolist()
    (cut,) = forest.trees.cut[forest.trees.kind == CUT]
    with np.errstate(all="raise"):
        assert np.float32(cut) <= estimator.tree_.threshold[0] < np.float32(cut + 1)


def test_ties_of_a_random_forest_go_to_the_first_class() -> None:
    rows = people(count=60)
    estimator = RandomForestClassifier(4, max_depth=None, random_state=0)
    estimator.fit(rows, target(rows, estimator))
    forest = read_sklearn_trees(estimator, SPACE)
    checked = people(count=2000, seed=9)
    chances = estimator.predict_proba(checked)
    ties = chances[:, 0] == chances[:, 1]
    assert ties.sum() > 20
    model = Model(SPACE, forest)
    assert (model.decide(checked) == (estimator.predict(checked) == "so")).all()
    assert not model.decide(checked[ties]).any()


@pytest.mark.parametrize(
    ("estimator", "decision"),
    [
        (GradientBoostingClassifier(n_estimators=1, init="zero", max_depth=1), True),
        (HistGradientBoostingClassifier(max_iter=1, max_depth=1), False),
    ],
    ids=["boosting", "histogram boosting"],
)
def test_boosted_ties_are_those_of_the_estimator(estimator: BaseEstimator, decision: bool) -> None:
    space = FeatureSpace((Integer("age", 0, 3, sensitive=True),))
    rows = np.array([[age] for age in range(4) for _ in range(20)], dtype=np.float64)
    labels = np.arange(80) % 2 == 0  # a score of 0 everywhere
    estimator.fit(rows, labels)
    forest = read_sklearn_trees(estimator, space)
    assert (forest(rows) == 0).all()
    assert (estimator.predict(rows) == decision).all()
    assert (Model(space, forest).decide(rows) == decision).all()


@pytest.mark.parametrize("estimator", [CLASSIFIERS[2], CLASSIFIERS[5], CLASSIFIERS[7]], ids=ident)
def test_verdicts_are_those_of_predict_on_all_counterparts(estimator: BaseEstimator) -> None:
    rows = people(count=120)
    pipeline = make_pipeline(columns(), estimator).fit(frame(rows), target(rows, estimator))
    model = Model(SPACE, read_sklearn_trees(pipeline, SPACE))
    fair = 0
    for person in people(count=12, seed=7):
        (counterparts,) = SPACE.lattice.counterparts(person)
        expected = len(set(pipeline.predict(frame(counterparts)))) == 1
        verdict = feta.verify(FairAt(model, person), engine="exhaustive")
        assert isinstance(verdict, feta.Fair if expected else feta.Unfair)
        fair += expected
    assert 0 < fair < 12


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(4, random_state=0),
        GradientBoostingClassifier(n_estimators=5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5, random_state=0),
    ],
    ids=ident,
)
def test_german_credit_with_a_pipeline(estimator: BaseEstimator) -> None:
    german = load_german()
    texts = [a.name for a in german.space.attributes if isinstance(a, Categorical)]
    numbers = [a.name for a in german.space.attributes if isinstance(a, Integer)]
    steps = ColumnTransformer(
        [("one", OneHotEncoder(), texts), ("scale", StandardScaler(), numbers)], sparse_threshold=0
    )
    pipeline = make_pipeline(steps, estimator).fit(german.frame, german.labels)
    forest = read_sklearn_trees(pipeline, german.space)
    rows = german.space.encode(german.frame)
    np.testing.assert_array_equal(forest(rows), own_scores(pipeline, german.frame))
    decided = Model(german.space, forest).decide(rows)
    assert (decided == pipeline.predict(german.frame)).all()


def fitted(estimator: BaseEstimator, *steps: object) -> BaseEstimator:
    rows = people()
    return make_pipeline(*steps, estimator).fit(frame(rows), target(rows, estimator))


FOREST = RandomForestClassifier(2, max_depth=3, random_state=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fitted(LogisticRegression(), columns()), "is no tree ensemble: got LogisticRegr"),
        (lambda: RandomForestClassifier(), "RandomForestClassifier is not fitted; call its fit"),
        (
            lambda: DecisionTreeRegressor().fit(people(), people()[:, :2]),
            "DecisionTreeRegressor gives several answers per person: got 2; expected 1",
        ),
        (
            lambda: DecisionTreeClassifier().fit(people(), np.zeros(160)),
            "unsupported number of classes: got 1; expected 2 to 127",
        ),
        (
            lambda: GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(
                people(), people()[:, 0]
            ),
            "GradientBoostingRegressor starts from another estimator: got init=LinearRegression",
        ),
        (
            lambda: HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(
                people(), people()[:, 0]
            ),
            "predicts the exponential of its score: got loss='poisson'",
        ),
        (
            lambda: BaggingClassifier(LogisticRegression(max_iter=9999), n_estimators=2).fit(
                people(), people()[:, 1]
            ),
            "averages estimators that are no single trees: got LogisticRegression",
        ),
        (
            lambda: fitted(FOREST, columns(), PCA(3)),
            r"the step 'pca' \(PCA\) mixes columns: got a feature of 'age', 'hours'",
        ),
        (
            lambda: fitted(FOREST, columns(income=PowerTransformer())),
            r"the step 'income' \(PowerTransformer\) is not linear in 'income'",
        ),
        (
            lambda: fitted(FOREST, columns(income=make_pipeline(StandardScaler(), PCA(1)))),
            r"the step 'pca' \(PCA\) is not linear in 'income'",
        ),
        (
            lambda: fitted(FOREST, columns(age=FunctionTransformer(lambda table: table + 1))),
            r"the step 'age' \(FunctionTransformer\) runs code that FETA does not know",
        ),
        (
            lambda: DecisionTreeClassifier().fit(people()[:, :4], people()[:, 1]),
            "the estimator was fitted on other columns: got 4; expected 5, .* or 7",
        ),
    ],
)
def test_what_is_not_read_exactly_is_rejected_by_name(
    make: Callable[[], BaseEstimator], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_sklearn_trees(make(), SPACE)


def test_an_estimator_that_rejects_people_is_named() -> None:
    space = FeatureSpace((Integer("age", 1, 9, sensitive=True, missing=True),))
    estimator = GradientBoostingClassifier(n_estimators=2)
    estimator.fit(pd.DataFrame({"age": range(1, 10)}), np.arange(9) % 2)
    with pytest.raises(NetworkError, match="GradientBoostingClassifier rejects people of this"):
        read_sklearn_trees(estimator, space)


def test_a_changed_tree_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = people()
    estimator = DecisionTreeClassifier(random_state=0).fit(rows, target(rows, FOREST))
    monkeypatch.setattr(tree_agreement, "_scores", lambda _, table: np.zeros((len(table), 2)))
    with pytest.raises(NetworkError, match="the trees' scores differ from those of DecisionTree"):
        read_sklearn_trees(estimator, SPACE)
