import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from feta import Argmax, FeatureSpace, Integer, Model, Network, NetworkError, Real
from feta.arrays import Flags, Matrix
from feta.readers.sklearn.read import read_sklearn

RNG = np.random.default_rng(1)
ROWS = RNG.normal(size=(80, 3))
LABELS = np.where(ROWS @ [1.0, -2.0, 0.5] + RNG.normal(size=80) > 0, "yes", "no")


def mlp(**options: object) -> MLPClassifier:
    """Return a small perceptron that stops early without a warning, by its large tolerance."""
    chosen = {"hidden_layer_sizes": (5, 4), "random_state": 0, "max_iter": 3, "tol": 1e9} | options
    return MLPClassifier(n_iter_no_change=1, **chosen)


def logistic_regression(slope: float, bias: float) -> LogisticRegression:
    """Return a logistic regression with one column and the given numbers."""
    estimator = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    estimator.coef_, estimator.intercept_ = np.array([[slope]]), np.array([bias])
    return estimator


@pytest.mark.parametrize("activation", ["relu", "identity"])
@pytest.mark.parametrize("layers", [(4,), (5, 4), (3, 3, 3)])
def test_a_perceptron_is_read_with_its_scores(activation: str, layers: tuple[int, ...]) -> None:
    estimator = mlp(activation=activation, hidden_layer_sizes=layers).fit(ROWS, LABELS)
    network = read_sklearn(estimator)
    chances = 1 / (1 + np.exp(-network(ROWS)[:, 0]))
    np.testing.assert_allclose(chances, estimator.predict_proba(ROWS)[:, 1], atol=1e-12)
    assert network.source == "float64"
    assert network.sigmoid
    assert network.equality == "below"


def test_a_perceptron_without_hidden_layers_is_read() -> None:
    network = read_sklearn(mlp(hidden_layer_sizes=()).fit(ROWS, LABELS))
    assert network.width == 3
    assert not network.layers


@pytest.mark.parametrize(
    "kind", [LogisticRegression, lambda: LogisticRegression(fit_intercept=False)]
)
def test_a_logistic_regression_is_read_with_its_scores(kind: Callable[[], BaseEstimator]) -> None:
    estimator = kind().fit(ROWS, LABELS)
    network = read_sklearn(estimator)
    np.testing.assert_allclose(network(ROWS)[:, 0], estimator.decision_function(ROWS), atol=1e-12)
    assert network.source == "float64"
    assert network.sigmoid  # any other threshold is compared with probabilities
    assert network.equality == "below"


@pytest.mark.filterwarnings("ignore::FutureWarning")  # its defaults change from release to release
def test_a_cross_validated_logistic_regression_is_read() -> None:
    estimator = LogisticRegressionCV(Cs=[1.0], cv=2).fit(ROWS, LABELS)
    scores = read_sklearn(estimator)(ROWS)[:, 0]
    np.testing.assert_allclose(scores, estimator.decision_function(ROWS), atol=1e-12)


def test_a_sparse_logistic_regression_is_read() -> None:
    estimator = LogisticRegression().fit(ROWS, LABELS)
    dense = read_sklearn(estimator)
    assert read_sklearn(estimator.sparsify()).fingerprint == dense.fingerprint


@pytest.mark.parametrize("kind", [LogisticRegression, mlp])
def test_an_estimator_fitted_on_float32_computes_with_float32(
    kind: Callable[[], BaseEstimator],
) -> None:
    network = read_sklearn(kind().fit(ROWS.astype(np.float32), LABELS))
    assert network.source == "float32"


@pytest.mark.parametrize("kind", [LogisticRegression, mlp])
def test_an_estimator_fitted_on_a_frame_is_read_without_a_warning(
    kind: Callable[[], BaseEstimator],
) -> None:
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    assert read_sklearn(kind().fit(frame, LABELS)).width == 3


def test_reading_does_not_change_the_estimator() -> None:
    estimator = mlp().fit(ROWS, LABELS)
    before = estimator.predict_proba(ROWS)
    read_sklearn(estimator)
    assert estimator.out_activation_ == "logistic"
    np.testing.assert_allclose(estimator.predict_proba(ROWS), before, rtol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_a_smooth_perceptron_is_enclosed(activation: str) -> None:
    estimator = mlp(activation=activation).fit(ROWS, LABELS)
    network = read_sklearn(estimator)
    scores = network.points(ROWS).scores(network.arithmetic)
    probabilities = estimator.predict_proba(ROWS)[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-scores.values[:, 0])), probabilities, rtol=1e-9)
    values = regressor(activation=activation).fit(ROWS, ROWS[:, 0])
    np.testing.assert_allclose(read_sklearn(values)(ROWS)[:, 0], values.predict(ROWS), rtol=1e-9)


