"""Fitted pipelines become slopes and tables of raw columns, or the error names column and fix."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from campaigns.pipelines import shapes
from feta import (
    Categorical,
    Derived,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    NetworkError,
    Real,
    Unfair,
    audit,
    load_model,
    read_sklearn,
    runtime_of,
    save_model,
    worst,
)
from feta.arrays import Matrix
from feta.io.raw_table import RawTable
from feta.scorer.network.network import Network
from feta.space.sampling import draw_people

SPACE = FeatureSpace(
    (
        Integer("age", 18, 60, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Real("income", 0, 90, missing=True),
        Levels("rooms", (1.0, 1.5, 4.0)),
        Real("debt", -5, 5),
    )
)
RNG = np.random.default_rng(0)
NAMES = tuple(attribute.name for attribute in SPACE.attributes)
TABLE = RawTable(SPACE, NAMES)
PEOPLE = draw_people(SPACE, RNG, 300)
X = pd.DataFrame(TABLE(PEOPLE))
Y = (X["age"] + X["income"].fillna(40) + 10 * (X["sex"] == "m") > 90).astype(int)
FILLED = make_pipeline(SimpleImputer(), StandardScaler())


def fitted(*steps: BaseEstimator, frame: pd.DataFrame = X) -> Pipeline:
    return make_pipeline(*steps, LogisticRegression(solver="newton-cholesky")).fit(frame, Y)


def numbers(*steps: BaseEstimator, columns: tuple[str, ...] = ("age", "debt")) -> Pipeline:
    """Fit a pipeline that applies these steps to some numeric columns only."""
    return fitted(make_column_transformer((make_pipeline(*steps), list(columns))))


def assert_agrees(pipeline: Pipeline, space: FeatureSpace = SPACE) -> Network:
    network = read_sklearn(pipeline, space)
    people = draw_people(space, np.random.default_rng(1), 200)
    names = tuple(attribute.name for attribute in space.attributes)
    expected = pipeline.decision_function(RawTable(space, names)(people))
    np.testing.assert_allclose(network(people)[:, 0], expected, rtol=1e-9, atol=1e-9)
    return network


def test_scalers_and_one_hot_columns_become_slopes() -> None:
    pipeline = fitted(
        make_column_transformer((FILLED, ["age", "income", "debt"]), (OneHotEncoder(), ["sex"]))
    )
    network = assert_agrees(pipeline)
    assert network.first.tables == ()
    scaler = pipeline[0].transformers_[0][1][-1]
    weight = pipeline[-1].coef_[0, 0]
    assert network.first.slopes[0, 0] == pytest.approx(weight / scaler.scale_[0], rel=1e-12)
    assert network.equality == "below"
    assert network.source == "float64"
    assert network.provenance == "proved"


def test_a_nonlinear_step_on_a_finite_column_becomes_a_table() -> None:
    columns = make_column_transformer(
        (KBinsDiscretizer(3, encode="onehot", strategy="uniform"), ["age"]),
        (Binarizer(threshold=1.2), ["rooms"]),
    )
    network = assert_agrees(fitted(columns))
    assert [(table.column, len(table.numbers)) for table in network.first.tables] == [
        (0, 43),
        (5, 3),
    ]


def test_missing_cells_are_part_of_the_model() -> None:
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["income"])
    )
    pipeline = fitted(columns)
    network = assert_agrees(pipeline)
    people = SPACE.encode([{"age": 30, "sex": "f", "income": None, "rooms": 1.0, "debt": 0.0}])
    frame = X.head(1).assign(age=30, sex="f", income=np.nan, rooms=1.0, debt=0.0)
    assert network(people)[0, 0] == pytest.approx(pipeline.decision_function(frame)[0], rel=1e-9)


def test_bands_vary_with_the_age_they_are_derived_from() -> None:
    band = Derived("band", "age", (("young", 18, 30), ("old", 31, 60)))
    space = FeatureSpace((*SPACE.attributes[:2], band, *SPACE.attributes[2:]))
    names = tuple(attribute.name for attribute in space.attributes)
    frame = RawTable(space, names)(draw_people(space, RNG, 300))
    assert isinstance(frame, pd.DataFrame)
    bands = make_pipeline(OneHotEncoder(), StandardScaler(with_mean=False))
    columns = make_column_transformer((StandardScaler(), ["age"]), (bands, ["band"]))
    network = assert_agrees(fitted(columns, frame=frame), space)
    assert [table.column for table in network.first.tables] == [0]
    assert not network.first.slopes[:, 3:5].any()  # the bands add nothing to the age
    joint = make_pipeline(
        make_column_transformer((StandardScaler(), ["age"]), (OrdinalEncoder(), ["band"])),
        PolynomialFeatures(),
    )
    assert_agrees(fitted(joint, frame=frame), space)  # a joint function of one column is a table


def test_searches_frozen_pipelines_and_nested_pipelines_are_read() -> None:
    columns = make_column_transformer((FILLED, ["age", "income"]))
    search = GridSearchCV(
        make_pipeline(columns, LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2
    )
    search.fit(X, Y)
    plain = read_sklearn(search.best_estimator_, SPACE)
    assert read_sklearn(search, SPACE).fingerprint == plain.fingerprint
    assert read_sklearn(FrozenEstimator(search), SPACE).fingerprint == plain.fingerprint
    nested = make_pipeline(columns, make_pipeline(MinMaxScaler(), LogisticRegression())).fit(X, Y)
    assert_agrees(nested)


def test_a_pipeline_fitted_without_names_takes_columns_in_order() -> None:
    space = FeatureSpace((Integer("a", 0, 9, sensitive=True), Real("b", 0, 1)))
    rows = draw_people(space, RNG, 100)
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(rows, rows.sum(axis=1))
    np.testing.assert_allclose(
        read_sklearn(pipeline, space)(rows)[:, 0], pipeline.predict(rows), rtol=1e-9
    )
    with pytest.raises(
        NetworkError,
        match="fitted on 2 columns without names: got 5 in the schema; expected these, in order",
    ):
        read_sklearn(pipeline, SPACE)


def test_a_saved_model_needs_no_scikit_learn(tmp_path: "pytest.TempPathFactory") -> None:
    pipeline = numbers(KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), columns=("age",))
    model = Model(SPACE, read_sklearn(pipeline, SPACE))
    save_model(model, f"{tmp_path}/model.feta")
    loaded = load_model(f"{tmp_path}/model.feta")
    assert loaded.fingerprint == model.fingerprint
    np.testing.assert_allclose(loaded.network(PEOPLE), model.network(PEOPLE), rtol=1e-12)


def halves(table: Matrix) -> Matrix:
    return np.asarray(table, dtype=np.float64) / 2


def products(table: Matrix) -> Matrix:
    cells = np.asarray(table, dtype=np.float64)
    return np.column_stack([cells, cells[:, 0] * cells[:, 1]])


def logarithms(table: Matrix) -> Matrix:
    return np.log(np.asarray(table, dtype=np.float64) + 10)


def test_unknown_code_is_sampled_and_every_verdict_states_it() -> None:
    model = Model(SPACE, assert_agrees(numbers(FunctionTransformer(halves))))
    assert model.network.provenance == "sampled"
    verdicts = [worst(model, person) for person in PEOPLE[:20]]
    assert {verdict.provenance for verdict in verdicts} == {"sampled"}
    assert any(isinstance(verdict, Unfair) for verdict in verdicts)
    proved = Model(SPACE, read_sklearn(numbers(StandardScaler()), SPACE))
    assert worst(proved, PEOPLE[0]).provenance == "proved"


class CustomTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A transformer whose code FETA does not know."""

    def fit(self, table: Matrix, labels: object = None) -> "CustomTransformer":
        del labels
        self.n_features_in_ = np.shape(table)[1]
        return self

    def transform(self, table: Matrix) -> Matrix:
        return halves(table)


