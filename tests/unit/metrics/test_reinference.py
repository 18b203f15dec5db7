import numpy as np
import pytest

from feta.metrics.overlap import overlaps
from feta.metrics.reinference import (
    AwareScores,
    Reinference,
    SensitiveValues,
    nearest_mean,
    reinference,
)
from tests.unit.metrics.planted import SPACE, blind_score, planted, true_score

RNG = np.random.default_rng(0)


def measured(strength: float, kind: str) -> Reinference:
    people = planted(strength)
    values = SensitiveValues.of(SPACE, people)
    aware = AwareScores(values.scores(lambda rows: true_score(rows, rows[:, 1]), people), values)
    share = people[:, 1].mean()
    vote = share * true_score(people, 1.0) + (1 - share) * true_score(people, 0.0)
    scores = {"blind": blind_score(people, strength), "vote": vote}
    return reinference(scores.get(kind, true_score(people, people[:, 1])), aware)


@pytest.mark.parametrize("strength", [0.3, 0.6, 0.9])
def test_slope_is_1_for_the_blind_score_and_0_for_the_vote(strength: float) -> None:
    blind, vote, own = (measured(strength, kind) for kind in ("blind", "vote", "own"))
    assert blind.slope is not None
    assert vote.slope is not None
    assert own.slope is not None
    # The planted probabilities of groups, not the estimated ones, are in the blind score.
    assert blind.slope.value == pytest.approx(1.0, abs=0.12)
    assert abs(vote.slope.value) < 1e-9
    low, high = own.slope.interval
    assert low - 0.1 < 1.0 < high + 0.1


def test_proxy_discrimination_is_0_for_the_vote_and_grows_with_the_proxy() -> None:
    shares = []
    for strength in (0.0, 0.3, 0.9):
        vote, blind = (measured(strength, kind).discrimination for kind in ("vote", "blind"))
        assert vote is not None
        assert blind is not None
        assert vote.value < 1e-6
        shares.append(blind.value)
    assert shares[0] < 0.001
    assert 0.02 < shares[1] < 0.1 < shares[2]


def test_without_a_proxy_there_is_no_slope() -> None:
    assert measured(0.0, "blind").slope is None


def test_a_constant_score_has_no_discrimination() -> None:
    people = planted(0.6, 300)
    values = SensitiveValues.of(SPACE, people)
    aware = AwareScores(values.scores(lambda rows: np.ones(len(rows)), people), values)
    assert reinference(np.ones(300), aware).discrimination is None
    assert reinference(np.ones(300), aware).slope is None


def test_overlap_is_complete_without_a_proxy_and_empty_with_a_perfect_one() -> None:
    (none,) = overlaps(SPACE, planted(0.3))
    (perfect,) = overlaps(SPACE, planted(1.0))
    assert (none.attribute, none.groups, none.outside.value) == ("sex", ("f", "m"), 0.0)
    assert perfect.outside.value == 1.0
    assert none.outside.interval[1] < 0.01
    assert perfect.outside.interval[0] > 0.99


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_the_best_of_a_fine_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, target = rng.normal(size=(50, 3)), rng.normal(size=50)
    weights = nearest_mean(target, columns)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1.0)
    grid = [(a / 60, b / 60, (60 - a - b) / 60) for a in range(61) for b in range(61 - a)]
    best = min(float(np.mean((target - columns @ np.array(point)) ** 2)) for point in grid)
    assert float(np.mean((target - columns @ weights) ** 2)) <= best + 1e-9


def test_intervals_of_the_slope_cover_the_truth() -> None:
    covered, n_trials = 0, 200
    likely = np.array([[0.2, 0.8], [0.7, 0.3]])
    shares = np.array([0.5, 0.5])
    for _ in range(n_trials):
        rows = RNG.integers(0, 2, 400)
        by_group = np.stack([RNG.normal(size=400), 1 + RNG.normal(size=400)], axis=1)
        values = SensitiveValues(
            np.zeros(0, bool), np.zeros((0, 0)), np.zeros((0, 2)), shares, likely[rows], True
        )
        aware = AwareScores(by_group, values)
        scores = aware.proxy_free + 0.7 * aware.reinferred + RNG.normal(size=400)
        slope = reinference(scores, aware).slope
        assert slope is not None
        low, high = slope.interval
        covered += low <= 0.7 <= high
    assert 0.88 <= covered / n_trials <= 0.99
