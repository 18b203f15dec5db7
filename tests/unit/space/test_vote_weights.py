from collections.abc import Callable

import numpy as np
import pytest

from feta import DomainError, FeatureSpace, Integer, SchemaError, VoteWeights
from tests.examples import PERSON, SPACE

WIDE = FeatureSpace(tuple(Integer(f"n{n}", 1, 2**40, sensitive=True) for n in range(2)))


def weights(assignment_ids: list[int], votes: list[int]) -> VoteWeights:
    return VoteWeights(np.array(assignment_ids), np.array(votes), SPACE)


def people(*ages: int) -> np.ndarray:
    return SPACE.encode([{"age": age, "sex": "male", "income": age / 9} for age in ages])


def test_each_assignment_has_the_votes_of_the_people_who_have_it() -> None:
    found = VoteWeights.from_people(SPACE, np.concatenate([people(90, 18, 90), PERSON[None, :]]))
    assert found.assignment_ids.tolist() == [1, 24, 145]  # 18 male, 30 female, 90 male
    assert found.votes.tolist() == [1, 1, 2]
    assert found.total == 4


def test_votes_may_be_given_by_the_sensitive_values() -> None:
    found = VoteWeights.of(SPACE, {(90, "male"): 2, (18, "female"): 5})
    assert found.assignment_ids.tolist() == [145, 0]
    assert found.votes.tolist() == [2, 5]
    assert found.total == 7


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64])
def test_any_kind_of_whole_number_counts(kind: type[np.integer]) -> None:
    found = VoteWeights(np.array([3, 0], dtype=kind), np.array([1, 2], dtype=kind), SPACE)
    assert found.assignment_ids.dtype == found.votes.dtype == np.int64
    assert found.total == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: VoteWeights(np.array([0.0]), np.array([1]), SPACE),
            "vote weights must be whole numbers",
        ),
        (
            lambda: VoteWeights(np.array([0]), np.array([1.5]), SPACE),
            "vote weights must be whole numbers",
        ),
        (
            lambda: VoteWeights(np.array([0]), np.array([True]), SPACE),
            "vote weights must be whole numbers",
        ),
        (
            lambda: weights([0, 1], [1]),
            r"must list assignments and one count each, got the shapes \(2,\) and \(1,\)",
        ),
        (
            lambda: VoteWeights(np.array([[0]]), np.array([[1]]), SPACE),
            r"must list assignments and one count each, got the shapes \(1, 1\) and \(1, 1\)",
        ),
        (
            lambda: VoteWeights.from_people(SPACE, people(18)[:0]),
            r"must list assignments and one count each, got the shapes \(0,\) and \(0,\)",
        ),
        (lambda: weights([0], [0]), r"must have one vote or more, at most 2\^53 in all"),
        (lambda: weights([0, 1], [5, -1]), "each assignment listed must have one vote or more"),
        (lambda: weights([0], [2**53 + 1]), r"one vote or more, at most 2\^53 in all"),
        (lambda: weights([0, 1], [2**53, 1]), r"one vote or more, at most 2\^53 in all"),
        (lambda: weights([0, 1, 2], [2**62, 2**62, 2**62]), r"at most 2\^53 in all"),
        (lambda: weights([4, 4], [1, 1]), "each assignment must be listed once"),
        (lambda: weights([-1], [1]), "each assignment must be listed once"),
        (
            lambda: VoteWeights.of(SPACE, {(18,): 1}),
            r"an assignment must give values for \['age', 'sex'\], got \(18,\)",
        ),
        (
            lambda: VoteWeights.of(SPACE, {(18, "male", 50.0): 1}),
            r"an assignment must give values for \['age', 'sex'\], got \(18, 'male', 50\.0\)",
        ),
        (
            lambda: weights([0, 146], [1, 1]),
            "an assignment's number must be below 146, got 146",
        ),
    ],
)
def test_weights_that_cannot_be_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


def test_two_to_the_53_votes_are_just_enough() -> None:
    assert weights([0, 1], [2**53 - 1, 1]).total == 2**53
    weights([0, 145], [1, 1]).check(SPACE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VoteWeights.of(SPACE, {(17, "male"): 1}), "'age' must be a whole number from 18"),
        (lambda: VoteWeights.of(SPACE, {("male", 18): 1}), "'age' must be .*got 'male'"),
        (lambda: VoteWeights.of(SPACE, {(18, "mle"): 1}), r"'sex' .* did you mean 'male'\?"),
        (
            lambda: VoteWeights.from_people(SPACE, np.array([[17.0, 0.0, 1.0, 2.0]])),
            r"'age' must be a whole number from 18 to 90, got 17\.0 \(row 0\)",
        ),
    ],
)
def test_an_assignment_nobody_can_have_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        make()


def test_a_real_valued_sensitive_attribute_has_no_weights() -> None:
    space = SPACE.with_sensitive(["income"])
    with pytest.raises(SchemaError, match="'income' has uncountably many values"):
        VoteWeights.from_people(space, PERSON[None, :])


def test_no_votes_at_all_are_refused_for_what_they_are() -> None:
    with pytest.raises(SchemaError, match="must list assignments and one count each"):
        VoteWeights.of(SPACE, {})


@pytest.mark.parametrize(
    "make",
    [
        lambda: VoteWeights.of(WIDE, {(2**24 + 1, 7): 1}),
        lambda: VoteWeights.from_people(WIDE, np.array([[2.0**24 + 1, 7.0]])),
        lambda: VoteWeights(np.array([2**63], dtype=np.uint64), np.array([1]), SPACE),
    ],
)
def test_an_assignment_whose_number_int64_cannot_hold_is_refused(
    make: Callable[[], VoteWeights],
) -> None:
    """Number 2^24 · 2^40 + 6 would wrap around to 6, another assignment's."""
    with pytest.raises(SchemaError, match=r"assignment|counterparts"):
        make()
