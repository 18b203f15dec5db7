"""Results of statsmodels, with and without formulas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta import Categorical, FeatureSpace, Integer, Levels, Model, NetworkError, Real, Threshold
from feta.readers.statsmodels.design import columns_in
from feta.readers.statsmodels.results import is_statsmodels
from feta.space.sampling import draw_people

sm = pytest.importorskip("statsmodels.api")
smf = pytest.importorskip("statsmodels.formula.api")

pytestmark = pytest.mark.filterwarnings("ignore")

SPACE = FeatureSpace(
    (
        Integer("age", 18, 40, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Levels.spaced("rate", 0, 2, step=0.25),
        Real("income", 0, 9),
    )
)
PEOPLE = draw_people(SPACE, np.random.default_rng(0), 2000)
FRAME = pd.DataFrame([SPACE.decode(person) for person in PEOPLE])
MERIT = (
    FRAME["age"] / 20
    + FRAME["income"] / 2
    + FRAME["rate"]
    + (FRAME["sex"] == "m")
    + np.random.default_rng(1).normal(size=len(FRAME))
)
DATA = FRAME.assign(y=(MERIT.median() < MERIT).astype(int), merit=MERIT, n=np.exp(MERIT / 3))
NUMERIC = FeatureSpace((SPACE.attributes[0], *SPACE.attributes[2:]))
NUMBERS = PEOPLE[:, [0, 3, 4]]
PLAIN = FRAME[["income", "age", "rate"]]  # in another order than the space
FORMULA = "age + C(sex) + np.log(rate + 1) + income"
LOGIT_LINK = "a GLM with a logit link"


def fit(kind: str, exog: pd.DataFrame) -> Any:  # noqa: ANN401 - statsmodels ships no types
    """Fit one kind of model with a design matrix."""
    families = sm.families
    y, merit, counts = DATA["y"], DATA["merit"], DATA["n"]
    match kind:
        case "OLS" | "WLS" | "GLS" | "RLM" | "QuantReg":
            return getattr(sm, kind)(merit, exog).fit()
        case "Logit" | "Probit":
            return getattr(sm, kind)(y, exog).fit(disp=0)
        case "Poisson":
            return sm.Poisson(counts.round(), exog).fit(disp=0)
        case "GLM logit":
            return sm.GLM(y, exog, family=families.Binomial()).fit()
        case "GLM probit":
            link = families.links.Probit()
            return sm.GLM(y, exog, family=families.Binomial(link)).fit()
        case "GLM log":
            return sm.GLM(counts, exog, family=families.Gamma(families.links.Log())).fit()
        case "GLM identity":
            return sm.GLM(merit, exog).fit()
        case "regularized":
            return sm.OLS(merit, exog).fit_regularized(alpha=0.1)
    raise AssertionError(kind)


KINDS = (
    *("OLS", "WLS", "GLS", "RLM", "QuantReg", "Logit", "Probit", "Poisson"),
    *("GLM logit", "GLM probit", "GLM log", "GLM identity", "regularized"),
)


def rule_of(kind: str, predictions: pd.Series) -> tuple[Threshold, float]:
    """Return a rule in the middle of the predictions, and its threshold on predictions."""
    level = float(np.median(predictions)) + 1e-9
    if "logit" in kind.lower():
        return Threshold.at_probability(level), level
    if "robit" in kind:
        return Threshold(0.0), 0.5
    return (
        Threshold.at_prediction(level) if kind in ("Poisson", "GLM log") else Threshold(level)
    ), level


@pytest.mark.parametrize(
    ("kind", "constant"),
    [
        *((kind, "prepend") for kind in KINDS),
        *((kind, constant) for kind in ("OLS", "Logit") for constant in ("append", "none")),
    ],
)
def test_named_columns_are_decided_as_by_predictions(kind: str, constant: str) -> None:
    exog = PLAIN if constant == "none" else sm.add_constant(PLAIN, prepend=constant == "prepend")
    results = fit(kind, exog)
    assert is_statsmodels(results)
    network = feta.read_statsmodels(results, NUMERIC, people=NUMBERS)
    predictions = results.predict(exog)
    rule, level = rule_of(kind, predictions)
    model = Model(NUMERIC, network, rule)
    assert (model.decide(NUMBERS) == (predictions >= level)).all()
    assert 0 < model.decide(NUMBERS).sum() < len(NUMBERS)
    runtime = feta.runtime_of(results, model)
    assert runtime.name == f"the results' own predict, compared with {level:g}"
    assert (runtime(NUMBERS) == model.decide(NUMBERS)).all()
    assert (runtime.evaluate_frame(FRAME).answers == model.decide(NUMBERS)).all()
    assert network.provenance == "proved"


@pytest.mark.parametrize(
    ("maker", "target"), [("ols", "merit"), ("logit", "y"), ("probit", "y"), ("poisson", "n")]
)
def test_formulas_are_decided_as_by_predictions(maker: str, target: str) -> None:
    options = {} if maker == "ols" else {"disp": 0}
    results = getattr(smf, maker)(f"{target} ~ {FORMULA}", DATA.round({"n": 0})).fit(**options)
    network = feta.read_statsmodels(results, SPACE, people=PEOPLE)
    predictions = results.predict(FRAME)
    rule, level = rule_of({"poisson": "Poisson"}.get(maker, maker), predictions)
    model = Model(SPACE, network, rule)
    assert (model.decide(PEOPLE) == (predictions >= level)).all()
    runtime = feta.runtime_of(results, model)
    assert (runtime.evaluate_frame(FRAME).answers == model.decide(PEOPLE)).all()
    for row in range(20):
        changes = [
            FRAME.iloc[row].to_dict() | {"age": age, "sex": sex}
            for age in range(18, 41)
            for sex in ("f", "m")
        ]
        answers = set((results.predict(pd.DataFrame(changes)) >= level).tolist())
        verdict = feta.verify(feta.FairAt(model, PEOPLE[row]))
        assert isinstance(verdict, feta.Fair) == (len(answers) == 1)
        assert verdict.provenance == "proved"


def test_other_codings_and_functions_of_finite_columns_are_read() -> None:
    terms = "C(sex, Sum) + C(rate) + bs(age, df=4) + I(age ** 2) + Q('income')"
    results = smf.ols(f"merit ~ {terms} + 0", DATA).fit()
    network = feta.read_statsmodels(results, SPACE, people=PEOPLE)
    np.testing.assert_allclose(network(PEOPLE)[:, 0], results.predict(FRAME), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("value", [1, 2])
@pytest.mark.parametrize("constant", ["none", "added"])
def test_a_column_with_one_value_in_training_is_not_the_constant(value: int, constant: str) -> None:
    space = FeatureSpace((Integer("sex", 0, 2, sensitive=True), Integer("income", 0, 9)))
    table = pd.DataFrame({"sex": value, "income": np.arange(200) % 10})
    if constant == "added":
        table = sm.add_constant(table, has_constant="add")
    results = sm.OLS(3.0 + 0.5 * table["income"], table).fit()
    model = Model(space, feta.read_model(results, space, method="exact"), threshold=4.75)
    everybody = [{"sex": sex, "income": income} for sex in range(3) for income in range(10)]
    frame = pd.DataFrame(everybody)
    if constant == "added":
        frame = sm.add_constant(frame, has_constant="add")
    expected = results.predict(frame[list(table.columns)]).to_numpy() > 4.75
    assert model.decide(space.encode(everybody)).tolist() == expected.tolist()
    by_income = expected.reshape(3, 10)
    for income, person in enumerate(space.encode(everybody[:10])):
        verdict = feta.verify(feta.FairAt(model, person))
        assert isinstance(verdict, feta.Fair) == (len(set(by_income[:, income])) == 1)
    assert any(len(set(column)) == 2 for column in by_income.T)  # the column decides somebody


def test_an_array_with_a_column_of_one_value_has_no_other_constant() -> None:
    rows = np.column_stack([np.full(200, 2.0), np.arange(200) % 7, np.arange(200) % 10])
    results = sm.OLS(rows @ [1.0, 0.25, 0.5], rows).fit()
    model = Model(NUMERIC, feta.read_statsmodels(results, NUMERIC), threshold=32.0)
    expected = results.predict(NUMBERS) > 32.0
    assert 0 < expected.mean() < 1
    assert model.decide(NUMBERS).tolist() == expected.tolist()


def test_an_array_without_names_has_encoded_people_in_order() -> None:
    exog = sm.add_constant(PEOPLE[:, [0, 1, 3, 4]])
    results = sm.Logit(DATA["y"], exog).fit(disp=0)
    space = FeatureSpace((SPACE.attributes[0], Integer("m", 0, 1), *SPACE.attributes[2:]))
    people = PEOPLE[:, [0, 1, 3, 4]]
    model = Model(space, feta.read_statsmodels(results, space), Threshold.at_probability(0.4))
    assert (model.decide(people) == (results.predict(exog) >= 0.4)).all()
    assert (feta.runtime_of(results, model)(people) == model.decide(people)).all()


def test_a_tie_of_a_probability_is_exact() -> None:
    exog = sm.add_constant(pd.DataFrame({"x": np.arange(9.0)}))
    results = sm.Logit([0, 0, 0, 1, 0, 1, 0, 1, 1], exog).fit(disp=0)
    results._results.params = np.array([-2.0, 0.5])
    space = FeatureSpace((Integer("x", 0, 8, sensitive=True),))
    people = np.arange(9.0)[:, None]
    for equality, chosen in (("favorable", 4), ("unfavorable", 5)):
        rule = Threshold(0.0, equality=equality)  # type: ignore[arg-type]
        model = Model(space, feta.read_statsmodels(results, space), rule)
        assert model.decide(people).tolist() == [x >= chosen for x in range(9)]
        assert feta.runtime_of(results, model)(people).tolist() == model.decide(people).tolist()


def test_a_probit_at_another_threshold_is_replayed_by_its_linear_predictor() -> None:
    exog = sm.add_constant(PLAIN)
    results = sm.Probit(DATA["y"], exog).fit(disp=0)
    model = Model(NUMERIC, feta.read_statsmodels(results, NUMERIC), Threshold(0.5))
    runtime = feta.runtime_of(results, model)
    assert runtime.name == "the results' own linear predictor, compared with 0.5"
    assert (runtime(NUMBERS) == model.decide(NUMBERS)).all()
    with pytest.raises(NetworkError, match="a tolerance does not apply to a model with the link"):
        Model(NUMERIC, model.network, feta.Tolerance(0.1))


def glm(**options: object) -> Any:  # noqa: ANN401 - statsmodels ships no types
    return sm.GLM(DATA["n"], sm.add_constant(PLAIN), **options).fit()


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (
            lambda: sm.MNLogit(DATA["y"] + (DATA["age"] > 30), PLAIN).fit(disp=0),
            "the model of statsmodels is not supported: got MNLogit; expected GLM or one of OLS",
        ),
        (
            lambda: glm(family=sm.families.Gamma(sm.families.links.InversePower())),
            "the link of the GLM is not supported: got InversePower; expected one of Identity",
        ),
        (
            lambda: glm(family=sm.families.Poisson(), exposure=np.full(len(DATA), 2.0)),
            "the model of statsmodels has an exposure: got one more number per person",
        ),
        (
            lambda: glm(family=sm.families.Poisson(), offset=np.full(len(DATA), 2.0)),
            "the model of statsmodels has an offset: got one more number per person",
        ),
        (
            lambda: smf.ols("merit ~ age * income", DATA).fit(),
            "the term 'age:income' of the formula makes an interaction of columns",
        ),
        (
            lambda: smf.ols("merit ~ np.log(income + 1)", DATA).fit(),
            r"the term 'np.log\(income \+ 1\)' of the formula is not linear in 'income'",
        ),
        (
            lambda: smf.ols("merit ~ twice(age)", DATA).fit(),
            r"the factor 'twice\(age\)' of the formula uses 'twice': got a name that is no column",
        ),
        (
            lambda: smf.ols("merit ~ age + y", DATA).fit(),
            "the factor 'y' of the formula uses 'y': got a name that is no column",
        ),
        (
            lambda: smf.ols("merit ~ age + Q('y')", DATA).fit(),
            r"the factor .* of the formula reads 'y': got a column that the schema lacks",
        ),
        (
            lambda: sm.OLS(DATA["merit"], PLAIN.rename(columns={"age": "agee"})).fit(),
            "the model of statsmodels reads 'agee': .*; name the columns as in the schema",
        ),
    ],
)
def test_what_is_not_read_exactly_is_refused_with_the_reason(
    results: Callable[[], Any], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        feta.read_statsmodels(results(), SPACE)


def twice(numbers: pd.Series) -> pd.Series:
    return 2 * numbers


@pytest.mark.parametrize(
    "code", ["np.random.rand()", "f(age)", "age.mean()", "np.where(age, 1, 0)"]
)
def test_code_that_may_do_anything_is_refused(code: str) -> None:
    with pytest.raises(NetworkError, match=r"uses '.*': got a name that is no column"):
        columns_in(code, ["age"])
