"""A cast to float32 before a linear model: proved, and equal to the pipeline."""

import functools
import operator
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import feta
from feta import FeatureSpace, Integer, Levels, Model, Real, Threshold
from feta.absorb.casts import cast_of
from feta.arrays import Matrix
from feta.io.column_format import formats_of
from feta.readers.sklearn.pipeline import raw_table
from feta.space.sampling import draw_people

SPACE = FeatureSpace((Integer("age", 18, 60, sensitive=True), Real("income", 0, 1000)))
PEOPLE = draw_people(SPACE, np.random.default_rng(0), 2000)
FRAME = pd.DataFrame(PEOPLE, columns=["age", "income"])
GOOD = FRAME["age"] * 10 + FRAME["income"] > 900
scale = np.float32


def written(rows: Matrix) -> Matrix:
    return rows.astype(np.float32)


def rescaled(rows: Matrix) -> Matrix:
    return rows.astype(scale)


CASTS: list[FunctionTransformer] = [
    FunctionTransformer(np.float32),
    FunctionTransformer(np.asarray, kw_args={"dtype": "float32"}),
    FunctionTransformer(np.ndarray.astype, kw_args={"dtype": np.float32, "copy": False}),
    FunctionTransformer(pd.DataFrame.astype, kw_args={"dtype": np.float32}),
    FunctionTransformer(functools.partial(np.array, dtype=np.float32)),
    FunctionTransformer(operator.methodcaller("astype", np.float32)),
    FunctionTransformer(operator.methodcaller("astype", "float32")),
    FunctionTransformer(written),
    FunctionTransformer(lambda rows: rows.astype("float32")),
    FunctionTransformer(lambda rows: np.asarray(rows, dtype=np.float32)),
]


def fitted(cast: FunctionTransformer, *steps: object, frame: pd.DataFrame = FRAME) -> Pipeline:
    as_frame = isinstance(cast.func, type(np.ndarray.astype))
    data = frame.to_numpy() if as_frame else frame
    return make_pipeline(cast, *steps, LogisticRegression()).fit(data, GOOD)


@pytest.mark.parametrize("cast", CASTS, ids=[f"cast {number}" for number in range(len(CASTS))])
def test_a_cast_to_float32_is_proved(cast: FunctionTransformer) -> None:
    pipeline = fitted(cast, StandardScaler())
    model = Model(SPACE, feta.read_sklearn(pipeline, SPACE))
    assert (model.scorer.provenance, model.scorer.source) == ("proved", "float32")
    runtime = feta.runtime_of(pipeline, model)
    answers = runtime(PEOPLE)
    batch = model.resolve(model.points(PEOPLE), model.rule)
    assert (batch.decisions == answers)[batch.runtime_safe].all()
    assert batch.runtime_safe.mean() > 0.95
    verdict = feta.verify(feta.FairAt(model, PEOPLE[0]))
    assert verdict.provenance == "proved"


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (rescaled, {}),
        (lambda rows: rows.astype(np.float16), {}),
        (lambda rows: rows.astype(np.float32) + 1, {}),
        (np.asarray, {"dtype": "float16"}),
        (np.asarray, {"dtype": "no type"}),
        (np.asarray, {}),
        (np.float32, {"order": "C"}),
        (functools.partial(np.asarray, [1]), {"dtype": "float32"}),
        (operator.methodcaller("round", 2), {}),
        (operator.methodcaller("astype", dtype="float32"), {}),
        (lambda rows, kind=np.float32: rows.astype(kind), {}),
        (written, {"copy": True}),
        (np.log, {}),
    ],
)
def test_other_code_is_no_known_cast(
    function: Callable[..., object], options: dict[str, object]
) -> None:
    assert cast_of(function, options) is None


def test_a_function_with_another_numpy_is_no_known_cast() -> None:
    scope = {"np": pd}
    exec("def cast(rows):\n    return rows.astype(np.float32)\n", scope)
    assert cast_of(scope["cast"]) is None


def test_a_cast_to_float64_changes_nothing() -> None:
    pipeline = fitted(FunctionTransformer(lambda rows: rows.astype(float)), StandardScaler())
    plain = fitted(FunctionTransformer(), StandardScaler())
    cast, without = (feta.read_sklearn(step, SPACE) for step in (pipeline, plain))
    assert (cast.provenance, cast.source) == ("proved", "float64")
    np.testing.assert_array_equal(cast.first.slopes, without.first.slopes)


