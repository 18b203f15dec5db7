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
    result = VoteWeights.from_people(SPACE, np.concatenate([people(90, 18, 90), PERSON[None, :]]))
    assert result.assignment_ids.tolist() == [1, 24, 145]  # 18 male, 30 female, 90 male
    assert result.votes.tolist() == [1, 1, 2]
    assert result.total == 4


def test_votes_may_be_passed_by_sensitive_values() -> None:
    result = VoteWeights.of(SPACE, {(90, "male"): 2, (18, "female"): 5})
    assert result.assignment_ids.tolist() == [145, 0]
    assert result.votes.tolist() == [2, 5]
    assert result.total == 7


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64])
def test_all_integer_types_are_accepted(kind: type[np.integer]) -> None:
    result = VoteWeights(np.array([3, 0], dtype=kind), np.array([1, 2], dtype=kind), SPACE)
    assert result.assignment_ids.dtype == result.votes.dtype == np.int64
    assert result.total == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: VoteWeights(np.array([0.0]), np.array([1]), SPACE),
            "^invalid vote weights: got arrays of float64 and int64; expected integers",
        ),
        (
            lambda: VoteWeights(np.array([0]), np.array([1.5]), SPACE),
            "^invalid vote weights: got arrays of int64 and float64; expected integers",
        ),
        (
            lambda: VoteWeights(np.array([0]), np.array([True]), SPACE),
            "^invalid vote weights: got arrays of int64 and bool; expected integers",
        ),
        (
            lambda: weights([0, 1], [1]),
            r"^invalid vote weights: got arrays of the shapes \(2,\) and \(1,\); expected a list",
        ),
        (
            lambda: VoteWeights(np.array([[0]]), np.array([[1]]), SPACE),
            r"got arrays of the shapes \(1, 1\) and \(1, 1\); expected a list of assignments",
        ),
        (
            lambda: VoteWeights.from_people(SPACE, people(18)[:0]),
            r"got arrays of the shapes \(0,\) and \(0,\); expected .* one count each",
        ),
        (
            lambda: weights([0], [0]),
            "got 0 votes; expected one vote or more for each",
        ),
        (
            lambda: weights([0, 1], [5, -1]),
            "got -1 votes; expected one vote or more for each",
        ),
        (
            lambda: weights([0], [2**53 + 1]),
            r"got 9007199254740993 votes in all; expected at most 2\^53",
        ),
        (
            lambda: weights([0, 1], [2**53, 1]),
            r"got 9007199254740993 votes in all; expected at most 2\^53",
        ),
        (lambda: weights([0, 1, 2], [2**62, 2**62, 2**62]), r"expected at most 2\^53"),
        (
            lambda: weights([4, 4], [1, 1]),
            "^invalid assignment ids: got 4 more than once; expected each assignment once",
        ),
        (lambda: weights([-1], [1]), "^invalid assignment id: got -1; expected .* from 0 to 145"),
        (
            lambda: VoteWeights.of(SPACE, {(18,): 1}),
            r"^invalid assignment: got \(18,\); expected values for \['age', 'sex'\]",
        ),
        (
            lambda: VoteWeights.of(SPACE, {(18, "male", 50.0): 1}),
            r"^invalid assignment: got \(18, 'male', 50\.0\); expected values for \['age', 'sex'\]",
        ),
        (
            lambda: weights([0, 146], [1, 1]),
            "^invalid assignment id: got 146; expected a number from 0 to 145",
        ),
    ],
)
def test_invalid_weights_are_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


def test_two_to_the_53_votes_are_accepted() -> None:
    assert weights([0, 1], [2**53 - 1, 1]).total == 2**53
    weights([0, 145], [1, 1]).check(SPACE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: VoteWeights.of(SPACE, {(17, "male"): 1}),
            "'age' is invalid: got 17; expected an integer",
        ),
        (
            lambda: VoteWeights.of(SPACE, {("male", 18): 1}),
            "'age' is invalid: got 'male'; expected",
        ),
        (lambda: VoteWeights.of(SPACE, {(18, "mle"): 1}), r"'sex' .* did you mean 'male'\?"),
        (
            lambda: VoteWeights.from_people(SPACE, np.array([[17.0, 0.0, 1.0, 2.0]])),
            r"'age' is invalid: got 17\.0; expected an integer from 18 to 90 \(row 0\)",
        ),
    ],
)
def test_an_impossible_assignment_is_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        make()


def test_a_real_valued_sensitive_attribute_has_no_weights() -> None:
    space = SPACE.with_sensitive(["income"])
    with pytest.raises(SchemaError, match="'income' has uncountably many values"):
        VoteWeights.from_people(space, PERSON[None, :])


def test_empty_weights_are_rejected() -> None:
    with pytest.raises(
        SchemaError, match=r"^invalid vote weights: .*; expected a list of assignments, one or more"
    ):
        VoteWeights.of(SPACE, {})


@pytest.mark.parametrize(
    "make",
    [
        lambda: VoteWeights.of(WIDE, {(2**24 + 1, 7): 1}),
        lambda: VoteWeights.from_people(WIDE, np.array([[2.0**24 + 1, 7.0]])),
        lambda: VoteWeights(np.array([2**63], dtype=np.uint64), np.array([1]), SPACE),
    ],
)
def test_an_assignment_id_beyond_int64_is_rejected(
    make: Callable[[], VoteWeights],
) -> None:
    """The id 2^24 · 2^40 + 6 would wrap around to 6, the id of another assignment."""
    with pytest.raises(SchemaError, match=r"assignment|counterparts"):
        make()
