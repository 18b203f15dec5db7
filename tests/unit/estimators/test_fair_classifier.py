# ruff: noqa: N803 - X is scikit-learn's own name for the table
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimators_nan_inf, parametrize_with_checks

from feta import (
    Categorical,
    Derived,
    DomainError,
    EngineError,
    Fair,
    FeatureSpace,
    Integer,
    Real,
    Schema,
    SchemaError,
    Unfair,
    VoteWeights,
)
from feta.estimators.fair_classifier import FairClassifier
from feta.io.schema_file import Decision, SchemaFile
from feta.space.attribute import Value

# Said of every estimator that FETA cannot read; one test here is about it.
pytestmark = pytest.mark.filterwarnings("ignore:the weaker guarantee holds")

SPACE = FeatureSpace(
    (
        Integer("age", 18, 25, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
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
        "town": RNG.choice(["Bonn", "Kiel"], 60),  # nobody from Ulm, though they may come
        "income": RNG.uniform(0, 100, 60).round(1),
    }
)
SOME = X.head(10)
Y = np.where(X["income"] + 3 * X["age"] + 20 * (X["sex"] == "male") > 120, "yes", "no")


def pipeline(*more: BaseEstimator) -> BaseEstimator:
    """Preprocessing, perhaps with more steps, and a model after it."""
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["income", "age"]),
            ("texts", OneHotEncoder(handle_unknown="ignore"), ["town", "sex"]),
        ]
    )
    return make_pipeline(columns, *more, LogisticRegression())


