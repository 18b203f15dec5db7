"""Votes by graded ballots, with few counterparts, against sums by hand."""

from fractions import Fraction
from typing import Any

import pytest

from feta_check.means import GRADE, Means
from feta_check.rules import Rule


class File:
    """A file with one threshold, at 0, and two grades."""

    def vector(self, name: str) -> list[Any]:
        stored: dict[str, list[Any]] = {"votes.thresholds": [0.0], "votes.grades": [1, GRADE]}
        return stored[name]


CASES = [
    # Votes of the two grades, the level, and the decisions if scores favor above, and below.
    ((3, 1), 0.5, (0, 1)),
    ((1, 3), 0.5, (1, 0)),
    ((0, 2), 1.0, (1, 1)),
    ((1, 2**20), 1.0, (0, 1)),
    ((2, 0), 2.0**-20, (1, 1)),
]


@pytest.mark.parametrize(("votes", "level", "expected"), CASES)
def test_the_mean_of_the_grades_decides(
    votes: tuple[int, int], level: float, expected: tuple[int, int]
) -> None:
    entry = {"graded": True, "level": level.hex(), "vote": "mean_probability"}
    means = Means(File(), entry)  # type: ignore[arg-type]  # what it reads of a file
    points = [(count, [score]) for count, score in zip(votes, (-1, 0), strict=True)]
    for favors, decision in zip(("above", "below"), expected, strict=True):
        rule = {"kind": "Threshold", "value": 0, "favors": favors, "equality": "favorable"}
        assert means.decide(points, Rule(rule, Fraction(1))) == decision
