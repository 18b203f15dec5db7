"""Classifiers with their own threshold, and generalized linear models with a log link."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    RidgeClassifier,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import feta
from feta import FeatureSpace, Integer, Model, NetworkError, SchemaError, Threshold, Tolerance
from feta.io.schema import Schema, read_schema
from feta.readers.sklearn.trees import read_sklearn_trees
from feta.space.sampling import draw_people
from tests.unit.readers.linear_people import (
    MERIT,
    PEOPLE,
    SPACE,
    TABLE,
    YES,
    assert_verdicts,
    counterparts,
    pipeline,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # short training does not converge

MLP = MLPClassifier((4,), max_iter=15, random_state=0)
CASES: dict[str, tuple[BaseEstimator, dict[str, Any]]] = {
    "probability": (LogisticRegression(), {"threshold": 0.3}),
    "first class": (LogisticRegression(), {"threshold": 0.3, "pos_label": "no"}),
    "score": (LogisticRegression(), {"threshold": 0.3, "response_method": "decision_function"}),
    "default": (LogisticRegression(), {}),
    "no probability": (LinearSVC(random_state=0), {"threshold": -0.25}),
    "no probability, first class": (RidgeClassifier(), {"threshold": 0.1, "pos_label": "no"}),
    "clipped": (SGDClassifier(loss="modified_huber", random_state=0), {"threshold": 0.4}),
    "clipped, first class": (
        SGDClassifier(loss="modified_huber", random_state=0),
        {"threshold": 0.4, "pos_label": "no"},
    ),
    "perceptron": (MLP, {"threshold": 0.6}),
    "perceptron, first class": (MLP, {"threshold": 0.6, "pos_label": "no"}),
}


@pytest.mark.parametrize(
    ("case", "where"),
    [*((case, "outside") for case in CASES), ("first class", "inside"), ("perceptron", "inside")],
)
def test_a_fixed_threshold_decides_as_predict(case: str, where: str) -> None:
    last, options = CASES[case]
    if where == "outside":
        estimator: Any = FixedThresholdClassifier(pipeline(last), **options)
    else:
        estimator = pipeline(FixedThresholdClassifier(last, **options))
    estimator.fit(TABLE[:400], YES[:400])
    model = Model(SPACE, feta.read_sklearn(estimator, SPACE))
    labels = estimator.predict(TABLE)
    assert 0 < (labels == "yes").sum() < len(labels)
    assert (np.where(model.decide(PEOPLE), "yes", "no") == labels).all()
    runtime = feta.runtime_of(estimator, model)
    assert runtime.name.endswith(" own predict")
    assert (runtime.evaluate_frame(TABLE).answers == model.decide(PEOPLE)).all()
    assert_verdicts(model, estimator)


def test_a_tuned_threshold_decides_as_predict() -> None:
    f1 = make_scorer(f1_score, pos_label="yes")
    estimator = TunedThresholdClassifierCV(pipeline(LogisticRegression()), scoring=f1, cv=2)
    estimator.fit(TABLE[:400], YES[:400])
    assert estimator.best_threshold_ != 0.5
    model = Model(SPACE, feta.read_sklearn(estimator, SPACE))
    assert (np.where(model.decide(PEOPLE), "yes", "no") == estimator.predict(TABLE)).all()
    assert_verdicts(model, estimator)


def test_a_classifier_that_was_trained_before_keeps_its_threshold() -> None:
    trained = pipeline(LogisticRegression()).fit(TABLE[:400], YES[:400])
    estimator = FixedThresholdClassifier(FrozenEstimator(trained), threshold=0.7)
    model = Model(SPACE, feta.read_sklearn(estimator.fit(TABLE, YES), SPACE))
    assert (np.where(model.decide(PEOPLE), "yes", "no") == estimator.predict(TABLE)).all()


LINE = FeatureSpace((Integer("x", 0, 8, sensitive=True),))
NINE = np.arange(9.0)[:, None]


@pytest.mark.parametrize("label", [None, 0, 1])
@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_a_tie_at_an_own_threshold_is_decided_as_by_predict(
    label: int | None, response: str
) -> None:
    tied = 0.5 if response == "predict_proba" else 0.75
    estimator = FixedThresholdClassifier(
        LogisticRegression(), threshold=tied, pos_label=label, response_method=response
    ).fit(NINE, NINE[:, 0] > 4)
    estimator.estimator_.coef_ = np.array([[0.25]])
    estimator.estimator_.intercept_ = np.array([-1.0])
    model = Model(LINE, feta.read_sklearn(estimator, LINE))
    assert model.scorer.equality == ("below" if label == 0 else "above")
    assert model.decide(NINE).tolist() == estimator.predict(NINE).tolist()
    tie = 4.0 if response == "predict_proba" else (1.0 if label == 0 else 7.0)
    exact = model.exact_scores(np.array([[tie]])).floats()
    assert exact[0, 0] == 0


def test_probabilities_next_to_an_own_threshold_are_not_called_safe() -> None:
    estimator = FixedThresholdClassifier(LogisticRegression(), threshold=0.3)
    estimator.fit(NINE, NINE[:, 0] > 4)
    estimator.estimator_.coef_ = np.array([[2.0**-54]])
    estimator.estimator_.intercept_ = np.array([Threshold.at_probability(0.3).value])
    model = Model(LINE, feta.read_sklearn(estimator, LINE))
    batch = model.resolve(model.points(NINE), model.rule)
    assert not batch.runtime_safe.any()


@pytest.mark.parametrize("value", [0.0, 1.0, 1 - 2.0**-53, float("nan")])
def test_a_threshold_that_separates_nothing_is_refused(value: float) -> None:
    estimator = FixedThresholdClassifier(LogisticRegression()).fit(NINE, NINE[:, 0] > 4)
    estimator.threshold = value
    with pytest.raises(
        NetworkError, match=r"classifier's own threshold (decides noth|is too extr)"
    ):
        feta.read_sklearn(estimator, LINE)


def test_thresholds_that_cannot_be_read_are_refused() -> None:
    unfitted = FixedThresholdClassifier(LogisticRegression())
    with pytest.raises(NetworkError, match="FixedThresholdClassifier is not fitted; call its fit"):
        feta.read_sklearn(unfitted, LINE)
    tree = FixedThresholdClassifier(DecisionTreeClassifier(max_depth=2), threshold=0.3)
    tree.fit(NINE, NINE[:, 0] > 4)
    with pytest.raises(NetworkError, match="is not read exactly: got DecisionTreeClassifier"):
        feta.read_sklearn(tree, LINE)
    with pytest.raises(NetworkError, match="no tree ensemble: got FixedThresholdClassifier"):
        read_sklearn_trees(tree, LINE)
    fixed = FixedThresholdClassifier(LogisticRegression(), threshold=0.3)
    model = Model(LINE, feta.read_sklearn(fixed.fit(NINE, NINE[:, 0] > 4), LINE), Threshold(1.0))
    with pytest.raises(
        NetworkError, match=r"decides with its own threshold: got another one, 1\.0 after it; exp"
    ):
        feta.runtime_of(fixed, model)


GENERALIZED = {
    "poisson": PoissonRegressor(),
    "gamma": GammaRegressor(),
    "tweedie log": TweedieRegressor(power=1.5),
    "tweedie identity": TweedieRegressor(power=0, link="auto"),
}
POSITIVE = np.exp(MERIT / 8)


@pytest.mark.parametrize("kind", GENERALIZED)
def test_a_threshold_on_predictions_of_a_generalized_linear_model(kind: str) -> None:
    estimator = pipeline(GENERALIZED[kind]).fit(TABLE[:400], POSITIVE[:400])
    network = feta.read_sklearn(estimator, SPACE)
    values = estimator.predict(TABLE)
    level = float(np.median(values)) + 1e-9
    log = kind != "tweedie identity"
    assert network.link == ("log" if log else "identity")
    np.testing.assert_allclose(
        network(PEOPLE)[:, 0], np.log(values) if log else values, rtol=1e-9, atol=1e-9
    )
    rule = Threshold.at_prediction(level) if log else Threshold(level)
    model = Model(SPACE, network, rule)
    assert (model.decide(PEOPLE) == (values >= level)).all()
    runtime = feta.runtime_of(estimator, model)
    assert runtime.name == f"the pipeline's own predict, compared with {level:g}"
    assert (runtime(PEOPLE) == model.decide(PEOPLE)).all()
    answers = (estimator.predict(counterparts(range(12))) >= level).reshape(12, -1)
    for row, fair in enumerate((answers == answers[:, :1]).all(axis=1)):
        assert isinstance(feta.verify(feta.FairAt(model, PEOPLE[row])), feta.Fair) == fair


def log_model(slope: float, bias: float) -> PoissonRegressor:
    estimator = PoissonRegressor().fit(NINE, NINE[:, 0] + 1)
    estimator.coef_, estimator.intercept_ = np.array([slope]), bias
    return estimator


def test_a_tie_of_a_log_link_is_exact() -> None:
    estimator = log_model(0.5, -2.0)
    network = feta.read_sklearn(estimator, LINE)
    for equality, expected in (("favorable", True), ("unfavorable", False)):
        rule = Threshold(Threshold.at_prediction(1.0).value, equality=equality)  # type: ignore[arg-type]
        model = Model(LINE, network, rule)
        assert model.decide(np.array([[4.0]]))[0] == expected  # exp(0) is 1
        runtime = feta.runtime_of(estimator, model)
        assert runtime(NINE).tolist() == model.decide(NINE).tolist()


def test_a_tolerance_on_predictions_of_a_log_link_is_refused_and_counted() -> None:
    network = feta.read_sklearn(log_model(0.5, -2.0), LINE)
    with pytest.raises(
        NetworkError,
        match=r"a tolerance does not apply to a model with the link 'log': got Tolerance.*; "
        "evaluate the model's own predict instead, with feta.read_callable",
    ):
        Model(LINE, network, Tolerance(1.0))
    frame = pd.DataFrame({"x": np.arange(9)})
    with pytest.warns(UserWarning, match="the weaker guarantee holds: .* the link 'log'"):
        fair = feta.FairRegressor(PoissonRegressor(), LINE).fit(frame, frame["x"] + 1)
    assert fair.model_ is None
    assert len(set(fair.predict(frame).tolist())) == 1


def test_a_threshold_passed_as_a_score_of_a_log_link_warns() -> None:
    network = feta.read_sklearn(log_model(0.5, -2.0), LINE)
    with pytest.warns(UserWarning, match=r"exponential .*use rule=Threshold.at_prediction\(3\)"):
        Model(LINE, network, threshold=3)


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf")])
def test_a_threshold_on_predictions_is_positive(value: float) -> None:
    with pytest.raises(SchemaError, match=r"invalid threshold on predictions: got .*; expected a"):
        Threshold.at_prediction(value)


def test_a_link_survives_files_and_fingerprints(tmp_path: Path) -> None:
    network = feta.read_sklearn(log_model(0.5, -2.0), LINE)
    model = Model(LINE, network, Threshold.at_prediction(2.0))
    feta.save_model(model, tmp_path / "model.feta")
    loaded = feta.load_model(tmp_path / "model.feta")
    assert loaded.fingerprint == model.fingerprint
    assert loaded.network.link == "log"
    with pytest.raises(NetworkError, match="a network with a link cannot be written: got the link"):
        feta.write_onnx(network, tmp_path / "model.onnx")


def schema(tmp_path: Path, decision: str) -> Schema:
    path = tmp_path / "schema.toml"
    path.write_text(
        f'[columns]\nx = {{ type = "integer", min = 0, max = 8, sensitive = true }}\n{decision}'
    )
    return read_schema(path)


def test_a_score_in_a_schema_is_a_prediction_of_a_log_link(tmp_path: Path) -> None:
    estimator = log_model(0.5, -2.0)
    network = feta.read_sklearn(estimator, LINE)
    decision = (
        '[decision]\nfavorable = "low"\nunfavorable = "high"\nfavors = "below"\nscore = 2.5\n'
    )
    model = schema(tmp_path, decision).model(network)
    assert (model.decide(NINE) == (estimator.predict(NINE) <= 2.5)).all()
    chance = '[decision]\nfavorable = "a"\nunfavorable = "b"\nthreshold = 0.5\n'
    with pytest.raises(SchemaError, match="a threshold is a probability, but the model predicts"):
        schema(tmp_path, chance).model(network)


def test_a_schema_does_not_turn_scores_into_log_odds(tmp_path: Path) -> None:
    estimator: BaseEstimator = LinearSVC(random_state=0).fit(NINE, NINE[:, 0] > 4)
    network = feta.read_sklearn(estimator, LINE)
    chance = '[decision]\nfavorable = "a"\nunfavorable = "b"\nthreshold = {}\n'
    model = schema(tmp_path, chance.format(0.5)).model(network)
    assert model.scorer.link != "logit"
    assert (model.decide(NINE) == estimator.predict(NINE)).all()
    with pytest.raises(SchemaError, match=r"threshold = 0\.3 is a probability, but the estimator"):
        schema(tmp_path, chance.format(0.3)).model(network)


def test_a_bare_estimator_reads_a_raw_table_inside_a_fair_classifier() -> None:
    space = FeatureSpace(
        (feta.Categorical("code", (1, 2, 4), sensitive=True), feta.Real("income", 0, 9))
    )
    people = draw_people(space, np.random.default_rng(0), 300)
    frame = pd.DataFrame([space.decode(person) for person in people])
    labels = np.where(frame["code"] + frame["income"] > 7, "yes", "no")
    fair = feta.FairClassifier(RidgeClassifier(), space, vote="mean_score").fit(frame, labels)
    assert fair.model_ is not None
    decided = np.where(fair.model_.decide(people), "yes", "no")
    assert (decided == fair.estimator_.predict(frame)).all()
    assert any(getattr(verdict, "replayed", False) for verdict in fair.explain(frame[:20]))
