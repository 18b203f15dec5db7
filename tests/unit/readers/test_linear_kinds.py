"""Linear models of scikit-learn behind a pipeline, with categories and missing values."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn import linear_model, svm
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import feta
from feta import Argmax, FeatureSpace, Integer, Model, NetworkError, Threshold, Tolerance
from feta.readers.sklearn.linear import CLASSIFIERS, GENERALIZED, REGRESSORS, is_linear
from tests.unit.readers.linear_people import (
    MERIT,
    PEOPLE,
    SPACE,
    TABLE,
    THREE,
    YES,
    assert_verdicts,
    counterparts,
    pipeline,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # short training does not converge

Make = Callable[[], BaseEstimator]

SGD_LOSSES = (
    "hinge",
    "log_loss",
    "modified_huber",
    "squared_hinge",
    "perceptron",
    "squared_error",
    "huber",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
)


def sgd(loss: str) -> Make:
    return lambda: linear_model.SGDClassifier(loss=loss, max_iter=5, random_state=0)


def named(kind: str) -> Make:
    module = svm if kind.startswith("LinearSV") else linear_model
    options: dict[str, object] = {}
    if kind.startswith(("LinearSV", "Perc", "Passive", "SGD")):
        options = {"random_state": 0}
    if kind == "LinearDiscriminantAnalysis":
        return LinearDiscriminantAnalysis
    if kind == "LogisticRegressionCV":
        options = {"Cs": [1.0], "cv": 2}
    if kind == "TheilSenRegressor":
        options = {"max_subpopulation": 100, "random_state": 0}
    return lambda: getattr(module, kind)(**options)


BINARY = {kind: named(kind) for kind in CLASSIFIERS if kind != "SGDClassifier"} | {
    f"SGD {loss}": sgd(loss) for loss in SGD_LOSSES
}
SEVERAL = [
    kind
    for kind in BINARY
    if "CV" not in kind and (not kind.startswith("SGD") or kind.endswith(("hinge", "log_loss")))
]
NUMBERS = [
    kind for kind in REGRESSORS if kind not in GENERALIZED and not kind.startswith("MultiTask")
]


@pytest.mark.parametrize("kind", BINARY)
def test_two_classes_are_decided_as_by_predict(kind: str) -> None:
    estimator = pipeline(BINARY[kind]()).fit(TABLE[:300], YES[:300])
    network = feta.read_sklearn(estimator, SPACE)
    model = Model(SPACE, network)
    labels = estimator.predict(TABLE)
    assert 0 < (labels == "yes").sum() < len(labels)
    assert (np.where(model.decide(PEOPLE), "yes", "no") == labels).all()
    assert network.equality == "below"
    assert network.provenance == "proved"
    assert network.sigmoid == (
        kind in ("LinearDiscriminantAnalysis", "SGD log_loss") or "Log" in kind
    )
    np.testing.assert_allclose(
        model.score(PEOPLE), estimator.decision_function(TABLE), rtol=1e-9, atol=1e-9
    )
    assert_verdicts(model, estimator)


@pytest.mark.parametrize("kind", SEVERAL)
def test_three_classes_are_decided_as_by_predict(kind: str) -> None:
    estimator = pipeline(BINARY[kind]()).fit(TABLE[:300], THREE[:300])
    model = Model(SPACE, feta.read_sklearn(estimator, SPACE), Argmax(tuple(estimator.classes_)))
    decided = estimator.classes_[model.decide(PEOPLE)]
    assert (decided == estimator.predict(TABLE)).all()
    replayed = feta.runtime_of(estimator, model).evaluate_frame(TABLE)
    assert (replayed.answers == model.decide(PEOPLE)).all()
    assert_verdicts(model, estimator)


@pytest.mark.parametrize("kind", [kind for kind in NUMBERS if "CV" in kind])
def test_a_cross_validated_regressor_is_read_with_its_values(kind: str) -> None:
    estimator = named(kind)().fit(PEOPLE[:300], MERIT[:300])
    values = estimator.predict(PEOPLE)
    np.testing.assert_allclose(feta.read_sklearn(estimator)(PEOPLE)[:, 0], values, rtol=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in NUMBERS if "CV" not in kind])
def test_a_regressor_is_read_with_its_values(kind: str) -> None:
    estimator = pipeline(named(kind)()).fit(TABLE[:300], MERIT[:300])
    network = feta.read_sklearn(estimator, SPACE)
    values = estimator.predict(TABLE)
    np.testing.assert_allclose(network(PEOPLE)[:, 0], values, rtol=1e-9, atol=1e-9)
    spans = np.ptp(estimator.predict(counterparts(range(12))).reshape(12, -1), axis=1)
    epsilon = float(np.median(spans)) + 1e-6
    model = Model(SPACE, network, Tolerance(epsilon))
    verdicts = [feta.verify(feta.FairAt(model, PEOPLE[row])) for row in range(12)]
    assert [isinstance(verdict, feta.Fair) for verdict in verdicts] == (spans <= epsilon).tolist()
    middle = Threshold(float(np.median(values)) + 1e-9)
    decided = Model(SPACE, network, middle)
    assert (decided.decide(PEOPLE) == (values > middle.value)).all()
    runtime = feta.runtime_of(estimator, decided)
    assert runtime.name.startswith("the pipeline's own predict, compared with")
    assert (runtime(PEOPLE) == decided.decide(PEOPLE)).all()


def set_numbers(estimator: BaseEstimator, slopes: list[list[float]], bias: list[float]) -> None:
    estimator.coef_, estimator.intercept_ = np.array(slopes), np.array(bias)


TWO = FeatureSpace((Integer("x", 0, 8, sensitive=True), Integer("y", 0, 2)))


@pytest.mark.parametrize("kind", BINARY)
def test_a_score_of_exactly_zero_is_decided_as_by_predict(kind: str) -> None:
    rows = np.array([[x, y] for x in range(9) for y in range(3)], dtype=float)
    estimator = BINARY[kind]().fit(rows, np.where(rows.sum(axis=1) > 4, "b", "a"))
    set_numbers(estimator, [[0.5, 1.0]], [-2.5])
    model = Model(TWO, feta.read_sklearn(estimator, TWO))
    assert (np.where(model.decide(rows), "b", "a") == estimator.predict(rows)).all()
    assert not model.decide(np.array([[3.0, 1.0]]))[0]  # a tie
    tied = feta.verify(feta.FairAt(model, np.array([5.0, 0.0])))
    assert isinstance(tied, feta.Unfair)


@pytest.mark.parametrize("kind", SEVERAL)
def test_a_tie_of_three_classes_is_decided_as_by_predict(kind: str) -> None:
    rows = np.array([[x, y] for x in range(9) for y in range(3)], dtype=float)
    estimator = BINARY[kind]().fit(rows, np.digitize(rows.sum(axis=1), [3, 6]))
    set_numbers(estimator, [[0.5, 0.0], [0.25, 0.0], [0.25, 0.25]], [0.0, 0.5, 0.5])
    model = Model(TWO, feta.read_sklearn(estimator, TWO), Argmax(("a", "b", "c")))
    assert (model.decide(rows) == estimator.predict(rows)).all()
    assert model.decide(np.array([[2.0, 0.0]]))[0] == 0  # all three are equal


def test_a_threshold_on_scores_without_probabilities_is_replayed_by_decision_function() -> None:
    estimator = pipeline(svm.LinearSVC(random_state=0)).fit(TABLE, YES)
    model = Model(SPACE, feta.read_sklearn(estimator, SPACE), Threshold(0.25))
    runtime = feta.runtime_of(estimator, model)
    assert runtime.name == "the pipeline's own decision_function, compared with 0.25"
    assert (runtime(PEOPLE) == (estimator.decision_function(TABLE) >= 0.25)).all()
    assert (runtime(PEOPLE) == model.decide(PEOPLE)).all()


def test_a_threshold_on_probabilities_is_replayed_by_predict_proba() -> None:
    estimator = pipeline(LinearDiscriminantAnalysis()).fit(TABLE, YES)
    model = Model(SPACE, feta.read_sklearn(estimator, SPACE), Threshold.at_probability(0.3))
    runtime = feta.runtime_of(estimator, model)
    assert runtime.name == "the pipeline's own predict_proba, compared with 0.3"
    assert (runtime(PEOPLE) == model.decide(PEOPLE)).all()
    assert (model.decide(PEOPLE) == (estimator.predict_proba(TABLE)[:, 1] >= 0.3)).all()


def test_every_kind_exists_in_scikit_learn_and_a_subclass_is_not_read() -> None:
    class Contrary(svm.LinearSVC):  # type: ignore[misc]  # scikit-learn ships no types
        """A classifier whose predict may be another one."""

    assert all(is_linear(named(kind)()) for kind in (*CLASSIFIERS, *REGRESSORS))
    estimator = Contrary(random_state=0).fit(PEOPLE[:, :2], YES)
    with pytest.raises(NetworkError, match="the estimator is not supported: got Contrary; expec"):
        feta.read_sklearn(estimator)


@pytest.mark.parametrize("kind", [linear_model.Ridge, linear_model.MultiTaskLasso])
def test_several_scores_are_refused(kind: type) -> None:
    estimator = kind().fit(PEOPLE[:, :2], np.column_stack([MERIT, MERIT]))
    with pytest.raises(
        NetworkError,
        match=f"{kind.__name__} gives several scores per person: got 2; expected 1; train one",
    ):
        feta.read_sklearn(estimator)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_several_labels_are_refused(n_labels: int) -> None:
    labels = np.column_stack([cut < MERIT for cut in (5, 8, 11)[:n_labels]]).astype(int)
    estimator = linear_model.RidgeClassifier().fit(PEOPLE[:, :2], labels)
    with pytest.raises(
        NetworkError, match=f"RidgeClassifier gives several labels per person: got {n_labels};"
    ):
        feta.read_sklearn(estimator)


def test_an_unfitted_linear_model_is_refused() -> None:
    with pytest.raises(NetworkError, match="LinearSVC is not fitted; call its fit before"):
        feta.read_sklearn(svm.LinearSVC())
