"""Rows whose answers are known: found again only if all of them are certain."""

import numpy as np
import pytest

from feta.scorer.counted import known_rows
from feta.scorer.counted.answers import Answers
from feta.scorer.counted.known_rows import KnownRows

ROWS = np.array([[1.0, 9.0, 0.0], [2.0, 8.0, -0.0], [3.0, 7.0, 0.0]])
VALUES = np.array([[0.1], [0.2], [0.3]])


def test_rows_are_found_by_the_columns_that_reach_the_model() -> None:
    known = KnownRows(np.array([0, 2]))
    known.add(ROWS, Answers(VALUES, np.zeros(3)))
    other = np.array([[3.0, 55.0, -0.0], [1.0, 55.0, 0.0]])
    found = known.find(other)
    assert found is not None
    assert found.values.tolist() == [[0.3], [0.1]]
    assert not found.radii.any()
    assert known.find(np.array([[1.0, 9.0, 0.0], [4.0, 9.0, 0.0]])) is None
    assert known.find(ROWS[:0]) is None
    known.clear()
    assert known.find(ROWS) is None


@pytest.mark.parametrize(
    "answers",
    [Answers(VALUES, np.array([0.0, np.inf, 0.0])), Answers(VALUES, np.zeros(3), complete=False)],
)
def test_rows_in_doubt_are_not_remembered(answers: Answers) -> None:
    known = KnownRows(np.arange(3))
    known.add(ROWS, answers)
    assert known.find(ROWS[:1]) is None


def test_the_oldest_rows_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_rows, "MAX_ROWS", 4)
    known = KnownRows(np.arange(3))
    known.add(ROWS, Answers(VALUES, np.zeros(3)))
    known.add(ROWS + 10, Answers(VALUES, np.zeros(3)))
    assert known.find(ROWS[:1]) is None
    assert known.find(ROWS + 10) is not None
