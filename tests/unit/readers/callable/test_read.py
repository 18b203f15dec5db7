"""Functions and estimators as counted models, compared with the estimator's own predict."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta import Argmax, Fair, FairAt, FairPredictor, Model, Threshold, Tolerance
from feta.errors import NetworkError, SchemaError
from feta.io.raw_table import RawTable
from feta.readers.callable.read import read_callable
from feta.readers.callable.runtime import counted_runtime
from feta.readers.callable.tables import ColumnwiseTable
from feta.scorer.protocol import doubt_at
from feta.space.sampling import draw_people
from tests.counted import OPTIONS, SPACE, approve, brute_force, merit, people

sklearn = pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

RECORDS = people(5, seed=11)
FRAME = pd.DataFrame(people(200, seed=1))
PEOPLE = SPACE.encode(RECORDS)


def targets(n_classes: int) -> np.ndarray:
    scores = merit(FRAME) + np.random.default_rng(0).normal(0, 6, len(FRAME))
    if n_classes == 2:
        return np.where(scores > 0, "yes", "no")
    return np.digitize(scores, [-8.0, 6.0])


def fitted(estimator: BaseEstimator, y: np.ndarray) -> BaseEstimator:
    encoder = make_column_transformer(
        (OneHotEncoder(), ["sex", "housing"]), (StandardScaler(), ["age", "income"])
    )
    return make_pipeline(encoder, estimator).fit(FRAME, y)


CLASSIFIERS: list[Any] = [
    RandomForestClassifier(7, max_depth=4, random_state=0),
    GradientBoostingClassifier(n_estimators=8, random_state=0),
    DecisionTreeClassifier(max_depth=4, random_state=0),
    KNeighborsClassifier(4),
    SVC(),
    GaussianNB(),
    LogisticRegression(max_iter=1000),
    Perceptron(random_state=0),
]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda estimator: type(estimator).__name__)
def test_classifiers_are_counted_as_their_predict_decides(
    estimator: BaseEstimator, n_classes: int
) -> None:
    pipeline = fitted(estimator, targets(n_classes))
    classes = pipeline.classes_.tolist()
    scorer = read_callable(pipeline, SPACE, options=OPTIONS)
    several = Argmax(tuple(map(str, classes)))
    model = Model(SPACE, scorer, several) if n_classes > 2 else Model(SPACE, scorer)
    assert scorer.provenance == "counted"
    assert scorer.classes == tuple(map(str, classes))
    tally = feta.tally(model, PEOPLE)
    fair = FairPredictor(model).decide(PEOPLE)
    for row, record in enumerate(RECORDS):
        labels = brute_force(pipeline.predict, SPACE, record)
        counts = [labels.count(label) for label in classes]
        assert tally.by_class[row].tolist() == counts
        verdict = feta.verify(FairAt(model, PEOPLE[row]))
        assert isinstance(verdict, Fair) == (len(set(labels)) == 1)
        winner = int(counts[1] >= counts[0]) if n_classes == 2 else counts.index(max(counts))
        assert int(fair[row]) == winner
    own = pipeline.predict(pd.DataFrame(RECORDS))
    assert model.decide(PEOPLE).astype(int).tolist() == [classes.index(label) for label in own]


@pytest.mark.parametrize(
    "estimator",
    [RandomForestRegressor(5, max_depth=4, random_state=0), KNeighborsRegressor(3)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_regressors_are_counted(estimator: BaseEstimator) -> None:
    pipeline = fitted(estimator, merit(FRAME))
    model = Model(SPACE, read_callable(pipeline, SPACE, options=OPTIONS), Tolerance(9.0))
    spread = feta.spread(model, PEOPLE)
    for row, record in enumerate(RECORDS):
        scores = sorted(brute_force(pipeline.predict, SPACE, record))
        np.testing.assert_allclose(spread.lowest[row], scores[0], rtol=1e-12)
        np.testing.assert_allclose(spread.highest[row], scores[-1], rtol=1e-12)
        verdict = feta.verify(FairAt(model, PEOPLE[row]))
        assert isinstance(verdict, Fair) == (scores[-1] - scores[0] <= 9.0)


def test_an_audit_replays_pairs_and_compares_the_frame_with_the_model_itself() -> None:
    pipeline = fitted(DecisionTreeClassifier(max_depth=4, random_state=0), targets(2))
    table, options = RawTable.like(SPACE, FRAME), replace(OPTIONS, batch=64)
    model = Model(SPACE, read_callable(pipeline, SPACE, table=table, options=options))
    runtime = counted_runtime(model)
    result = feta.audit(model, FRAME.iloc[:15], replay=runtime)
    assert runtime.name == "DecisionTreeClassifier.predict and predict_proba themselves"
    assert result.compared is not None
    assert (result.compared.rows, result.compared.different) == (15, 0)
    assert result.pairs
    assert all(finding.replayed for finding in result.pairs)
    for finding in result.findings:
        record = {str(name): value for name, value in FRAME.iloc[finding.row].items()}
        labels = brute_force(pipeline.predict, SPACE, record)
        assert (finding.status == "unfair") == (len(set(labels)) == 2)


def test_a_runtime_of_a_level_or_a_function_decides_by_its_answers() -> None:
    levelled = Model(SPACE, read_callable(merit, SPACE, level=3.0, options=OPTIONS))
    expected = merit(pd.DataFrame(RECORDS)) >= 3.0
    assert counted_runtime(levelled)(PEOPLE).tolist() == expected.tolist()
    frame = pd.DataFrame(RECORDS)
    assert counted_runtime(levelled).evaluate_frame(frame).answers.tolist() == expected.tolist()


def test_a_runtime_needs_a_counted_model_and_valid_answers() -> None:
    network = feta.Network.from_layers([(np.ones((1, SPACE.width)), np.zeros(1))])
    with pytest.raises(NetworkError, match=r"^the model is not counted: got Network; expected"):
        counted_runtime(Model(SPACE, network))
    model = Model(SPACE, read_callable(_sometimes_nan, SPACE, options=OPTIONS))
    expected = r"^the function _sometimes_nan has no valid answer for row 1: the model answered nan"
    with pytest.raises(NetworkError, match=expected):
        counted_runtime(model)(SPACE.encode(RECORDS[0] | {"age": 20}))


def _sometimes_nan(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["age"] == 20, np.nan, merit(frame))


@dataclass
class Chooses:
    """A classifier whose predict decides at its own cut-off, as a tuned threshold does."""

    cut: float
    strict: bool = True
    classes_: np.ndarray = field(default_factory=lambda: np.array(["no", "yes"]))

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        p = np.clip(np.asarray(merit(frame)) / 64 + 0.5, 0, 1)
        return np.stack([1 - p, p], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        p = self.predict_proba(frame)[:, 1]
        return np.where(p > self.cut if self.strict else p >= self.cut, "yes", "no")


def test_scores_that_do_not_imply_predict_are_not_used() -> None:
    scorer = read_callable(Chooses(0.3), SPACE, options=OPTIONS)
    assert scorer.name == "Chooses.predict"
    assert not scorer.has_scores
    model = Model(SPACE, scorer)
    expected = Chooses(0.3).predict(pd.DataFrame(RECORDS)) == "yes"
    assert model.decide(PEOPLE).tolist() == expected.tolist()
    message = r"^Chooses.predict_proba does not decide as Chooses.predict: got different classes on"
    with pytest.raises(NetworkError, match=message):
        read_callable(Chooses(0.3), SPACE, function="predict_proba", options=OPTIONS)
    assert read_callable(Chooses(0.5), SPACE, options=OPTIONS).has_scores


def test_a_level_is_compared_with_the_probability_itself() -> None:
    scorer = read_callable(Chooses(0.5), SPACE, level=0.3125, options=OPTIONS)
    model = Model(SPACE, scorer, Threshold(0.0, equality="favorable"))
    for record in RECORDS:
        p = [
            float(Chooses(0.5).predict_proba(pd.DataFrame([other]))[0, 1])
            for other in [record | {"age": 18 + k} for k in range(12)]
        ]
        people_of_age = SPACE.encode([record | {"age": 18 + k} for k in range(12)])
        assert model.decide(people_of_age).tolist() == [value >= 0.3125 for value in p]
    np.testing.assert_allclose(
        model.score(PEOPLE), Chooses(0.5).predict_proba(pd.DataFrame(RECORDS))[:, 1] - 0.3125
    )


def test_predict_decides_ties_of_scores_or_nobody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    tie = {"age": 18, "sex": "female", "income": 20, "housing": "own"}
    assert Chooses(0.5).predict_proba(pd.DataFrame([tie]))[0].tolist() == [0.5, 0.5]
    people_of_tie = SPACE.encode(tie)
    strict = Model(SPACE, read_callable(Chooses(0.5), SPACE, options=OPTIONS))
    assert strict.scorer.equality == "below"
    assert strict.decide(people_of_tie).tolist() == [False]
    # This predict takes the other class than the first largest probability. Without the sample,
    # nothing shows it until a tie is evaluated.
    monkeypatch.setattr("feta.readers.callable.choose.Request._implies_predict", lambda *_: True)
    model = Model(SPACE, read_callable(Chooses(0.5, strict=False), SPACE, options=OPTIONS))
    with pytest.raises(feta.Undecided):
        model.decide(people_of_tie)
    doubt = doubt_at(model.restricted, people_of_tie[0])
    assert doubt is not None
    assert "predict answered 'yes', but the scores (0.5, 0.5) mean 'no'" in doubt.message


@pytest.mark.parametrize(
    ("function", "classes", "has_scores"),
    [
        (approve, ("False", "True"), False),
        (lambda frame: approve(frame).tolist(), ("False", "True"), False),
        (lambda frame: approve(frame).astype(int), ("0", "1"), False),
        (lambda frame: approve(frame).astype(float)[:, None], ("0", "1"), False),
        (lambda frame: pd.Series(merit(frame)), (), True),
        (lambda frame: merit(frame)[:, None].astype(np.float32), (), True),
        (lambda frame: [int(score) for score in merit(frame)], (), True),
    ],
    ids=["booleans", "list", "integers", "column", "series", "float32", "scores"],
)
def test_answers_of_functions_are_recognized(
    function: Callable[[pd.DataFrame], object], classes: tuple[str, ...], has_scores: bool
) -> None:
    scorer = read_callable(function, SPACE, options=OPTIONS)
    assert (scorer.classes, scorer.has_scores) == (classes, has_scores)
    decided = Model(SPACE, scorer, Threshold(0.0, equality="unfavorable")).decide(PEOPLE)
    answers = np.asarray(function(pd.DataFrame(RECORDS))).reshape(-1)
    assert decided.tolist() == (answers > 0).tolist()


def test_labels_need_their_classes() -> None:
    def words(frame: pd.DataFrame) -> np.ndarray:
        return np.where(approve(frame), "grant", "deny")

    expected = r"^the function .*words returns labels: got '\w+', '\w+', '\w+', …; expected to know"
    with pytest.raises(NetworkError, match=expected):
        read_callable(words, SPACE, options=OPTIONS)
    model = Model(SPACE, read_callable(words, SPACE, classes=("deny", "grant"), options=OPTIONS))
    assert model.decide(PEOPLE).tolist() == approve(pd.DataFrame(RECORDS)).tolist()
    reverse = Model(SPACE, read_callable(words, SPACE, classes=("grant", "deny"), options=OPTIONS))
    assert reverse.decide(PEOPLE).tolist() == (~approve(pd.DataFrame(RECORDS))).tolist()


def test_numbers_between_0_and_1_need_a_level() -> None:
    def probability(frame: pd.DataFrame) -> np.ndarray:
        return 1 / (1 + np.exp(-merit(frame)))

    with pytest.warns(UserWarning, match=r"returns numbers between 0 and 1, .* pass level=0.5"):
        read_callable(probability, SPACE, options=OPTIONS)
    read_callable(probability, SPACE, answers="scores", options=OPTIONS)
    model = Model(SPACE, read_callable(probability, SPACE, level=0.5, options=OPTIONS))
    expected = probability(pd.DataFrame(RECORDS)) >= 0.5
    assert model.decide(PEOPLE).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": 3}, r"^the model is not a function: got int; expected an object with predict"),
        ({"source": lambda frame: merit(frame)[:-1]}, r"^the model returns the wrong number of"),
        ({"source": lambda _frame: None}, r"^the model returns the wrong number of .* shape \(\)"),
        (
            {"source": lambda frame: frame["height"]},
            r"^the model fails on rows of the sample \(KeyError: 'height'\); expected one answer",
        ),
        (
            {"source": lambda frame: np.full(len(frame), np.inf), "answers": "scores"},
            r"no valid answer for any row of a sample: got, for the row \(age \d+, .*\): the model "
            r"answered inf; expected finite numbers",
        ),
    ],
    ids=["no function", "length", "nothing", "raises", "infinite"],
)
def test_functions_that_cannot_be_counted_are_rejected(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_callable(**arguments, space=SPACE, options=OPTIONS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": "transform"}, r"^invalid function: got 'transform'; expected one of 'auto'"),
        ({"answers": "words"}, r"^invalid kind of answers: got 'words'; expected one of 'auto'"),
        ({"classes": ("a", "a")}, r"^invalid classes: got \('a', 'a'\); expected 2 to 127 differ"),
        ({"classes": ("a",)}, r"^invalid classes: got \('a',\); expected 2 to 127 different"),
        ({"level": float("nan")}, r"^invalid level: got level=nan for the function merit with 1"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        read_callable(merit, SPACE, options=OPTIONS, **arguments)


def test_a_classifier_without_fitting_scores_is_rejected() -> None:
    pipeline = fitted(Perceptron(random_state=0), targets(2))
    expected = r"^Perceptron has no scores that fit: got no predict_proba with one score per class"
    with pytest.raises(NetworkError, match=expected):
        read_callable(pipeline, SPACE, function="predict_proba", options=OPTIONS)
    three = fitted(LogisticRegression(max_iter=1000), targets(3))
    with pytest.raises(SchemaError, match=r"^invalid level: got level=0.5 for .* 3 answers"):
        read_callable(three, SPACE, level=0.5, options=OPTIONS)


def test_predict_alone_is_used_on_request() -> None:
    pipeline = fitted(LogisticRegression(max_iter=1000), targets(2))
    for arguments in ({"function": "predict"}, {"answers": "labels"}):
        scorer = read_callable(pipeline, SPACE, options=OPTIONS, **arguments)  # type: ignore[arg-type]
        assert scorer.name == "LogisticRegression.predict"
        assert not scorer.has_scores


def test_bare_estimators_take_named_raw_columns_or_encoded_rows() -> None:
    raw = FRAME[["income", "age"]]
    named = DecisionTreeClassifier(max_depth=3, random_state=0).fit(raw, targets(2))
    model = Model(SPACE, read_callable(named, SPACE, options=OPTIONS))
    expected = named.predict(pd.DataFrame(RECORDS)[["income", "age"]]) == "yes"
    assert model.decide(PEOPLE).tolist() == expected.tolist()
    rows = SPACE.encode(FRAME)
    encoded = RandomForestClassifier(5, random_state=0).fit(rows, targets(2))
    model = Model(SPACE, read_callable(encoded, SPACE, options=OPTIONS))
    assert model.decide(PEOPLE).tolist() == (encoded.predict(PEOPLE) == "yes").tolist()
    frame = pd.DataFrame(rows, columns=[f"c{number}" for number in range(SPACE.width)])
    other = RandomForestClassifier(5, random_state=0).fit(frame, targets(2))
    model = Model(SPACE, read_callable(other, SPACE, options=OPTIONS))
    assert model.decide(PEOPLE).tolist() == (encoded.predict(PEOPLE) == "yes").tolist()


def test_columns_that_do_not_fit_are_rejected() -> None:
    wide = DecisionTreeClassifier().fit(np.zeros((4, 9)), [0, 1, 0, 1])
    expected = (
        r"^the estimator was fitted on 9 columns: got 4 in the schema, and 6 encoded ones; expected"
    )
    with pytest.raises(NetworkError, match=expected):
        read_callable(wide, SPACE, options=OPTIONS)

    class Named:
        feature_names_in_ = ("age", "heigth")

        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            return merit(frame)

    with pytest.raises(NetworkError, match=r"^the model reads 'heigth': the schema must have the"):
        read_callable(Named(), SPACE, options=OPTIONS)


def test_tables_are_built_by_column_as_raw_tables_are() -> None:
    space = feta.FeatureSpace(
        (
            feta.Integer("age", 18, 30, sensitive=True, missing=True),
            feta.Categorical("sex", ("f", "m"), sensitive=True, missing=True),
            feta.Levels("grade", (0.0, 0.25, 1.5)),
            feta.Real("income", 0.0, 9.0, missing=True),
            feta.Categorical("flag", (False, True)),
        )
    )
    rows = draw_people(space, np.random.default_rng(2), 300)
    frame = pd.DataFrame(
        {
            "flag": [True, False],
            "age": [20.0, np.nan],
            "sex": pd.Series(["m", None], dtype=object),
            "income": [1.5, 2.5],
            "grade": [0, 1],
        }
    )
    tables = [
        RawTable(space, ("sex", "age", "unused", "income", "grade", "flag")),
        RawTable.like(space, frame),
        RawTable(space, ("age", "income"), as_frame=False),
    ]
    for table in tables:
        expected, made = table(rows), ColumnwiseTable(table)(rows)
        if isinstance(expected, pd.DataFrame):
            pd.testing.assert_frame_equal(made, expected)
        else:
            np.testing.assert_array_equal(made, expected)
        assert ColumnwiseTable(table).names == table.names


def test_rows_on_which_an_encoder_fails_are_undecided() -> None:
    known = FRAME[FRAME["age"] != 25]
    encoder = make_column_transformer(
        (OneHotEncoder(), ["age", "sex", "housing"]), remainder="passthrough"
    )
    pipeline = make_pipeline(encoder, DecisionTreeClassifier(max_depth=4, random_state=0))
    pipeline.fit(known, targets(2)[FRAME["age"] != 25])
    options = replace(OPTIONS, batch=64)
    model = Model(SPACE, read_callable(pipeline, SPACE, function="predict", options=options))
    tally = feta.tally(model, PEOPLE)
    assert tally.undecided.tolist() == [2] * len(PEOPLE)
    doubt = doubt_at(model.restricted, PEOPLE[0])
    assert doubt is not None
    assert "the model raised ValueError: Found unknown categories" in doubt.message


def test_the_user_s_people_are_part_of_the_sample() -> None:
    def young(frame: pd.DataFrame) -> np.ndarray:
        if (frame["income"] > 35).any():
            raise ValueError("no table for this income")
        return merit(frame)

    rows = SPACE.encode([record | {"income": 20} for record in people(20)])
    scorer = read_callable(young, SPACE, people=rows, options=OPTIONS)
    np.testing.assert_array_equal(scorer.evaluator.sentinels.people, rows[:8])