class Voted(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Another estimator in clothing that FETA does not know."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: pd.DataFrame, y: NDArray[Any]) -> Self:
        self.fitted_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        return np.asarray(self.fitted_.predict(X))


def logistic() -> LogisticRegression:
    """One that settles in a few steps though the columns are not scaled."""
    return LogisticRegression(solver="newton-cholesky")


def perceptron(**options: object) -> MLPClassifier:
    """A small one; any progress is enough for it, so it stops early without a warning."""
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
    """Everyone who differs from a person in age and sex at most."""
    rows = [{**person, "age": age, "sex": sex} for age, sex in product(range(18, 26), SEXES)]
    return pd.DataFrame(rows).astype(X.dtypes.to_dict())


SEXES = ("female", "male")


class Rule(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier that decides by a function of the table, and remembers what it was given."""

    def __init__(self, favors: Callable[[Any], Any], classes: tuple[object, ...] = (0, 1)) -> None:
        self.favors = favors
        self.classes = classes
        self.seen: list[Any] = []

    def fit(self, X: object, y: object) -> Self:  # noqa: ARG002 - it has nothing to learn
        self.classes_ = np.array(self.classes)
        self.seen.append(X)
        return self

    def predict(self, X: object) -> NDArray[Any]:
        self.seen.append(X)
        return np.asarray(self.favors(X))


# Everyone is decided alike here, but each of these needs to be fitted on two classes.
TWO = pd.DataFrame({"s": [0, 1, 0, 1], "n": [0.0, 1.0, 2.0, 3.0]})
FLIP = FeatureSpace((Integer("s", 0, 1, sensitive=True), Real("n", 0, 9)))


def linear(slopes: list[float], bias: float) -> FrozenEstimator:
    """A trained logistic regression over TWO with the numbers wanted."""
    made = LogisticRegression().fit(TWO.to_numpy(), [0, 0, 1, 1])
    made.coef_, made.intercept_ = np.array([slopes]), np.array([bias])
    return FrozenEstimator(made)


@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    [
        FairClassifier(LogisticRegression(), sensitive=["x0"]),
        FairClassifier(DecisionTreeClassifier(random_state=0), sensitive=["x0"]),
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


def test_nan_and_infinity_are_refused_where_they_are_read() -> None:
    check_estimators_nan_inf(
        "FairClassifier", FairClassifier(LogisticRegression(), sensitive=["x1"])
    )


@KINDS
def test_all_counterparts_get_one_answer(estimator: BaseEstimator) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Y)
    for _, person in X.head(8).iterrows():
        assert len(set(fair.predict(counterparts(person)))) == 1


@KINDS
def test_the_answer_is_what_most_counterparts_get_from_the_estimator(
    estimator: BaseEstimator,
) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Y)
    takes_rows = not hasattr(estimator, "steps")
    for _, person in X.head(8).iterrows():
        everyone = counterparts(person)
        own = fair.estimator_.predict(SPACE.encode(everyone) if takes_rows else everyone)
        alone = person.to_frame().T
        assert fair.predict_proba(alone)[0, 1] == np.mean(own == "yes")
        assert fair.predict(alone)[0] == ("yes" if np.mean(own == "yes") >= 0.5 else "no")


@KINDS
def test_the_sensitive_columns_may_be_missing_or_broken(estimator: BaseEstimator) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Y)
    answers, shares = fair.predict(SOME).tolist(), fair.predict_proba(SOME).tolist()
    broken = SOME.assign(age="who knows", sex=pd.Series([{"a": 1}] * len(SOME), dtype=object))
    for table in (
        SOME.drop(columns=SENSITIVE),
        SOME.drop(columns="age"),
        broken,
        SOME.assign(age=np.nan),
    ):
        assert fair.predict(table).tolist() == answers
        assert fair.predict_proba(table).tolist() == shares


@KINDS
def test_answers_hang_on_neither_batch_nor_order(estimator: BaseEstimator) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Y)
    answers = fair.predict(SOME)
    assert [fair.predict(SOME.iloc[[row]])[0] for row in range(10)] == answers.tolist()
    assert fair.predict(SOME.iloc[::-1]).tolist() == answers[::-1].tolist()
    assert fair.predict(SOME[SOME.columns[::-1]]).tolist() == answers.tolist()
    assert fair.predict(pd.concat([SOME, SOME])).tolist() == [*answers, *answers]


@KINDS
def test_nobody_is_decided_where_nobody_is_given(estimator: BaseEstimator) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Y)
    assert fair.predict(X.head(0)).shape == (0,)
    assert fair.predict_proba(X.head(0)).shape == (0, 2)


@KINDS
def test_people_may_come_whose_category_was_not_seen_in_fit(estimator: BaseEstimator) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Y)
    assert set(fair.predict(SOME.assign(town="Ulm"))) <= {"yes", "no"}


@KINDS
def test_it_can_be_pickled(estimator: BaseEstimator) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Y)
    again = pickle.loads(pickle.dumps(fair))
    assert again.predict(SOME).tolist() == fair.predict(SOME).tolist()


def test_what_is_learned_has_its_names() -> None:
    fair = FairClassifier(logistic(), SPACE).fit(X, Y)
    assert fair.classes_.tolist() == ["no", "yes"]
    assert fair.n_features_in_ == 4
    assert fair.feature_names_in_.tolist() == list(X.columns)
    assert fair.columns_ == tuple(X.columns)
    assert fair.n_counterparts_ == 16
    assert fair.space_ is SPACE
    assert fair.model_ is not None
    assert fair.model_.outcomes == ("no", "yes")
    assert fair.guarantee_.startswith("fair by construction")


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (pipeline(Normalizer()), "the predict of Pipeline is deterministic"),
        (
            perceptron(activation="tanh"),
            "got 'tanh'; expected one of 'identity', 'relu'; train it with activation='relu'",
        ),
    ],
)
def test_an_estimator_that_cannot_be_read_says_so(estimator: BaseEstimator, words: str) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Y)
    assert fair.model_ is None
    assert fair.guarantee_.startswith("fair if the predict of")
    assert words in fair.guarantee_
    with pytest.raises(EngineError, match=r"explain needs an estimator that FETA can read: .+; "):
        fair.explain(X)


def test_a_weaker_guarantee_is_warned_of_with_its_reason_and_the_remedy() -> None:
    said = r"the weaker guarantee holds: fair if .+ train it with activation='relu'"
    with pytest.warns(UserWarning, match=said):
        FairClassifier(perceptron(activation="tanh"), SPACE).fit(X, Y)


@pytest.mark.filterwarnings("error")
def test_a_trained_pipeline_gets_its_columns_by_name_whatever_their_order() -> None:
    trained = pipeline().fit(X, Y)
    numbers = ["age", "income"]
    passing = make_pipeline(ColumnTransformer([("all", "passthrough", numbers)]), logistic())
    passing.fit(X[numbers], Y)
    due = FairClassifier(FrozenEstimator(trained), SPACE).fit(X)
    turned = X[X.columns[::-1]].assign(note="not in the space")
    fair = FairClassifier(FrozenEstimator(trained), SPACE).fit(turned)
    plain = FairClassifier(FrozenEstimator(passing), SPACE.with_sensitive(["age"])).fit(turned)
    for one in (fair, plain):
        assert one.guarantee_ == FairClassifier.promise
    assert fair.predict_proba(turned).tolist() == due.predict_proba(X).tolist()
    assert all(one.replayed for one in fair.explain(turned) if isinstance(one, Unfair))
    own = passing.predict(counterparts(X.iloc[3])[numbers])[::2]  # a sex each
    assert plain.predict_proba(turned.iloc[[3]])[0, 1] == np.mean(own == "yes")


@pytest.mark.filterwarnings("error")
def test_whole_numbers_in_a_real_column_do_not_weaken_the_guarantee() -> None:
    whole = X.assign(income=X["income"].round().astype(int))
    fair = FairClassifier(FrozenEstimator(pipeline().fit(whole, Y)), SPACE).fit(whole)
    assert fair.guarantee_ == FairClassifier.promise
    assert fair.predict(X).shape == (60,)


def test_a_column_that_a_trained_pipeline_drops_need_not_be_in_the_space() -> None:
    trained = pipeline().fit(X.assign(id="p1")[["id", *X.columns]], Y)
    fair = FairClassifier(FrozenEstimator(trained), SPACE).fit(X)
    assert (
        fair.predict(X).tolist() == FairClassifier(pipeline(), SPACE).fit(X, Y).predict(X).tolist()
    )
    less = FeatureSpace(tuple(one for one in SPACE.attributes if one.name != "town"))
    with pytest.raises(
        SchemaError, match="reads a column that the space does not have: got 'town'"
    ):
        FairClassifier(FrozenEstimator(trained), less).fit(X)


def test_a_bare_estimator_is_given_the_matrix_of_the_space() -> None:
    fair = FairClassifier(logistic(), SPACE).fit(X, Y)
    due = logistic().fit(SPACE.encode(X), Y)
    np.testing.assert_allclose(fair.estimator_.coef_, due.coef_, rtol=1e-9)


def test_a_pipeline_is_given_the_table_as_it_came() -> None:
    fair = FairClassifier(pipeline(), SPACE).fit(X, Y)
    due = clone(pipeline()).fit(X, Y)
    np.testing.assert_allclose(fair.estimator_[-1].coef_, due[-1].coef_, rtol=1e-9)
    assert fair.estimator_.feature_names_in_.tolist() == list(X.columns)


def test_a_tie_goes_to_the_second_class_when_read() -> None:
    # n + s − 1.5 > 0: at n = 1 one of the two counterparts is decided each way.
    fair = FairClassifier(linear([1.0, 1.0], -1.5), FLIP).fit(TWO)
    assert fair.predict(pd.DataFrame({"n": [0.0, 1.0, 2.0]})).tolist() == [0, 1, 1]
    assert fair.predict_proba(pd.DataFrame({"n": [1.0]})).tolist() == [[0.5, 0.5]]


def test_a_tie_goes_to_the_second_class_when_votes_are_taken() -> None:
    rule = Rule(lambda table: (table["s"] + table["n"] > 1.5).astype(int))
    fair = FairClassifier(rule, FLIP).fit(TWO, [0, 0, 1, 1])
    assert fair.predict(pd.DataFrame({"n": [0.0, 1.0, 2.0]})).tolist() == [0, 1, 1]
    assert fair.predict_proba(pd.DataFrame({"n": [1.0]})).tolist() == [[0.5, 0.5]]


def test_a_score_of_exactly_zero_is_a_vote_for_the_first_class() -> None:
    # n − 1 does not hang on s: at n = 1 both counterparts score exactly 0, and 0 > 0 is false.
    trained = linear([0.0, 1.0], -1.0)
    fair = FairClassifier(trained, FLIP).fit(TWO)
    people = pd.DataFrame({"n": [0.5, 1.0, 1.5]})
    assert fair.predict(people).tolist() == [0, 0, 1]
    assert trained.predict([[0.0, 0.5], [0.0, 1.0], [0.0, 1.5]]).tolist() == [0, 0, 1]
    assert fair.predict_proba(people)[1].tolist() == [1.0, 0.0]


THREE = np.array(["high", "low", "middle"])
Z = THREE[np.digitize(X["income"] + 3 * X["age"] + 20 * (X["sex"] == "male"), [100, 140])]


@KINDS
def test_several_classes_are_decided_by_their_votes(estimator: BaseEstimator) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Z)
    assert fair.classes_.tolist() == THREE.tolist()
    takes_rows = not hasattr(estimator, "steps")
    shares, answers = fair.predict_proba(SOME), fair.predict(SOME)
    assert shares.shape == (10, 3)
    for row, (_, person) in enumerate(SOME.iterrows()):
        everyone = counterparts(person)
        own = fair.estimator_.predict(SPACE.encode(everyone) if takes_rows else everyone)
        due = [np.mean(own == one) for one in THREE]
        assert shares[row].tolist() == due
        assert answers[row] == THREE[int(np.argmax(due))]
    assert fair.predict(SOME.drop(columns=SENSITIVE)).tolist() == answers.tolist()


def test_several_classes_have_verdicts() -> None:
    fair = FairClassifier(logistic(), SPACE).fit(X, Z)
    assert fair.model_ is not None
    assert fair.model_.outcomes == tuple(THREE)
    for verdict, shares in zip(fair.explain(SOME), fair.predict_proba(SOME), strict=True):
        assert isinstance(verdict, Fair if shares.max() == 1 else Unfair)


def test_a_tie_of_several_classes_goes_to_the_first_of_them() -> None:
    rule = Rule(lambda table: np.array([2, 1])[table["s"].to_numpy()], classes=(0, 1, 2))
    fair = FairClassifier(rule, FLIP).fit(TWO, [0, 1, 2, 2])
    assert fair.predict(TWO).tolist() == [1] * 4


@KINDS
def test_votes_may_be_weighted(estimator: BaseEstimator) -> None:
    votes: dict[tuple[Value, ...], int] = {(18, "female"): 3, (25, "male"): 1}
    fair = FairClassifier(estimator, SPACE, weights=VoteWeights.of(SPACE, votes)).fit(X, Z)
    takes_rows = not hasattr(estimator, "steps")
    shares = fair.predict_proba(SOME)
    for row, (_, person) in enumerate(SOME.iterrows()):
        two = pd.DataFrame([{**person, "age": age, "sex": sex} for age, sex in votes])
        own = fair.estimator_.predict(SPACE.encode(two) if takes_rows else two.astype(X.dtypes))
        due = [(3 * (own[0] == one) + (own[1] == one)) / 4 for one in THREE]
        assert shares[row].tolist() == due
        assert fair.predict(SOME)[row] == own[0]


def schema(**told: Any) -> Schema:  # noqa: ANN401 - what [decision] may hold
    return Schema(SchemaFile(SPACE, {}, {}, {}, Decision(**told)))


@pytest.mark.parametrize(
    ("told", "sure"),
    [
        ({"probability": 0.8}, lambda chance: chance > 0.8),
        ({"probability": 0.8, "favorable": "yes"}, lambda chance: chance > 0.8),
        ({"probability": 0.3, "favorable": "no", "favors": "below"}, lambda c: ~(c < 0.3)),
    ],
)
def test_a_schema_brings_its_threshold_along(
    told: dict[str, Any], sure: Callable[[NDArray[Any]], NDArray[Any]]
) -> None:
    fair = pickle.loads(pickle.dumps(clone(FairClassifier(pipeline(), schema(**told))).fit(X, Y)))
    shares, answers = fair.predict_proba(SOME), fair.predict(SOME)
    for row, (_, person) in enumerate(SOME.iterrows()):
        own = sure(fair.estimator_.predict_proba(counterparts(person))[:, 1])
        assert shares[row].tolist() == [1 - np.mean(own), np.mean(own)]
        favorable = 1 - np.mean(own) if told.get("favors") else np.mean(own)
        assert answers[row] == fair.classes_[int((favorable >= 0.5) != ("favors" in told))]
    half = FairClassifier(pipeline(), SPACE).fit(X, Y)
    assert half.predict_proba(X).tolist() != fair.predict_proba(X).tolist()


def test_a_tie_goes_to_the_class_that_the_schema_favors() -> None:
    told = Schema(SchemaFile(FLIP, {}, {}, {}, Decision(favors="below")))
    people = pd.DataFrame({"n": [0.0, 1.0, 2.0]})
    read = FairClassifier(linear([1.0, 1.0], -1.5), told).fit(TWO)
    rule = Rule(lambda table: (table["s"] + table["n"] > 1.5).astype(int))
    voted = FairClassifier(rule, told).fit(TWO, [0, 0, 1, 1])
    for fair in (read, voted):
        assert fair.predict(people).tolist() == [0, 0, 1]
        assert fair.predict_proba(people).tolist() == [[1, 0], [0.5, 0.5], [0, 1]]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: schema(favorable="no"), 'favorable = "no" needs favors = "below"'),
        (lambda: schema(tolerance=1.0), "decides between all classes"),
        (lambda: schema(classes=("a", "b", "c")), "lists 3 classes, but the network has 1 output"),
        (lambda: Schema(SchemaFile(SPACE, {"age": 1.0}, {}, {}, Decision())), "center or scale"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(made: Callable[[], Schema], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        FairClassifier(pipeline(), made()).fit(X, Y)


def test_classes_in_another_order_than_the_estimators_are_refused() -> None:
    told = schema(classes=("low", "middle", "high"))
    with pytest.raises(SchemaError, match=r"write classes = \['high', 'low', 'middle'\]"):
        FairClassifier(pipeline(), told).fit(X, Z)
    told = schema(classes=("high", "low", "middle"))
    fair = FairClassifier(pipeline(), told).fit(X, Z)
    assert (
        fair.predict(X).tolist() == FairClassifier(pipeline(), SPACE).fit(X, Z).predict(X).tolist()
    )


def test_a_threshold_that_votes_by_predict_would_miss_is_refused() -> None:
    with pytest.raises(SchemaError, match="threshold does not apply"):
        FairClassifier(pipeline(Normalizer()), schema(probability=0.8)).fit(X, Y)


def test_empty_cells_are_left_to_a_pipeline_and_explained_elsewhere() -> None:
    holes = X[["age", "income"]].copy()
    holes.loc[8, "income"] = np.nan
    filled = make_pipeline(SimpleImputer(), logistic())
    fair = FairClassifier(filled, sensitive=["age"]).fit(holes, Y)
    assert fair.guarantee_ == FairClassifier.promise
    shares = fair.predict_proba(holes[["income"]])
    everyone = holes.loc[[8] * 8].assign(age=range(18, 26))
    assert shares[8, 1] == np.mean(fair.estimator_.predict(everyone) == "yes")
    with pytest.raises(
        DomainError, match=r"'income' is missing: got nan; .*; fill the empty cells, .+missing=True"
    ):
        FairClassifier(logistic(), sensitive=["age"]).fit(holes, Y)


def as_records(frame: pd.DataFrame) -> list[dict[str, object]]:
    return [{str(name): cell for name, cell in row.items()} for _, row in frame.iterrows()]


@KINDS
def test_people_may_come_as_dicts(estimator: BaseEstimator) -> None:
    fair = FairClassifier(estimator, SPACE).fit(X, Y)
    records = as_records(SOME.drop(columns=SENSITIVE))
    assert fair.predict(records).tolist() == fair.predict(SOME).tolist()
    assert fair.predict(records[3]).tolist() == fair.predict(SOME)[3:4].tolist()
    assert fair.predict_proba(records).tolist() == fair.predict_proba(SOME).tolist()
    with pytest.raises(
        DomainError, match=r"'town' is invalid: got 'Rom'; .+ add the value .+\(row 1\)"
    ):
        fair.predict([records[0], records[1] | {"town": "Rom"}])


def test_explain_takes_dicts_too() -> None:
    fair = FairClassifier(logistic(), SPACE).fit(X, Y)
    due = [type(one) for one in fair.explain(SOME)]
    assert [type(one) for one in fair.explain(as_records(SOME))] == due


def test_votes_are_taken_on_one_fixed_table_for_each_distinct_person() -> None:
    rule = Rule(lambda table: np.zeros(len(table), dtype=int))
    fair = FairClassifier(rule, FLIP).fit(TWO.astype({"s": "int8", "n": "float32"}), [0, 0, 1, 1])
    fitted, *_ = seen = fair.estimator_.seen
    fair.predict(pd.DataFrame({"n": [3, 1, 3]}))
    assert [table["n"].tolist() for table in seen[1:]] == [[1.0, 1.0], [3.0, 3.0]]
    for table in seen[1:]:
        assert table["s"].tolist() == [0, 1]
        assert table.dtypes.to_dict() == fitted.dtypes.to_dict() == {"s": "int8", "n": "float32"}


def test_votes_about_an_array_are_taken_on_arrays() -> None:
    rule = Rule(lambda table: table[:, 0].astype(int))
    array = TWO.to_numpy(np.float32)
    fair = FairClassifier(rule, sensitive=["x0"]).fit(array, [0, 0, 1, 1])
    assert fair.predict(array).tolist() == [1] * 4
    assert {(type(table), table.dtype.name) for table in fair.estimator_.seen} == {
        (np.ndarray, "float32")
    }


def test_derived_columns_move_with_their_source_in_the_votes() -> None:
    space = FeatureSpace(
        (
            Integer("age", 18, 20, sensitive=True),
            Derived("band", "age", (("young", 18, 18), ("old", 19, 20))),
            Real("n", 0, 1),
        )
    )
    frame = pd.DataFrame({"band": ["young", "old"], "n": [0.0, 1.0], "age": [18, 20]})
    rule = Rule(lambda table: (table["band"] == "old").astype(int))
    fair = FairClassifier(rule, space).fit(frame, [0, 1])
    assert fair.predict_proba(frame[["n"]])[:, 1].tolist() == [2 / 3, 2 / 3]
    table = fair.estimator_.seen[-1]
    assert table.to_dict("list") == {
        "band": ["young", "old", "old"],
        "n": [1.0] * 3,
        "age": [18, 19, 20],
    }


def test_a_category_that_fit_did_not_see_is_no_missing_value_in_the_votes() -> None:
    space = FeatureSpace(
        (
            Categorical("sex", ("female", "male", "other"), sensitive=True),
            Integer("n", 0, 9),
            Derived("band", "n", (("low", 0, 4), ("high", 5, 9))),
        )
    )
    frame = pd.DataFrame({"sex": ["female", "male"], "n": [0, 1], "band": ["low", "low"]})
    rule = Rule(lambda table: (table["sex"] == "other").astype(int))
    fair = FairClassifier(rule, space).fit(frame.astype("category"), [0, 1])
    assert fair.predict_proba(pd.DataFrame({"n": [7]}))[0, 1] == 1 / 3
    table = fair.estimator_.seen[-1]
    assert table["sex"].tolist() == ["female", "male", "other"]
    assert table["band"].tolist() == ["high"] * 3
    assert table["n"].tolist() == [7] * 3


def test_columns_outside_the_space_are_left_alone() -> None:
    frame, more = X.assign(note="hello"), SOME.assign(note="hello")
    for estimator in (logistic(), pipeline()):
        fair = FairClassifier(estimator, SPACE).fit(frame, Y)
        assert fair.predict(more).tolist() == fair.predict(SOME).tolist()


def test_a_space_may_have_sensitive_columns_only() -> None:
    space = FeatureSpace((Integer("s", 0, 3, sensitive=True),))
    frame = pd.DataFrame({"s": [0, 1, 2, 3]})
    for estimator in (LogisticRegression(), DecisionTreeClassifier()):
        fair = FairClassifier(estimator, space).fit(frame, [0, 1, 1, 1])
        assert fair.predict(frame.drop(columns="s")).tolist() == [1] * 4
    array = FairClassifier(LogisticRegression(), sensitive=["x0"]).fit(
        frame.to_numpy(), [0, 1, 1, 1]
    )
    assert array.predict([[np.nan], [7.0]]).tolist() == [1, 1]


def test_the_space_is_guessed_from_frame_and_array_alike() -> None:
    numbers = X[["age", "income"]]
    framed = FairClassifier(logistic(), sensitive=["age"]).fit(numbers, Y)
    array = FairClassifier(logistic(), sensitive=["x0"])
    array.fit(numbers.to_numpy(), Y)
    assert framed.space_.attributes[0] == Integer("age", 18, 25, sensitive=True)
    assert array.space_.attributes[0] == Integer("x0", 18, 25, sensitive=True)
    assert framed.predict(numbers).tolist() == array.predict(numbers.to_numpy()).tolist()
    numbered = pd.DataFrame(numbers.to_numpy())
    assert array.predict(numbered[[1]]).tolist() == framed.predict(numbers).tolist()


def test_broken_cells_in_the_sensitive_column_of_an_array_are_not_read() -> None:
    array = X[["age", "income"]].to_numpy()
    fair = FairClassifier(logistic(), sensitive=["x0"]).fit(array, Y)
    broken = array.astype(object)
    broken[:, 0] = "who knows"
    assert fair.predict(broken).tolist() == fair.predict(array).tolist()


def test_sensitive_names_overrule_those_of_the_space() -> None:
    fair = FairClassifier(logistic(), SPACE, sensitive=["sex"]).fit(X, Y)
    assert fair.space_.sensitive == (SPACE.attribute("sex"),)
    with pytest.raises(DomainError, match="must have the column 'age'"):
        fair.predict(X.drop(columns="age"))


def test_explain_gives_the_verdict_of_each_person() -> None:
    fair = FairClassifier(logistic(), SPACE).fit(X, Y)
    verdicts = fair.explain(X)
    shares = fair.predict_proba(X)[:, 1]
    assert len(verdicts) == len(X)
    for verdict, share in zip(verdicts, shares, strict=True):
        assert isinstance(verdict, Fair if share in (0, 1) else Unfair)
    assert {type(verdict) for verdict in verdicts} == {Fair, Unfair}


def test_explain_takes_arrays_too() -> None:
    fair = FairClassifier(linear([1.0, 1.0], -1.5), FLIP.with_sensitive(["s"])).fit(TWO)
    by_array = FairClassifier(linear([1.0, 1.0], -1.5), sensitive=["x0"]).fit(TWO.to_numpy())
    kinds = [type(verdict) for verdict in fair.explain(TWO)]
    assert [type(verdict) for verdict in by_array.explain(TWO.to_numpy())] == kinds
    assert kinds == [Fair, Unfair, Fair, Fair]


def test_explain_needs_the_sensitive_columns() -> None:
    fair = FairClassifier(logistic(), SPACE).fit(X, Y)
    with pytest.raises(DomainError, match="the table must have the column 'age'"):
        fair.explain(X.drop(columns="age"))


def test_a_frozen_estimator_is_not_fitted_again() -> None:
    trained = logistic().fit(SPACE.encode(X), Y)
    before = trained.coef_.copy()
    fair = FairClassifier(FrozenEstimator(trained), SPACE).fit(X.head(5), Y[:5][::-1])
    assert fair.estimator_.estimator is trained
    np.testing.assert_array_equal(trained.coef_, before)
    assert fair.model_ is not None
    assert fair.classes_.tolist() == ["no", "yes"]
    unfrozen = FairClassifier(logistic(), SPACE).fit(X, Y)
    assert fair.predict(X).tolist() == unfrozen.predict(X).tolist()


def test_a_frozen_pipeline_is_read_and_is_not_fitted_again() -> None:
    trained = pipeline().fit(X, Y)
    fair = FairClassifier(FrozenEstimator(trained), SPACE).fit(X)
    assert (
        fair.predict(X).tolist() == FairClassifier(pipeline(), SPACE).fit(X, Y).predict(X).tolist()
    )
    assert fair.guarantee_.startswith("fair by construction")


def test_a_pipeline_decides_as_the_votes_of_its_own_predict_would() -> None:
    read, voted = FairClassifier(pipeline(), SPACE), FairClassifier(Voted(pipeline()), SPACE)
    read.fit(X, Y)
    voted.fit(X, Y)
    assert read.model_ is not None
    assert voted.model_ is None
    assert read.predict(X).tolist() == voted.predict(X).tolist()
    np.testing.assert_array_equal(read.predict_proba(X), voted.predict_proba(X))


def test_pairs_of_a_pipeline_are_replayed_in_its_own_predict() -> None:
    fair = FairClassifier(pipeline(), SPACE).fit(X, Y)
    verdicts = fair.explain(X)
    unfair = [one for one in verdicts if isinstance(one, Unfair)]
    assert unfair
    assert all(one.replayed for one in unfair)
    wrong = FairClassifier(pipeline(), SPACE).fit(X, Y)
    last = wrong.estimator_.steps[-1][1]
    last.coef_, last.intercept_ = -last.coef_, -last.intercept_  # behind FETA's back
    (again,) = wrong.explain(X.iloc[[verdicts.index(unfair[0])]])
    assert isinstance(again, Unfair)
    assert again.replayed is False
    assert again.runtime == "sensitive"


def test_a_pipeline_with_code_of_ones_own_is_labelled_as_sampled() -> None:
    halved = FunctionTransformer(lambda numbers: numbers / 2)
    fair = FairClassifier(pipeline(halved), SPACE).fit(X, Y)
    assert fair.model_ is not None
    assert "its preprocessing was sampled, not proved" in fair.guarantee_
    assert {one.provenance for one in fair.explain(SOME)} == {"sampled"}


def test_a_frozen_estimator_that_knows_its_columns_by_name_is_asked_by_name() -> None:
    space = FeatureSpace((Integer("age", 18, 25, sensitive=True), Real("income", 0, 100)))
    numbers = X[["age", "income"]].astype(float)
    for activation in ("relu", "tanh"):
        trained = perceptron(activation=activation).fit(numbers, Y)
        fair = FairClassifier(FrozenEstimator(trained), space).fit(numbers)
        assert set(fair.predict(numbers)) <= {"yes", "no"}


def test_a_frozen_estimator_with_its_columns_in_another_order_is_refused() -> None:
    space = FeatureSpace((Integer("age", 18, 25, sensitive=True), Real("income", 0, 100)))
    trained = logistic().fit(X[["income", "age"]], Y)
    with pytest.raises(
        SchemaError,
        match=r"'age' is in the wrong position: got column 0 .*; expected column 1, as in the "
        r"estimator's training; put the attributes in that order",
    ):
        FairClassifier(FrozenEstimator(trained), space).fit(X)


def test_a_frozen_estimator_must_be_fitted() -> None:
    with pytest.raises(NotFittedError):
        FairClassifier(FrozenEstimator(LogisticRegression()), SPACE).fit(X, Y)


def test_a_frozen_estimator_of_another_width_is_refused() -> None:
    with pytest.raises(SchemaError, match="wrong number of network inputs: got 2; expected 7"):
        FairClassifier(linear([1.0, 1.0], 0.0), SPACE).fit(X)


def test_a_grid_search_reaches_the_estimator() -> None:
    grid = {"estimator__alpha": [1e-4, 1.0], "engine": ["exhaustive"]}
    search = GridSearchCV(FairClassifier(perceptron(), SPACE), grid, cv=2).fit(X, Y)
    assert search.best_estimator_.estimator_.alpha in (1e-4, 1.0)
    assert search.predict(X.drop(columns=SENSITIVE)).shape == (60,)


def test_cross_validation_and_pipelines_take_it() -> None:
    fair = FairClassifier(logistic(), SPACE)
    scores = cross_val_score(make_pipeline(FunctionTransformer(), fair), X, Y, cv=3)
    assert scores.min() > 0.5


def test_a_clone_has_the_same_parameters_and_nothing_learned() -> None:
    fair = FairClassifier(logistic(), SPACE, engine="exhaustive").fit(X, Y)
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
            FairClassifier(space=SPACE),
            Y,
            r"got None; expected a classifier; "
            r"for example FairClassifier\(LogisticRegression\(\), sp",
        ),
        (
            FairClassifier(LogisticRegression()),
            Y,
            r"got neither a space nor .*; write FairClassifier\(estimator, sensitive=\[\.\.\.\]\)",
        ),
        (
            FairClassifier(LogisticRegression(), sensitive="age"),
            Y,
            r"invalid sensitive: got 'age'; expected a list of column names; write \['age'\]",
        ),
        (
            FairClassifier(LogisticRegression(), "schema.toml"),  # type: ignore[arg-type]  # the mistake
            Y,
            "invalid space: got str; expected a FeatureSpace or a Schema",
        ),
        (
            FairClassifier(LogisticRegression(), SPACE),
            None,
            "fit requires y to be passed, but the target y is None",
        ),
        (
            FairClassifier(LogisticRegression(), SPACE),
            np.full(60, "yes"),
            "invalid y: got 1 class, .*'yes'.*; expected two classes or more",
        ),
        (
            FairClassifier(LinearRegression(), FLIP),
            Y == "yes",
            r"got LinearRegression with the classes \(\); expected a classifier of two or more",
        ),
        (
            FairClassifier(Rule(len, classes=("a",)), SPACE),
            Y,
            "got Rule with the classes .*'a'",
        ),
        (
            FairClassifier(LogisticRegression(), SPACE, weights={(18, "male"): 1}),  # type: ignore[arg-type]  # the mistake
            Y,
            r"invalid weights: got dict; expected VoteWeights; "
            r"use feta\.VoteWeights\.of\(space, votes\)",
        ),
        (
            FairClassifier(
                LogisticRegression(),
                SPACE,
                weights=VoteWeights(np.array([15]), np.array([1]), OTHER_AGES),
            ),
            Y,
            "vote weights belong to another space",
        ),
        (
            FairClassifier(LogisticRegression(), REALS),
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


OUTSIDE = r"1 person has income above the schema's maximum 100: this person is decided, and"


@pytest.mark.parametrize("scaled", [False, True])
def test_people_outside_the_limits_are_decided_with_a_warning(scaled: bool) -> None:
    numbers = ColumnTransformer(
        [("hot", OneHotEncoder(), ["sex", "town"]), ("scale", StandardScaler(), ["age", "income"])]
    )
    towns = X.assign(town=["Ulm", *X["town"][1:]])
    estimator = make_pipeline(numbers, logistic()) if scaled else logistic()
    fair = FairClassifier(estimator, SPACE).fit(towns, Y)
    person = pd.DataFrame({"town": ["Kiel", "Bonn"], "income": [140.0, 50.0]})
    everybody = [
        {"age": age, "sex": sex, "town": "Kiel", "income": 140.0}
        for age, sex in product(range(18, 26), ("female", "male"))
    ]
    table = pd.DataFrame(everybody)
    if scaled:
        votes = fair.estimator_.predict(table)
    else:
        hot = {f"sex_{one}": table["sex"] == one for one in ("female", "male")}
        hot |= {f"town_{one}": table["town"] == one for one in ("Bonn", "Kiel", "Ulm")}
        rows = pd.DataFrame({"age": table["age"], **hot, "income": table["income"]})
        votes = fair.estimator_.predict(rows.to_numpy(dtype=np.float64))
    second = (votes == fair.classes_[1]).sum()
    with pytest.warns(UserWarning, match=OUTSIDE):
        shares = fair.predict_proba(person)
    assert shares[0, 1] == second / 16
    with pytest.warns(UserWarning, match=OUTSIDE):
        assert fair.predict(person)[0] == fair.classes_[int(2 * second >= 16)]
    same = second in (0, 16)
    assert isinstance(fair.explain(table[:1])[0], Fair if same else Unfair)


def test_votes_by_predict_need_no_limits() -> None:
    fair = FairClassifier(DecisionTreeClassifier(random_state=0), SPACE)
    encoded = make_pipeline(
        ColumnTransformer([("hot", OneHotEncoder(), ["sex"])], remainder="drop"), fair.estimator
    )
    fair = FairClassifier(encoded, SPACE).fit(X, Y)
    with pytest.warns(UserWarning, match="decided by the estimator's own predict"):
        fair.predict(pd.DataFrame({"town": ["Bonn"], "income": [1e9]}))


def test_people_outside_the_space_are_refused_with_column_and_row() -> None:
    fair = FairClassifier(logistic(), SPACE).fit(X, Y)
    with pytest.raises(
        DomainError, match=r"'income' is invalid: got inf; expected a number from 0 to 100.*row 1"
    ):
        fair.predict(pd.DataFrame({"town": ["Bonn", "Kiel"], "income": [5.0, np.inf]}))
    with pytest.raises(DomainError, match="must have the column 'income'"):
        fair.predict(X[["town"]])
    with pytest.raises(
        DomainError, match=r"'age' is invalid: got 17; expected an integer from 18 to 25"
    ):
        fair.fit(X.assign(age=17), Y)


def test_an_array_must_have_all_columns_since_they_have_no_names() -> None:
    fair = FairClassifier(LogisticRegression(), sensitive=["x0"]).fit(TWO.to_numpy(), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="X has 1 features, but FairClassifier is expecting 2"):
        fair.predict([[1.0]])


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            lambda _: ["maybe", "no"],
            r"got 2 answers, the first \['maybe', 'no'\]; "
            r"expected .*'no'.* or .*'yes'.* for each of 2",
        ),
        (
            lambda _: ["no"],
            r"got 1 answers, the first \['no'\]; expected one answer for each of 2 rows",
        ),
    ],
)
def test_invalid_answers_of_predict_are_rejected(
    answers: Callable[[object], list[str]], message: str
) -> None:
    fair = FairClassifier(Rule(answers, classes=("no", "yes")), FLIP)
    fair.fit(TWO, ["no", "no", "yes", "yes"])
    with pytest.raises(EngineError, match=message):
        fair.predict(TWO)


def test_a_type_that_cannot_hold_all_counterparts_is_refused() -> None:
    rule = Rule(lambda table: np.zeros(len(table), dtype=int))
    space = FeatureSpace((Integer("s", 0, 300, sensitive=True), Real("n", 0, 9)))
    fair = FairClassifier(rule, space)
    fair.fit(TWO.astype({"s": "int8"}), [0, 0, 1, 1])
    message = "type for 's' cannot represent all values of the schema: got int8; .+ convert the"
    with pytest.raises(DomainError, match=message):
        fair.predict(TWO)


def test_an_unknown_engine_is_refused() -> None:
    fair = FairClassifier(logistic(), SPACE, engine="exhaustiv").fit(X, Y)
    with pytest.raises(EngineError, match="did you mean 'exhaustive'"):
        fair.predict(X)
