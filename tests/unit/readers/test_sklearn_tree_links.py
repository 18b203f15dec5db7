"""What the scores of scikit-learn's trees mean, and thresholds around them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import FixedThresholdClassifier

import feta
from feta import FeatureSpace, Integer, NetworkError
from feta.readers.sklearn.trees import read_sklearn_trees


def test_the_link_is_that_of_the_probabilities() -> None:
    """With loss="exponential", p is σ of twice the score."""
    rows = np.arange(60.0)[:, None]
    y = np.arange(60) % 7 > 2
    for loss, link in (("log_loss", "logit"), ("exponential", "identity")):
        model = GradientBoostingClassifier(loss=loss, n_estimators=5).fit(rows, y)
        odds = np.log(model.predict_proba(rows)[:, 1] / model.predict_proba(rows)[:, 0])
        same = np.allclose(odds, model.decision_function(rows))
        assert same == (link == "logit")
        space = FeatureSpace((Integer("x", 0, 59, sensitive=True),))
        assert read_sklearn_trees(model, space).link == link


def test_a_threshold_around_trees_is_refused_in_words() -> None:
    rows = pd.DataFrame({"x": np.arange(60)})
    inner = RandomForestClassifier(3, random_state=0)
    model = FixedThresholdClassifier(inner, threshold=0.3).fit(rows, np.arange(60) % 7 > 2)
    space = FeatureSpace((Integer("x", 0, 59, sensitive=True),))
    expected = (
        "FixedThresholdClassifier around this classifier is not read exactly: got "
        "RandomForestClassifier inside; expected a perceptron or a linear model"
    )
    with pytest.raises(NetworkError, match=expected):
        feta.read_model(model, space, method="exact")


def test_trees_are_replayed_by_the_names_of_their_columns() -> None:
    """The schema has another order than the training."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(20, 30, 300), "income": rng.integers(0, 99, 300)})
    y = (3 * rows["age"] + rows["income"] > 120).astype(int)
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(rows, y)
    space = FeatureSpace((Integer("income", 0, 98), Integer("age", 20, 29, sensitive=True)))
    audited = feta.Model(space, feta.read_model(model, space, method="exact"))
    runtime = feta.runtime_of(model, audited)
    expected = (model.predict(rows) == 1).tolist()
    assert runtime(space.encode(rows)).tolist() == expected
    assert runtime.evaluate_frame(rows[["income", "age"]]).answers.tolist() == expected
    feta.audit(audited, rows.head(8), replay=runtime)