def test_a_score_of_exactly_zero_is_for_the_first_class_as_in_scikit_learn() -> None:
    estimator = logistic_regression(1.0, -2.0)
    space = FeatureSpace((Integer("x", 0, 4, sensitive=True),))
    model = Model(space, read_sklearn(estimator))
    people = np.arange(5.0)[:, None]
    assert model.decide(people).tolist() == [False, False, False, True, True]
    assert (model.decide(people) == (estimator.predict(people) == 1)).all()


def test_a_probability_of_exactly_one_half_is_for_the_first_class_as_in_scikit_learn() -> None:
    estimator = mlp(hidden_layer_sizes=(1,)).fit([[0.0], [1.0]], [0, 1])
    estimator.coefs_ = [np.array([[1.0]]), np.array([[1.0]])]
    estimator.intercepts_ = [np.array([0.0]), np.array([-2.0])]
    space = FeatureSpace((Integer("x", 0, 4, sensitive=True),))
    people = np.arange(5.0)[:, None]
    decisions = Model(space, read_sklearn(estimator)).decide(people)
    assert decisions.tolist() == [False, False, False, True, True]
    assert (decisions == (estimator.predict(people) == 1)).all()


def test_decisions_are_those_of_the_estimator() -> None:
    estimator = mlp(max_iter=30).fit(ROWS, LABELS)
    space = FeatureSpace((Integer("a", -3, 3, sensitive=True), Real("b", -9, 9), Real("c", -9, 9)))
    people = np.column_stack([RNG.integers(-3, 4, 80), ROWS[:, 1:]])
    decisions = Model(space, read_sklearn(estimator)).decide(people)
    assert (np.where(decisions, "yes", "no") == estimator.predict(people)).all()


@pytest.mark.parametrize("kind", [LogisticRegression, mlp])
def test_several_classes_are_decided_as_by_the_estimator(
    kind: Callable[[], BaseEstimator],
) -> None:
    estimator = kind().fit(ROWS, THREE)
    network = read_sklearn(estimator)
    assert (network.outputs, network.equality) == (3, None)
    assert network.sigmoid
    space = FeatureSpace((Integer("a", -3, 3, sensitive=True), Real("b", -9, 9), Real("c", -9, 9)))
    people = np.column_stack([RNG.integers(-3, 4, 80), ROWS[:, 1:]])
    decisions = Model(space, network, Argmax(("0", "1", "2"))).decide(people)
    assert decisions.tolist() == estimator.predict(people).tolist()


def test_a_tie_of_several_classes_is_the_first_as_in_scikit_learn() -> None:
    for estimator in (LogisticRegression(), mlp(hidden_layer_sizes=())):
        estimator.fit(ROWS[:, :1], THREE)
        if hasattr(estimator, "coef_"):
            estimator.coef_, estimator.intercept_ = np.array([[0.0], [1.0], [1.0]]), np.zeros(3)
        else:
            estimator.coefs_, estimator.intercepts_ = [np.array([[0.0, 1.0, 1.0]])], [np.zeros(3)]
        space = FeatureSpace((Integer("x", -1, 1, sensitive=True),))
        people = np.array([[-1.0], [0.0], [1.0]])
        model = Model(space, read_sklearn(estimator), Argmax(("0", "1", "2")))
        assert model.decide(people).tolist() == [0, 0, 1]
        assert estimator.predict(people).tolist() == [0, 0, 1]


def regressor(**options: object) -> MLPRegressor:
    chosen = {"hidden_layer_sizes": (5, 4), "random_state": 0, "max_iter": 3, "tol": 1e9} | options
    return MLPRegressor(n_iter_no_change=1, **chosen)


@pytest.mark.parametrize(
    "kind",
    [
        regressor,
        lambda: regressor(activation="identity"),
        LinearRegression,
        lambda: LinearRegression(fit_intercept=False),
        lambda: LinearRegression(positive=True),
    ],
)
@pytest.mark.parametrize("targets", [ROWS @ [1.0, -2.0, 0.5], (ROWS @ [1.0, -2.0, 0.5])[:, None]])
def test_a_regressor_is_read_with_its_scores(
    kind: Callable[[], BaseEstimator], targets: Matrix
) -> None:
    unfitted = kind()
    flat = targets.ravel() if isinstance(unfitted, MLPRegressor) else targets
    estimator = unfitted.fit(ROWS, flat)
    network = read_sklearn(estimator)
    np.testing.assert_allclose(network(ROWS)[:, 0], estimator.predict(ROWS).ravel(), atol=1e-12)
    assert (network.source, network.sigmoid, network.equality) == ("float64", False, None)


