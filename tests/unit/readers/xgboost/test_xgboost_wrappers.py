"""Decisions of XGBoost's wrappers, and of the files that they save."""

import pytest

pytest.importorskip("xgboost", reason="xgboost is not installed")

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost

import feta
from feta import FeatureSpace
from feta.readers.booster_runtime import tree_file_runtime
from feta.readers.read_model import CountedModelWarning
from feta.readers.source import SourceOptions, open_source
from tests.unit.readers.xgboost.people import SPACE, labels, table


def encoded(rows: pd.DataFrame) -> np.ndarray:
    return SPACE.encode(rows)


def test_the_runtime_of_a_file_uses_the_same_rounds(tmp_path: Path) -> None:
    people = table(600)
    y = np.random.default_rng(0).permutation(labels(people))
    model = xgboost.XGBClassifier(
        n_estimators=30, max_depth=4, enable_categorical=True, early_stopping_rounds=3, n_jobs=1
    )
    model.fit(people, y, eval_set=[(table(300, seed=2), labels(table(300, seed=2)))], verbose=False)
    path = tmp_path / "wrapper.json"
    model.save_model(path)
    source = open_source(path, SourceOptions())
    assert source.trees is not None
    (note,) = source.notes
    assert note.startswith("wrapper.json: training stopped early, and a wrapper saved the file")
    with pytest.warns(UserWarning, match="stopped early"):
        audited = feta.Model(SPACE, feta.read_model(path, SPACE))
    runtime = tree_file_runtime(source.trees, audited)
    assert runtime is not None
    answers = runtime.evaluate(encoded(people))
    np.testing.assert_array_equal(answers.answers, model.predict(people) == 1)
    assert answers.outputs is not None
    np.testing.assert_allclose(answers.outputs[:, 0], model.predict_proba(people)[:, 1], rtol=1e-6)


CLASSIFIERS: dict[str, dict[str, Any]] = {
    "binary:logistic": {},
    "reg:logistic": {},
    "binary:hinge": {},
    "multi:softmax": {"num_class": 2},
}


@pytest.mark.parametrize("objective", CLASSIFIERS)
def test_classifiers_with_other_objectives_decide_as_the_library(
    objective: str, tmp_path: Path
) -> None:
    people = table()
    model = xgboost.XGBClassifier(
        n_estimators=4, enable_categorical=True, objective=objective, n_jobs=1
    ).set_params(**CLASSIFIERS[objective])
    model.fit(people, labels(people))
    model.save_model(tmp_path / "m.json")
    stored = feta.Model(SPACE, feta.read_model(tmp_path / "m.json", SPACE, method="exact"))
    audited = feta.Model(SPACE, feta.read_model(model, SPACE, method="exact"))
    for read in (stored, audited):
        np.testing.assert_array_equal(read.decide(encoded(people)), model.predict(people) == 1)
    replayed = feta.runtime_of(model, audited).evaluate_frame(people)
    np.testing.assert_array_equal(replayed.answers, model.predict(people) == 1)
    feta.audit(audited, people.head(8), replay=feta.runtime_of(model, audited))


@pytest.mark.parametrize(
    ("objective", "settings"),
    [
        ("reg:squarederror", {}),
        ("reg:absoluteerror", {}),
        ("count:poisson", {}),
        ("binary:logitraw", {}),
        ("multi:softprob", {"num_class": 2}),
    ],
)
def test_classifiers_that_decide_in_another_way_are_counted(
    objective: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """The wrapper compares margins and counts with 0.5; its file is refused as well."""
    ages = pd.DataFrame({"age": np.tile(np.arange(20, 30), 60)})
    y = (np.random.default_rng(0).random(600) < np.where(ages["age"] > 24, 0.9, 0.2)).astype(int)
    model = xgboost.XGBClassifier(n_estimators=8, objective=objective, n_jobs=1, **settings)
    model.fit(ages, y)
    model.save_model(tmp_path / "m.json")
    space = FeatureSpace((feta.Integer("age", 20, 29, sensitive=True),))
    for source in (model, tmp_path / "m.json"):
        with pytest.raises(
            feta.NetworkError, match=r"a classifier .* multi:softprob|decides in an"
        ):
            feta.read_model(source, space, method="exact")
    if objective == "multi:softprob":  # its own predict gives two labels per person
        return
    with pytest.warns(CountedModelWarning, match="decides in another way"):
        audited = feta.Model(space, feta.read_model(model, space))
    expected = model.predict(ages) == 1
    np.testing.assert_array_equal(audited.decide(space.encode(ages)), expected)
    verdict = feta.verify(feta.FairAt(audited, space.encode({"age": 22})[0]))
    assert isinstance(verdict, feta.Fair) == (len(set(expected)) == 1)


def test_texts_that_are_lost_make_a_model_counted() -> None:
    """XGBoost stores the text in part, and two orders of the codes fit."""
    rng = np.random.default_rng(0)
    jobs = pd.Categorical(rng.choice(["z", "a", "ü"], 400), categories=["z", "ü", "a"])
    rows = pd.DataFrame({"job": jobs, "income": rng.integers(0, 9, 400)})
    y = ((rows["job"] == "ü") & (rows["income"] > 3)).astype(int)
    model = xgboost.XGBClassifier(n_estimators=4, n_jobs=1, enable_categorical=True).fit(rows, y)
    space = FeatureSpace(
        (
            feta.Categorical("job", ("a", "z", "ü"), sensitive=True),
            feta.Integer("income", 0, 8),
        )
    )
    with pytest.raises(feta.NetworkError, match="texts that are not ASCII"):
        feta.read_model(model, space, method="exact")
