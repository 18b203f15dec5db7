"""Thresholds on probabilities and predictions, compared with the source's own answers."""

import math
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import feta
from feta.errors import SchemaError
from feta.rule.inverse_links import nearest_logarithm, nearest_logit, nearest_probit

SPACE = feta.FeatureSpace(
    (feta.Integer("age", 20, 39, sensitive=True), feta.Integer("income", 0, 9))
)
PEOPLE = pd.DataFrame(
    [(age, income) for age in range(20, 40) for income in range(10)], columns=["age", "income"]
)
ROWS = SPACE.encode(PEOPLE)
LABELS = ((PEOPLE.age * 7 + PEOPLE.income * 13) % 10 < PEOPLE.income).to_numpy().astype(int)


def brute_force(favorable: np.ndarray) -> list[bool]:
    """Return for each income whether all ages get the same decision."""
    return [len(set(favorable[PEOPLE.income == income])) == 1 for income in range(10)]


def check(model: feta.Model, favorable: np.ndarray) -> None:
    np.testing.assert_array_equal(model.decide(ROWS), favorable)
    first = [int(np.flatnonzero(PEOPLE.income == income)[0]) for income in range(10)]
    verdicts = [feta.verify(feta.FairAt(model, ROWS[row])) for row in first]
    assert [isinstance(verdict, feta.Fair) for verdict in verdicts] == brute_force(favorable)


@pytest.mark.parametrize("probability", [0.3, 0.5, 0.7])
def test_shares_of_a_forest_are_compared_with_the_probability_itself(probability: float) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    forest = ensemble.RandomForestClassifier(7, max_depth=3, random_state=0).fit(PEOPLE, LABELS)
    rule = feta.Threshold.at_probability(probability)
    model = feta.Model(SPACE, feta.read_model(forest, SPACE), rule)
    if probability == 0.5:
        check(model, forest.predict(PEOPLE) == 1)
        return
    shares = forest.predict_proba(PEOPLE)[:, 1]
    assert np.abs(shares - probability).min() > 1e-9  # rounding changes no decision
    check(model, shares > probability)


def test_the_margin_of_two_shares_is_compared_with_2p_minus_1() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    forest = ensemble.RandomForestClassifier(7, max_depth=3, random_state=0).fit(PEOPLE, LABELS)
    margin = feta.read_model(forest, SPACE).difference()
    shares = forest.predict_proba(PEOPLE)[:, 1]
    check(feta.Model(SPACE, margin, feta.Threshold.at_probability(0.7)), shares > 0.7)
    with pytest.raises(SchemaError, match="the difference of two shares; expected a model with"):
        feta.Model(SPACE, margin, feta.Threshold.at_probability(0.01))


def test_log_odds_are_compared_with_the_logit() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    boosted = ensemble.GradientBoostingClassifier(n_estimators=9, random_state=0)
    boosted.fit(PEOPLE, LABELS)
    model = feta.Model(SPACE, feta.read_model(boosted, SPACE), feta.Threshold.at_probability(0.6))
    check(model, boosted.predict_proba(PEOPLE)[:, 1] > 0.6)


def test_a_probability_is_refused_where_scores_are_not_log_odds() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    boosted = ensemble.GradientBoostingClassifier(
        loss="exponential", n_estimators=9, random_state=0
    ).fit(PEOPLE, LABELS)
    scorer = feta.read_model(boosted, SPACE)
    with pytest.raises(SchemaError, match=r"got 0\.6, and a model whose scores are not log-odds"):
        feta.Model(SPACE, scorer, feta.Threshold.at_probability(0.6))
    # The classifier itself decides by the sign of its score.
    at_half = feta.Model(SPACE, scorer, feta.Threshold.at_probability(0.5))
    check(at_half, boosted.predict(PEOPLE) == 1)


def test_a_probit_link_takes_the_quantile() -> None:
    pytest.importorskip("statsmodels")
    import statsmodels.api as sm  # noqa: PLC0415 - an extra

    results = sm.Probit(LABELS, sm.add_constant(PEOPLE.astype(float))).fit(disp=0)
    scorer = feta.read_statsmodels(results, SPACE)
    predicted = np.asarray(results.predict(sm.add_constant(PEOPLE.astype(float))))
    for rule in (feta.Threshold.at_probability(0.3), feta.Threshold.at_prediction(0.3)):
        check(feta.Model(SPACE, scorer, rule), predicted > 0.3)