class ContraryClassifier(LogisticRegression):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier with another decision."""

    def predict(self, rows: Matrix) -> Flags:
        return np.asarray(~super().predict(rows))


THREE = np.arange(80) % 3
TWO_LABELS = np.column_stack([THREE == 0, THREE == 1]).astype(int)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, LABELS),
            "raw columns is missing; call feta.read_sklearn(pipeline, space)",
        ),
        (
            lambda: DummyClassifier().fit(ROWS, LABELS),
            "the estimator is not supported: got DummyClassifier; expected a perceptron",
        ),
        (
            lambda: ContraryClassifier().fit(ROWS, LABELS),
            "the estimator is not supported: got Contrary",
        ),
        (MLPClassifier, "MLPClassifier is not fitted; call its fit before it is read"),
        (LogisticRegression, "LogisticRegression is not fitted; call its fit"),
        (
            lambda: LinearRegression().fit(ROWS, ROWS[:, :2]),
            "LinearRegression gives several scores per person: got 2; expected 1; train one "
            "estimator per score",
        ),
        (
            lambda: regressor().fit(ROWS, ROWS[:, :2]),
            "MLPRegressor gives several scores per person: got 2; expected 1",
        ),
        (
            lambda: DecisionTreeRegressor().fit(ROWS, ROWS[:, 0]),
            "the estimator is not supported: got DecisionTreeRegressor",
        ),
        (
            lambda: mlp().fit(ROWS, np.ones(80)),
            "MLPClassifier has an unsupported number of classes: got 1; expected 2 to 127",
        ),
        (
            lambda: mlp().fit(ROWS, TWO_LABELS),
            "MLPClassifier gives several labels per person: got 2; expected 1; train one "
            "estimator per label",
        ),
    ],
)
def test_an_unsupported_estimator_is_refused_by_name(
    estimator: Callable[[], BaseEstimator], message: str
) -> None:
    with pytest.raises(NetworkError) as refused:
        read_sklearn(estimator())
    assert message in str(refused.value)


def test_weights_that_are_not_finite_are_refused() -> None:
    with pytest.raises(NetworkError, match=r"invalid weights of layer 1: got nan"):
        read_sklearn(logistic_regression(float("nan"), 0.0))


def test_a_reading_that_disagrees_with_the_estimator_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = Network.from_layers([([[1.5]], [0.0])])
    monkeypatch.setattr("feta.readers.sklearn.read.read_linear", lambda _: wrong)
    with pytest.raises(
        NetworkError,
        match=r"scores differ from the LogisticRegression's own by \d\.\d+: got .* in row \d+, "
        r"output 0; .*; please report this model",
    ):
        read_sklearn(logistic_regression(1.0, 0.0))


def test_a_difference_is_detected_even_if_probabilities_saturate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimator = mlp(hidden_layer_sizes=()).fit([[0.0], [1.0]], [0, 1])
    estimator.coefs_, estimator.intercepts_ = [np.array([[1.0]])], [np.array([1000.0])]
    wrong = Network.from_layers([([[1.5]], [1000.0])])
    monkeypatch.setattr("feta.readers.sklearn.read._read_mlp", lambda _: wrong)
    with pytest.raises(NetworkError, match="differ from the MLPClassifier's own by"):
        read_sklearn(estimator)


def test_importing_the_reader_does_not_import_scikit_learn() -> None:
    code = "import sys, feta.readers.sklearn.read; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class Strict(Pipeline):  # type: ignore[misc]  # scikit-learn ships no types
    """A pipeline with another threshold."""

    def predict(self, X: Matrix) -> Flags:  # noqa: N803 - as scikit-learn names it
        return np.where(self.predict_proba(X)[:, 1] > 0.9, "yes", "no")


Strict.__name__ = "Pipeline"


class Tuned(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A search that decides by another threshold."""

    def fit(self, X: Matrix, y: Flags) -> "Tuned":  # noqa: N803 - as scikit-learn names it
        self.best_estimator_ = LogisticRegression().fit(X, y)
        return self

    def predict(self, X: Matrix) -> Flags:  # noqa: N803 - as scikit-learn names it
        return np.where(self.best_estimator_.predict_proba(X)[:, 1] > 0.9, "yes", "no")


@pytest.mark.parametrize("kind", [lambda: Strict([("last", LogisticRegression())]), Tuned])
def test_an_unknown_wrapper_is_refused(kind: Callable[[], BaseEstimator]) -> None:
    with pytest.raises(
        NetworkError, match=r"the estimator is not supported: got .*; expected a perceptron"
    ):
        read_sklearn(kind().fit(ROWS, LABELS))


def test_a_pipeline_that_cannot_be_evaluated_is_refused_with_a_message() -> None:
    texts = FunctionTransformer(lambda rows: np.char.add("at ", np.asarray(rows, int).astype(str)))
    ages = np.arange(40.0)[:, None]
    pipeline = make_pipeline(texts, OneHotEncoder(), LogisticRegression()).fit(ages, ages[:, 0] > 9)
    space = FeatureSpace((Integer("age", 0, 39, sensitive=True),))
    with pytest.raises(NetworkError, match=r"cannot be evaluated \(ValueError: could not convert"):
        read_sklearn(pipeline, space)
