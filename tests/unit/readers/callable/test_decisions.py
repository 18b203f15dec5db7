"""Which answers of a model decide, compared with what the model itself says about each row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta import Fair, FairAt, Model, Unfair
from feta.errors import NetworkError, SchemaError, Undecided
from feta.readers.callable.read import read_callable
from feta.readers.callable.schema_model import counted_model
from feta.scorer.counted.options import CountingOptions

OPTIONS = CountingOptions(batch=64, timeout=None)
SPACE = feta.FeatureSpace(
    (feta.Integer("age", 18, 30, sensitive=True), feta.Integer("income", 0, 40))
)
FRAME = pd.DataFrame({"age": [20] * 41, "income": range(41)})
PEOPLE = SPACE.encode(FRAME)
EVERYBODY = pd.DataFrame([(age, income) for income in range(41) for age in range(18, 31)])
EVERYBODY.columns = pd.Index(["age", "income"])
COLUMNS = """
[columns]
age = { type = "integer", min = 18, max = 30, sensitive = true }
income = { type = "integer", min = 0, max = 40 }
"""


def score(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(frame["income"] - 20 + (frame["age"] - 18) / 4 + 0.125)


def good(frame: pd.DataFrame) -> np.ndarray:
    return score(frame) > 0


def is_fair(decide: Callable[[pd.DataFrame], np.ndarray], income: int) -> bool:
    """Decide all counterparts with the model's own function."""
    decided = decide(EVERYBODY[EVERYBODY["income"] == income])
    return len(set(np.asarray(decided).tolist())) == 1


def of_schema(source: object, decision: str, folder: Path, **arguments: Any) -> Model:  # noqa: ANN401 - of counted_model
    (folder / "schema.toml").write_text(f"[decision]\n{decision}\n{COLUMNS}")
    schema = feta.read_schema(folder / "schema.toml")
    return counted_model(source, schema, options=OPTIONS, **arguments)