def line(frame: pd.DataFrame, slope: float, bias: float) -> Pipeline:
    """Return a cast, and a logistic regression of one column with the given numbers."""
    labels = np.arange(len(frame)) % 2
    pipeline = make_pipeline(FunctionTransformer(np.float32), LogisticRegression())
    pipeline.fit(frame, labels)
    pipeline[-1].coef_ = np.array([[slope]])
    pipeline[-1].intercept_ = np.array([bias])
    return pipeline


def test_a_finite_column_becomes_a_table_of_cast_values_with_exact_ties() -> None:
    space = FeatureSpace((Levels.spaced("rate", 0, 1, step=0.1, sensitive=True),))
    people = np.array(space.attributes[0].numbers)[:, None]  # type: ignore[union-attr]
    frame = pd.DataFrame(people, columns=["rate"])
    for level in people[:, 0]:
        pipeline = line(frame, 1.0, -float(np.float32(level)))
        network = feta.read_sklearn(pipeline, space)
        assert [table.column for table in network.first.tables] == [0]
        model = Model(space, network)
        assert model.decide(people).tolist() == (pipeline.predict(frame) == 1).tolist()
        assert not model.decide(np.array([[level]]))[0]  # a tie of float32 numbers


@pytest.mark.parametrize(
    ("attribute", "tables"),
    [
        (Integer("x", -(2**24), 2**24, sensitive=True), 0),  # float32 numbers
        (Integer("x", 2**24 - 9, 2**24 + 9, sensitive=True), 1),
        (Integer("x", 0, 2**24 + 1, sensitive=True), 0),  # too many for a table
        (Levels.spaced("x", 0, 2, step=0.25, sensitive=True), 0),
        (Levels.spaced("x", 0, 2, step=0.1, sensitive=True), 1),
    ],
)
def test_only_finite_columns_that_a_cast_changes_need_a_table(
    attribute: Integer | Levels, tables: int
) -> None:
    space = FeatureSpace((attribute,))
    people = draw_people(space, np.random.default_rng(0), 50)
    pipeline = line(pd.DataFrame(people, columns=["x"]), 1.0, -1.0)
    network = feta.read_sklearn(pipeline, space)
    assert len(network.first.tables) == tables
    assert network.provenance == "proved"


@pytest.mark.parametrize("steps", [(), (StandardScaler(),), (MinMaxScaler(),)])
@pytest.mark.parametrize("center", [0.0, 1e6])
def test_a_difference_by_the_cast_is_never_called_safe(
    steps: tuple[object, ...], center: float
) -> None:
    rng = np.random.default_rng(1)
    space = FeatureSpace(
        (Integer("age", 0, 3, sensitive=True), Real("income", center - 2, center + 2))
    )
    people = draw_people(space, rng, 500)
    frame = pd.DataFrame(people, columns=["age", "income"])
    target = frame["age"] / 8 + frame["income"] - center
    pipeline = make_pipeline(FunctionTransformer(np.float32), *steps, LinearRegression())
    pipeline.fit(frame, target)
    network = feta.read_sklearn(pipeline, space)
    values = pipeline.predict(frame).astype(float)
    model = Model(space, network, Threshold(float(values[0])))
    near = np.repeat(people[:1], 4001, axis=0)
    near[:, 1] += np.linspace(-0.1, 0.1, len(near)) * (1.0 if center else 1e-5)
    near[:, 1] = np.clip(near[:, 1], center - 2, center + 2)
    for rows in (near, people):
        predicted = pipeline.predict(pd.DataFrame(rows, columns=["age", "income"]))
        batch = model.resolve(model.points(rows), model.rule)
        different = batch.decisions != (predicted >= values[0])
        assert not (different & batch.runtime_safe).any()
    safe = model.resolve(model.points(people), model.rule).runtime_safe
    # Far from 0, float32 numbers are too coarse for these limits.
    assert (safe.mean() > 0.9) == (center == 0.0)


def test_a_frame_of_float32_is_proved() -> None:
    single = FRAME.astype({"income": np.float32})
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(single, GOOD)
    formats = formats_of(single[name] for name in single)
    table = raw_table(pipeline, SPACE, formats)
    network = feta.read_sklearn(pipeline, SPACE, table=table)
    assert (network.provenance, network.source) == ("proved", "float32")
    model = Model(SPACE, network)
    batch = model.resolve(model.points(PEOPLE), model.rule)
    different = batch.decisions != pipeline.predict(single)
    assert not (different & batch.runtime_safe).any()