def test_a_prediction_of_probabilities_lies_between_0_and_1() -> None:
    network = feta.Network.from_layers([([[1.0, 1.0]], [0.0])], sigmoid=True)
    with pytest.raises(SchemaError, match=r"got 1\.5, and a model that predicts probabilities"):
        feta.Model(SPACE, network, feta.Threshold.at_prediction(1.5))


def test_predictions_without_a_link_are_compared_themselves() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    regressor = linear_model.LinearRegression().fit(PEOPLE, PEOPLE.age * 0.1 + PEOPLE.income)
    rule = feta.Threshold.at_prediction(6.05)
    model = feta.Model(SPACE, feta.read_model(regressor, SPACE), rule)
    check(model, regressor.predict(PEOPLE) > 6.05)


def test_a_counted_model_compares_predictions_and_refuses_probabilities() -> None:
    def score(frame: pd.DataFrame) -> np.ndarray:
        return (frame.age / 40 + frame.income / 10).to_numpy() / 2

    scorer = feta.read_callable(score, SPACE, answers="scores")
    model = feta.Model(SPACE, scorer, feta.Threshold.at_prediction(0.61))
    check(model, score(PEOPLE) >= 0.61)
    with pytest.raises(SchemaError, match="scores are not log-odds"):
        feta.Model(SPACE, scorer, feta.Threshold.at_probability(0.61))


def test_a_threshold_on_the_difference_of_shares_warns() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    forest = ensemble.RandomForestClassifier(3, random_state=0).fit(PEOPLE, LABELS)
    scorer = feta.read_model(forest, SPACE)
    with pytest.warns(UserWarning, match=r"use rule=Threshold.at_probability\(0.7\)"):
        feta.Model(SPACE, scorer, threshold=0.7)


SCHEMA = """
[decision]
threshold = 0.5
favorable = "yes"
unfavorable = "no"
[columns]
age = { type = "integer", min = 20, max = 39, sensitive = true }
income = { type = "integer", min = 0, max = 9 }
"""


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_a_schema_refuses_a_probability_for_a_file_of_a_regressor(
    library: str, tmp_path: Path
) -> None:
    module = pytest.importorskip(library)
    path, schema = tmp_path / {"lightgbm": "m.txt"}.get(library, "m.json"), tmp_path / "s.toml"
    target = (PEOPLE.age > 24) * 0.8 + 0.1
    if library == "xgboost":
        module.XGBRegressor(n_estimators=5, n_jobs=1).fit(PEOPLE, target).save_model(path)
    elif library == "lightgbm":
        regressor = module.LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1).fit(PEOPLE, target)
        regressor.booster_.save_model(path)
    else:
        options = {"iterations": 5, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
        module.CatBoostRegressor(**options).fit(PEOPLE, target).save_model(path, format="json")
    schema.write_text(SCHEMA)
    declared = feta.read_schema(schema)
    with pytest.raises(SchemaError, match="the model predicts numbers; write tolerance = …"):
        declared.model(feta.read_model(path, declared.space))


@pytest.mark.parametrize("probability", [5e-324, 1e-10, 0.1, 0.3, 0.5, 0.975, 1 - 2**-53])
def test_inverse_links_are_rounded_once(probability: float) -> None:
    getcontext().prec = 50
    p = Decimal(probability)
    assert nearest_logit(probability) == float((p / (1 - p)).ln())
    assert nearest_logarithm(probability) == float(p.ln())
    score = nearest_probit(probability)
    below, above = (math.nextafter(score, side) for side in (-math.inf, math.inf))
    middles = [(Fraction(score) + Fraction(end)) / 2 for end in (below, above)]
    low, high = (_normal(Decimal(m.numerator) / Decimal(m.denominator)) for m in middles)
    assert low <= p <= high


def _normal(score: Decimal) -> Decimal:
    """Return Φ(x) by a continued fraction far from 0, and a power series near it."""
    getcontext().prec = 50
    root = (2 * Decimal("3.14159265358979323846264338327950288419716939937510582")).sqrt()
    if score > 0:
        return 1 - _normal(-score)
    density = (-score * score / 2).exp() / root
    if score > -2:
        term, total = score, score
        for number in range(1, 200):
            term = -term * score * score / (2 * number)
            total += term / (2 * number + 1)
        return Decimal("0.5") + total / root
    fraction = Decimal(0)
    for number in range(600, 0, -1):
        fraction = number / (-score + fraction)
    return density / (-score + fraction)