def test_a_custom_transformer_is_sampled() -> None:
    assert assert_agrees(numbers(CustomTransformer())).provenance == "sampled"


STEP = (
    r"; declare a step for it "
    r"\(debt = \{ type = \"number\", min = -5, max = 5, step = 1 \}\), which makes it finite"
)
NOT_ADDITIVE = (
    "makes an interaction of columns: got a joint function of 'age' and 'debt'; expected a sum of "
    "functions of one column each; remove the interaction, or merge the columns into one category"
)
NOT_LINEAR = (
    "is not linear in 'debt': got a column that becomes neither a slope nor a table; "
    "expected a linear step or a finite column"
)
UNKNOWN = "a step whose code FETA does not know "


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: numbers(PolynomialFeatures(interaction_only=True)),
            rf"the step 'polynomialfeatures' \(PolynomialFeatures\) {NOT_ADDITIVE}",
        ),
        (
            lambda: numbers(StandardScaler(), Normalizer()),
            r"\(Normalizer\) divides each row by its norm: got an interaction of 'age' and 'debt'; "
            "expected a scaler of single columns; use StandardScaler, and fit again",
        ),
        (
            lambda: numbers(MinMaxScaler(), FunctionTransformer(np.log1p)),
            rf"\(FunctionTransformer\) {NOT_LINEAR}{STEP}",
        ),
        (
            lambda: numbers(PolynomialFeatures(2), columns=("debt",)),
            rf"\(PolynomialFeatures\) {NOT_LINEAR}",
        ),
        (
            lambda: numbers(KBinsDiscretizer(3, encode="ordinal", strategy="uniform")),
            rf"\(KBinsDiscretizer\) {NOT_LINEAR}",
        ),
        (
            lambda: numbers(SimpleImputer(missing_values=0), columns=("debt",)),
            rf"\(SimpleImputer\) {NOT_LINEAR}",
        ),
        (lambda: numbers(FunctionTransformer(products)), UNKNOWN + NOT_ADDITIVE),
        (lambda: numbers(FunctionTransformer(logarithms)), UNKNOWN + NOT_LINEAR + STEP),
        (
            lambda: numbers(KNNImputer(missing_values=9999), columns=("age", "debt")),
            r"\(KNNImputer\) fills cells that hold 9999 from other columns: got an interaction of "
            "'age' and 'debt'; expected an imputer of single columns; use SimpleImputer",
        ),
        (
            lambda: numbers(KNNImputer(), columns=("age", "income")),
            r"\(KNNImputer\) fills missing cells of 'income' from other columns: got an "
            "interaction of columns; expected an imputer of single columns; use SimpleImputer, "
            "or remove "
            "missing = true from the schema",
        ),
        (
            lambda: fitted(
                make_column_transformer((FILLED, ["income"]), (OneHotEncoder(), ["sex"])),
                frame=X.assign(sex="f"),
            ),
            r"the pipeline rejects a value that the schema allows for 'sex': got 'm' "
            r"\(.*unknown categories.*\); remove the value from the schema, or fit with an encoder "
            r"that accepts it \(handle_unknown='ignore'\) or an imputer",
        ),
        (
            lambda: fitted(
                make_column_transformer((StandardScaler(), ["income"])),
                frame=X.fillna({"income": 1.0}),
            ),
            "'income' may be missing in the schema: got NaN from the pipeline; expected a finite "
            "number; put a SimpleImputer before the other steps, or remove missing = true",
        ),
        (
            lambda: fitted(
                make_column_transformer((FILLED, ["income", "wealth"])), frame=X.assign(wealth=1.0)
            ),
            "the pipeline reads 'wealth': the schema must have the column 'wealth'; it has 'age', ",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")  # these pipelines are unusual on purpose
def test_preprocessing_that_is_not_additive_is_rejected_with_column_and_fix(
    make: Callable[[], Pipeline], message: str
) -> None:
    pipeline = make()
    with pytest.raises(NetworkError, match=message):
        read_sklearn(pipeline, SPACE)


def test_the_logarithm_of_a_number_with_a_step_becomes_a_table() -> None:
    space = FeatureSpace((*SPACE.attributes[:4], Levels.spaced("debt", -5, 5, step=0.5)))
    pipeline = numbers(MinMaxScaler(), FunctionTransformer(np.log1p))
    assert [table.column for table in assert_agrees(pipeline, space).first.tables] == [0, 6]


def test_a_marker_for_missing_outside_the_domain_keeps_the_column_linear() -> None:
    assert (
        assert_agrees(numbers(SimpleImputer(missing_values=-99), columns=("debt",))).first.tables
        == ()
    )


def test_a_long_table_is_rejected() -> None:
    space = FeatureSpace((Integer("age", 0, 2**25, sensitive=True),))
    frame = pd.DataFrame({"age": [0, 5, 2**25]})
    bins = KBinsDiscretizer(2, encode="ordinal", strategy="uniform")
    pipeline = make_pipeline(bins, LogisticRegression()).fit(frame, [0, 1, 1])
    with pytest.raises(
        NetworkError,
        match="'age' has too many values for a lookup table: got 33,554,433; expected at most "
        "16,777,216; narrow its min and max, or declare a larger step",
    ):
        read_sklearn(pipeline, space)


def test_dropped_columns_need_not_be_in_the_space() -> None:
    frame = X.assign(note="x")
    columns = ColumnTransformer([("age", StandardScaler(), ["age"]), ("note", "drop", ["note"])])
    assert_agrees(fitted(columns, frame=frame.iloc[:, ::-1]))


def test_passthrough_columns_and_transformer_weights_are_read() -> None:
    columns = ColumnTransformer(
        [("sex", OneHotEncoder(drop="first"), ["sex"])],
        remainder="passthrough",
        transformer_weights={"sex": 3.0},
    )
    assert_agrees(fitted(columns, frame=X.fillna({"income": 1.0}).drop(columns=["income"])))


@pytest.mark.parametrize(
    "name", ["age and its band", "PCA after one-hot", "splines", "custom code"]
)
def test_pairs_of_absorbed_pipelines_replay_in_the_pipeline(name: str) -> None:
    from campaigns.pipelines import SPACE as WIDE  # noqa: PLC0415 - both have a SPACE
    from campaigns.pipelines import people_and_labels  # noqa: PLC0415

    frame, score = people_and_labels(np.random.default_rng(4), 300)
    pipeline = make_pipeline(shapes()[name], LogisticRegression()).fit(frame, score > 0)
    model = Model(WIDE, read_sklearn(pipeline, WIDE))
    result = audit(model, frame.head(20), replay=runtime_of(pipeline, model))
    assert result.pairs
    assert all(pair.replayed for pair in result.pairs)
