import pytest

pytest.importorskip("torch", reason="torch is not installed")

import pickle
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from feta import Schema, SchemaError, Unfair
from feta.estimators.ce_fair_classifier import CEFairClassifier
from feta.io.schema_file import Decision, SchemaFile
from tests import oracle
from tests.unit.train.people import CLASSES, LABELS, RECORDS, SPACE

X = pd.DataFrame(RECORDS)
Y = np.where(LABELS, "yes", "no")
QUICK = {
    "hidden": (6,),
    "plain_epochs": 20,
    "learning_rates": (0.03,),
    "epochs": 4,
    "batch_size": 32,
}


def quick(**options: object) -> CEFairClassifier:
    return CEFairClassifier(SPACE, **(QUICK | options))  # type: ignore[arg-type]  # options of different types


def test_predict_does_not_need_the_sensitive_columns() -> None:
    fair = quick().fit(X, Y)
    assert fair.score(X.drop(columns=["age", "sex"]), Y) > 0.75
    assert fair.guarantee_.startswith("fair by construction")
    assert fair.run_ is not None
    assert fair.run_.network is fair.network_
    shares = fair.predict_proba(X.drop(columns=["age", "sex"]))
    assert (fair.classes_[(shares[:, 1] >= 0.5).astype(int)] == fair.predict(X)).all()


def test_without_enforcement_the_network_itself_decides() -> None:
    unenforced = quick(enforce=False).fit(X, Y)
    assert unenforced.score(X, Y) > 0.8
    probabilities = unenforced.predict_proba(X)
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    labels = unenforced.classes_[np.argmax(probabilities, axis=1)]
    assert (labels == unenforced.predict(X)).all()
    assert unenforced.guarantee_.startswith("decisions of the network itself")
    several = quick(enforce=False).fit(X, CLASSES)
    assert several.predict_proba(X).shape == (160, 3)
    assert (np.argmax(several.predict_proba(X), axis=1) == several.predict(X)).all()


def test_explain_returns_counterexamples_of_the_trained_network() -> None:
    plain = quick(epochs=0).fit(X, Y)
    verdicts = plain.explain(X)
    assert plain.model_ is not None
    unfair = [verdict for verdict in verdicts if isinstance(verdict, Unfair)]
    assert unfair
    assert {verdict.replayed for verdict in unfair} == {None}
    for row, verdict in enumerate(verdicts):
        assert isinstance(verdict, Unfair) != oracle.is_fair(
            plain.model_, plain.space_.encode(X)[row]
        )


def test_without_the_second_training_there_is_no_curve() -> None:
    assert quick(epochs=0).fit(X, Y).run_ is None


def test_equal_seeds_give_equal_networks_through_clone_and_pickle() -> None:
    first = quick().fit(X, Y)
    again = clone(first).fit(X, Y)
    assert first.network_.fingerprint == again.network_.fingerprint
    assert quick(random_state=1).fit(X, Y).network_.fingerprint != first.network_.fingerprint
    copy = pickle.loads(pickle.dumps(first))
    assert (copy.predict(X) == first.predict(X)).all()


def test_a_grid_search_sets_parameters() -> None:
    search = GridSearchCV(quick(), {"span_penalty": [None, 0.1], "epochs": [2]}, cv=2)
    search.fit(X, Y)
    assert search.best_score_ > 0.6
    assert isinstance(search.best_estimator_, CEFairClassifier)


def test_a_seed_that_is_not_an_integer_is_rejected() -> None:
    with pytest.raises(SchemaError, match="invalid random_state: got None; expected an integer"):
        quick(random_state=None).fit(X, Y)


@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    [
        CEFairClassifier(
            sensitive=["x0"], hidden=(4,), plain_epochs=3, epochs=1, learning_rates=(0.03,)
        )
    ],
    expected_failed_checks=lambda _: {
        "check_estimators_nan_inf": "predict does not read sensitive values, so it cannot "
        "reject invalid ones"
    },
)
@pytest.mark.filterwarnings("ignore")
def test_it_passes_the_checks_of_scikit_learn(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)


def test_a_schema_is_rejected() -> None:
    schema = Schema(SchemaFile(SPACE, {}, {}, {}, Decision(probability=0.8)))
    with pytest.raises(SchemaError, match=r"pass schema\.space"):
        CEFairClassifier(schema).fit(X, Y)  # type: ignore[arg-type]  # the error under test
