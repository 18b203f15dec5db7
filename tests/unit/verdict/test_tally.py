import numpy as np
import pytest

from feta import Tally


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
    assert counts.settled.tolist() == [True]
    assert (counts.favorable.tolist(), counts.unfavorable.tolist()) == ([favorable], [unfavorable])


@pytest.mark.parametrize(
    ("favorable", "unfavorable", "undecided", "settled"),
    [
        (3, 1, 2, True),  # a tie at worst, and a tie is favorable
        (3, 1, 3, False),
        (1, 3, 2, False),  # a tie at best, which would be favorable
        (1, 4, 2, True),
        (0, 0, 1, False),
    ],
)
def test_a_majority_is_settled_when_the_undecided_cannot_turn_it(
    favorable: int, unfavorable: int, undecided: int, *, settled: bool
) -> None:
    assert tally(favorable, unfavorable, undecided).settled.tolist() == [settled]
