"""Planted discrimination: the correlation and the probabilities are those claimed."""

import numpy as np
import pytest

from feta import SchemaError
from feta_paper.planted import BASE, MERIT, SPACE, Planted


def sigmoid(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9, 1.0])
def test_the_proxy_has_the_correlation_and_no_effect(correlation: float) -> None:
    planted = Planted.of(40_000, correlation, seed=0)
    SPACE.check(planted.people)
    proxy, minority = planted.people[:, -1], planted.minority
    assert np.corrcoef(proxy, minority)[0, 1] == pytest.approx(correlation, abs=0.015)
    assert proxy.mean() == pytest.approx(minority.mean(), abs=0.01)
    assert (planted.people[:, 1] == minority).all()


def test_probabilities_are_those_of_the_formula_and_labels_follow_them() -> None:
    planted = Planted.of(40_000, 0.6, seed=1, minority_share=0.4, log_odds=2.0)
    for row in range(5):
        odds = BASE + sum(w * x for w, x in zip(MERIT, planted.people[row, 2:6], strict=True))
        favored, disadvantaged = sigmoid(odds), sigmoid(odds - 2)
        assert planted.fair[row] == pytest.approx(0.6 * favored + 0.4 * disadvantaged)
        assert planted.effect[row] == pytest.approx(favored - disadvantaged)
    own = planted.fair + np.where(planted.minority, -0.6, 0.4) * planted.effect
    for group in (planted.minority, ~planted.minority):
        assert planted.labels[group].mean() == pytest.approx(own[group].mean(), abs=0.01)


@pytest.mark.parametrize("correlation", [0.3, 0.9])
def test_shares_of_known_predictions_are_measured(correlation: float) -> None:
    planted = Planted.of(40_000, correlation, seed=2)
    own = planted.fair + np.where(planted.minority, -0.7, 0.3) * planted.effect
    assert planted.relearned(planted.fair) == 0
    assert planted.relearned(own) == pytest.approx(1, abs=0.02)
    # P(minority | proxy) is (1 − ρ)·share + ρ·proxy; so much of the effect returns.
    guessed = 0.3 * (1 - correlation) + correlation * planted.people[:, -1]
    blind = planted.fair + (0.3 - guessed) * planted.effect
    assert planted.relearned(blind) == pytest.approx(correlation**2, abs=0.03)
    assert planted.agreement(planted.fair >= 0.5) == 1
    assert planted.agreement(planted.fair < 0.5) == 0


def test_people_depend_on_the_seed() -> None:
    first, second, other = (Planted.of(50, 0.5, seed=seed).people for seed in (3, 3, 4))
    assert (first == second).all()
    assert (first != other).any()


@pytest.mark.parametrize("correlation", [-0.1, 1.1, float("nan")])
def test_an_invalid_correlation_is_refused(correlation: float) -> None:
    with pytest.raises(
        SchemaError, match=r"invalid correlation: got .*; expected a number from 0 "
    ):
        Planted.of(10, correlation, seed=0)
