"""A small table of mixed columns, its space, and counterparts listed from the values alone."""

from itertools import product

import numpy as np
import pandas as pd

from feta import Categorical, FeatureSpace, Integer, Real
from feta.arrays import Array

AGES = range(18, 26)
SEXES = ("female", "male")
JOBS = ("manual", "none", "office")

SPACE = FeatureSpace(
    (
        Integer("age", AGES[0], AGES[-1], sensitive=True),
        Categorical("sex", SEXES, sensitive=True),
        Real("income", 0.0, 10.0, missing=True),
        Categorical("job", JOBS),
    )
)

# Every combination of the sensitive columns; a person has as many counterparts.
CHANGES = list(product(AGES, SEXES))


def _table(n_rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    income = rng.integers(0, 41, n_rows) / 4
    return pd.DataFrame(
        {
            "age": rng.integers(AGES[0], AGES[-1] + 1, n_rows),
            "sex": rng.choice(SEXES, n_rows),
            "income": np.where(rng.random(n_rows) < 0.2, np.nan, income),
            "job": rng.choice(JOBS, n_rows),
        }
    )


TABLE = _table(160)
KNOWN = TABLE["income"].fillna(5.0)
MERIT = (
    KNOWN
    + (TABLE["age"] - AGES[0]) / 2
    + 2.0 * (TABLE["sex"] == "male")
    - (TABLE["job"] == "none")
    + np.random.default_rng(1).normal(size=len(TABLE))
).to_numpy()
MIDDLE = float(np.median(MERIT))
YES = (MIDDLE < MERIT).astype(int)
WORDS = np.where(YES, "yes", "no")
THREE = np.digitize(MERIT, np.quantile(MERIT, [1 / 3, 2 / 3]))
AMOUNTS = np.exp(MERIT / 5)
AMOUNT = float(np.median(AMOUNTS))

# The people who are compared: two without an income, and three of small and middle merit.
_MISSING = np.flatnonzero(TABLE["income"].isna())[:2].tolist()
_BY_MERIT = np.argsort(np.where(TABLE["income"].isna(), np.inf, MERIT))
ROWS = (*_MISSING, *(int(_BY_MERIT[place]) for place in (2, 64, 72)))


def counterparts(row: int) -> pd.DataFrame:
    """List the counterparts of a person of the table, with the table's types."""
    repeated = TABLE.iloc[[row] * len(CHANGES)].reset_index(drop=True)
    ages, sexes = zip(*CHANGES, strict=True)
    return repeated.assign(age=list(ages), sex=list(sexes)).astype(TABLE.dtypes)


def native(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with categories of pandas' own type."""
    kinds = {"sex": pd.CategoricalDtype([*SEXES]), "job": pd.CategoricalDtype([*JOBS])}
    return frame.astype(kinds)


def numbers(frame: pd.DataFrame) -> Array:
    """Return rows in numbers, as a network without preprocessing takes them.

    An integer is itself, a category has one indicator per value, and a number that may be missing
    has its lowest value instead, and an indicator.
    """
    columns = [frame["age"]]
    columns += [frame["sex"] == sex for sex in SEXES]
    columns += [frame["income"].fillna(0.0), frame["income"].isna()]
    columns += [frame["job"] == job for job in JOBS]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
