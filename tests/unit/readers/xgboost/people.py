"""A table with missing values, categories and large integers, and rows at thresholds."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from feta import Categorical, FeatureSpace, Integer, Real

COUNTRIES = ("us", "mx", "de", "fr", "it", "es", "pt", "nl", "ünited")
SPACE = FeatureSpace(
    (
        Integer("age", -3, 90, sensitive=True, missing=True),
        Categorical("country", COUNTRIES, sensitive=True, missing=True),
        Real("balance", -1e6, 1e6, missing=True),
        Categorical("member", (0, 1)),
        # Beyond 2^24, neighbors are equal in float32.
        Integer("account", 2**24 - 4, 2**24 + 8),
        Categorical("grade", (3, 5, 9), missing=True),
    )
)


def table(n_rows: int = 2500, *, seed: int = 0) -> pd.DataFrame:
    """Return random people; categories are stored in another order than in the space."""
    rng = np.random.default_rng(seed)
    balance = rng.normal(size=n_rows) * 10.0 ** rng.integers(-3, 4, n_rows)
    balance[rng.random(n_rows) < 0.2] = 0.0
    balance[rng.random(n_rows) < 0.1] = np.nan
    age = rng.integers(-3, 91, n_rows).astype(float)
    age[rng.random(n_rows) < 0.1] = np.nan
    country = rng.choice(np.array(COUNTRIES, dtype=object), n_rows)
    country[rng.random(n_rows) < 0.1] = None
    grade = rng.choice(np.array([3, 5, 9], dtype=object), n_rows)
    grade[rng.random(n_rows) < 0.1] = None
    return pd.DataFrame(
        {
            "balance": balance,
            "country": pd.Categorical(country, categories=sorted(COUNTRIES)),
            "account": rng.integers(2**24 - 4, 2**24 + 9, n_rows),
            "age": age,
            "grade": pd.Categorical(grade, categories=[9, 3, 5]),
            "member": rng.integers(0, 2, n_rows),
        }
    )


def labels(people: pd.DataFrame, *, classes: int = 2) -> np.ndarray:
    """Return noisy labels that depend on every column."""
    rng = np.random.default_rng(7)
    score = (
        people["age"].fillna(60) / 30
        + np.sign(people["balance"].fillna(5))
        + people["country"].isin(["mx", "pt", "nl"])
        + (people["account"] > 2**24 + 1)
        + people["grade"].isin([9])
        - people["grade"].isna()
        + 0.5 * people["member"]
        + rng.normal(size=len(people))
    )
    return np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def at_thresholds(people: pd.DataFrame, thresholds: Iterable[float]) -> pd.DataFrame:
    """Return rows whose balance is at a threshold, or next to it in float32 or float64."""
    numbers: list[float] = []
    for threshold in thresholds:
        single = np.float32(threshold)
        below = np.nextafter(single, np.float32(-np.inf))
        middle = (float(single) + float(below)) / 2
        for number in (threshold, float(single), float(below), middle):
            numbers += [number, np.nextafter(number, -np.inf), np.nextafter(number, np.inf)]
    numbers += [0.0, 1e-35, -1e-35, 1.0000000180025095e-35, 1.0000000180025096e-35, -1e-34, 5e-324]
    rows = people.iloc[np.arange(len(numbers)) % len(people)].reset_index(drop=True)
    rows["balance"] = np.clip(numbers, -1e6, 1e6)
    return rows
