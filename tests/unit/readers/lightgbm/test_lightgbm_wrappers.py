"""Decisions of LightGBM's classifiers, and the columns of their lists of categories."""

import pytest

pytest.importorskip("lightgbm", reason="lightgbm is not installed")

from typing import Any

import lightgbm
import numpy as np
import pandas as pd

import feta
from feta import Categorical, FeatureSpace, Integer, NetworkError
from feta.readers.read_model import CountedModelWarning

AGES = pd.DataFrame({"age": np.tile(np.arange(20, 30), 60)})
AGE = FeatureSpace((Integer("age", 20, 29, sensitive=True),))
BAGGING = {"bagging_freq": 1, "bagging_fraction": 0.7}


def classifier(**settings: Any) -> lightgbm.LGBMClassifier:  # noqa: ANN401 - settings
    plain = {"n_estimators": 10, "n_jobs": 1, "verbose": -1, "min_child_samples": 2}
    return lightgbm.LGBMClassifier(**(plain | settings))


def outcomes() -> np.ndarray:
    chance = np.where(AGES["age"] > 24, 0.9, 0.2)
    return (np.random.default_rng(0).random(600) < chance).astype(int)


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "binary"},
        {"objective": "binary", "sigmoid": 2.0},
        {"objective": "cross_entropy"},
        {"objective": "multiclass", "num_class": 2},
        {"boosting_type": "rf", **BAGGING},
    ],
)
def test_classifiers_decide_as_the_library_and_can_be_replayed(settings: dict[str, Any]) -> None:
    model = classifier(**settings).fit(AGES, outcomes())
    audited = feta.Model(AGE, feta.read_model(model, AGE, method="exact"))
    expected = np.asarray(model.predict(AGES)) == 1
    assert set(expected) == {False, True}
    np.testing.assert_array_equal(audited.decide(AGE.encode(AGES)), expected)
    result = feta.audit(audited, AGES.head(10), replay=feta.runtime_of(model, audited))
    assert result.ce_rate == 1.0


@pytest.mark.parametrize("objective", ["regression", "regression_l1", "huber", "poisson"])
def test_classifiers_that_decide_in_another_way_are_counted(objective: str) -> None:
    model = classifier(objective=objective, n_estimators=40).fit(AGES, outcomes())
    with pytest.raises(NetworkError, match=f"decides in another way: got {objective}, whose"):
        feta.read_model(model, AGE, method="exact")
    with pytest.warns(CountedModelWarning, match="decides in another way"):
        audited = feta.Model(AGE, feta.read_model(model, AGE))
    expected = np.asarray(model.predict(AGES)) == 1
    np.testing.assert_array_equal(audited.decide(AGE.encode(AGES)), expected)
    verdict = feta.verify(feta.FairAt(audited, AGE.encode({"age": 22})[0]))
    assert isinstance(verdict, feta.Fair) == (len(set(expected)) == 1)


RNG = np.random.default_rng(0)
GROUP, JOB = RNG.integers(1, 6, 800), RNG.integers(1, 6, 800)
INCOME = RNG.integers(-20, 100, 800)
TARGET = ((INCOME + 15 * np.isin(GROUP, [3, 5]) + 15 * np.isin(JOB, [1, 4])) > 65).astype(int)
ORDER = [3, 1, 5, 2, 4]
CODES = (1, 2, 3, 4, 5)


def space(jobs: tuple[int, ...] = CODES, groups: tuple[int, ...] = CODES) -> FeatureSpace:
    return FeatureSpace(
        (
            Categorical("group", groups, sensitive=True),
            Categorical("job", jobs),
            Integer("income", -20, 99),
        )
    )


def frame(group: Any, job: Any) -> pd.DataFrame:  # noqa: ANN401 - columns of several types
    return pd.DataFrame({"group": group, "job": job, "income": INCOME})


ONE_WAY: dict[str, tuple[pd.DataFrame, Any]] = {
    # The list is that of the group, which is read as a number; the job has no list.
    "the job is native": (frame(pd.Categorical(GROUP, categories=ORDER), JOB), ["job"]),
    "ordered": (frame(pd.Categorical(GROUP, categories=ORDER, ordered=True), JOB), "auto"),
    "ordered, and a category": (
        frame(pd.Categorical(GROUP, categories=ORDER, ordered=True), pd.Categorical(JOB)),
        "auto",
    ),
    "both": (
        frame(pd.Categorical(GROUP, categories=ORDER), pd.Categorical(JOB, categories=ORDER[::-1])),
        "auto",
    ),
    "codes are values": (frame(GROUP - 1, pd.Categorical(JOB - 1)), ["group", "job"]),
}


@pytest.mark.parametrize("name", ONE_WAY)
def test_lists_of_categories_are_given_to_their_columns(name: str) -> None:
    rows, native = ONE_WAY[name]
    model = classifier(cat_smooth=1, min_data_per_group=1)
    model.fit(rows, TARGET, categorical_feature=native)
    codes = tuple(range(5)) if name == "codes are values" else CODES
    people = space(codes, codes)
    forest = feta.read_model(model, people, method="exact")
    expected = model.predict(rows, raw_score=True)
    np.testing.assert_array_equal(forest(people.encode(rows))[:, 0], expected)


def test_lists_that_fit_several_columns_are_refused() -> None:
    rows = frame(pd.Categorical(GROUP, categories=ORDER), np.where(JOB == 5, 4, JOB))
    model = classifier(cat_smooth=1, min_data_per_group=1)
    model.fit(rows, TARGET, categorical_feature=["job"])
    with pytest.raises(
        NetworkError, match=r"fit the columns of the schema in several ways; .* cat"
    ):
        feta.read_model(model, space(CODES[:4]), method="exact")
    forest = feta.read_lightgbm(model, space(CODES[:4]), categories={"group": ORDER})
    expected = model.predict(rows, raw_score=True)
    np.testing.assert_array_equal(forest(space(CODES[:4]).encode(rows))[:, 0], expected)


def test_a_constant_category_keeps_its_list() -> None:
    rare = np.r_[np.full(799, 7), 3]
    rows = frame(pd.Categorical(rare), pd.Categorical(JOB, categories=ORDER))
    model = classifier(min_child_samples=20).fit(rows, TARGET)
    assert "feature_infos=none" in model.booster_.model_to_string()
    people = space(groups=(3, 7))
    forest = feta.read_model(model, people, method="exact")
    expected = model.predict(rows, raw_score=True)
    np.testing.assert_array_equal(forest(people.encode(rows))[:, 0], expected)
