import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from feta.metrics.logistic import cross_fitted, fit_softmax, fold_numbers, log_loss, softmax

RNG = np.random.default_rng(0)
COLUMNS = np.hstack([np.ones((600, 1)), RNG.normal(size=(600, 4))])


@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_probabilities_equal_those_of_scikit_learn(n_groups: int, penalty: float) -> None:
    slopes = RNG.normal(size=(5, n_groups))
    groups = (COLUMNS @ slopes + RNG.gumbel(size=(600, n_groups))).argmax(axis=1)
    fitted = fit_softmax(COLUMNS, groups, penalty, start=np.zeros((5, n_groups)))
    # Two groups share one vector of slopes there, with half the penalty.
    strength = (2 if n_groups == 2 else 1) / penalty
    other = LogisticRegression(C=strength, tol=1e-8, max_iter=2000).fit(COLUMNS[:, 1:], groups)
    expected = other.predict_proba(COLUMNS[:, 1:])
    assert np.abs(softmax(COLUMNS @ fitted) - expected).max() < 0.005


def test_nobody_is_predicted_from_their_own_group() -> None:
    groups = RNG.integers(0, 2, 600)
    likely = cross_fitted(COLUMNS, groups, 2)
    changed = groups.copy()
    fold = fold_numbers(600) == 3
    changed[fold] = 1 - changed[fold]
    # Only the fits of other parts see the change; what this part gets remains.
    assert np.abs(cross_fitted(COLUMNS, changed, 2)[fold] - likely[fold]).max() < 0.02
    assert np.abs(cross_fitted(COLUMNS, changed, 2)[~fold] - likely[~fold]).max() > 0.02


def test_loss_is_the_mean_logarithm() -> None:
    likely = np.array([[0.5, 0.5], [0.25, 0.75]])
    assert log_loss(likely, np.array([0, 1])) == pytest.approx(-np.log([0.5, 0.75]).mean())
