"""The people that FairClassifier accepts, and its tables of counterparts."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from feta import (
    Categorical,
    Derived,
    DomainError,
    EngineError,
    Fair,
    FeatureSpace,
    Integer,
    Real,
    Unfair,
)
from feta.estimators.fair_classifier import FairClassifier
from tests.unit.estimators.classifiers import (
    FLIP,
    KINDS,
    SENSITIVE,
    SOME,
    SPACE,
    TWO,
    Rule,
    X,
    Y,
    linear,
    logistic,
    majority,
    pipeline,
)

# `fit` warns about every estimator that FETA cannot read.
pytestmark = pytest.mark.filterwarnings("ignore:the weaker guarantee holds")


@KINDS
def test_sensitive_columns_may_be_missing_or_invalid(estimator: BaseEstimator) -> None:
    fair = majority(estimator, SPACE).fit(X, Y)
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
def test_decisions_depend_on_neither_batch_nor_order(estimator: BaseEstimator) -> None:
    fair = majority(estimator, SPACE).fit(X, Y)
    answers = fair.predict(SOME)
    assert [fair.predict(SOME.iloc[[row]])[0] for row in range(10)] == answers.tolist()
    assert fair.predict(SOME.iloc[::-1]).tolist() == answers[::-1].tolist()
    assert fair.predict(SOME[SOME.columns[::-1]]).tolist() == answers.tolist()
    assert fair.predict(pd.concat([SOME, SOME])).tolist() == [*answers, *answers]


@KINDS
def test_an_empty_table_has_no_decisions(estimator: BaseEstimator) -> None:
    fair = majority(estimator, SPACE).fit(X, Y)
    assert fair.predict(X.head(0)).shape == (0,)
    assert fair.predict_proba(X.head(0)).shape == (0, 2)


@KINDS
def test_a_category_that_fit_did_not_see_is_decided(estimator: BaseEstimator) -> None:
    fair = majority(estimator, SPACE).fit(X, Y)
    assert set(fair.predict(SOME.assign(town="Ulm"))) <= {"yes", "no"}


def test_empty_cells_are_passed_to_a_pipeline_and_otherwise_rejected() -> None:
    holes = X[["age", "income"]].copy()
    holes.loc[8, "income"] = np.nan
    filled = make_pipeline(SimpleImputer(), logistic())
    fair = majority(filled, sensitive=["age"]).fit(holes, Y)
    assert fair.guarantee_ == FairClassifier.promise
    shares = fair.predict_proba(holes[["income"]])
    everyone = holes.loc[[8] * 8].assign(age=range(18, 26))
    assert shares[8, 1] == np.mean(fair.estimator_.predict(everyone) == "yes")
    with pytest.raises(
        DomainError, match=r"'income' is missing: got nan; .*; fill the empty cells, .+missing=True"
    ):
        majority(logistic(), sensitive=["age"]).fit(holes, Y)


def as_records(frame: pd.DataFrame) -> list[dict[str, object]]:
    return [{str(name): cell for name, cell in row.items()} for _, row in frame.iterrows()]


@KINDS
def test_people_may_be_dicts(estimator: BaseEstimator) -> None:
    fair = majority(estimator, SPACE).fit(X, Y)
    records = as_records(SOME.drop(columns=SENSITIVE))
    assert fair.predict(records).tolist() == fair.predict(SOME).tolist()
    assert fair.predict(records[3]).tolist() == fair.predict(SOME)[3:4].tolist()
    assert fair.predict_proba(records).tolist() == fair.predict_proba(SOME).tolist()
    with pytest.raises(
        DomainError, match=r"'town' is invalid: got 'Rom'; .+ add the value .+\(row 1\)"
    ):
        fair.predict([records[0], records[1] | {"town": "Rom"}])


def test_explain_accepts_dicts() -> None:
    fair = majority(logistic(), SPACE).fit(X, Y)
    expected = [type(verdict) for verdict in fair.explain(SOME)]
    assert [type(verdict) for verdict in fair.explain(as_records(SOME))] == expected


def test_predict_is_evaluated_on_one_fixed_table_per_distinct_person() -> None:
    rule = Rule(lambda table: np.zeros(len(table), dtype=int))
    fair = majority(rule, FLIP).fit(TWO.astype({"s": "int8", "n": "float32"}), [0, 0, 1, 1])
    fitted, *_ = seen = fair.estimator_.seen
    fair.predict(pd.DataFrame({"n": [3, 1, 3]}))
    assert [table["n"].tolist() for table in seen[1:]] == [[1.0, 1.0], [3.0, 3.0]]
    for table in seen[1:]:
        assert table["s"].tolist() == [0, 1]
        assert table.dtypes.to_dict() == fitted.dtypes.to_dict() == {"s": "int8", "n": "float32"}


def test_an_estimator_fitted_on_an_array_gets_arrays() -> None:
    rule = Rule(lambda table: table[:, 0].astype(int))
    array = TWO.to_numpy(np.float32)
    fair = majority(rule, sensitive=["x0"]).fit(array, [0, 0, 1, 1])
    assert fair.predict(array).tolist() == [1] * 4
    assert {(type(table), table.dtype.name) for table in fair.estimator_.seen} == {
        (np.ndarray, "float32")
    }


def test_derived_columns_of_counterparts_match_their_source() -> None:
    space = FeatureSpace(
        (
            Integer("age", 18, 20, sensitive=True),
            Derived("band", "age", (("young", 18, 18), ("old", 19, 20))),
            Real("n", 0, 1),
        )
    )
    frame = pd.DataFrame({"band": ["young", "old"], "n": [0.0, 1.0], "age": [18, 20]})
    rule = Rule(lambda table: (table["band"] == "old").astype(int))
    fair = majority(rule, space).fit(frame, [0, 1])
    assert fair.predict_proba(frame[["n"]])[:, 1].tolist() == [2 / 3, 2 / 3]
    table = fair.estimator_.seen[-1]
    assert table.to_dict("list") == {
        "band": ["young", "old", "old"],
        "n": [1.0] * 3,
        "age": [18, 19, 20],
    }


def test_a_counterpart_with_a_category_that_fit_did_not_see_votes() -> None:
    space = FeatureSpace(
        (
            Categorical("sex", ("female", "male", "other"), sensitive=True),
            Integer("n", 0, 9),
            Derived("band", "n", (("low", 0, 4), ("high", 5, 9))),
        )
    )
    frame = pd.DataFrame({"sex": ["female", "male"], "n": [0, 1], "band": ["low", "low"]})
    rule = Rule(lambda table: (table["sex"] == "other").astype(int))
    fair = majority(rule, space).fit(frame.astype("category"), [0, 1])
    assert fair.predict_proba(pd.DataFrame({"n": [7]}))[0, 1] == 1 / 3
    table = fair.estimator_.seen[-1]
    assert table["sex"].tolist() == ["female", "male", "other"]
    assert table["band"].tolist() == ["high"] * 3
    assert table["n"].tolist() == [7] * 3


def test_columns_outside_the_space_are_ignored() -> None:
    frame, more = X.assign(note="hello"), SOME.assign(note="hello")
    for estimator in (logistic(), pipeline()):
        fair = majority(estimator, SPACE).fit(frame, Y)
        assert fair.predict(more).tolist() == fair.predict(SOME).tolist()


def test_a_space_may_have_sensitive_columns_only() -> None:
    space = FeatureSpace((Integer("s", 0, 3, sensitive=True),))
    frame = pd.DataFrame({"s": [0, 1, 2, 3]})
    for estimator in (LogisticRegression(), DecisionTreeClassifier()):
        fair = majority(estimator, space).fit(frame, [0, 1, 1, 1])
        assert fair.predict(frame.drop(columns="s")).tolist() == [1] * 4
    array = majority(LogisticRegression(), sensitive=["x0"]).fit(frame.to_numpy(), [0, 1, 1, 1])
    assert array.predict([[np.nan], [7.0]]).tolist() == [1, 1]


def test_the_space_is_inferred_from_frames_and_arrays() -> None:
    numbers = X[["age", "income"]]
    framed = majority(logistic(), sensitive=["age"]).fit(numbers, Y)
    array = majority(logistic(), sensitive=["x0"])
    array.fit(numbers.to_numpy(), Y)
    assert framed.space_.attributes[0] == Integer("age", 18, 25, sensitive=True)
    assert array.space_.attributes[0] == Integer("x0", 18, 25, sensitive=True)
    assert framed.predict(numbers).tolist() == array.predict(numbers.to_numpy()).tolist()
    numbered = pd.DataFrame(numbers.to_numpy())
    assert array.predict(numbered[[1]]).tolist() == framed.predict(numbers).tolist()


def test_invalid_cells_in_a_sensitive_column_of_an_array_are_not_read() -> None:
    array = X[["age", "income"]].to_numpy()
    fair = majority(logistic(), sensitive=["x0"]).fit(array, Y)
    broken = array.astype(object)
    broken[:, 0] = "who knows"
    assert fair.predict(broken).tolist() == fair.predict(array).tolist()


def test_sensitive_names_override_those_of_the_space() -> None:
    fair = majority(logistic(), SPACE, sensitive=["sex"]).fit(X, Y)
    assert fair.space_.sensitive == (SPACE.attribute("sex"),)
    with pytest.raises(DomainError, match="must have the column 'age'"):
        fair.predict(X.drop(columns="age"))


def test_explain_accepts_arrays() -> None:
    fair = majority(linear([1.0, 1.0], -1.5), FLIP.with_sensitive(["s"])).fit(TWO)
    by_array = majority(linear([1.0, 1.0], -1.5), sensitive=["x0"]).fit(TWO.to_numpy())
    kinds = [type(verdict) for verdict in fair.explain(TWO)]
    assert [type(verdict) for verdict in by_array.explain(TWO.to_numpy())] == kinds
    assert kinds == [Fair, Unfair, Fair, Fair]


OUTSIDE = r"1 person has income above the schema's maximum 100: this person is decided, and"


@pytest.mark.parametrize("scaled", [False, True])
def test_people_outside_the_limits_are_decided_with_a_warning(scaled: bool) -> None:
    numbers = ColumnTransformer(
        [("hot", OneHotEncoder(), ["sex", "town"]), ("scale", StandardScaler(), ["age", "income"])]
    )
    towns = X.assign(town=["Ulm", *X["town"][1:]])
    estimator = make_pipeline(numbers, logistic()) if scaled else logistic()
    fair = majority(estimator, SPACE).fit(towns, Y)
    person = pd.DataFrame({"town": ["Kiel", "Bonn"], "income": [140.0, 50.0]})
    rows = [
        {"age": age, "sex": sex, "town": "Kiel", "income": 140.0}
        for age, sex in product(range(18, 26), ("female", "male"))
    ]
    table = pd.DataFrame(rows)
    if scaled:
        votes = fair.estimator_.predict(table)
    else:
        hot = {f"sex_{sex}": table["sex"] == sex for sex in ("female", "male")}
        hot |= {f"town_{town}": table["town"] == town for town in ("Bonn", "Kiel", "Ulm")}
        encoded = pd.DataFrame({"age": table["age"], **hot, "income": table["income"]})
        votes = fair.estimator_.predict(encoded.to_numpy(dtype=np.float64))
    second = (votes == fair.classes_[1]).sum()
    with pytest.warns(UserWarning, match=OUTSIDE):
        shares = fair.predict_proba(person)
    assert shares[0, 1] == second / 16
    with pytest.warns(UserWarning, match=OUTSIDE):
        assert fair.predict(person)[0] == fair.classes_[int(2 * second >= 16)]
    same = second in (0, 16)
    assert isinstance(fair.explain(table[:1])[0], Fair if same else Unfair)


def test_an_unreadable_estimator_decides_people_outside_the_limits() -> None:
    encoded = make_pipeline(
        ColumnTransformer([("hot", OneHotEncoder(), ["sex"])], remainder="drop"),
        KNeighborsClassifier(3),
    )
    fair = majority(encoded, SPACE).fit(X, Y)
    with pytest.warns(UserWarning, match="decided by the estimator's own predict"):
        fair.predict(pd.DataFrame({"town": ["Bonn"], "income": [1e9]}))


def test_people_outside_the_space_are_rejected_with_column_and_row() -> None:
    fair = majority(logistic(), SPACE).fit(X, Y)
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


def test_an_array_must_have_all_columns() -> None:
    fair = majority(LogisticRegression(), sensitive=["x0"]).fit(TWO.to_numpy(), [0, 0, 1, 1])
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
    fair = majority(Rule(answers, classes=("no", "yes")), FLIP)
    fair.fit(TWO, ["no", "no", "yes", "yes"])
    with pytest.raises(EngineError, match=message):
        fair.predict(TWO)


def test_a_type_that_cannot_hold_all_counterparts_is_rejected() -> None:
    rule = Rule(lambda table: np.zeros(len(table), dtype=int))
    space = FeatureSpace((Integer("s", 0, 300, sensitive=True), Real("n", 0, 9)))
    fair = majority(rule, space)
    fair.fit(TWO.astype({"s": "int8"}), [0, 0, 1, 1])
    message = "type for 's' cannot represent all values of the schema: got int8; .+ convert the"
    with pytest.raises(DomainError, match=message):
        fair.predict(TWO)
