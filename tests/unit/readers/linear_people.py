"""A table with categories and missing values, its space, and brute force over counterparts."""

import itertools

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import feta
from feta import Categorical, FeatureSpace, Integer, Levels, Model, Real
from feta.arrays import Matrix
from feta.space.sampling import draw_people

SPACE = FeatureSpace(
    (
        Integer("age", 0, 12, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Categorical("job", ("none", "manual", "office"), missing=True),
        Levels.spaced("rate", 0, 2, step=0.25, missing=True),
        Real("income", 0, 4.5),
    )
)
PEOPLE = draw_people(SPACE, np.random.default_rng(3), 2000)


def table_of(people: Matrix) -> pd.DataFrame:
    """Return raw rows, from the attributes themselves."""
    return pd.DataFrame([SPACE.decode(person) for person in people])


TABLE = table_of(PEOPLE)
NOISE = np.random.default_rng(4).normal(size=len(TABLE))
MERIT = (
    TABLE["income"]
    + TABLE["age"] / 5
    + 2 * (TABLE["sex"] == "m")
    + TABLE["rate"].fillna(0)
    - (TABLE["job"] == "none")
    + NOISE
).to_numpy()
CUTS = np.quantile(MERIT, [1 / 3, 2 / 3])
YES = np.where(np.median(MERIT) < MERIT, "yes", "no")
THREE = np.array(["high", "low", "mid"])[np.digitize(MERIT, CUTS)]


def pipeline(last: BaseEstimator) -> Pipeline:
    """Return preprocessing of all columns, and an estimator."""
    columns = make_column_transformer(
        (SimpleImputer(), ["age", "rate", "income"]),
        (OneHotEncoder(drop="first"), ["sex", "job"]),  # missing is a category
    )
    return make_pipeline(columns, last)


def counterparts(rows: range) -> pd.DataFrame:
    """List the counterparts of people of the table, person by person."""
    changes = pd.DataFrame(itertools.product(range(13), ("f", "m")), columns=["age", "sex"]).astype(
        TABLE.dtypes[["age", "sex"]]
    )
    repeated = TABLE.iloc[np.repeat(list(rows), len(changes))].reset_index(drop=True)
    tiled = pd.concat([changes] * len(rows), ignore_index=True)
    return repeated.assign(age=tiled["age"], sex=tiled["sex"])


def assert_verdicts(model: Model, estimator: BaseEstimator, rows: range = range(12)) -> None:
    """Compare verdicts with brute force by the estimator's own predict."""
    answers = estimator.predict(counterparts(rows)).reshape(len(rows), -1)
    fair = (answers == answers[:, :1]).all(axis=1)
    for row in rows:
        verdict = feta.verify(feta.FairAt(model, PEOPLE[row]))
        assert verdict.provenance == "proved"
        assert isinstance(verdict, feta.Fair) == fair[row], row
        assert isinstance(verdict, feta.Unfair) != fair[row], row