class Classifier:
    """A classifier with scores and probabilities; old people with much income are an exception."""

    classes_ = np.array([0, 1])

    def decision_function(self, frame: pd.DataFrame) -> np.ndarray:
        return score(frame)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        p = 1 / (1 + np.exp(-score(frame)))
        return np.stack([1 - p, p], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return good(frame).astype(int)


class Ruled(Classifier):
    """A rule of the business, for so few people that a sample may contain none of them."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return np.where((frame["age"] == 30) & (frame["income"] == 40), 0, good(frame))


def test_predict_decides_and_scores_that_disagree_decide_nothing(tmp_path: Path) -> None:
    scorer = read_callable(Ruled(), SPACE, options=OPTIONS)
    if not scorer.has_scores:
        pytest.fail("the sample shows the exception; choose a rarer one")
    assert scorer.name == "Ruled.predict and decision_function"
    model = Model(SPACE, scorer)
    for income, person in enumerate(PEOPLE):
        verdict = feta.verify(FairAt(model, person))
        fair = is_fair(Ruled().predict, income)
        assert isinstance(verdict, Fair) == fair
        assert isinstance(verdict, Unfair) == (not fair and income != 40)
    unknown = feta.verify(FairAt(model, PEOPLE[40]))
    assert isinstance(unknown, feta.Unknown)
    assert "predict answered 0, but the scores" in unknown.detail
    with pytest.raises(Undecided):
        model.decide(SPACE.encode({"age": 30, "income": 40}))
    for labels in (
        Model(SPACE, read_callable(Ruled(), SPACE, function="predict", options=OPTIONS)),
        of_schema(Ruled(), "favorable = '1'\nunfavorable = '0'", tmp_path, labels_only=True),
    ):
        assert isinstance(feta.verify(FairAt(labels, PEOPLE[40])), Unfair)
        decided = labels.decide(SPACE.encode(EVERYBODY))
        assert decided.tolist() == (Ruled().predict(EVERYBODY) == 1).tolist()


class NoScores:
    classes_ = np.array([0, 1])

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return good(frame).astype(int)


class NoProbability(NoScores):
    def decision_function(self, frame: pd.DataFrame) -> np.ndarray:
        return score(frame)


@pytest.mark.parametrize("source", [Classifier(), NoProbability()])
@pytest.mark.parametrize("level", [0.0, 1.125, -2.0])
def test_a_score_is_compared_with_the_decision_function(
    source: NoProbability, level: float, tmp_path: Path
) -> None:
    model = of_schema(source, f"favorable = '1'\nunfavorable = '0'\nscore = {level}", tmp_path)
    assert model.scorer.name == f"{type(source).__name__}.decision_function"  # type: ignore[attr-defined]  # counted
    assert model.decide(PEOPLE).tolist() == (score(FRAME) >= level).tolist()


def test_a_threshold_is_compared_with_the_probability(tmp_path: Path) -> None:
    decision = "favorable = '1'\nunfavorable = '0'\nthreshold = 0.75"
    model = of_schema(Classifier(), decision, tmp_path)
    expected = Classifier().predict_proba(FRAME)[:, 1] >= 0.75
    assert model.decide(PEOPLE).tolist() == expected.tolist()
    message = r"threshold = 0.75 is compared with predict_proba: got NoProbability, which has none"
    with pytest.raises(SchemaError, match=message):
        of_schema(NoProbability(), decision, tmp_path)
    with pytest.raises(SchemaError, match=r"score = 1.0 is compared with decision_function: got"):
        of_schema(NoScores(), "favorable = '1'\nunfavorable = '0'\nscore = 1.0", tmp_path)
    with pytest.raises(NetworkError, match=r"^NoProbability has no scores that fit: got no"):
        read_callable(NoProbability(), SPACE, level=0.75, options=OPTIONS)


class Unlabeled:
    """An object without classes, as many wrappers are."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return good(frame).astype(int)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        return Classifier().predict_proba(frame)


def test_a_level_of_an_object_without_classes_uses_its_probabilities(tmp_path: Path) -> None:
    expected = Classifier().predict_proba(FRAME)[:, 1] >= 0.875
    model = Model(SPACE, read_callable(Unlabeled(), SPACE, level=0.875, options=OPTIONS))
    assert model.decide(PEOPLE).tolist() == expected.tolist()
    decision = "favorable = 'yes'\nunfavorable = 'no'\nthreshold = 0.875"
    assert of_schema(Unlabeled(), decision, tmp_path).decide(PEOPLE).tolist() == expected.tolist()


def test_a_level_of_labels_is_refused(tmp_path: Path) -> None:
    decision = "favorable = 'yes'\nunfavorable = 'no'\nthreshold = 0.875"
    for function in (good, lambda frame: good(frame).astype(int), _words):
        with pytest.raises(SchemaError, match=r"threshold = 0.875 is a probability, but the func"):
            of_schema(function, decision, tmp_path)
    with pytest.raises(NetworkError, match=r"returns labels: got 0 and 1, and level=0.875; exp"):
        read_callable(lambda frame: good(frame).astype(int), SPACE, level=0.875, options=OPTIONS)


def _words(frame: pd.DataFrame) -> np.ndarray:
    return np.where(good(frame), "yes", "no")


def _gaps(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["income"] % 2 == 1, np.nan, good(frame).astype(float))


@pytest.mark.parametrize(
    "function",
    [
        _gaps,
        lambda frame: [None if np.isnan(value) else bool(value) for value in _gaps(frame)],
        lambda frame: np.ma.masked_invalid(_gaps(frame)),
        lambda frame: np.ma.masked_array(good(frame), mask=frame["income"] % 2 == 1),
        lambda frame: np.ma.masked_array(good(frame).astype(int), mask=frame["income"] % 2 == 1),
    ],
    ids=["NaN", "None", "masked floats", "masked booleans", "masked integers"],
)
def test_labels_with_rows_without_an_answer_remain_labels(
    function: Callable[[pd.DataFrame], object],
) -> None:
    scorer = read_callable(function, SPACE, options=OPTIONS)
    assert not scorer.has_scores
    model = Model(SPACE, scorer)
    assert model.decide(PEOPLE[::2]).tolist() == good(FRAME.iloc[::2]).tolist()
    with pytest.raises(Undecided):
        model.decide(PEOPLE[1:2])
    assert isinstance(feta.verify(FairAt(model, PEOPLE[1])), feta.Unknown)


@pytest.mark.parametrize(
    "function",
    [
        lambda frame: np.where(good(frame), 1, 2),
        lambda frame: np.where(good(frame), 1.0, -1.0),
        lambda frame: np.where(good(frame), "2020-01-01", "2021-01-01").astype("datetime64[ns]"),
    ],
    ids=["1 and 2", "1 and -1", "dates"],
)
def test_labels_that_look_like_numbers_need_classes(
    function: Callable[[pd.DataFrame], np.ndarray],
) -> None:
    with pytest.raises(NetworkError, match=r"returns labels: got .*; pass classes="):
        read_callable(function, SPACE, options=OPTIONS)


@pytest.mark.parametrize(
    ("function", "favorable", "unfavorable"),
    [
        (lambda frame: np.where(good(frame), 0, 1), "0", "1"),
        (lambda frame: np.where(good(frame), 0.0, 1.0), "0", "1"),
        (lambda frame: ~good(frame), "False", "True"),
        (lambda frame: np.where(good(frame), "0", "1"), "0", "1"),
        (lambda frame: np.where(good(frame), 1, 2), "1", "2"),
        (lambda frame: np.where(good(frame), 1.0, -1.0), "1", "-1"),
        (lambda frame: good(frame).astype(int), "yes", "no"),
        (lambda frame: good(frame), "yes", "no"),
    ],
)
def test_the_names_of_outcomes_say_which_label_is_favorable(
    function: Callable[[pd.DataFrame], np.ndarray],
    favorable: str,
    unfavorable: str,
    tmp_path: Path,
) -> None:
    decision = f"favorable = '{favorable}'\nunfavorable = '{unfavorable}'\nthreshold = 0.5"
    model = of_schema(function, decision, tmp_path)
    assert model.decide(PEOPLE).tolist() == good(FRAME).tolist()
    assert model.outcomes == (unfavorable, favorable)


def test_names_and_favors_must_not_contradict_each_other(tmp_path: Path) -> None:
    decision = "favorable = '1'\nunfavorable = '0'\nfavors = 'below'\nthreshold = 0.5"
    with pytest.raises(SchemaError, match=r"contradicts itself: got favorable = \"1\" and favors"):
        of_schema(lambda frame: good(frame).astype(int), decision, tmp_path)


def test_labels_that_nobody_names_are_refused(tmp_path: Path) -> None:
    decision = "favorable = 'yes'\nunfavorable = 'no'\nthreshold = 0.5"
    with pytest.raises(NetworkError, match=r"returns other labels: got -?1 and -?1; expected one"):
        of_schema(lambda frame: np.where(good(frame), 1, -1), decision, tmp_path)


def _shares(frame: pd.DataFrame, names: tuple[str, str]) -> pd.DataFrame:
    p = Classifier().predict_proba(frame)[:, 1]
    return pd.DataFrame({names[0]: p, names[1]: 1 - p})


def test_columns_of_an_answered_frame_are_found_by_name(tmp_path: Path) -> None:
    decision = "favorable = 'yes'\nunfavorable = 'no'\nthreshold = 0.5"
    model = of_schema(lambda frame: _shares(frame, ("yes", "no")), decision, tmp_path)
    assert model.decide(PEOPLE).tolist() == good(FRAME).tolist()
    classes = of_schema(
        lambda frame: _shares(frame, ("b", "a")).assign(c=0.0),
        "classes = ['a', 'b', 'c']",
        tmp_path,
    )
    assert classes.decide(PEOPLE).tolist() == good(FRAME).astype(int).tolist()
    named = read_callable(
        lambda frame: _shares(frame, ("yes", "no")), SPACE, classes=("no", "yes"), options=OPTIONS
    )
    assert Model(SPACE, named).decide(PEOPLE).tolist() == good(FRAME).tolist()
    message = r"the model returned the columns 'p1', 'p0'; expected 'no', 'yes'"
    with pytest.raises(NetworkError, match=message):
        of_schema(lambda frame: _shares(frame, ("p1", "p0")), decision, tmp_path)
    with pytest.raises(NetworkError, match=r"returned the columns 'yes', 'no'; expected classes="):
        read_callable(lambda frame: _shares(frame, ("yes", "no")), SPACE, options=OPTIONS)


def test_other_orders_of_classes_are_counted_by_their_labels() -> None:
    scorer = read_callable(Classifier(), SPACE, classes=[1, 0], options=OPTIONS)
    assert Model(SPACE, scorer).decide(PEOPLE).tolist() == (~good(FRAME)).tolist()
    with pytest.raises(NetworkError, match=r"^the classes have another order than those of Class"):
        read_callable(Classifier(), SPACE, classes=[1, 0], level=0.5, options=OPTIONS)
