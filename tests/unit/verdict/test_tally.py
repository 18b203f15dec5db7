from itertools import product
from typing import Literal, cast

import numpy as np
import pytest

from feta import EngineError, Tally

Ties = Literal["first", "last"]


def tally(favorable: int, unfavorable: int, undecided: int) -> Tally:
    return Tally(np.array([[unfavorable, favorable]]), np.array([undecided]), np.array([True]))


@pytest.mark.parametrize(
    ("favorable", "unfavorable", "decision"),
    [(2, 2, True), (1, 2, False), (2, 1, True), (0, 0, True)],
)
def test_the_majority_decides_and_a_tie_is_favorable(
    favorable: int, unfavorable: int, *, decision: bool
) -> None:
    counts = tally(favorable, unfavorable, 0)
    assert counts.decision.tolist() == [decision]
    assert counts.decided.tolist() == [favorable + unfavorable > 0]  # nobody votes: no decision
    assert (counts.favorable.tolist(), counts.unfavorable.tolist()) == ([favorable], [unfavorable])


@pytest.mark.parametrize(
    ("favorable", "unfavorable", "undecided", "decided"),
    [
        (3, 1, 2, True),  # a tie at worst, and a tie is favorable
        (3, 1, 3, False),
        (1, 3, 2, False),  # a tie at best, which would be favorable
        (1, 4, 2, True),
        (0, 0, 1, False),
    ],
)
def test_a_majority_is_decided_when_the_undecided_cannot_change_it(
    favorable: int, unfavorable: int, undecided: int, *, decided: bool
) -> None:
    assert tally(favorable, unfavorable, undecided).decided.tolist() == [decided]


def several(counts: list[int], undecided: int, ties_to: Ties) -> Tally:
    return Tally(np.array([counts]), np.array([undecided]), np.array([True]), ties_to)


@pytest.mark.parametrize(
    ("counts", "first", "last"),
    [
        ([3, 1, 2], 0, 0),
        ([1, 2, 3], 2, 2),
        ([2, 2, 1], 0, 1),
        ([1, 2, 2], 1, 2),
        ([2, 1, 2], 0, 2),
        ([0, 0, 0], 0, 2),
    ],
)
def test_the_class_with_most_votes_wins_and_the_rule_decides_ties(
    counts: list[int], first: int, last: int
) -> None:
    for ties_to, winner in (("first", first), ("last", last)):
        votes = several(counts, 0, cast("Ties", ties_to))
        assert votes.winner.tolist() == [winner]
        assert votes.decided.tolist() == [sum(counts) > 0]


@pytest.mark.parametrize(
    ("counts", "undecided", "first", "last"),
    [
        ([3, 1, 0], 2, True, False),  # the second class can only tie
        ([3, 1, 0], 1, True, True),
        ([3, 1, 0], 3, False, False),
        ([0, 1, 3], 2, False, True),
        ([0, 1, 3], 1, True, True),
        ([1, 3, 1], 2, False, False),  # with either rule, another class wins ties
        ([1, 3, 1], 1, True, True),
        ([2, 2, 0], 1, False, False),  # the last vote decides
        ([2, 2, 0], 0, True, True),
        ([0, 0, 0], 1, False, False),
    ],
)
def test_a_winner_of_several_classes_is_decided_when_no_other_can_catch_up(
    counts: list[int], undecided: int, *, first: bool, last: bool
) -> None:
    assert several(counts, undecided, "first").decided.tolist() == [first]
    assert several(counts, undecided, "last").decided.tolist() == [last]


@pytest.mark.parametrize("ties_to", ["first", "last"])
@pytest.mark.parametrize("undecided", range(5))
def test_decided_matches_every_possible_end_of_the_count(undecided: int, ties_to: Ties) -> None:
    for counts in product(range(4), repeat=3):
        winners = {
            int(several([a + b for a, b in zip(counts, more, strict=True)], 0, ties_to).winner[0])
            for more in product(range(undecided + 1), repeat=3)
            if sum(more) == undecided
        }
        votes = several(list(counts), undecided, ties_to)
        has_votes = sum(counts) + undecided > 0
        assert votes.decided.tolist() == [len(winners) == 1 and has_votes]
        if len(winners) == 1:
            assert set(votes.winner.tolist()) == winners


@pytest.mark.parametrize(
    ("counts", "unanimous"), [([4, 0, 0], True), ([0, 0, 1], True), ([1, 0, 1], False)]
)
def test_a_unanimous_tally_has_one_class_only(counts: list[int], *, unanimous: bool) -> None:
    assert several(counts, 0, "first").unanimous.tolist() == [unanimous]


@pytest.mark.parametrize("name", ["favorable", "unfavorable", "decision"])
def test_favorable_needs_two_classes(name: str) -> None:
    message = "no favorable class in this tally: got 3 classes; expected 2; use by_class"
    with pytest.raises(EngineError, match=message):
        getattr(several([1, 1, 1], 0, "first"), name)


def test_people_are_counted_row_by_row() -> None:
    counts = Tally(
        np.array([[2, 2, 0], [0, 1, 5]]), np.array([1, 1]), np.array([True, True]), "first"
    )
    assert counts.winner.tolist() == [0, 2]
    assert counts.decided.tolist() == [False, True]
