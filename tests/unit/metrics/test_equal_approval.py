from collections.abc import Callable

import numpy as np
import pytest

from feta.arrays import Flags, Vector
from feta.metrics.equal_approval import approvals, equal_approval_gap
from feta.metrics.estimate import Estimate, rate_difference

Score = Callable[[Vector], Vector]


def test_people_at_the_cut_share_the_remaining_approvals() -> None:
    scores = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    assert approvals(scores, 0).tolist() == [0, 0, 0, 0, 0]
    assert approvals(scores, 1).tolist() == [1, 0, 0, 0, 0]
    assert approvals(scores, 2) == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 0])
    assert approvals(scores, 5).tolist() == [1, 1, 1, 1, 1]


def draw(n_people: int, rng: np.random.Generator) -> tuple[Vector, Flags]:
    """Draw merits and a group whose merits are lower, so that few of it are near a cut-off."""
    group = rng.random(n_people) < 0.5
    return rng.normal(size=n_people) - 2 * group, group


def test_at_its_own_level_the_gap_is_that_of_the_decisions() -> None:
    merit, group = draw(500, np.random.default_rng(0))
    approved = merit >= 0.3
    found = equal_approval_gap(merit, approved, first=~group, second=group)
    expected = rate_difference(approved, ~group, group)
    assert found.value == expected.value
    assert found.influence == pytest.approx(expected.influence)
    other = equal_approval_gap(np.exp(5 * merit), approved, first=~group, second=group)
    assert other.minus(found).interval == pytest.approx((0, 0))  # the same ranking


@pytest.mark.parametrize("approved", [np.zeros(300, bool), np.ones(300, bool)])
def test_if_nobody_or_everybody_is_approved_the_gap_is_zero(approved: Flags) -> None:
    merit, group = draw(300, np.random.default_rng(1))
    found = equal_approval_gap(merit, approved, first=~group, second=group)
    assert found.interval == pytest.approx((0, 0))


def by_merit(merit: Vector) -> Vector:
    return merit


def by_steps(merit: Vector) -> Vector:
    return np.floor(2 * merit)


def by_labels(merit: Vector) -> Vector:
    return (merit >= 1.0).astype(float)


@pytest.mark.parametrize("score", [by_merit, by_steps, by_labels])
def test_intervals_cover_the_gap_of_many_people(score: Score) -> None:
    rng = np.random.default_rng(2)

    def gap(n_people: int) -> tuple[Estimate, Estimate]:
        merit, group = draw(n_people, rng)
        approved = merit + 2 * rng.normal(size=n_people) >= -0.2
        noisy = score(merit + 0.3 * rng.normal(size=n_people))
        found = equal_approval_gap(noisy, approved, first=~group, second=group)
        return found, found.minus(rate_difference(approved, ~group, group))

    truths = gap(1_000_000)
    for truth, found in zip(
        truths, zip(*(gap(400) for _ in range(1000)), strict=True), strict=True
    ):
        intervals = [estimate.interval for estimate in found]
        covered = np.mean([low <= truth.value <= high for low, high in intervals])
        assert 0.92 <= covered <= 0.98  # 95 %, give or take four standard errors
        spread = np.std([estimate.value for estimate in found])
        assert spread == pytest.approx(np.mean([estimate.error for estimate in found]), rel=0.08)
